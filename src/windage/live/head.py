"""The small file beside a journal: who writes it, and up to where it has been acknowledged.

A journal that was cut short is a shorter journal; its own chain cannot tell. So after every commit
the writer notes here how far it has come. The note is not forced to the disk: it survives the death
of the process, and after a power failure it may be older than the journal, never newer.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from pathlib import Path

import msgspec

from windage.errors import JournalError
from windage.live.failures import UnwritableError

__all__ = ["Head", "Note", "beside", "head_path", "read_note", "sealed", "writer_of"]

_SIZE = 512  # one sector: written whole or not at all
_TRIES, _PAUSE = 5, 0.02  # seconds


class Note(msgspec.Struct, frozen=True):
    """What the head says: the writer, the last event it acknowledged, and its chain.

    `seal` is the SHA-256 of the whole journal, if the writer left it in order.
    """

    pid: int
    n: int
    chain: str
    seal: str = ""


def beside(journal: Path, ending: str) -> Path:
    """Return a file that belongs to a journal: beside the file itself, whatever link names it."""
    real = Path(os.path.realpath(journal)) if journal.is_symlink() else journal
    return real.with_name(real.name + ending)


def head_path(journal: Path) -> Path:
    """Return the path of the head of a journal."""
    return beside(journal, "-head")


def sealed(journal: Path) -> str:
    """Return the SHA-256 of all bytes of a journal."""
    with journal.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_note(journal: Path) -> Note | None:
    """Return what the head of a journal says; None if there is none, or it is damaged."""
    try:
        return _note(head_path(journal).read_bytes())
    except OSError:
        return None


def _note(data: bytes) -> Note | None:
    text, _, checksum = data[:-1].rstrip(b" ").rpartition(b" ")
    if len(data) != _SIZE or hashlib.sha256(text).hexdigest().encode()[:16] != checksum:
        return None
    with contextlib.suppress(msgspec.DecodeError):
        return msgspec.json.decode(text, type=Note)
    return None


def writer_of(journal: Path) -> int | None:
    """Return the process that has a journal open for writing; None if none has."""
    try:
        file = os.open(head_path(journal), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        note = _note(os.pread(file, _SIZE, 0))
        return note.pid if note else 0
    finally:
        os.close(file)
    return None


class Head:
    """The writer's own end of it: a lock that dies with the process, and the note."""

    def __init__(self, journal: Path) -> None:
        self._path = path = head_path(journal)
        self.is_new = not path.exists()
        """Whether there was none before."""
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as err:
            raise UnwritableError(
                f"cannot be written ({err.strerror})",
                field=str(path),
                fix="keep the journal in a folder you may write to",
            ) from None
        if not self._locked():
            note = _note(os.pread(self._file, _SIZE, 0))
            os.close(self._file)
            who = f"process {note.pid}" if note else "another process"
            raise JournalError(
                f"{who} is writing to it",
                field=str(journal),
                fix="stop that process first; reading it is possible at any time",
            )
        self.note = _note(os.pread(self._file, _SIZE, 0))
        """What the last writer left."""
        self.is_damaged = self.note is None and os.fstat(self._file).st_size > 0
        """Whether it left something that cannot be read."""

    def _locked(self) -> bool:
        """Take the lock; whoever only asks who has it lets it go at once."""
        for _ in range(_TRIES):
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                time.sleep(_PAUSE)
            else:
                return True
        return False

    def write(self, n: int, chain: bytes, seal: str = "", *, sync: bool = False) -> None:
        """Note that all events up to n are acknowledged; `sync` waits for the disk."""
        text = msgspec.json.encode(Note(os.getpid(), n, chain.hex(), seal))
        line = text + b" " + hashlib.sha256(text).hexdigest().encode()[:16]
        with contextlib.suppress(OSError):  # no room: the note stays older than the journal
            os.pwrite(self._file, line.ljust(_SIZE - 1) + b"\n", 0)
            if sync:
                os.fsync(self._file)

    def close(self, *, remove: bool = False) -> None:
        """Let somebody else write; a head without a journal is removed."""
        if remove:
            self._path.unlink(missing_ok=True)
        os.close(self._file)
