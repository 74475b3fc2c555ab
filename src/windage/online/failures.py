"""What can be wrong with a journal, in words a person can act on."""

from __future__ import annotations

from pathlib import Path

from windage.errors import JournalError
from windage.online.events import FORMAT

__all__ = ["UnwritableError", "damaged", "newer", "unwritable"]


class UnwritableError(JournalError):
    """There is no room, or no permission, to write: a fallback may decide until there is."""


def unwritable(path: Path, why: object) -> UnwritableError:
    """Return the error about a journal that takes no more events for now."""
    return UnwritableError(
        f"cannot be written ({why}); nothing of this call is in the journal",
        field=str(path),
        fix="make room or mend the disk, then call again",
    )


def newer(path: Path, form: int) -> JournalError:
    """Return the error about a journal of another format."""
    who = "a newer version" if form > FORMAT else "no version"
    return JournalError(
        f"was written by {who} of windage: format {form}, this one reads {FORMAT}",
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
