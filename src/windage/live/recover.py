"""What can be saved of a damaged journal: its longest beginning in which every event is sound."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from windage.atomic_io import as_path
from windage.errors import InputError, JournalError
from windage.live.events import DECIDED, EXPIRED, OBSERVED
from windage.live.head import head_path, read_note
from windage.live.pages import Row, salvage
from windage.live.writer import Writer

__all__ = ["Recovery", "recover"]


@dataclass(frozen=True)
class Recovery:
    """What was saved, and what is missing.

    Attributes
    ----------
    path
        The new journal.
    events
        How many events it holds: the first ones of the old.
    acknowledged
        How many the old journal's head says there were; None if no head can be read.
    seen
        Numbers of later rows that were committed and are not sound, or follow one that is not.
    doubtful
        How many later rows stand after a damaged place of the log: they may have been committed, or
        be left over from a batch that was taken back.
    pending
        Decisions that wait for an outcome in the new journal.
    """

    path: Path
    events: int
    acknowledged: int | None
    seen: frozenset[int]
    pending: tuple[int, ...]
    doubtful: int = 0

    @property
    def missing(self) -> int | None:
        """How many events are missing at least; None if nobody knows."""
        known = [*self.seen, *([self.acknowledged] if self.acknowledged is not None else [])]
        missing = max(max(known) - self.events, 0) if known else None
        return None if missing == 0 and self.doubtful else missing


def recover(path: str | Path, target: str | Path) -> Recovery:
    """Save the longest sound beginning of a journal into a new one; the old is only read.

    Every event that is saved has the place, the content and the chain it was written with: nothing
    is guessed and nothing is put together.
    """
    source, goal = as_path(path), as_path(target, "target")
    if not source.is_file():
        raise JournalError(
            "there is no such file", field=str(source), fix="pass the path of a journal"
        )
    if goal.exists() or head_path(goal).exists():
        raise InputError("exists already", field=str(goal), fix="name a new file")
    note = read_note(source)
    rows, seen, doubtful = salvage(source, note)
    if not rows:
        raise JournalError(
            "not even its first event could be saved", field=str(source), fix="go to a backup"
        )
    if note and 0 < note.n <= len(rows) and rows[note.n - 1][-1].hex() != note.chain:
        raise JournalError(
            f"event {note.n} is not the one that was acknowledged: somebody has rewritten the end",
            field=str(source),
            fix="go to a backup; nothing here tells which of its events are true",
        )
    _write(goal, rows)
    return Recovery(
        goal,
        len(rows),
        note.n if note else None,
        frozenset(seen),
        tuple(sorted(_waiting(rows))),
        len(doubtful),
    )


def _write(goal: Path, rows: list[Row]) -> None:
    journal = Writer(goal)
    try:
        with journal.writing():
            for row in rows:
                journal.insert(row)
        journal.require_chain(1)
    except BaseException:
        with suppress(sqlite3.Error):
            journal.close()
        for file in (goal, head_path(goal)):
            file.unlink(missing_ok=True)
        raise
    journal.close()


def _waiting(rows: list[Row]) -> set[int]:
    """Return the decisions whose outcome is not among the events."""
    ended = {row[3] for row in rows if row[2] in (OBSERVED, EXPIRED)}
    return {row[0] for row in rows if row[2] == DECIDED} - ended
