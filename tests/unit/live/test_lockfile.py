"""One journal, several names: whoever opens it meets the same lock, log and head."""

from __future__ import annotations

import os

import pytest

import windage as wd
from tests.live_loops import loop, swucrl
from windage.live.lockfile import head_path, writer_of
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
