"""The head, a small file beside a journal: its writer's lock, and the last acknowledged event.

The chain of a journal that was cut short is that of a shorter journal. So after every commit the
writer notes the last event here. The note is not forced to the disk: it survives the death of the
process; after a power failure it may be older than the journal, never newer. Behind the note stands
the process that took the lock, as long as it has it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
import weakref
from pathlib import Path

import msgspec

from windage.errors import JournalError
from windage.live.schema import UnwritableError

__all__ = ["Head", "LockFile", "beside", "digest_of", "head_path", "read_head", "writer_of"]

_SIZE = 512  # one sector: written whole or not at all
_PID = 20  # at most so many digits, behind the sector
_TRIES, _PAUSE = 5, 0.02  # seconds


class Head(msgspec.Struct, frozen=True):
    """The content of a head: the last acknowledged event, and its chain value.

    `seal` is the SHA-256 of the whole journal, if the writer closed it in order.
    """

    n: int
    chain: str
    seal: str = ""


def beside(journal: Path, ending: str) -> Path:
    """Return a file that belongs to a journal: beside the file itself if `journal` is a link."""
    real = Path(os.path.realpath(journal)) if journal.is_symlink() else journal
    return real.with_name(real.name + ending)


def head_path(journal: Path) -> Path:
    """Return the path of the head of a journal."""
    return beside(journal, "-head")


def digest_of(journal: Path) -> str:
    """Return the SHA-256 of all bytes of a journal."""
    with journal.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_head(journal: Path) -> Head | None:
    """Return the head of a journal; None if there is none, or it is damaged."""
    try:
        return _decoded(head_path(journal).read_bytes())
    except OSError:
        return None


def _decoded(data: bytes) -> Head | None:
    data = data[:_SIZE]
    line = data[:-1].rstrip(b"\0")  # a first one, of which not all blanks were written
    text, _, checksum = line.rstrip(b" ").rpartition(b" ")
    if len(data) != _SIZE or hashlib.sha256(text).hexdigest().encode()[:16] != checksum:
        return None
    with contextlib.suppress(msgspec.DecodeError, RecursionError):
        return msgspec.json.decode(text, type=Head)
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
        return _owner(file)
    finally:
        os.close(file)
    return None


def _owner(file: int) -> int:
    """Return the process that has locked a head; 0 if that is not known."""
    pid = os.pread(file, _PID, _SIZE)
    return int(pid) if pid.isdigit() else 0


_held: weakref.WeakSet[LockFile] = weakref.WeakSet()


def _let_go() -> None:
    """Close the locks of the parent in a process that was forked: they would outlive it there."""
    for lockfile in list(_held):
        os.close(lockfile._file)
    _held.clear()


os.register_at_fork(after_in_child=_let_go)


class LockFile:
    """A head as the writer holds it: a lock that ends with the process, and the content."""

    def __init__(self, journal: Path) -> None:
        self._path = path = head_path(journal)
        self.is_new = not path.exists()
        """Whether there was no head before."""
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as err:
            raise UnwritableError(
                f"cannot be written ({err.strerror})",
                field=str(path),
                fix="keep the journal in a folder you may write to",
            ) from None
        is_locked = self._lock()
        self.head = _decoded(os.pread(self._file, _SIZE, 0))
        """What the last writer left."""
        if not is_locked:
            pid = _owner(self._file)
            os.close(self._file)
            writer = f"process {pid}" if pid else "another process"
            raise JournalError(
                f"{writer} is writing to it",
                field=str(journal),
                fix="stop that process first; reading it is possible at any time",
            )
        self.is_damaged = self.head is None and any(os.pread(self._file, _SIZE, 0))
        """Whether the last writer left something that cannot be read."""
        self._found = os.fstat(self._file).st_size, os.pread(self._file, _PID, _SIZE)
        self._set_owner(_SIZE, b"%d" % os.getpid())
        _held.add(self)

    def _lock(self) -> bool:
        """Take the lock; `writer_of` holds it for a moment only, so try a few times."""
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
        text = msgspec.json.encode(Head(n, chain.hex(), seal))
        line = text + b" " + hashlib.sha256(text).hexdigest().encode()[:16]
        with contextlib.suppress(OSError):  # no room: the note stays older than the journal
            os.pwrite(self._file, line.ljust(_SIZE - 1) + b"\n", 0)
            if sync:
                os.fsync(self._file)

    def _set_owner(self, size: int, pid: bytes) -> None:
        with contextlib.suppress(OSError):  # no room: another process is told of no number
            os.ftruncate(self._file, size)
            os.pwrite(self._file, pid, _SIZE)

    def close(self, *, is_refused: bool = False) -> None:
        """Release the lock; if the journal was refused, leave the head as it was found."""
        if is_refused and self.is_new:
            with contextlib.suppress(OSError):  # an empty head says nothing
                self._path.unlink(missing_ok=True)
        self._set_owner(*(self._found if is_refused else (_SIZE, b"")))
        _held.discard(self)
        os.close(self._file)
