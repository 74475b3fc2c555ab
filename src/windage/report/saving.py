"""Figures as files: whole or not at all, the same bytes every time."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from windage.errors import InputError

__all__ = ["picture_kind", "save_figure"]

_UNDATED: dict[str, dict[str, Any]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}  # what matplotlib would write the time of day into


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as .png, .svg or .pdf: all of it or nothing, the same bytes every time.

    The folder is made if there is none.
    """
    target = Path(path)
    kind = picture_kind(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".tmp")
    except OSError as err:
        raise _unwritable(target, err) from None
    try:
        with os.fdopen(handle, "wb") as file, mpl.rc_context({"svg.hashsalt": "windage"}):
            figure.savefig(file, format=kind, metadata=_UNDATED[kind])
        Path(temporary).chmod(0o644)
        Path(temporary).replace(target)
    except OSError as err:
        raise _unwritable(target, err) from None
    finally:
        Path(temporary).unlink(missing_ok=True)


def picture_kind(path: str | Path) -> str:
    """Return "png", "svg" or "pdf" as the name of the file asks, or refuse another.

    >>> picture_kind("out/river.SVG")
    'svg'
    """
    kind = Path(path).suffix[1:].lower()
    if kind not in _UNDATED:
        raise InputError(
            f"{kind!r} is no kind of picture" if kind else "does not say what kind of picture",
            field=str(path),
            fix="name a file that ends in .png, .svg or .pdf",
        )
    return kind


def _unwritable(target: Path, err: OSError) -> InputError:
    why = "its folder is a file" if isinstance(err, FileExistsError) else err.strerror
    return InputError(
        f"cannot be written ({why})",
        field=str(target),
        fix="name a file in a folder you may write to",
    )
