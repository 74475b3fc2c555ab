"""Schema of a journal: fields of an event, tables, the hash chain; and errors about journals.

The chain value of event n is SHA-256 over the chain value of event n - 1 and every other field of
event n: an event that is changed, dropped, added or moved breaks the chain at its place.

A new column is a field of `Event`, a line of `_TABLES`, and a new `FORMAT`.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from pathlib import Path
from typing import NamedTuple

import msgspec

from windage.errors import JournalError

__all__ = [
    "APPLICATION_ID",
    "COLUMNS",
    "CONFIGURED",
    "CREATED",
    "DECIDED",
    "EXPIRED",
    "FORMAT",
    "INSERT",
    "OBSERVED",
    "PAGE",
    "ROOT",
    "Event",
    "UnknownAgentError",
    "UnwritableError",
    "damaged",
    "make_tables",
    "other_format",
    "unreadable",
    "unwritable",
]

FORMAT = 2
"""The layout of journals that this version writes, and the newest it reads."""
APPLICATION_ID = 0x77696E64  # "wind", in the header of the SQLite file
PAGE = 4096
ROOT = hashlib.sha256(b"windage journal").digest()
"""The chain value before the first event."""

CREATED, DECIDED, OBSERVED = "created", "decided", "observed"
EXPIRED, CONFIGURED = "expired", "configured"

_encode = msgspec.msgpack.Encoder().encode


class Event(NamedTuple):
    """One event of one agent, and a row of the table `events`.

    Attributes
    ----------
    n
        Its number in the journal, from 1 on.
    agent
        The agent it belongs to: the number of the agent's `created` event.
    kind
        created, decided, observed, expired or configured.
    step
        The decision it belongs to; of any event but observed and expired, n itself. Events in the
        order of (step, n) are the corrected history: a late reward stands at its step's place.
    state
        Of decided, the state that was asked about; of observed, the next state.
    action
        Of decided, the advice; of observed, the action played.
    reward
        As it was reported, in the user's units.
    used
        Of observed, whether it was learned from; a reward that comes too late is only stored.
    seen
        Of observed, what the step showed of the variables of a structure, as JSON.
    key
        Of decided, the caller's own name for the decision.
    body
        Of created and configured, JSON.
    at
        Microseconds since 1970, for people; nothing is computed from it.
    chain
        The chain value.
    """

    n: int = 0
    agent: int = 0
    kind: str = ""
    step: int = 0
    state: int | None = None
    action: int | None = None
    reward: float | None = None
    used: int | None = None
    seen: str | None = None
    key: str | None = None
    body: str | None = None
    at: int = 0
    chain: bytes = b""

    def chain_after(self, previous: bytes) -> bytes:
        """Return the chain value that follows from that of the event before."""
        return hashlib.sha256(previous + _encode(self[:-1])).digest()


COLUMNS = ", ".join(Event._fields)
INSERT = f"INSERT INTO events VALUES ({', '.join('?' * len(Event._fields))})"  # noqa: S608
_TABLES = """
CREATE TABLE events (
    n INTEGER PRIMARY KEY, agent INTEGER NOT NULL, kind TEXT NOT NULL, step INTEGER NOT NULL,
    state INTEGER, action INTEGER, reward REAL, used INTEGER, seen TEXT, key TEXT,
    body TEXT, at INTEGER NOT NULL, chain BLOB NOT NULL
);
CREATE UNIQUE INDEX history ON events (agent, step, n);
CREATE UNIQUE INDEX keys ON events (agent, key) WHERE key IS NOT NULL;
CREATE INDEX told ON events (agent, n) WHERE body IS NOT NULL;
CREATE TABLE snapshots (
    agent INTEGER NOT NULL, step INTEGER NOT NULL, n INTEGER NOT NULL, chain BLOB NOT NULL,
    state BLOB NOT NULL, PRIMARY KEY (agent, step)
);
CREATE TABLE rejected (
    id INTEGER PRIMARY KEY, agent INTEGER NOT NULL, at INTEGER NOT NULL, what TEXT NOT NULL,
    problem TEXT NOT NULL
);
"""


def make_tables(con: sqlite3.Connection, path: Path) -> None:
    """Sync the folder of a new journal, and create the tables, all of them or none.

    In this order: if the sync fails, the next one to open the journal still finds it new.
    """
    folder = os.open(path.resolve().parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the name of a new file is as durable as its content
    finally:
        os.close(folder)
    for statement in [
        "BEGIN IMMEDIATE",
        f"PRAGMA application_id = {APPLICATION_ID}",
        f"PRAGMA user_version = {FORMAT}",
        *(statement.strip() for statement in _TABLES.split(";") if statement.strip()),
        "COMMIT",
    ]:
        con.execute(statement)


_PASSING = (
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR_SHMMAP, sqlite3.SQLITE_IOERR_SHMOPEN,
    sqlite3.SQLITE_IOERR_SHMSIZE,
)  # fmt: skip
"""SQLite's errors for want of room or permission for its log, or the index of it, to read."""


class UnwritableError(JournalError):
    """There is no room, or no permission, to write: a fallback may decide until there is."""


class UnknownAgentError(JournalError):
    """A journal's agent is of a class that only the program that decides has."""


def unwritable(path: Path, reason: object) -> UnwritableError:
    """Return the error about a journal that takes no more events for now."""
    return UnwritableError(
        f"cannot be written ({reason}); nothing of this call is in the journal",
        field=str(path),
        fix="make room or mend the disk, then call again",
    )


def unreadable(path: Path, err: Exception) -> JournalError:
    """Return the error about a journal that SQLite cannot read: for now, or since it is damaged."""
    code = getattr(err, "sqlite_errorcode", None) or 0
    if code in _PASSING or code & 0xFF in _PASSING:
        return UnwritableError(
            f"cannot be opened for now ({err}): SQLite needs room for an index beside it",
            field=str(path),
            fix="make room, or get permission to write there, then call again",
        )
    return damaged(path, f"cannot be read ({err})")


def other_format(path: Path, form: int) -> JournalError:
    """Return the error about a journal of another format."""
    version = "a newer version" if form > FORMAT else "an earlier version" if form else "no version"
    return JournalError(
        f"was written by {version} of windage: format {form}, this one reads {FORMAT}",
        field=str(path),
        fix="use the version that wrote it",
    )


def damaged(path: Path, problem: str) -> JournalError:
    """Return the error about a journal that is not what was written."""
    return JournalError(
        problem,
        field=str(path),
        fix="keep a copy of it and of the files beside it, then "
        f"`windage live recover {path} -o NEW`",
    )
