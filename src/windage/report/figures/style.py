"""Style of figures: colours, pages of panels, legends, numbers, names, and files.

A figure is written whole or not at all, with the same bytes every time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from windage.atomic_io import write_whole
from windage.errors import InputError
from windage.models import DriftingMDP

__all__ = [
    "COLOURS",
    "GREY",
    "STYLES",
    "describe",
    "frame",
    "literal",
    "note",
    "number",
    "page",
    "picture_kind",
    "plain",
    "save_figure",
    "steps",
    "time_axis",
    "upwards",
]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours for every eye, without the yellow that white paper swallows."""

_LONG = 1_000_000  # steps

GREY = "#B8B8B8"
STYLES = ("-", "--")
"""Colours are not all that tells neighbours apart."""


_UNDATED: dict[str, dict[str, Any]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}  # what matplotlib would write the time of day into


def page(heights: list[float]) -> tuple[Figure, list[Axes]]:
    """Return a page of panels, one below the other, and the panels: heights in inches."""
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08)
    figure = Figure(figsize=(12, sum(heights) + 0.8), dpi=100, layout=layout)
    panels = figure.subplots(len(heights), sharex=True, squeeze=False, height_ratios=heights)
    return figure, list(panels[:, 0])


def frame(
    figure: Figure,
    panels: list[Axes],
    model: DriftingMDP,
    title: str | None,
    facts: dict[str, str],
    filled: Axes | None = None,
) -> None:
    """Give a page its heading and its panels a time axis, at the bottom; call it last.

    Parameters
    ----------
    figure, panels
        What `page` returned.
    model
        What is shown.
    title
        What to call it; its id if not given.
    facts
        What the heading says of it besides T.
    filled
        The panel that a grid would cut through.
    """
    time_axis(panels, model.horizon, filled)
    words = [f"{name} = {value}" for name, value in {"T": number(model.horizon), **facts}.items()]
    heading = [plain(title or model.name or "model", longest=50), *words]
    figure.suptitle("    ".join(heading), fontsize=15)


def time_axis(panels: list[Axes], horizon: int, filled: Axes | None = None) -> None:
    """Give panels that share their time axis its scale, at the bottom, and take away frames."""
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
        if panel is not filled:  # a grid would cut through it
            panel.grid(axis="x", color="#E4E4E4", linewidth=0.6)
            panel.set_axisbelow(True)
    lowest = panels[-1]
    lowest.set_xlim(1, horizon + 1)
    ticks = 10 if horizon < _LONG else 5  # more of the long numbers would run into each other
    lowest.xaxis.set_major_locator(MaxNLocator(nbins=ticks, integer=True))
    lowest.xaxis.set_major_formatter(FuncFormatter(lambda t, _: f"{t:,.0f}"))
    lowest.set_xlabel("time t (steps)")


def describe(panel: Axes, title: str, unit: str, lines: list[Any], key: str = "") -> None:
    """Say what a panel shows: its title, what its scale counts, and what its lines are."""
    panel.set_title(title, loc="left")
    panel.set_ylabel(unit)
    panel.legend(
        handles=lines, title=key or None, loc="upper left", bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0.0, frameon=False, fontsize=10, handlelength=2.4, alignment="left",
    )  # fmt: skip


def note(panel: Axes, text: str) -> None:
    """Write a remark across the middle of a panel."""
    panel.text(
        0.5, 0.5, text, transform=panel.transAxes, ha="center", va="center", fontsize=13,
        color="#505050", bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85},
    )  # fmt: skip


def steps(
    times: NDArray[np.int64], values: NDArray[np.float64], horizon: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the course of one curve; what acts at t holds from t to t + 1."""
    return np.append(times, horizon + 1), np.append(values, values[-1])


def number(value: float) -> str:
    """Return a number for a title or a legend.

    >>> number(12345.6), number(2.09999999)
    ('12,346', '2.1')
    """
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def upwards(value: float) -> str:
    """Return an error bound in two digits, never less than it is beyond rounding.

    >>> upwards(9.71e-07), upwards(1e-9), upwards(0.0)
    ('9.8e-07', '1.0e-09', '0')
    """
    if value <= 0:
        return "0"
    text = f"{value:.1e}"
    if float(text) >= value * (1 - 1e-9):
        return text
    return f"{float(text) + float('0.1e' + text[text.index('e') + 1 :]):.1e}"


def plain(name: str, longest: int = 22) -> str:
    """Return a name as it is shown: cut if it is long, letter by letter."""
    return literal(name if len(name) <= longest else name[: longest - 1] + "…")


def literal(name: str) -> str:
    """Return a name as matplotlib shows it letter by letter: a dollar starts no formula."""
    return name.replace("$", r"\$")


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
