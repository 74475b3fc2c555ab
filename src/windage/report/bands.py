"""The optimal policy as bands: one a state, coloured and hatched by the action, over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from windage.models import DriftingMDP
from windage.report.panels import COLOURS, describe, note, plain
from windage.report.policies import PolicyCourse, time_shares
from windage.spaces import StateActions

__all__ = ["Bands", "bands_of", "draw_bands", "label_bands", "stacked"]

Reals = NDArray[np.float64]
Times = NDArray[np.int64]

_MOST_ROWS = 16
_MOST_KEYS = 14
_MOST_PIECES = 400  # of one row; more would be thinner than two pixels
_MOST_EDGES = 60  # more white lines would drown the colours
_BINS = 300
_FILLS = (*COLOURS[:6], "#F0E442", "#999999")
_HATCHES = ("", "///", "...", "\\\\\\", "xxx", "---", "++", "oo")
_INK = "#8C8C8C"
_THICK = 0.84  # of a row
_MARGIN = 6  # pixels between a word and the ends of its band


class Bands(NamedTuple):
    """Which states are shown, in which order, and what their actions are called.

    Attributes
    ----------
    states
        The states, from the lowest row up.
    actions
        The names of the actions used in them, those with a lower index first.
    remark
        What is left out.
    """

    states: list[int]
    actions: list[str]
    remark: str

    @property
    def height(self) -> float:
        """How many inches the panel needs, for its rows and for its legend."""
        return max(0.27 * len(self.states) + 0.25, 0.22 * min(len(self.actions), _MOST_KEYS) + 0.65)


def bands_of(model: DriftingMDP, course: PolicyCourse) -> Bands:
    """Choose the states to show: those with a choice, of many those the policy visits most."""
    space = model.space
    choice = np.flatnonzero(space.counts > 1)
    shown, remarks = choice, []
    if choice.size > _MOST_ROWS:
        shares = time_shares(model, course)[choice]
        shown = np.sort(choice[np.argsort(-shares, kind="stable")[:_MOST_ROWS]])
        remarks.append(f"the {_MOST_ROWS} states it visits most, of {space.n_states}")
    elif 0 < choice.size < space.n_states:
        remarks.append("states with one action left out")
    used = {
        (int(a), space.action_name(int(s), int(a)))
        for s in shown
        for a in np.unique(course.actions[:, s])
    }
    names = list(dict.fromkeys(name for _, name in sorted(used)))
    return Bands(shown.tolist(), names, "; ".join(remarks))


def draw_bands(panel: Axes, model: DriftingMDP, course: PolicyCourse, bands: Bands) -> None:
    """Draw the bands and their legend."""
    changes = f"{course.changes:,} change{'' if course.changes == 1 else 's'} seen"
    title = "Optimal policy: " + "; ".join(filter(None, [changes, bands.remark]))
    if any(course.of_state(s)[0].size > _MOST_PIECES for s in bands.states):
        title += f"; shares of every {model.horizon / _BINS:,.0f} steps"
    if not bands.states:
        panel.set_yticks([])
        describe(panel, title, "state", [])
        note(panel, "no state has a choice")
        return
    looks = _looks(len(bands.actions))
    for row, state in enumerate(bands.states):
        starts, actions = _named(model.space, course, bands, state)
        if starts.size > _MOST_PIECES:
            _draw_stack(panel, row, starts, actions, model.horizon, looks)
        else:
            _draw_row(panel, row, starts, actions, model.horizon, looks)
    panel.set_ylim(-0.5, len(bands.states) - 0.5)
    panel.set_yticks(range(len(bands.states)), _row_names(model.space, bands.states))
    panel.tick_params(axis="y", length=0)
    keys = [
        Patch(label=plain(name), linewidth=0, edgecolor=_INK, **look)
        for name, look in zip(bands.actions, looks, strict=True)
    ]
    if len(keys) > _MOST_KEYS:
        more = Patch(label=f"and {len(keys) - _MOST_KEYS + 1} more", facecolor="none")
        keys = [*keys[: _MOST_KEYS - 1], more]
    describe(panel, title, "state", keys, "action")


def label_bands(
    figure: Figure, panel: Axes, model: DriftingMDP, course: PolicyCourse, bands: Bands
) -> None:
    """Write the names of actions where they fit; call it when all else is drawn."""
    if not bands.states:
        return
    renderer: Any = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)  # to know how wide the panel becomes
    pixels = panel.get_window_extent(renderer).width / model.horizon
    looks = _looks(len(bands.actions))
    for row, state in enumerate(bands.states):
        starts, actions = _named(model.space, course, bands, state)
        if starts.size > _MOST_PIECES:
            continue
        for first, length, action in _pieces(starts, actions, model.horizon):
            room = length * pixels - 2 * _MARGIN
            if room < _MARGIN:
                continue
            text = panel.text(
                first + 0.5 * length, row, plain(bands.actions[action]), ha="center",
                va="center_baseline", fontsize=9, in_layout=False,
                bbox={"facecolor": looks[action]["facecolor"], "edgecolor": "none", "pad": 1.0},
            )  # fmt: skip
            if text.get_window_extent(renderer).width > room:
                text.remove()


def stacked(starts: Times, actions: Times, horizon: int, n_actions: int) -> tuple[Reals, Reals]:
    """Return the edges of time bins and `shares[action, bin]` of the time an action is used.

    >>> edges, shares = stacked(np.array([1, 4]), np.array([0, 1]), horizon=4, n_actions=2)
    >>> edges, shares
    (array([1., 2., 3., 4., 5.]), array([[1., 1., 1., 0.], [0., 0., 0., 1.]]))
    """
    edges = np.linspace(1, horizon + 1, min(_BINS, horizon) + 1)
    ends = np.append(starts, horizon + 1).astype(np.float64)
    shares = np.empty((n_actions, edges.size - 1))
    for action in range(n_actions):
        spent = np.concatenate([[0.0], np.cumsum(np.diff(ends) * (actions == action))])
        shares[action] = np.diff(np.interp(edges, ends, spent)) / np.diff(edges)
    return edges, shares


def _named(
    space: StateActions, course: PolicyCourse, bands: Bands, state: int
) -> tuple[Times, Times]:
    """Return when a state begins to use another action, and its place among the names."""
    starts, actions = course.of_state(state)
    places = [bands.actions.index(space.action_name(state, int(a))) for a in actions]
    return starts, np.array(places)


def _pieces(starts: Times, actions: Times, horizon: int) -> Iterator[tuple[int, int, int]]:
    lengths = np.diff([*starts, horizon + 1])
    return zip(starts.tolist(), lengths.tolist(), actions.tolist(), strict=True)


def _draw_row(
    panel: Axes, row: int, starts: Times, actions: Times, horizon: int, looks: list[dict[str, Any]]
) -> None:
    pieces = list(_pieces(starts, actions, horizon))
    for action in np.unique(actions):
        spans = [(first, length) for first, length, used in pieces if used == action]
        panel.broken_barh(
            spans, (row - 0.5 * _THICK, _THICK), linewidth=0, edgecolor=_INK, **looks[action]
        )
    if starts.size < _MOST_EDGES:
        panel.vlines(
            starts[1:], row - 0.5 * _THICK, row + 0.5 * _THICK, color="white", linewidth=1.5
        )


def _draw_stack(
    panel: Axes, row: int, starts: Times, actions: Times, horizon: int, looks: list[dict[str, Any]]
) -> None:
    """Draw the share of time of each action, where it changes too often to be drawn."""
    edges, shares = stacked(starts, actions, horizon, len(looks))
    tops = row - 0.5 * _THICK + _THICK * np.cumsum(shares, axis=0)
    bottom = np.full(edges.size - 1, row - 0.5 * _THICK)
    for top, look in zip(tops, looks, strict=True):
        panel.fill_between(
            edges, np.append(bottom, bottom[-1]), np.append(top, top[-1]), step="post",
            linewidth=0, edgecolor=_INK, **look,
        )  # fmt: skip
        bottom = top


def _looks(n: int) -> list[dict[str, Any]]:
    """Return colours and hatches, as many as asked for; words must stay legible on them."""
    if n <= len(_FILLS):
        colours = [_pale(colour) for colour in _FILLS[:n]]
    else:
        colours = [_pale(colour) for colour in mpl.colormaps["viridis"](np.linspace(0, 1, n))]
    return [
        {"facecolor": colour, "hatch": _HATCHES[k % len(_HATCHES)]}
        for k, colour in enumerate(colours)
    ]


def _pale(colour: Any) -> tuple[float, ...]:
    return tuple(0.45 * part + 0.55 for part in to_rgb(colour))


def _row_names(space: StateActions, states: list[int]) -> list[str]:
    return [plain(space.state_name(s), longest=24) for s in states]
