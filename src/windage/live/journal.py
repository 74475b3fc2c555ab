"""The journal: one SQLite file of chained events, read at any time and written by one process.

The writer uses a write-ahead log with `synchronous = FULL`: a commit returns when the disk has it.
What was acknowledged is in the file then, whatever happens to the process or the machine
(docs/adr/0012).
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, Self
from urllib.parse import quote

from windage.atomic_io import as_path
from windage.errors import JournalError
from windage.live.lockfile import Head, LockFile, beside, digest_of, head_path, read_head
from windage.live.schema import (
    APPLICATION_ID,
    COLUMNS,
    FORMAT,
    INSERT,
    PAGE,
    ROOT,
    Event,
    damaged,
    make_tables,
    other_format,
    unreadable,
    unwritable,
)

__all__ = ["Journal", "Resettable", "Writer", "end_of_chain"]

_WAIT = 10.0  # seconds: a reader may hold a checkpoint up, never a commit
_REJECTED_KEPT = 1000
_MAGIC, _APPLICATION = b"SQLite format 3\0", APPLICATION_ID.to_bytes(4, "big")  # at 0, at 68
_LAST = "SELECT n, chain FROM events ORDER BY n DESC LIMIT 1"


class Journal:
    """A journal as a reader sees it; a running writer is not disturbed."""

    _whole: tuple[int, ...] = ()
    """What tells the file from one that was written to, if it has no log."""

    def __init__(self, path: str | Path) -> None:
        self.path = as_path(path)
        self.lock = threading.RLock()
        """Held around reads or writes that belong together."""
        self._con: sqlite3.Connection | None = None
        self._open()

    def _open(self) -> None:
        if not self.path.is_file():
            raise JournalError(
                "there is no such file", field=str(self.path), fix="pass the path of a journal"
            )
        _require_bytes(self.path)
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
        """Open the file to read; SQLite makes a log and its index beside one that has none.

        A file without a log is all there is, as long as no writer comes: if one moves events into
        it meanwhile, that is told.
        """
        is_whole = not beside(self.path, "-wal").exists()
        self._whole = _signature(self.path) if is_whole else ()
        name = quote(str(self.path.absolute()))
        self._con = sqlite3.connect(
            f"file:{name}?mode=ro{'&immutable=1' if self._whole else ''}", uri=True,
            isolation_level=None, check_same_thread=False, timeout=_WAIT,
        )  # fmt: skip
        self._con.execute("PRAGMA query_only = ON")

    def _require_unchanged(self) -> None:
        if self._whole and _signature(self.path) != self._whole:
            raise JournalError(
                "was written to while it was read", field=str(self.path), fix="look at it again"
            )

    def _count_tables(self) -> int:
        with self.reading() as con:
            return int(con.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])

    def _require_format(self) -> None:
        try:
            with self.path.open("rb") as file:
                begin = file.read(72)
        except OSError as err:
            raise unreadable(self.path, err) from None
        is_known = begin.startswith(_MAGIC) or begin[68:] == _APPLICATION
        if begin and not is_known and read_head(self.path) is None:
            raise _no_journal(self.path)
        with self.reading() as con:
            (application,), (form,) = (
                con.execute(f"PRAGMA {name}").fetchone()
                for name in ("application_id", "user_version")
            )
        if application == 0 and self.path.stat().st_size > 0 and self._count_tables() == 0:
            raise damaged(self.path, "holds nothing: it was copied without its log, or cut")
        if application != APPLICATION_ID:
            raise _no_journal(self.path)
        if form != FORMAT:
            raise other_format(self.path, form)

    def _find_end(self) -> None:
        """Find the last event, and refuse a journal that lacks the last acknowledged one."""
        head = read_head(self.path)  # first: a writer may add to journal and head in between
        if self._whole and beside(self.path, "-wal").exists():  # one has come
            self._connect_to_read()
            self._connection().execute("BEGIN")
        with self.reading() as con:
            last = con.execute(_LAST).fetchone() or (0, ROOT)
        self.n: int = last[0]
        """How many events there are."""
        self.chain: bytes = last[1]
        """The chain value of the last one."""
        self._checked_from = self.n + 1  # the chain of all events from this one on is checked
        if head is None or head.n == 0:
            return
        chain = self.chain_at(head.n)
        if chain is None:
            raise damaged(
                self.path,
                f"ends at event {self.n}, but event {head.n} was acknowledged: it was cut",
            )
        if chain.hex() != head.chain:
            raise damaged(self.path, f"event {head.n} is not the one that was acknowledged")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give the connection; SQLite's errors in the block are raised as journal errors."""
        try:
            yield self._connection()
        except (sqlite3.Error, UnicodeDecodeError) as err:  # its messages may quote damaged bytes
            self._require_unchanged()
            raise unreadable(self.path, err) from None
        self._require_unchanged()

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
        return [Event._make(row) for row in self.all(query, *values)]

    def chain_at(self, n: int) -> bytes | None:
        """Return the chain value of an event as stored; None if there is no such event."""
        rows = self.all("SELECT chain FROM events WHERE n = ?", n)
        return ROOT if n == 0 else rows[0][0] if rows else None

    def require_chain(self, first: int = 1) -> None:
        """Check every event from number `first` to the end against the chain, once."""
        if first >= self._checked_from:
            return
        previous = self.chain_at(first - 1)
        if previous is None:
            raise damaged(self.path, f"event {first - 1} is missing")
        query = f"SELECT {COLUMNS} FROM events WHERE n >= ? AND n <= ? ORDER BY n"  # noqa: S608
        with self.reading() as con:
            rows = con.execute(query, (first, self._checked_from))
            n = end_of_chain(map(Event._make, rows), first, previous)
        if n <= min(self._checked_from, self.n):
            raise damaged(self.path, f"event {n} is not what was written")
        self._checked_from = first

    def close(self) -> None:
        """Close the file."""
        if self._con is not None:
            self._con.close()
            self._con = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def end_of_chain(events: Iterable[Event], first: int, previous: bytes) -> int:
    """Return the number after the last event that is in its place and in the chain.

    The events are in the order of their numbers from `first` on; `previous` is the chain value
    before them.
    """
    n = first
    for event in events:
        if event.n != n or event.chain != event.chain_after(previous):
            return n
        previous = event.chain
        n += 1
    return n


class Resettable(Protocol):
    """An owner of state that must be read from the journal again when a transaction fails."""

    def reset(self) -> None:
        """Discard what is not in the journal."""
        ...


class Writer(Journal):
    """A journal as its one writer sees it."""

    def __init__(self, path: str | Path, lock: threading.RLock | None = None) -> None:
        self.path = as_path(path)
        self.lock = lock or threading.RLock()
        self._con: sqlite3.Connection | None = None
        self.is_failing = False
        """Whether the last attempt to write an event has failed."""
        self._in_block = False  # a block of `writing`
        self._failed: sqlite3.Error | None = None
        self._owners: list[Resettable] = []
        self._unflushed: list[Event] = []  # appended, and not given to SQLite yet
        self._rejected: list[tuple[int, str, str]] = []  # in this block; they outlive its failure
        self._pid = os.getpid()
        _require_folder(self.path)
        self._lockfile = LockFile(self.path)
        is_refused = True
        try:
            self.n, self.chain = _admit(self.path, self._lockfile)
            is_refused = False  # from here on a head says that there may be a file without tables
            self._open()
        except BaseException:
            super().close()
            self._lockfile.close(is_refused=is_refused)
            raise

    def _open(self) -> None:
        head = self._lockfile.head
        if head and head.seal:  # from here on the file is not as it was closed
            self._lockfile.write(self.n, self.chain, sync=True)
        try:
            self._con = sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False, timeout=_WAIT
            )
            self._con.execute(f"PRAGMA page_size = {PAGE}")
            self._con.execute("PRAGMA journal_mode = WAL")
            self._con.execute("PRAGMA synchronous = FULL")
            if self._count_tables() == 0:
                make_tables(self._con, self.path)
        except (sqlite3.Error, UnicodeDecodeError) as err:
            raise self._unwritable(err) from None
        except OSError as err:
            raise unwritable(self.path, err.strerror) from None
        admitted = self.n, self.chain
        self._find_end()
        files = self.path, beside(self.path, "-wal"), head_path(self.path)
        self._files = {file: _identity(file) for file in files}
        if (self.n, self.chain) == admitted:
            self._checked_from = 1

    def _displaced(self) -> Path | None:
        """Return a file that is no longer under its name: what is written to it would be lost."""
        return next((f for f, found in self._files.items() if _identity(f) != found), None)

    def _connection(self) -> sqlite3.Connection:
        if self._pid != os.getpid():
            raise JournalError(
                f"belongs to process {self._pid}, this is its child {os.getpid()}",
                field=str(self.path),
                fix="open the journal in the process that decides",
            )
        return self._con or super()._connection()

    @contextmanager
    def writing(self, owner: Resettable | None = None) -> Iterator[None]:
        """Make all that is appended in this block durable at its end, or nothing of it.

        Blocks inside others share the outermost one's commit; if it fails, all owners are reset.
        """
        with self.lock:
            self._connection()
            if self._is_nested():
                with self._part(owner):
                    yield
                return
            before = (self.n, self.chain)
            try:
                self._in_block, self._failed = True, None
                self._unflushed, self._rejected = [], []
                self._owners = [] if owner is None else [owner]
                self._execute("BEGIN IMMEDIATE")
                yield
                if self._failed is not None:
                    raise self._unwritable(self._failed)
                self._flush()
                if displaced := self._displaced():
                    raise JournalError(
                        "was moved or removed while it was open; nothing of this call is in the "
                        "journal",
                        field=str(displaced),
                        fix="put it back; or close the journal and open it again",
                    )
                self._execute("COMMIT")
                self.is_failing = self.is_failing and self.n == before[0]
                self._lockfile.write(self.n, self.chain)
                if before[0] == 0:
                    self._checkpoint()
            except BaseException:
                self._roll_back(before)
                self._in_block = False
                self._record_rejected()
                raise
            finally:
                self._in_block = False

    def _checkpoint(self) -> None:
        """Move the first events into the file itself, so that it is a journal without its log."""
        with suppress(sqlite3.Error):  # a reader, or no room: the log has them
            self._connection().execute("PRAGMA wal_checkpoint(PASSIVE)")

    def write(self, owner: Resettable, work: Callable[[], None]) -> None:
        """Do some work in a `writing` block; inside another one it costs next to nothing."""
        with self.lock:
            if self._is_nested():
                with self._part(owner):
                    work()
            else:
                with self.writing(owner):
                    work()

    @contextmanager
    def _part(self, owner: Resettable | None) -> Iterator[None]:
        """Take back what is appended in a part of a block that fails; the block may go on."""
        n, chain = self.n, self.chain
        if owner is not None:
            self._owners.append(owner)
        try:
            yield
        except BaseException:
            if self._failed is None and self.n > n:
                self._unflushed = [event for event in self._unflushed if event.n <= n]
                for table in ("events", "snapshots"):
                    self._execute(f"DELETE FROM {table} WHERE n > ?", (n,))  # noqa: S608
                self.n, self.chain = n, chain
            if owner is not None:
                owner.reset()
            raise

    def _is_nested(self) -> bool:
        """Whether another block will commit; one that has failed takes no more."""
        if not self._in_block:
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

    def _roll_back(self, before: tuple[int, bytes]) -> None:
        """Go back to where the journal stands; a commit that was only interrupted has happened."""
        con, attempted, last = self._connection(), (self.n, self.chain), None
        with suppress(sqlite3.Error):  # SQLite may have rolled back itself, or be past reading
            if con.in_transaction:
                con.execute("ROLLBACK")
            last = con.execute(_LAST).fetchone()
        self.n, self.chain = attempted if last == attempted else before
        self._failed, self._unflushed = None, []
        for owner in self._owners:
            owner.reset()

    def append(self, event: Event) -> int:
        """Add an event inside a `writing` block; returns its number.

        Number, time and chain value are filled in; so is the agent of an event that creates one,
        and the step of an event that belongs to no other.
        """
        n = self.n + 1
        event = event._replace(
            n=n, agent=event.agent or n, step=event.step or n, at=time.time_ns() // 1000
        )
        self.insert(event._replace(chain=event.chain_after(self.chain)))
        return n

    def insert(self, event: Event) -> None:
        """Add an event that has its place and its chain value already."""
        self._unflushed.append(event)
        self.n, self.chain = event.n, event.chain

    def _flush(self) -> None:
        """Give SQLite the appended events: together, before anything is read or committed."""
        events, self._unflushed = self._unflushed, []
        try:
            self._connection().executemany(INSERT, events)
        except sqlite3.Error as err:
            self._failed, self.is_failing = err, True
            raise self._unwritable(err) from None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give the connection; what was appended so far can be read."""
        if self._unflushed:
            self._flush()
        with super().reading() as con:
            yield con

    def keep_snapshot(self, agent: int, step: int, state: bytes) -> None:
        """Store the state of an agent after all steps up to `step`."""
        self._execute(
            "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?)",
            (agent, step, self.n, self.chain, state),
        )

    def drop_snapshots(self, agent: int, condition: str, step: int) -> None:
        """Drop the snapshots of an agent whose step meets a condition, such as '< ?'."""
        query = f"DELETE FROM snapshots WHERE agent = ? AND step {condition}"  # noqa: S608
        self._execute(query, (agent, step))

    def reject(self, agent: int, what: str, problem: str) -> None:
        """Count feedback that was refused, even if the block it came in is rolled back."""
        if self._is_nested():
            self._rejected.append((agent, what, problem))
        self.remark(agent, what, problem)

    def _record_rejected(self) -> None:
        """Count the feedback refused in a block that has just been rolled back."""
        rejected, self._rejected = self._rejected, []
        if rejected:
            with suppress(JournalError), self.writing():  # no room: the error is on its way
                for agent, what, problem in rejected:
                    self.remark(agent, what, problem)

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
        """Move all events into one file, seal it in the head, and release the lock."""
        with self.lock:
            if self._con is None or self._pid != os.getpid():
                return
            with suppress(sqlite3.Error):  # no room to tidy up: the log stays beside the file
                self._con.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            super().close()
            if _identity(self.path) == self._files[self.path] and not _has_log(self.path):
                self._lockfile.write(self.n, self.chain, digest_of(self.path))
            self._lockfile.close()

    def _unwritable(self, err: Exception) -> JournalError:
        if isinstance(err, sqlite3.IntegrityError):
            return JournalError(
                "another process has written to it",
                field=str(self.path),
                fix="close it, find the other writer, and run `windage live verify`",
            )
        if not isinstance(err, sqlite3.OperationalError):
            return damaged(self.path, f"cannot be read ({err})")
        return unwritable(self.path, err)


# Admission: the checks before a journal is opened for writing. A connection that may write removes
# the log when it is closed, so everything that is refused must be refused before there is one: all
# of this only reads (docs/adr/0012).


def _require_folder(path: Path) -> None:
    """Refuse a path at which there can be no journal."""
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir():
        raise JournalError(
            "is a folder" if path.is_dir() else f"there is no folder {folder}",
            field=str(path),
            fix="name a file in a folder that exists",
        )


def _admit(path: Path, lockfile: LockFile) -> tuple[int, bytes]:
    """Check all that was written before; returns the number and the chain value of the last event.

    A file that is, byte for byte, as its writer closed it is as sound as it was then. Of any other,
    such as that of a process that was killed, every event is checked against the chain.
    """
    head = lockfile.head
    _require_not_lost(path, lockfile)
    _require_own_name(path, lockfile)
    is_begun = not lockfile.is_new and head is None  # killed before its first event
    size = path.stat().st_size if path.is_file() else 0
    if size == 0 or (is_begun and size <= PAGE and not _has_log(path)):
        return 0, ROOT
    with _Candidate(path) as journal:
        journal.check(head, is_begun)
        return journal.n, journal.chain


class _Candidate(Journal):
    """A file that may be a journal."""

    def _open(self) -> None:
        self.n, self.chain = 0, ROOT
        self._connect_to_read()

    def check(self, head: Head | None, is_begun: bool) -> None:
        """Refuse what is not as it was written; one that was only begun has nothing to check."""
        if is_begun and self._count_tables() == 0:
            return
        self._require_format()
        self._find_end()
        seal = head.seal if head and head.n == self.n else ""
        is_as_closed = bool(seal) and digest_of(self.path) == seal
        if is_as_closed and not _has_log(self.path):
            return
        with self.reading() as con:  # tables and indices that disagree could give a wrong agent
            (answer,) = con.execute("PRAGMA integrity_check(1)").fetchone()
        if answer != "ok":
            raise damaged(self.path, f"is not whole ({answer})")
        self.require_chain(1)
        if seal and not is_as_closed:
            raise damaged(self.path, "is not as it was closed")


def _require_not_lost(path: Path, lockfile: LockFile) -> None:
    """Refuse to start anew where there was a journal."""
    _require_bytes(path)
    if lockfile.is_damaged:
        raise JournalError(
            "is damaged: whether the end of the journal was cut cannot be told",
            field=f"{path}-head",
            fix=f"see with `windage live verify {path}` whether the last events are "
            "there; if they are, remove this file and open again",
        )
    head = lockfile.head
    if head and head.n and not (path.is_file() and path.stat().st_size):
        raise JournalError(
            f"is gone, but {head.n} events were acknowledged",
            field=str(path),
            fix=f"put it back; or, to start anew, remove {path}-head too",
        )


def _require_own_name(path: Path, lockfile: LockFile) -> None:
    """Refuse a hard link: log and head lie beside the name the journal was written under.

    Under another name its last events may be missing, and its lock would not be seen.
    """
    if lockfile.is_new and path.is_file() and path.stat().st_nlink > 1:
        raise JournalError(
            f"is one of {path.stat().st_nlink} names of a file, and has no head beside it: it is "
            "another name of a journal",
            field=str(path),
            fix="open the name that has a -head beside it, or copy the file and open the copy",
        )


def _no_journal(path: Path) -> JournalError:
    return JournalError("is not a journal", field=str(path), fix="pass the path of a journal")


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another of its name; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _signature(path: Path) -> tuple[int, ...]:
    """Return what tells a file from another of its name, and from itself written to."""
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _has_log(path: Path) -> bool:
    """Return whether SQLite's log beside a journal holds anything."""
    log = beside(path, "-wal")
    return log.is_file() and log.stat().st_size > 0


def _require_bytes(path: Path) -> None:
    """Refuse an empty file before SQLite sees it: it would remove the log beside it."""
    if path.is_file() and path.stat().st_size == 0 and _has_log(path):
        raise damaged(path, "is empty, though there is a log beside it: it was cut")
