"""Files that appear whole or not at all: a temporary file beside the target, then one rename."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from windage.errors import InputError

__all__ = [
    "as_path",
    "make_folder",
    "require_no_link",
    "target_of",
    "unreadable",
    "unwritable",
    "write_whole",
]


def write_whole(
    path: str | Path,
    write: Callable[[BinaryIO], object],
    *,
    make_folder: bool = False,
    follow: bool = True,
) -> None:
    """Call `write` with an open file; a reader finds all of it, or what was there before.

    A new file has the permissions that the process gives its files (its umask); one that is
    replaced keeps its own.

    Parameters
    ----------
    path
        Where the file is to appear.
    write
        Writes the content to the binary file it is given.
    make_folder
        Make the folder if there is none.
    follow
        Whether a link is followed; if not, it is refused.

    Raises
    ------
    InputError
        The file cannot be written; what was there is there, or all of the new file if only the
        last sync failed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(f"{folder}/note.txt", lambda file: file.write(b"all of it"))
    ...     Path(folder, "note.txt").read_bytes()
    b'all of it'
    """
    named = as_path(path)
    try:
        if not follow:
            require_no_link(named)
        target = named.resolve()
        before = target.stat() if target.exists() else None
        if before is not None and not stat.S_ISREG(before.st_mode):
            raise InputError(
                "cannot be written (it is a folder or a device)", field=str(path), fix=_ELSEWHERE
            )
        if make_folder:
            target.parent.mkdir(parents=True, exist_ok=True)
        temporary, handle = _temporary(target)
    except (OSError, RuntimeError) as err:  # a ring of links is a RuntimeError before Python 3.13
        raise unwritable(path, err) from None
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            if before is not None:
                temporary.chmod(stat.S_IMODE(before.st_mode))
            os.fsync(file.fileno())
        temporary.replace(target)
        _settle(target.parent)
    except OSError as err:
        raise unwritable(path, err) from None
    finally:
        with contextlib.suppress(OSError):  # a disk that fails may not delete either
            temporary.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, so that they survive a crash.

    Raises
    ------
    InputError
        It cannot be made.
    """
    try:
        if not path.is_dir():
            make_folder(path.parent)
            path.mkdir(exist_ok=True)
            _settle(path.parent)
    except OSError as err:
        raise unwritable(path, err) from None


def require_no_link(path: Path) -> None:
    """Refuse a symbolic link: writing to it would change what it leads to.

    Raises
    ------
    InputError
        It is one.
    """
    if path.is_symlink():
        raise InputError(
            f"is a link to {path.readlink()}, which would be written to",
            field=str(path),
            fix="remove the link, or put the file itself there",
        )


def as_path(path: object, field: str = "path") -> Path:
    """Return the name of a file as a path, or say that it is none.

    >>> as_path("models/river.npz").name
    'river.npz'
    """
    if isinstance(path, (str, os.PathLike)):
        named = os.fspath(path)
        if isinstance(named, str) and named and "\0" not in named:
            return Path(named)
    raise InputError(
        f"{path!r} is not the name of a file", field=field, fix="pass a string or Path"
    )


def target_of(temporary: Path) -> str | None:
    """Return the name of the file that a temporary one was to become; None if it is not ours.

    >>> target_of(Path("runs/note.txt.4711-0.tmp")), target_of(Path("runs/note.tmp"))
    ('note.txt', None)
    """
    found = re.fullmatch(r"(.+)\.[0-9]+-[0-9]+\.tmp", temporary.name)
    return found[1] if found else None


def _temporary(target: Path) -> tuple[Path, int]:
    """Return a new file beside the target, open; a name that is taken is somebody else's."""
    for number in itertools.count():
        name = f"{target.name[:40]}.{os.getpid()}-{number}.tmp"
        try:
            temporary = target.with_name(name)
            return temporary, os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            continue
    raise AssertionError("unreachable")


def _settle(folder: Path) -> None:
    """Make the rename survive a crash; only POSIX systems open folders."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def unwritable(path: object, err: Exception) -> InputError:
    """Return the error that a file cannot be written, and what would help."""
    why = getattr(err, "strerror", None) or str(err)
    if isinstance(err, (FileExistsError, NotADirectoryError)):
        why = "its folder is a file"
    full = isinstance(err, OSError) and err.errno in (errno.ENOSPC, errno.EDQUOT)
    fix = "make room on the disk and do the same again" if full else _ELSEWHERE
    return InputError(f"cannot be written ({why})", field=str(path), fix=fix)


def unreadable(path: object, err: OSError) -> InputError:
    """Return the error that a file is there and cannot be read: nobody knows what it holds."""
    return InputError(
        f"cannot be read ({err.strerror or err})",
        field=str(path),
        fix="make it a file that you may read, and do the same again",
    )


_ELSEWHERE = "name a file in a folder you may write to"
