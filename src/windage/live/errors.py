"""Errors of journals, each with what to do about it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from windage.errors import JournalError
from windage.live.schema import FORMAT

__all__ = [
    "UnknownAgentError",
    "UnwritableError",
    "damaged",
    "other_format",
    "unreadable",
    "unwritable",
]

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
    version = "a newer version" if form > FORMAT else "no version"
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
