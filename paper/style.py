"""Pictures of the paper's results: one look for all of them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import NullLocator

from windage.report.figures.style import COLOURS, GREY

__all__ = ["COLOURS", "GREY", "MARKERS", "canvas", "label", "legend"]

MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def canvas(
    title: str, rows: int = 1, columns: int = 2, height: float = 4.2, **options: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, row by row."""
    figure = Figure(
        figsize=(12, rows * height + 0.6),
        dpi=100,
        layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1, wspace=0.04, hspace=0.05),
    )
    panels = figure.subplots(rows, columns, squeeze=False, **options)
    figure.suptitle(title, fontsize=15)
    for panel in np.ravel(panels):
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(color="#E4E4E4", linewidth=0.6)
        panel.set_axisbelow(True)
    return figure, list(np.ravel(panels))


def label(
    panel: Axes, title: str, x: str, y: str, *, logs: str = "", ticks: Sequence[float] = ()
) -> None:
    """Say what a panel shows; `logs` names the axes that are logarithmic, `ticks` values of x."""
    panel.set_title(textwrap.fill(title, 62), loc="left", fontsize=11)
    panel.set_xlabel(x)
    panel.set_ylabel(y)
    if "x" in logs:
        panel.set_xscale("log")
    if "y" in logs:
        panel.set_yscale("log")
    if ticks:
        panel.set_xticks(ticks, [f"{value:g}" for value in ticks])
        panel.xaxis.set_minor_locator(NullLocator())


def legend(panel: Axes, columns: int = 2) -> None:
    """Name the lines of a panel below it, where they cover nothing."""
    panel.legend(
        fontsize=8.5, frameon=False, ncols=columns, loc="upper left", bbox_to_anchor=(-0.02, -0.14),
        borderaxespad=0.0, handlelength=2.2, columnspacing=1.2,
    )  # fmt: skip
