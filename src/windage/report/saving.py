"""Figures as files: whole or not at all, the same bytes every time."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import matplotlib as mpl
from matplotlib.figure import Figure

from windage.atomic_io import write_whole
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
    kind = picture_kind(path)

    def draw(file: BinaryIO) -> None:
        with mpl.rc_context({"svg.hashsalt": "windage"}):
            figure.savefig(file, format=kind, metadata=_UNDATED[kind])

    write_whole(path, draw, make_folder=True)


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
