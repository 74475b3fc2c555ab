"""The style of an agent on every chart of a page: one colour, one dash, one marker.

Colours are Okabe and Ito's and a brown, so that every eye can tell them apart; dashes and markers
tell them apart again, in print too. A chart names colours by tokens, such as `@agent-2`; the page
knows what a token is in light and in dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["DIVERGING", "SEQUENTIAL", "THEMES", "AgentStyle", "styles_of"]

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
