"""Bit flips and cuts anywhere in a journal of 1,000 events: seen, and nothing is invented."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import windage as wd
from tests.conftest import RELIABILITY
from tests.live_loops import loop, swucrl
from windage.live import history
from windage.live.journal import Journal
from windage.live.maintenance import verify
from windage.live.salvage import recover
from windage.live.schema import Event

CASES = 500 if RELIABILITY else 25
ALL = "TRUE ORDER BY n"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The same journal closed in order, and as a killed process would have left it."""
    patch = pytest.MonkeyPatch()
    patch.setattr(history, "SNAPSHOT_STEPS", 60)
    closed, killed = (tmp_path_factory.mktemp(name) for name in ("closed", "killed"))
    live = wd.live.open(closed / "a.journal", swucrl())
    with live.batch():
        _, s = loop(live, 400)
    live.journal._connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    _, s = loop(live, 99, start=400, s=s)  # these stand in the log
    live.decide(s)
    events, state = live.journal.events(ALL), live.agent.state()
    assert len(events) == 1000
    for file in closed.iterdir():
        if not file.name.endswith("-shm"):
            shutil.copy(file, killed)
    live.close()
    patch.undo()
    return {"closed": closed, "killed": killed, "events": events, "state": state}


def flip(data, rng):
    place = int(rng.integers(8 * len(data)))
    changed = bytearray(data)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed), f"bit {place}"


def cut(data, rng):
    page = 4096
    ends = [0, int(rng.integers(len(data))), page * int(rng.integers(len(data) // page + 1))]
    end = ends[int(rng.integers(3))]
    return data[:end], f"cut at {end}"


def damaged_copies(whole, form, damage, folder, cases):
    """Give copies of a journal, each damaged once, in one of its files by their size."""
    rng = np.random.default_rng(5)
    files = sorted(whole[form].iterdir())
    sizes = np.array([max(file.stat().st_size, 4096) for file in files], float)
    for case in range(cases):
        place = folder / f"{form}{case}"
        shutil.copytree(whole[form], place)
        file = files[rng.choice(len(files), p=sizes / sizes.sum())]
        data, what = damage(file.read_bytes(), rng)
        if data != file.read_bytes():
            (place / file.name).write_bytes(data)
            yield place / "a.journal", f"{file.name}: {what}"
        shutil.rmtree(place)


def content(path):
    """All events of a journal whose chain is whole; None if it cannot be read."""
    try:
        journal = Journal(path)
        journal.require_chain(1)
        events = journal.events(ALL)
    except wd.JournalError:
        return None
    journal.close()
    return events


@pytest.mark.parametrize("damage", [flip, cut])
@pytest.mark.parametrize("form", ["closed", "killed"])
def test_damage_is_seen_and_recover_invents_nothing(whole, form, damage, tmp_path):
    seen = harmless = saved = cases = 0
    for path, what in damaged_copies(whole, form, damage, tmp_path, CASES):
        cases += 1
        before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
        found = verify(path)
        if found.is_sound:  # bytes that hold nothing
            harmless += 1
            assert form == "killed", f"{what}: not seen"
            assert content(path) == whole["events"], f"{what}: not seen, and events differ"
        else:
            seen += 1
        last = events_saved(path, whole["events"], what, "saved.journal")
        saved += last
        after = {name: (path.parent / name).read_bytes() for name in before if "-shm" not in name}
        assert after == {name: before[name] for name in after}, "looking at it changed it"
        if not assert_opens_right_or_not_at_all(path, whole["state"], what):
            again = events_saved(path, whole["events"], what, "again.journal")
            assert again == last, f"{what}: a refused open cost events"
    print(f"{form}, {damage.__name__}: {seen} of {cases} seen, {harmless} harmless; "
          f"{saved / cases:.0f} of 1,000 events saved on average")  # fmt: skip
    assert seen >= 0.5 * cases


def events_saved(path: Path, events: list[Event], what: str, name: str) -> int:
    """Recover a journal; what comes out is a beginning of what was written, to the last byte."""
    try:
        made = recover(path, path.parent / name)
    except wd.JournalError:
        return 0  # not even the first event is left
    assert content(made.path) == events[: made.events], what
    assert verify(made.path).is_sound, what
    return made.events


def assert_opens_right_or_not_at_all(path: Path, state: bytes, what: str) -> bool:
    """Open a journal; returns whether it was opened."""
    try:
        live = wd.live.open(path, swucrl())
    except (wd.JournalError, wd.StateError):
        return False
    assert live.agent.state() == state, f"{what}: opened with another agent"
    live.close()
    return True


def test_events_changed_by_hand_are_seen(whole, tmp_path):
    import sqlite3

    for number, change in enumerate(
        [
            "UPDATE events SET reward = 1 - reward WHERE n = 501",
            "UPDATE events SET at = at + 1 WHERE n = 7",
            "DELETE FROM events WHERE n = 1000",
            "DELETE FROM events WHERE n = 333",
            "UPDATE events SET body = replace(body, '40', '41') WHERE n = 1",
            "UPDATE events SET key = 'x' WHERE n = 900",
        ]
    ):
        path = tmp_path / f"{number}.journal"
        for ending in ("", "-head"):
            shutil.copy(whole["closed"] / f"a.journal{ending}", f"{path}{ending}")
        con = sqlite3.connect(path)
        con.execute(change)
        con.commit()
        con.close()
        assert not verify(path).is_sound, change
