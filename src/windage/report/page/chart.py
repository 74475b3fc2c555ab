"""What a chart is made of: a sentence that says what to see, a figure, and its numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from windage.report.page.style import AgentStyle

__all__ = [
    "FONT",
    "LABEL",
    "NAME",
    "Chart",
    "Table",
    "View",
    "axis",
    "colorbar",
    "direct_labels",
    "fits_beside",
    "interval_text",
    "label_room",
    "plot_text",
    "rounded",
    "shortened",
]

FONT = 13  # pixels
LABEL = 32  # letters of the longest name that may stand beside a line
NAME = 44  # letters of a name on an axis
_BRIEF = [
    (re.compile(rf", {name} (?=[\w.])"), short)
    for name, short in (
        ("window", " W="), ("widening", " η="), ("delta", " δ="), ("radii", " "), ("ties", " "),
    )
]  # fmt: skip
_DIGITS = 5  # of numbers that are drawn: finer than a pixel
_GAP = 17  # pixels between the middles of two labels
_SMALL = 1e-12


@dataclass(frozen=True)
class Table:
    """Numbers in rows; cells are text, or numbers that sort as such."""

    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class View:
    """One figure as plotly takes it; `narrow` is what differs on a small screen."""

    data: list[dict[str, Any]]
    layout: dict[str, Any]
    narrow: dict[str, Any] = field(default_factory=dict)
    label: str = ""


@dataclass(frozen=True)
class Chart:
    """A chart with its words.

    Attributes
    ----------
    id
        Names it on the page.
    title, sentence
        What it is, and what to see in it.
    views
        One figure, or several of which a reader picks one.
    table
        The numbers, for those who would rather read them.
    key
        The agents whose colours are used; those with a label beside their line need no key.
    direct
        Whether the lines have such labels on a wide screen.
    numbered
        Whether a small screen shows numbers in place of names, which the key then explains.
    """

    id: str
    title: str
    sentence: str
    views: Sequence[View]
    table: Table
    key: Sequence[AgentStyle] = ()
    direct: bool = False
    numbered: bool = False


def plot_text(text: str, longest: int = 60) -> str:
    """Return a name as plotly shows it letter by letter: it reads some HTML in names.

    >>> plot_text("<b>&")
    '&lt;b&gt;&amp;'
    """
    short = shortened(text, longest)
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def shortened(text: str, longest: int) -> str:
    """Return a name cut to a length, without line breaks.

    Names that a sweep made are told apart by their ends, others by their beginnings.

    >>> shortened("swucrl2-cw, window 200, widening 0.05, radii paper", 24)
    '…2-cw W=200 η=0.05 paper'
    >>> shortened("a very long name", 8)
    'a very …'
    """
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    brief = line
    for pattern, short in _BRIEF:
        brief = pattern.sub(short, brief)
    if len(brief) <= longest:
        return brief
    return "…" + brief[1 - longest :] if brief != line else brief[: longest - 1] + "…"


def rounded(values: Iterable[float]) -> list[float | None]:
    """Return numbers to draw, in few digits; what is not finite becomes a gap.

    >>> rounded([1 / 3, float("nan"), 12345678.0])
    [0.33333, None, 12346000.0]
    """
    return [
        float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
        for value in np.asarray(list(values), dtype=np.float64).tolist()
    ]


def axis(title: str = "", **more: Any) -> dict[str, Any]:
    """Return an axis in the style of the page."""
    style: dict[str, Any] = {
        "title": {"text": title, "standoff": 8, "font": {"size": FONT, "color": "@soft"}},
        "automargin": True,
        "gridcolor": "@grid",
        "linecolor": "@line",
        "zeroline": False,
        "ticks": "",
    }
    return style | more


def colorbar(title: str, **more: Any) -> dict[str, Any]:
    """Return the scale beside a heat map."""
    font = {"size": FONT, "color": "@soft"}
    return {
        "title": {"text": title, "side": "right", "font": font}, "thickness": 12,
        "outlinewidth": 0,
    } | more  # fmt: skip


def direct_labels(
    ends: Sequence[tuple[AgentStyle, float, str]], x: float, low: float, high: float, pixels: float
) -> list[dict[str, Any]]:
    """Return names beside the right ends of lines, moved apart where they would overlap.

    Parameters
    ----------
    ends
        The styles, the heights at which their lines end, and what else to say of them. If a name is
        too long to stand there, only what else there is to say does, and the chart needs a key: an
        agent has one name wherever it is shown.
    x
        Where the lines end.
    low, high, pixels
        The range of the vertical axis, and how tall it is drawn.
    """
    scale = pixels / max(high - low, _SMALL)
    fits = fits_beside(style for style, _, _ in ends)
    order = sorted((end for end in ends if fits or end[2]), key=lambda end: -end[1])
    wanted = [(high - value) * scale for _, value, _ in order]
    placed = _apart(wanted, 0.0, pixels)
    return [
        {
            "x": x, "y": value, "ax": 16, "ay": at - place, "xref": "x", "yref": "y",
            "text": _beside(style, more, fits=fits), "arrowcolor": style.colour,
            "showarrow": True, "arrowhead": 0, "arrowwidth": 1, "xanchor": "left",
            "yanchor": "middle", "align": "left", "font": {"color": style.ink, "size": FONT},
        }
        for (style, value, more), place, at in zip(order, wanted, placed, strict=True)
    ]  # fmt: skip


def fits_beside(styles: Iterable[AgentStyle]) -> bool:
    """Return whether names may stand beside the lines, uncut."""
    return all(len(style.label) <= LABEL for style in styles)


def label_room(ends: Sequence[tuple[AgentStyle, float, str]]) -> int:
    """Return how many pixels `direct_labels` need beside the lines."""
    fits = fits_beside(style for style, _, _ in ends)
    longest = max((len(_beside(style, more, fits=fits)) for style, _, more in ends), default=0)
    return 34 + round(0.56 * FONT * longest)


def _beside(style: AgentStyle, more: str, *, fits: bool) -> str:
    if not fits:
        return more
    return plot_text(style.label) + (f": {more}" if more else "")


def _apart(wanted: Sequence[float], low: float, high: float) -> list[float]:
    """Return rising places as near to those wanted as a gap between them allows.

    >>> _apart([10.0, 12.0, 200.0], 0.0, 300.0)
    [2.5, 19.5, 200.0]
    >>> _apart([290.0, 299.0, 300.0], 0.0, 300.0)
    [266.0, 283.0, 300.0]
    """

    def middle(group: list[float]) -> float:
        """Return where a group of touching labels has its middle."""
        half = 0.5 * _GAP * (len(group) - 1)
        return min(max(sum(group) / len(group), low + half), high - half)

    groups: list[list[float]] = []
    for place in wanted:
        groups.append([place])
        while len(groups) > 1:
            *_, one, other = groups
            if middle(other) - middle(one) >= 0.5 * _GAP * (len(one) + len(other)):
                break
            groups[-2:] = [one + other]
    return [
        middle(group) + _GAP * (k - 0.5 * (len(group) - 1))
        for group in groups
        for k in range(len(group))
    ]


def interval_text(low: float, high: float, digits: int) -> str:
    """Return an interval; what is rounded to zero has no sign.

    >>> interval_text(-1.0, 2.5, 1), interval_text(-0.001, 0.28, 2)
    ('[−1.0, 2.5]', '[0.00, 0.28]')
    """
    ends = (f"{round(end, digits) + 0.0:.{digits}f}" for end in (low, high))
    return f"[{', '.join(ends)}]".replace("-", "\u2212")
