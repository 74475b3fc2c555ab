"""A full disk: no acknowledgement, the fallback or a clear error; on it goes when there is room.

Three ways to run out of room: a small file system of its own where one can be mounted, a limit the
kernel puts on the size of files, and a limit of SQLite's own. The last two work everywhere.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import windage as wd
from tests.live_loops import loop, outcome, swucrl, twin_loop

ROOT = Path(__file__).parents[2]


def until_full(live, s, start):
    """Go on until the journal takes no more.

    Returns how many steps were acknowledged, the state, and the outcome that could not be written,
    if it was not the next decision that failed.
    """
    for i in range(start, start + 100_000):
        d = live.decide(s)
        if d.fallback:
            return i, s, None
        told = (d.id, *outcome(s, d.action, i))
        try:
            live.observe(*told)
        except wd.JournalError as err:
            return i, s, (told, str(err))
        s = told[-1]
    raise AssertionError("it never ran full")


def check_full_and_room_again(path, fill, make_room):
    """Play the whole scene; `fill` leaves a journal little room, `make_room` takes that back."""
    with wd.live.open(path, swucrl(), fallback=[1, 2, 0]) as live:
        _, s = loop(live, 5)
        fill(live)
        i, s, untold = until_full(live, s, 5)
        d = live.decide(s)
        assert d.id == 0
        assert d.action == [1, 2, 0][s]
        assert ("could not be written" if untold else "cannot be written") in d.fallback
        assert live.by_fallback == 1 + (untold is None)
        assert live.observe(d.id, 1.0, 0).how == "fallback", "nothing is learned from it"
        twin = swucrl()
        twin_loop(twin, i)
        if untold:
            twin.act(s)
        assert live.agent.state() == twin.state(), "the failed call left nothing behind"
        make_room(live)
        if untold:
            told, why = untold
            assert "cannot be written" in why
            assert live.observe(*told).how == "learned"
            twin.observe(s, live_action(live, told[0]), *told[1:])
            s, i = told[-1], i + 1
        assert live.agent.state() == twin.state()
        d = live.decide(s)
        assert not d.fallback
        assert d.action == twin.act(s)
    with wd.live.open(path, swucrl()) as live:
        assert live.agent.state() == twin.state()
        assert live.journal.n == 2 + 2 * i, "every acknowledged event once, and no other"
    return i


def live_action(live, number):
    ((action,),) = live.journal.all("SELECT action FROM events WHERE n = ?", number)
    return action


def pages(live, count=None):
    limit = "" if count is None else f" = {count}"
    return live.journal._connection().execute(f"PRAGMA max_page_count{limit}").fetchone()[0]


def test_sqlite_says_the_disk_is_full(tmp_path):
    most = []

    def fill(live):
        most.append(pages(live))
        (used,) = live.journal._connection().execute("PRAGMA page_count").fetchone()
        pages(live, used + 1)

    check_full_and_room_again(tmp_path / "a.journal", fill, lambda live: pages(live, most[0]))


def test_without_a_fallback_a_full_disk_is_a_clear_error(tmp_path):
    with wd.live.open(tmp_path / "a.journal", swucrl()) as live:
        _, s = loop(live, 5)
        d = live.decide(s)
        (used,) = live.journal._connection().execute("PRAGMA page_count").fetchone()
        most = pages(live)
        pages(live, used)
        with pytest.raises(wd.JournalError, match=r"cannot be written .*disk is full"):
            on_and_on(live, d)
        waiting, n = live.pending, live.journal.n
        pages(live, most)
        if waiting is not None:
            live.observe(waiting.id, 1.0, 0)
        else:
            live.decide(0)
        assert live.journal.n == n + 1


def on_and_on(live, d):
    while True:
        live.observe(d.id, 1.0, 0)
        d = live.decide(0)


@pytest.mark.parametrize("way", ["files may not grow", "a small file system"])
def test_the_kernel_says_there_is_no_room(tmp_path, way):
    """In a process of its own: the limit is one of the process, the file system one of its view."""
    command = [sys.executable, "-m", "tests.reliability.full_disk", str(tmp_path)]
    if way == "a small file system" and can_mount(tmp_path):
        command = ["unshare", "--user", "--map-root-user", "--mount", *command, "mounted"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    print(found)
    assert found["steps"] > 5


def test_a_journal_is_opened_where_there_is_no_room(tmp_path):
    if not can_mount(tmp_path):
        pytest.skip("no file system of one's own can be mounted here")
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-m",
         "tests.reliability.full_disk", str(tmp_path), "opened"],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"way": "opened", "steps": 3 + 8 + 8}


def can_mount(folder):
    try:
        tried = subprocess.run(
            ["unshare", "--user", "--map-root-user", "--mount",
             "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)],
            capture_output=True, check=False,
        )  # fmt: skip
    except OSError:
        return False
    return tried.returncode == 0
