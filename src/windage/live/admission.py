"""What a journal must pass before anybody may write to it.

A connection that may write takes the log away when it is closed: whatever is refused must be
refused before there is one. So all of this only reads (docs/adr/0012).
"""

from __future__ import annotations

from pathlib import Path

from windage.errors import JournalError
from windage.live.events import ROOT
from windage.live.failures import damaged
from windage.live.head import Head, sealed
from windage.live.journal import Journal, has_log, require_bytes
from windage.live.tables import PAGE

__all__ = ["admit", "require_place"]


def require_place(path: Path) -> None:
    """Refuse a path at which there can be no journal."""
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir():
        raise JournalError(
            "is a folder" if path.is_dir() else f"there is no folder {folder}",
            field=str(path),
            fix="name a file in a folder that exists",
        )


def admit(path: Path, head: Head) -> tuple[int, bytes]:
    """Check all that was written before; returns the number and the chain of the last event.

    A file that is, byte for byte, as its writer closed it is as sound as it was then. Of any other,
    such as that of a process that was killed, every event is checked against the chain.
    """
    _require_not_lost(path, head)
    _require_own_name(path, head)
    is_begun = not head.is_new and head.note is None  # killed before its first event
    size = path.stat().st_size if path.is_file() else 0
    if size == 0 or (is_begun and size <= PAGE and not has_log(path)):
        return 0, ROOT
    look = _Look(path)
    try:
        look.check(head, is_begun)
        return look.n, look.chain
    finally:
        look.close()


class _Look(Journal):
    """A file that may be a journal."""

    def _open(self) -> None:
        self.n, self.chain = 0, ROOT
        self._connect_to_read()

    def check(self, head: Head, is_begun: bool) -> None:
        """Refuse what is not as it was written; one that was only begun has nothing to check."""
        if is_begun and self._tables() == 0:
            return
        self._require_format()
        self._find_end()
        seal = head.note.seal if head.note and head.note.n == self.n else ""
        is_as_closed = bool(seal) and sealed(self.path) == seal
        if is_as_closed and not has_log(self.path):
            return
        self._require_integrity()
        self.require_chain(1)
        if seal and not is_as_closed:
            raise damaged(self.path, "is not as it was closed")

    def _require_integrity(self) -> None:
        """Refuse a file whose tables and indices disagree: an agent could come out of it wrong."""
        with self.reading() as con:
            (found,) = con.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise damaged(self.path, f"is not whole ({found})")


def _require_not_lost(path: Path, head: Head) -> None:
    """Refuse to start anew where there was a journal."""
    require_bytes(path)
    if head.is_damaged:
        raise JournalError(
            "is damaged: whether the end of the journal was cut cannot be told",
            field=f"{path}-head",
            fix=f"see with `windage live verify {path}` whether the last events are "
            "there; if they are, remove this file and open again",
        )
    if head.note and head.note.n and not (path.is_file() and path.stat().st_size):
        raise JournalError(
            f"is gone, but {head.note.n} events were acknowledged",
            field=str(path),
            fix=f"put it back; or, to start anew, remove {path}-head too",
        )


def _require_own_name(path: Path, head: Head) -> None:
    """Refuse a hard link: log and head lie beside the name the journal was written under.

    Under another name its last events may be missing, and nobody would meet its lock.
    """
    if head.is_new and path.is_file() and path.stat().st_nlink > 1:
        raise JournalError(
            f"is one of {path.stat().st_nlink} names of a file, and has no head beside it: it is "
            "another name of a journal",
            field=str(path),
            fix="open the name that has a -head beside it, or copy the file and open the copy",
        )
