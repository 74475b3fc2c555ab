"""One SQLite file of events, as anybody may read it at any time."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from windage.atomic_io import as_path
from windage.errors import JournalError
from windage.live.events import COLUMNS, FORMAT, ROOT, Event, chained
from windage.live.failures import damaged, newer, unreadable
from windage.live.head import Note, beside, read_note
from windage.live.tables import MARK

__all__ = ["WAIT", "Journal", "has_log", "require_bytes", "walk"]

WAIT = 10.0  # seconds: a reader may hold a checkpoint up, never a commit


class Journal:
    """A journal as a reader sees it; a running writer is not disturbed."""

    def __init__(self, path: str | Path) -> None:
        self.path = as_path(path)
        self.lock = threading.RLock()
        """Whoever reads or writes several things that belong together holds it."""
        self._con: sqlite3.Connection | None = None
        self._open()

    def _open(self) -> None:
        if not self.path.is_file():
            raise JournalError(
                "there is no such file", field=str(self.path), fix="pass the path of a journal"
            )
        require_bytes(self.path)
        self._connect_to_read()
        self._require_format()
        self._connection().execute("BEGIN")  # from the first row read on: one moment of the journal
        self._find_end()
        if self.n == 0:
            self.close()
            raise JournalError(
                "holds no events", field=str(self.path), fix="pass the path of a journal"
            )

    def _connect_to_read(self) -> None:
        name = quote(str(self.path.absolute()))
        self._con = sqlite3.connect(
            f"file:{name}?mode=ro", uri=True, isolation_level=None, check_same_thread=False,
            timeout=WAIT,
        )  # fmt: skip
        self._con.execute("PRAGMA query_only = ON")

    def _tables(self) -> int:
        with self.reading() as con:
            return int(con.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])

    def _require_format(self) -> None:
        with self.reading() as con:
            (mark,), (form,) = (
                con.execute(f"PRAGMA {name}").fetchone()
                for name in ("application_id", "user_version")
            )
        if mark == 0 and self.path.stat().st_size > 0 and self._tables() == 0:
            raise damaged(self.path, "holds nothing: it was copied without its log, or cut")
        if mark != MARK:
            raise JournalError(
                "is not a journal", field=str(self.path), fix="pass the path of a journal"
            )
        if form != FORMAT:
            raise newer(self.path, form)

    def _find_end(self) -> None:
        note = read_note(self.path)  # first: a running writer may add to both between two looks
        with self.reading() as con:
            last = con.execute("SELECT n, chain FROM events ORDER BY n DESC LIMIT 1").fetchone()
        self.n: int = last[0] if last else 0
        """How many events there are."""
        self.chain: bytes = last[1] if last else ROOT
        """The chain of the last one."""
        self._sound = self.n + 1  # from here on the chain has been checked
        require_whole(self.path, note, self)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give the connection; what SQLite finds wrong with the file is a typed error."""
        try:
            yield self._connection()
        except (sqlite3.Error, UnicodeDecodeError) as err:  # its messages may quote damaged bytes
            raise unreadable(self.path, err) from None

    def _connection(self) -> sqlite3.Connection:
        if self._con is None:
            raise JournalError("is closed", field=str(self.path), fix="open it again")
        return self._con

    def all(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self.reading() as con:
            return con.execute(query, values).fetchall()

    def events(self, where: str, *values: Any) -> list[Event]:
        """Return the events that a condition, and an order, select."""
        query = f"SELECT {COLUMNS} FROM events WHERE {where}"  # noqa: S608 - no input in it
        return [Event(*row) for row in self.all(query, *values)]

    def chain_at(self, n: int) -> bytes | None:
        """Return the chain of an event as it is kept; None if there is no such event."""
        rows = self.all("SELECT chain FROM events WHERE n = ?", n)
        return ROOT if n == 0 else rows[0][0] if rows else None

    def require_chain(self, first: int = 1) -> None:
        """Check every event from number `first` to the end against the chain, once."""
        if first >= self._sound:
            return
        before = self.chain_at(first - 1)
        if before is None:
            raise damaged(self.path, f"event {first - 1} is missing")
        query = f"SELECT {COLUMNS}, chain FROM events WHERE n >= ? AND n <= ? ORDER BY n"  # noqa: S608
        with self.reading() as con:
            rows = con.execute(query, (first, self._sound))
            n = walk(rows, first, before)
        if n <= min(self._sound, self.n):
            raise damaged(self.path, f"event {n} is not what was written")
        self._sound = first

    def close(self) -> None:
        """Let the file go."""
        if self._con is not None:
            self._con.close()
            self._con = None


def walk(rows: Iterable[tuple[Any, ...]], first: int, before: bytes) -> int:
    """Return the number after the last event that is sound: in its place and in the chain.

    Each row is an event and its chain, in the order of their numbers from `first` on.
    """
    n = first
    for row in rows:
        if row[0] != n or not isinstance(row[0], int):
            return n
        before = chained(before, row[:-1])
        if before != row[-1]:
            return n
        n += 1
    return n


def require_whole(path: Path, note: Note | None, journal: Journal) -> None:
    """Refuse a journal that ends before, or beside, what its writer has acknowledged."""
    if note is None or note.n == 0:
        return
    chain = journal.chain_at(note.n)
    if chain is None:
        raise damaged(
            path, f"ends at event {journal.n}, but event {note.n} was acknowledged: it was cut"
        )
    if chain.hex() != note.chain:
        raise damaged(path, f"event {note.n} is not the one that was acknowledged")


def has_log(path: Path) -> bool:
    """Return whether SQLite's log beside a journal holds anything."""
    log = beside(path, "-wal")
    return log.is_file() and log.stat().st_size > 0


def require_bytes(path: Path) -> None:
    """Refuse an empty file before SQLite sees it: it would take away the log beside it."""
    if path.is_file() and path.stat().st_size == 0 and has_log(path):
        raise damaged(path, "is empty, though there is a log beside it: it was cut")
