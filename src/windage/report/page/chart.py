"""What charts are made of: the style of each agent, a sentence, a figure, and its numbers.

An agent has one colour, one dash and one marker on every chart of a page. Colours are Okabe and
Ito's and a brown, so that every eye can tell them apart; dashes and markers tell them apart again,
in print too. A chart names colours by tokens, such as `@agent-2`; the page knows what a token is in
light and in dark.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = [
    "DIVERGING",
    "FONT",
    "LABEL",
    "NAME",
    "SEQUENTIAL",
    "THEMES",
    "AgentStyle",
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
    "styles_of",
]

_LIGHT = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6A3D1A")
_DARK = ("#4C9BE8", "#F0803C", "#2FBF93", "#E29BC4", "#F2B632", "#9AD4F5", "#A56B3A")
_DASHES = ("solid", "10px,3px", "dashdot", "longdash")
_MARKERS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down")
_MOST_COLOURED = 12  # learners; more lines than that nobody tells apart
_LEAST_CONTRAST = 4.5  # of words, against the paper (WCAG 2.2, level AA)

_PAPERS = {"light": "#ffffff", "dark": "#15181d"}
_GREYS = {
    "light": {
        "ink": "#1c2026", "soft": "#5b6470", "faint": "#9aa3ad", "line": "#d9dde2",
        "grid": "#eceef1", "paper": "#ffffff", "reference": "#1c2026", "floor": "#646e78",
        "other": "#c3c9cf",
    },
    "dark": {
        "ink": "#e8eaed", "soft": "#a7afb9", "faint": "#737d88", "line": "#3a414a",
        "grid": "#262b32", "paper": "#15181d", "reference": "#f4f5f7", "floor": "#7a848f",
        "other": "#4a525c",
    },
}  # fmt: skip

SEQUENTIAL = "@sequential"
DIVERGING = "@diverging"
_SCALES = {
    "light": {
        "sequential": ["#f3f6fa", "#c6d9ec", "#7fb0d8", "#3079b8", "#0b3c6f"],
        "diverging": ["#c9702f", "#e9b98d", "#f2f2ef", "#9cc3de", "#3f86bb"],
    },
    "dark": {
        "sequential": ["#1b2129", "#1d3f63", "#2a6ba6", "#62a3dc", "#d3e8fb"],
        "diverging": ["#b56a30", "#6b4428", "#262a30", "#274f75", "#3b78ad"],
    },
}


@dataclass(frozen=True)
class AgentStyle:
    """One agent's colour token, dash and marker; `place` counts within its kind."""

    label: str
    colour: str
    dash: str
    marker: str
    coloured: bool

    @property
    def ink(self) -> str:
        """The token of the same colour for words, dark or light enough to be read."""
        return f"{self.colour}-ink"

    def faded(self, opacity: float) -> str:
        """Return the token of the same colour, let through so much."""
        return f"{self.colour}/{opacity:g}"


def styles_of(
    learners: Sequence[str], informed: Sequence[str], floor: Sequence[str]
) -> list[AgentStyle]:
    """Return a style for every agent: learners, those told the model, those that learn nothing.

    The learners come best first: of many only the first are coloured, the rest is grey.

    >>> [style.colour for style in styles_of(["borl"], ["oracle"], ["random"])]
    ['@agent-0', '@reference', '@floor']
    """
    found = []
    for place, label in enumerate(learners):
        cycle, hue = divmod(place, len(_LIGHT))
        coloured = len(learners) <= _MOST_COLOURED or place < len(_LIGHT)
        found.append(
            AgentStyle(
                label,
                f"@agent-{hue}" if coloured else "@other",
                _DASHES[(2 * cycle + place % 2) % len(_DASHES)] if coloured else "solid",
                _MARKERS[(hue + cycle) % len(_MARKERS)],
                coloured,
            )
        )
    for colour, labels, dash in (("@reference", informed, "dot"), ("@floor", floor, "dash")):
        for place, label in enumerate(labels):
            marker = _MARKERS[(place + 2) % len(_MARKERS)] + "-open"
            found.append(
                AgentStyle(label, colour, dash if place == 0 else _DASHES[3], marker, True)
            )
    return found


def _themes() -> dict[str, dict[str, object]]:
    themes: dict[str, dict[str, object]] = {}
    for name, hues in (("light", _LIGHT), ("dark", _DARK)):
        tokens: dict[str, object] = dict(_GREYS[name])
        for place, colour in enumerate(hues):
            tokens[f"agent-{place}"] = colour
            tokens[f"agent-{place}-ink"] = _legible(colour, _PAPERS[name])
        for token in ("reference", "floor", "other"):
            tokens[f"{token}-ink"] = _legible(str(tokens[token]), _PAPERS[name])
        tokens |= {
            scale: [[k / 4, colour] for k, colour in enumerate(colours)]
            for scale, colours in _SCALES[name].items()
        }
        themes[name] = tokens
    return themes


def _legible(colour: str, paper: str) -> str:
    """Return the colour moved away from the paper until words in it can be read.

    >>> _legible("#0072B2", "#ffffff"), _legible("#E69F00", "#ffffff")
    ('#0072b2', '#9c6c00')
    """
    away = 255.0 if _luminance(paper) < 0.5 else 0.0
    parts = _parts(colour)
    for step in range(101):
        mixed = [part + (away - part) * step / 100 for part in parts]
        found = "#" + "".join(f"{round(part):02x}" for part in mixed)
        if _contrast(found, paper) >= _LEAST_CONTRAST:
            return found
    raise AssertionError("black on white can be read")


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    """Return the relative luminance of sRGB (WCAG 2.2)."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (part / 255 for part in _parts(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _parts(colour: str) -> list[int]:
    return [int(colour[k : k + 2], 16) for k in (1, 3, 5)]


THEMES = _themes()
"""What every token stands for, in light and in dark."""


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
