"""Around damage: a refused open changes nothing, and recover knows what was committed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys

import pytest

import windage as wd
from tests.live_loops import loop, swucrl
from windage.live.journal import Journal, Writer
from windage.live.lockfile import head_path, read_head
from windage.live.maintenance import verify
from windage.live.salvage import recover
from windage.live.schema import FORMAT, PAGE, Event

ALL = "TRUE ORDER BY n"
KILLED_IN_A_BATCH = """
import os, sys
import windage as wd
from tests.live_loops import swucrl
live = wd.live.open(sys.argv[1], swucrl())
live.journal._connection().execute("PRAGMA cache_size = 10")  # so that it spills into the log
for k in range(int(sys.argv[2])):
    d = live.decide(0, key=f"real {k}")
    live.observe(d.id, 0.5, 0)
try:
    with live.batch():
        for k in range(1500):
            d = live.decide(0, key=f"never {k}")
            live.observe(d.id, 0.5, 0)
            if k % 100 == 0:
                live.journal.all("SELECT 1")  # what was appended goes to SQLite
        if sys.argv[3] == "0":
            os.kill(os.getpid(), 9)
        raise KeyError
except KeyError:
    pass
for k in range(int(sys.argv[3])):
    d = live.decide(0, key=f"later {k}")
    live.observe(d.id, 0.5, 0)
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.journal"


def log_of(path):
    return path.with_name(path.name + "-wal")


def left_by_a_kill(path, steps=50):
    """A journal as a killed process leaves it, its events in the log; returns its events."""
    live = wd.live.open(path.with_name("running.journal"), swucrl())
    loop(live, steps)
    events = live.journal.events(ALL)
    for ending in ("", "-wal", "-head"):
        shutil.copy(f"{live.journal.path}{ending}", f"{path}{ending}")
    live.close()
    return events


def files(path):
    return {
        file.name: file.read_bytes()
        for file in path.parent.iterdir()
        if file.name.startswith(path.name) and not file.name.endswith("-shm")
    }


def refused(path, match):
    before = files(path)
    with pytest.raises(wd.JournalError, match=match) as caught:
        wd.live.open(path, swucrl())
    after = {name: data for name, data in files(path).items() if data or name in before}
    assert after == before, "a refused open changed something"
    return caught.value


def test_a_refused_open_leaves_the_log_to_recover(path):
    events = left_by_a_kill(path)
    data = bytearray(log_of(path).read_bytes())
    data[len(data) // 2] ^= 1
    log_of(path).write_bytes(data)
    error = refused(path, "was acknowledged: it was cut")
    assert f"windage live recover {path} -o NEW" in error.fix
    made = recover(path, path.with_name("saved.journal"))
    assert Journal(made.path).events(ALL) == events
    assert made.missing == 0


def test_after_a_damaged_frame_only_what_the_head_vouches_for_is_saved(path):
    events = left_by_a_kill(path)
    data = bytearray(log_of(path).read_bytes())
    data[len(data) // 2] ^= 1
    log_of(path).write_bytes(data)
    head_path(path).unlink()
    made = recover(path, path.with_name("saved.journal"))
    assert 0 < made.events < len(events)
    assert made.doubtful > 0
    assert made.missing is None


@pytest.mark.parametrize(("before", "after"), [(1, 0), (5, 3)])
def test_recover_saves_nothing_of_a_batch_that_never_ended(path, before, after):
    arguments = [sys.executable, "-c", KILLED_IN_A_BATCH, str(path), str(before), str(after)]
    subprocess.run(
        arguments, check=False, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    )
    acknowledged = 1 + 2 * (before + after)
    assert read_head(path).n == acknowledged
    assert log_of(path).stat().st_size > 50 * PAGE, "the batch has not reached the log"
    made = recover(path, path.with_name("saved.journal"))
    assert made.events == made.acknowledged == acknowledged
    assert made.missing in (0, None)
    keys = Journal(made.path).all("SELECT count(*) FROM events WHERE key LIKE 'never%'")
    assert keys == [(0,)]
    head_path(path).unlink()
    assert recover(path, path.with_name("again.journal")).events == acknowledged


def rewritten(path, first):
    """Rewrite the events from `first` on so that their own chain is whole."""
    con = sqlite3.connect(path)
    events = [Event(*row) for row in con.execute("SELECT * FROM events ORDER BY n")]
    chain = events[first - 2].chain
    for event in events[first - 1 :]:
        moved = event._replace(at=event.at + 1)
        chain = moved.chain_after(chain)
        con.execute("UPDATE events SET at = ?, chain = ? WHERE n = ?", (moved.at, chain, moved.n))
    con.commit()
    con.close()


def test_recover_refuses_a_rewritten_end(path):
    with wd.live.open(path, swucrl()) as live:
        loop(live, 20)
    rewritten(path, 30)
    with pytest.raises(wd.JournalError, match="event 41 is not the one that was acknowledged"):
        recover(path, path.with_name("saved.journal"))
    assert not path.with_name("saved.journal").exists()


def test_damage_before_the_last_snapshot_is_seen_on_opening(path):
    with wd.live.open(path, swucrl()) as live, live.batch():
        loop(live, 1100)
    con = sqlite3.connect(path)
    assert con.execute("SELECT count(*) FROM snapshots").fetchone() > (0,)
    con.execute("UPDATE events SET reward = 1 - reward WHERE n = 101")
    con.commit()
    con.close()
    refused(path, "event 101 is not what was written")


def test_a_file_that_is_not_as_it_was_closed_is_refused_and_stays_so(path):
    with wd.live.open(path, swucrl()) as live:
        loop(live, 5)
    con = sqlite3.connect(path)
    con.execute("INSERT INTO rejected VALUES (1, 2, 0, 'x', 'y')")  # no event of the chain
    con.commit()
    con.close()
    for _ in range(2):
        refused(path, "is not as it was closed")
        assert "the file is not as it was closed" in verify(path).problems


def test_a_journal_opened_and_closed_without_an_event_is_sealed_again(path):
    wd.live.open(path, swucrl()).close()
    for _ in range(2):
        wd.live.open(path, swucrl()).close()
        assert verify(path).is_sound
        assert read_head(path).seal


@pytest.mark.parametrize("has_log", [True, False])
def test_a_journal_of_a_newer_version_is_left_alone(path, has_log):
    live = wd.live.open(path.with_name("running.journal"), swucrl())
    loop(live, 3)
    live.journal._connection().execute(f"PRAGMA user_version = {FORMAT + 1}")
    if not has_log:
        live.close()
    for ending in ("", "-head", *(["-wal"] if has_log else [])):
        shutil.copy(f"{live.journal.path}{ending}", f"{path}{ending}")
    live.close()
    refused(path, "by a newer version")
    with pytest.raises(wd.JournalError, match="by a newer version"):
        recover(path, path.with_name("saved.journal"))
    assert verify(path).fix == "use the version that wrote it"


def test_a_copy_without_log_and_head_is_known_as_a_journal(path, tmp_path):
    live = wd.live.open(path, swucrl())
    copy = tmp_path / "copy.journal"
    shutil.copy(path, copy)
    live.close()
    assert [event.kind for event in Journal(copy).events(ALL)] == ["created"]


def test_a_file_that_has_lost_its_log_is_not_started_anew(path):
    con = sqlite3.connect(path)
    con.execute("PRAGMA journal_mode = WAL")
    con.close()
    assert path.stat().st_size == PAGE
    for _ in range(2):
        refused(path, "holds nothing: it was copied without its log")
        assert not head_path(path).exists()


def test_a_process_killed_before_its_first_event_may_start_again(path):
    con = sqlite3.connect(path)
    con.execute("PRAGMA journal_mode = WAL")
    con.close()
    head_path(path).touch()
    with wd.live.open(path, swucrl()) as live:
        loop(live, 2)
    assert verify(path).is_sound


def counted_walks(monkeypatch):
    """How many rows are checked against the chain from here on."""
    from windage.live import journal

    checked, end_of_chain = [], journal.end_of_chain

    def counting(events, *at):
        checked.extend(kept := list(events))
        return end_of_chain(kept, *at)

    monkeypatch.setattr(journal, "end_of_chain", counting)
    return checked


def test_what_is_as_it_was_closed_is_not_walked_through_again(path, monkeypatch):
    with wd.live.open(path, swucrl()) as live:
        loop(live, 20)
        state = live.agent.state()
    rows = counted_walks(monkeypatch)
    with wd.live.open(path, swucrl()) as live:
        assert live.agent.state() == state
        assert rows == []
        loop(live, 3)
    assert rows == []
    assert verify(path).is_sound
    assert len(rows) == 47, "verify looks at every event"


def test_what_a_kill_leaves_is_walked_through_once(path, monkeypatch):
    events = left_by_a_kill(path)
    rows = counted_walks(monkeypatch)
    journal = Writer(path)
    journal.require_chain(1)
    assert len(rows) == len(events)
    journal.close()
