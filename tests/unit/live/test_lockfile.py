"""The files of a journal: one lock, log and head under all its names, and none that are lost."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

import windage as wd
from tests.live_loops import loop, swucrl
from windage.live import journal
from windage.live.journal import Journal
from windage.live.lockfile import head_path, read_head, writer_of
from windage.live.maintenance import verify


@pytest.fixture
def elsewhere(tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder / "mine.journal"


def test_a_symbolic_link_meets_the_same_lock(path, elsewhere):
    elsewhere.symlink_to(path)
    with wd.live.open(path, swucrl()) as live:
        loop(live, 3)
        with pytest.raises(wd.JournalError, match=f"process {os.getpid()} is writing to it"):
            wd.live.open(elsewhere, swucrl())
        assert writer_of(elsewhere) == os.getpid()
        assert wd.live.status(elsewhere).events == 7
    with wd.live.open(elsewhere, swucrl()) as live:
        loop(live, 3)
        with pytest.raises(wd.JournalError, match="is writing to it"):
            wd.live.open(path, swucrl())
    assert [file.name for file in elsewhere.parent.iterdir()] == ["mine.journal"]
    assert verify(path).events == 13
    assert verify(path).remarks == verify(elsewhere).remarks == []


def test_a_link_to_nothing_yet_makes_the_journal_where_it_leads(path, elsewhere):
    elsewhere.symlink_to(path)
    with wd.live.open(elsewhere, swucrl()) as live:
        loop(live, 1)
    assert path.is_file()
    assert head_path(path).is_file()
    assert verify(path).is_sound


@pytest.fixture
def failing(monkeypatch):
    """Makes calls fail as on a broken disk; returns what puts them back."""

    def refuse(*_, **__):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def fail(*calls):
        for place, name in calls:
            monkeypatch.setattr(place, name, refuse)
        return monkeypatch.undo

    return fail


@pytest.mark.parametrize("more", [(), ((Path, "unlink"),)])
def test_a_journal_that_could_not_be_begun_is_begun_later(path, failing, more):
    mend = failing((os, "fsync"), *more)
    with pytest.raises(wd.JournalError, match=r"cannot be written \(Input/output error\)"):
        wd.live.open(path, swucrl())
    mend()
    with wd.live.open(path, swucrl()) as live:
        loop(live, 3)
    assert verify(path).is_sound


def test_a_recovery_that_fails_leaves_no_file(path, failing):
    with wd.live.open(path, swucrl()) as live:
        loop(live, 3)
    goal = path.with_name("saved.journal")
    mend = failing((os, "fsync"))
    with pytest.raises(wd.JournalError, match="cannot be written"):
        wd.live.recover(path, goal)
    mend()
    assert wd.live.recover(path, goal).events == 7


def test_a_recovery_that_can_delete_nothing_says_what_went_wrong_first(path, failing):
    with wd.live.open(path, swucrl()) as live:
        loop(live, 3)
    failing((os, "fsync"), (Path, "unlink"))
    with pytest.raises(wd.JournalError, match="cannot be written"):
        wd.live.recover(path, path.with_name("saved.journal"))


def test_a_first_head_of_which_half_was_written_is_read(path):
    with wd.live.open(path, swucrl()) as live:
        loop(live, 3)
    before, file = read_head(path), head_path(path)
    file.write_bytes(file.read_bytes()[:256].ljust(512, b"\0"))
    assert before is not None
    assert read_head(path) == before


def test_a_ring_of_links_is_refused(path, elsewhere):
    elsewhere.symlink_to(path)
    path.symlink_to(elsewhere)
    with pytest.raises(wd.JournalError, match="cannot be written"):
        wd.live.open(path, swucrl())


@pytest.mark.parametrize("is_running", [True, False])
def test_a_hard_link_is_refused_where_it_has_no_head(path, elsewhere, is_running):
    live = wd.live.open(path, swucrl())
    loop(live, 3)
    os.link(path, elsewhere)
    if not is_running:
        live.close()
    with pytest.raises(wd.JournalError, match="is one of 2 names of a file, and has no head"):
        wd.live.open(elsewhere, swucrl())
    assert [file.name for file in elsewhere.parent.iterdir()] == ["mine.journal"]
    live.close()
    with wd.live.open(path, swucrl()) as live:
        assert live.agent.t == 4, "its own name goes on"


def test_a_folder_of_hard_links_meets_the_same_lock(path, elsewhere):
    with wd.live.open(path, swucrl()) as live:
        loop(live, 3)
        os.link(path, elsewhere)
        os.link(head_path(path), head_path(elsewhere))
        with pytest.raises(wd.JournalError, match=f"process {os.getpid()} is writing to it"):
            wd.live.open(elsewhere, swucrl())


def kept(path):
    """The files of a journal, by the end of their names."""
    return {file.name.removeprefix(path.name): file for file in path.parent.glob(path.name + "*")}


def killed(path, steps=3):
    """Leave a journal as a process that was killed leaves it."""
    with wd.live.open(path, swucrl()) as live:
        loop(live, steps)
        files = {end: file.read_bytes() for end, file in kept(path).items()}
    for end, data in files.items():
        Path(f"{path}{end}").write_bytes(data)


def in_a_child(work):
    """Do some work in a process that was forked, which lives until the block ends."""
    ready, go_on = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go_on[1])
        try:
            work()
            os.write(ready[1], b"1")
            os.read(go_on[0], 1)  # until the parent closes its end
        finally:
            os._exit(0)
    assert os.read(ready[0], 1) == b"1"
    return child, go_on[1]


def test_after_a_kill_the_new_process_is_named_before_it_writes(path):
    killed(path)
    owner = re.search(rb"\d+$", head_path(path).read_bytes())
    head_path(path).write_bytes(head_path(path).read_bytes()[: owner.start()] + b"99999999")
    with wd.live.open(path, swucrl()):
        assert wd.live.status(path).writer == os.getpid()
        with pytest.raises(wd.JournalError, match=f"process {os.getpid()} is writing to it"):
            wd.live.open(path, swucrl())
        (remark,) = verify(path).remarks
        assert f"it is open in process {os.getpid()}" in remark
    assert wd.live.status(path).writer is None


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_child_does_not_keep_the_lock_of_its_parent(path):
    with wd.live.open(path, swucrl()) as live:
        loop(live, 3)
        child, door = in_a_child(lambda: None)
        try:
            with pytest.raises(wd.JournalError, match=f"process {os.getpid()} is writing to it"):
                wd.live.open(path, swucrl())  # the parent has it still
            loop(live, 2, start=3, s=live.agent.last_state)
            live.close()
            assert writer_of(path) is None
            with wd.live.open(path, swucrl()) as again:
                assert again.agent.t == 6
        finally:
            os.close(door)
            os.waitpid(child, 0)


@pytest.mark.parametrize("lost", ["", "-wal", "-head"])
@pytest.mark.parametrize("way", ["removed", "moved", "replaced"])
def test_nothing_is_acknowledged_into_a_file_that_has_lost_its_name(path, lost, way):
    with wd.live.open(path, swucrl(), fallback=[1, 2, 0]) as live:
        _, s = loop(live, 3)
        state, file = live.agent.state(), Path(f"{path}{lost}")
        other, data = path.with_name("other"), file.read_bytes()
        file.rename(other)
        if way == "removed":
            other.unlink()
        if way == "replaced":
            file.write_bytes(data)
        d = live.decide(s)
        assert d.id == 0
        assert "was moved or removed while it was open; nothing of this call is" in d.fallback
        assert live.agent.state() == state
        with pytest.raises(wd.JournalError, match="was moved or removed"):
            live.switch(swucrl(window=20))
        if way != "removed":
            file.unlink(missing_ok=True)
            other.rename(file)
            assert live.decide(s).id > 0, "it was put back"


@pytest.mark.parametrize("look", ["status", "open"])
def test_a_journal_that_is_only_read_or_refused_gets_no_files_beside_it(path, look):
    killed(path)
    for end in ("-wal", "-shm"):
        kept(path)[end].unlink()
    before = {end: file.read_bytes() for end, file in kept(path).items()}
    with pytest.raises(wd.JournalError, match="event 7 was acknowledged: it was cut"):
        wd.live.status(path) if look == "status" else wd.live.open(path, swucrl())
    assert {end: file.read_bytes() for end, file in kept(path).items()} == before


def test_to_look_at_a_closed_journal_leaves_no_files(path):
    with wd.live.open(path, swucrl()) as live:
        loop(live, 3)
    before = {end: file.read_bytes() for end, file in kept(path).items()}
    assert before.keys() == {"", "-head"}
    assert wd.live.status(path).events == 7
    assert verify(path).is_sound
    assert {end: file.read_bytes() for end, file in kept(path).items()} == before


def test_a_writer_that_comes_while_a_closed_journal_is_read_is_noticed(path, monkeypatch):
    with wd.live.open(path, swucrl()) as live:
        loop(live, 3)
    with Journal(path) as reader:
        with wd.live.open(path, swucrl()) as live:
            loop(live, 3, start=3, s=live.agent.last_state)
            assert reader.chain_at(7) is not None, "what is new is in the log"
        with pytest.raises(wd.JournalError, match="was written to while it was read"):
            reader.chain_at(7)
    writers, read = [], journal.read_head

    def come(where):
        if not writers:
            writers.append(None)  # the writer reads heads, too
            writers.append(wd.live.open(path, swucrl()))
            loop(writers[1], 1, start=6, s=writers[1].agent.last_state)
        return read(where)

    monkeypatch.setattr(journal, "read_head", come)
    with Journal(path) as reader:
        assert reader.n == 15
    writers[1].close()


@pytest.mark.parametrize("look", ["status", "open"])
def test_another_kind_of_file_is_not_told_to_be_recovered(path, look):
    path.write_text("date,state,action\n" + "2025-01-01,0,1\n" * 500)
    with pytest.raises(wd.JournalError, match=r"is not a journal. Fix: pass the path of a jou"):
        wd.live.status(path) if look == "status" else wd.live.open(path, swucrl())
    assert kept(path).keys() == {""}


def test_a_journal_whose_first_bytes_are_damaged_is_told_to_be_recovered(path):
    with wd.live.open(path, swucrl()) as live:
        loop(live, 3)
    path.write_bytes(bytes(100) + path.read_bytes()[100:])
    with pytest.raises(wd.JournalError, match="windage live recover"):
        wd.live.open(path, swucrl())
    head_path(path).unlink()
    with pytest.raises(wd.JournalError, match="is not a journal"):
        wd.live.open(path, swucrl())
