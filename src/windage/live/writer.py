"""The one process that writes a journal.

Write-ahead log, `synchronous = FULL`: a commit returns when the disk has it. What was acknowledged
is in the file then, whatever happens to the process or the machine (docs/adr/0012).
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from windage.atomic_io import as_path
from windage.errors import JournalError
from windage.live.admission import admit, require_place
from windage.live.events import Event, chained
from windage.live.failures import damaged, unwritable
from windage.live.head import Head, sealed
from windage.live.journal import WAIT, Journal, has_log
from windage.live.tables import INSERT, PAGE, make_tables

__all__ = ["Touched", "Writer"]

_REJECTED_KEPT = 1000


class Touched(Protocol):
    """Whoever must read the journal again when a transaction fails."""

    def reset(self) -> None:
        """Forget what is not in the journal."""
        ...


class Writer(Journal):
    """A journal as its one writer sees it."""

    def __init__(self, path: str | Path, lock: threading.RLock | None = None) -> None:
        self.path = as_path(path)
        self.lock = lock or threading.RLock()
        self._con: sqlite3.Connection | None = None
        self.is_failing = False
        """Whether the last attempt to write an event has failed."""
        self._is_open = False  # a block of `writing`
        self._failed: sqlite3.Error | None = None
        self._touched: list[Touched] = []
        self._rows: list[tuple[Any, ...]] = []  # appended, and not given to SQLite yet
        self._refused: list[tuple[int, str, str]] = []  # in this block; they outlive its failure
        self._pid = os.getpid()
        require_place(self.path)
        self._head = Head(self.path)
        try:
            self.n, self.chain = admit(self.path, self._head)
            self._open()
        except BaseException:
            super().close()
            self._head.close(remove=self._head.is_new)
            raise

    def _open(self) -> None:
        if self._head.note and self._head.note.seal:  # it has served
            self._head.write(self.n, self.chain, sync=True)
        try:
            self._con = sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False, timeout=WAIT
            )
            self._con.execute(f"PRAGMA page_size = {PAGE}")
            self._con.execute("PRAGMA journal_mode = WAL")
            self._con.execute("PRAGMA synchronous = FULL")
            if self._tables() == 0:
                make_tables(self._con, self.path)
        except (sqlite3.Error, UnicodeDecodeError) as err:
            raise self._unwritable(err) from None
        checked = self.n, self.chain
        self._find_end()
        if (self.n, self.chain) == checked:
            self._sound = 1

    def _connection(self) -> sqlite3.Connection:
        if self._pid != os.getpid():
            raise JournalError(
                f"belongs to process {self._pid}, this is its child {os.getpid()}",
                field=str(self.path),
                fix="open the journal in the process that decides",
            )
        return self._con or super()._connection()

    @contextmanager
    def writing(self, who: Touched | None = None) -> Iterator[None]:
        """Make all that is appended in this block durable at its end, or nothing of it.

        Blocks inside others share the outermost one's commit; if it fails, all of `who` hear of it.
        """
        with self.lock:
            self._connection()
            if self._is_inside():
                if who is not None:
                    self._touched.append(who)
                yield
                return
            before = (self.n, self.chain)
            try:
                self._is_open, self._failed, self._rows, self._refused = True, None, [], []
                self._touched = [] if who is None else [who]
                self._execute("BEGIN IMMEDIATE")
                yield
                if self._failed is not None:
                    raise self._unwritable(self._failed)
                self._flush()
                self._execute("COMMIT")
                self.is_failing = self.is_failing and self.n == before[0]
                self._head.write(self.n, self.chain)
                if before[0] == 0:
                    self._settle()
            except BaseException:
                self._undo(before)
                self._is_open = False
                self._refuse_again()
                raise
            finally:
                self._is_open = False

    def _settle(self) -> None:
        """Bring the first events into the file itself: it says what it is without its log."""
        with suppress(sqlite3.Error):  # a reader, or no room: the log has them
            self._connection().execute("PRAGMA wal_checkpoint(PASSIVE)")

    def write(self, who: Touched, work: Callable[[], None]) -> None:
        """Do some work in a `writing` block; inside another one it costs next to nothing."""
        with self.lock:
            if self._is_inside():
                self._touched.append(who)
                try:
                    work()
                except BaseException:
                    who.reset()
                    raise
            else:
                with self.writing(who):
                    work()

    def _is_inside(self) -> bool:
        """Whether another block will commit; one that has failed takes no more."""
        if not self._is_open:
            return False
        if self._failed is not None:
            raise self._unwritable(self._failed)
        return self._connection().in_transaction

    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> None:
        try:
            self._connection().execute(statement, values)
        except sqlite3.Error as err:
            self._failed, self.is_failing = err, True
            raise self._unwritable(err) from None

    def _undo(self, before: tuple[int, bytes]) -> None:
        """Go back to where the journal stands; a commit that was only interrupted has happened."""
        con, attempted, last = self._connection(), (self.n, self.chain), None
        with suppress(sqlite3.Error):  # SQLite may have taken it back itself, or be past reading
            if con.in_transaction:
                con.execute("ROLLBACK")
            last = con.execute("SELECT n, chain FROM events ORDER BY n DESC LIMIT 1").fetchone()
        self.n, self.chain = attempted if last == attempted else before
        self._failed, self._rows = None, []
        for who in self._touched:
            who.reset()

    def append(
        self,
        agent: int,
        kind: str,
        *,
        step: int | None = None,
        state: int | None = None,
        action: int | None = None,
        reward: float | None = None,
        used: int | None = None,
        key: str | None = None,
        body: str | None = None,
    ) -> int:
        """Add one event inside a `writing` block; returns its number. Agent 0 is a new one."""
        n, at = self.n + 1, time.time_ns() // 1000
        event = Event(
            n, agent or n, kind, step or n, state, action, reward, used, key, body, at
        )  # fmt: skip
        self.insert((*event, chained(self.chain, event)))
        return n

    def insert(self, row: tuple[Any, ...]) -> None:
        """Add an event that has its place and its chain already."""
        self._rows.append(row)
        self.n, self.chain = row[0], row[-1]

    def _flush(self) -> None:
        """Give SQLite what was appended: together, and before anybody reads or commits."""
        rows, self._rows = self._rows, []
        try:
            self._connection().executemany(INSERT, rows)
        except sqlite3.Error as err:
            self._failed, self.is_failing = err, True
            raise self._unwritable(err) from None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give the connection; what was appended so far can be read."""
        if self._rows:
            self._flush()
        with super().reading() as con:
            yield con

    def keep(self, agent: int, step: int, state: bytes) -> None:
        """Keep a snapshot: what the agent was after all steps up to `step`."""
        self._execute(
            "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?)",
            (agent, step, self.n, self.chain, state),
        )

    def drop(self, agent: int, condition: str, step: int) -> None:
        """Drop the snapshots of an agent whose step meets a condition, such as '< ?'."""
        query = f"DELETE FROM snapshots WHERE agent = ? AND step {condition}"  # noqa: S608
        self._execute(query, (agent, step))

    def reject(self, agent: int, what: str, problem: str) -> None:
        """Count feedback that was refused, even if the block it came in is taken back."""
        if self._is_inside():
            self._refused.append((agent, what, problem))
        self.remark(agent, what, problem)

    def _refuse_again(self) -> None:
        """Count what was refused in a block that has just been taken back."""
        refused, self._refused = self._refused, []
        if refused:
            with suppress(JournalError), self.writing():  # no room: the error is on its way
                for one in refused:
                    self.remark(*one)

    def remark(self, agent: int, what: str, problem: str) -> None:
        """Note something that is no event; the chain and all agents stay as they are."""
        with self.writing():
            self._execute(
                "INSERT INTO rejected (agent, at, what, problem) VALUES (?, ?, ?, ?)",
                (agent, time.time_ns() // 1000, what, problem),
            )
            self._execute(
                "DELETE FROM rejected WHERE id <= (SELECT max(id) FROM rejected) - ?",
                (_REJECTED_KEPT,),
            )

    def close(self) -> None:
        """Leave the journal in one file, sealed, for whoever comes next."""
        with self.lock:
            if self._con is None or self._pid != os.getpid():
                return
            with suppress(sqlite3.Error):  # no room to tidy up: the log stays beside the file
                self._con.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            super().close()
            if self.path.is_file() and not has_log(self.path):
                self._head.write(self.n, self.chain, sealed(self.path))
            self._head.close()

    def _unwritable(self, err: Exception) -> JournalError:
        if isinstance(err, sqlite3.IntegrityError):
            return JournalError(
                "somebody else has written to it",
                field=str(self.path),
                fix="close it, find the other writer, and run `windage live verify`",
            )
        if not isinstance(err, sqlite3.OperationalError):
            return damaged(self.path, f"cannot be read ({err})")
        return unwritable(self.path, err)
