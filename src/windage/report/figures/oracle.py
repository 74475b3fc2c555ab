"""Figure of the oracle of a drifting model: optimal gains, diameters, optimal policies.

The optimal policy is drawn as bands: one a state, coloured and hatched by the action, over time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from windage.models import DriftingMDP
from windage.report.figures.sampling import envelope, sample_times
from windage.report.figures.style import (
    COLOURS,
    describe,
    frame,
    note,
    number,
    page,
    plain,
    steps,
    upwards,
)
from windage.report.truth import PolicyCourse, Truth, time_shares, truth_of
from windage.spaces import StateActions

if TYPE_CHECKING:
    from windage.simulate import Run

__all__ = ["bands_of", "bin_means", "oracle_figure", "share", "stacked"]

Reals = NDArray[np.float64]

_BINS = 60
_VISIBLE = 2e-3  # of the height of the panel: less than half a pixel
_DECADES = 30.0  # a larger ratio of diameters asks for a logarithmic scale
_RUNS = (("#E69F00", "-"), ("#000000", "--"), ("#009E73", "-."), ("#CC79A7", ":"))

Times = NDArray[np.int64]

_MOST_ROWS = 16
_MOST_KEYS = 14
_MOST_PIECES = 400  # of one row; more would be thinner than two pixels
_MOST_EDGES = 60  # more white lines would drown the colours
_POLICY_BINS = 300
_FILLS = (*COLOURS[:6], "#F0E442", "#999999")
_HATCHES = ("", "///", "...", "\\\\\\", "xxx", "---", "++", "oo")
_INK = "#8C8C8C"
_THICK = 0.84  # of a row
_MARGIN = 6  # pixels between a word and the ends of its band


def oracle_figure(
    model: DriftingMDP,
    truth: Truth | None = None,
    runs: Mapping[str, Run] | None = None,
    title: str | None = None,
) -> Figure:
    """Return the picture of what is true of a model, and what agents get of it.

    Parameters
    ----------
    model
        What drifts.
    truth
        What `truth_of(model)` returns; computed if not given.
    runs
        Runs in that model by the names of their agents: adds what they earn.
    title
        What to call the model; its id if not given.

    Examples
    --------
    >>> import windage as wd
    >>> figure = oracle_figure(wd.envs.make("riverswim", horizon=400))
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Optimal gain', 'Diameter', 'Optimal policy: 3 changes seen']
    """
    known = truth or truth_of(model)
    bands = bands_of(model, known.policies)
    figure, panels = page([2.8, 1.8, bands.height])
    gains, diameters, policies = panels
    _gain_panel(gains, model, known, runs or {})
    _diameter_panel(diameters, model, known)
    _draw_bands(policies, model, known.policies, bands)
    facts = {
        r"mean $\rho^*_t$": number(known.mean_gain),
        "$D_{max}$": _diameter(known.largest.lower),
    }
    frame(figure, panels, model, title, facts, filled=policies)
    _label_bands(figure, policies, model, known.policies, bands)
    return figure


def share(run: Run, truth: Truth) -> float:
    """Return what share of the sum of rho*_t a run over the whole horizon earned, noise apart.

    NaN if there is nothing to earn.
    """
    return run.total_mean_reward / truth.gain_sum if truth.gain_sum > 0 else float("nan")


def bin_means(run: Run, bins: int = _BINS) -> tuple[Reals, Reals]:
    """Return the edges of time intervals and the mean reward of each, noise apart.

    The edges are recorded times, so that the means are exact however coarse the record is.
    """
    times = np.concatenate([[run.first - 1], run.times])
    sums = np.concatenate([[0.0], run.cumulative_mean_reward])
    if times[-1] < run.last:
        times, sums = np.append(times, run.last), np.append(sums, run.total_mean_reward)
    kept = np.unique(np.linspace(0, times.size - 1, bins + 1).astype(np.int64))
    return times[kept] + 1.0, np.diff(sums[kept]) / np.diff(times[kept])


def _gain_panel(panel: Axes, model: DriftingMDP, truth: Truth, runs: Mapping[str, Run]) -> None:
    times = sample_times(model)
    values, errors = truth.gains.evaluate(times)
    at, seen = envelope(times, np.stack([values, values - errors, values + errors], axis=1))
    lines: list[Line2D | Patch] = []
    top, low = float(values.max()), min(0.0, float(values.min()))
    for (name, run), (colour, style) in zip(runs.items(), _RUNS, strict=False):
        edges, means = bin_means(run)
        label = f"{plain(name)} agent: {_share(run, truth)}"
        lines += panel.plot(
            edges, np.append(means, means[-1]), drawstyle="steps-post", color=colour,
            linestyle=style, linewidth=1.4, zorder=3, label=label,
        )  # fmt: skip
        top, low = max(top, float(means.max())), min(low, float(means.min()))
    x, y = steps(at, seen[:, 0], model.horizon)
    curve = panel.plot(
        x, y, drawstyle="steps-post", color=COLOURS[0], linewidth=2.2,
        label=rf"$\rho^*_t$, certified to ±{upwards(truth.gains.error)}",
    )  # fmt: skip
    band: list[Patch] = []
    height = 1.08 * (top - low) or 1.0
    if errors.max() > _VISIBLE * height:
        low_side = steps(at, seen[:, 1], model.horizon)[1]
        high_side = steps(at, seen[:, 2], model.horizon)[1]
        panel.fill_between(
            x, low_side, high_side, step="post", color=COLOURS[5], alpha=0.4, linewidth=0
        )
        band = [Patch(color=COLOURS[5], alpha=0.4, label="certified bracket")]
    panel.set_ylim(low, low + height)
    each = f" (means of {model.horizon / _BINS:,.0f} steps)" if model.horizon >= 2 * _BINS else ""
    heading = f"Optimal gain, and what agents get of it{each}" if runs else "Optimal gain"
    describe(panel, heading, "reward per step", [*curve, *band, *lines])


def _diameter_panel(panel: Axes, model: DriftingMDP, truth: Truth) -> None:
    largest = truth.largest
    lines: list[Line2D | Patch] = []
    if model.space.n_states == 1:
        panel.set_ylim(-0.05, 1)
        panel.set_yticks([0])
        note(panel, "one state: D = 0")
    elif np.isfinite(truth.diameters).any():
        drawn = np.where(np.isfinite(truth.diameters), truth.diameters, np.nan)
        everywhere = truth.times.size == model.horizon
        x, y = steps(truth.times, drawn, model.horizon)
        lines += panel.plot(
            x, y, drawstyle="steps-post" if everywhere else "default", color=COLOURS[0],
            linewidth=1.8, label="$D_t$",
        )  # fmt: skip
        low, top = float(np.nanmin(drawn)), float(np.nanmax(drawn))
        if np.isfinite(largest.lower):
            where = f"largest: {number(largest.lower)} at t = {largest.t:,}"
            lines += panel.plot(
                [largest.t], [largest.lower], linestyle="none", marker="o", color=COLOURS[1],
                clip_on=False, zorder=4, label=where,
            )  # fmt: skip
            top = max(top, largest.lower)
        _diameter_scale(panel, low, top)
    else:
        panel.set_yticks([])
        if np.isnan(largest.lower):
            note(panel, "too long for floating point")
    if truth.holes:
        lines.append(_mark_holes(panel, model, truth))
    describe(panel, "Diameter", "steps", lines)


def _diameter_scale(panel: Axes, low: float, top: float) -> None:
    if top > _DECADES * low:
        panel.set_yscale("log")
        panel.set_ylim(0.7 * low, 1.5 * top)
        if top < 1000 * low:  # powers of ten alone would be too few numbers
            panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        panel.yaxis.set_minor_formatter(NullFormatter())
    else:
        panel.set_ylim(0.0, 1.12 * top)
    panel.yaxis.set_major_formatter(FuncFormatter(lambda size, _: number(size)))


def _mark_holes(panel: Axes, model: DriftingMDP, truth: Truth) -> Patch:
    """Mark the times at which the model does not communicate; a single step must show, too."""
    look: dict[str, Any] = {"facecolor": "#E8E8E8", "edgecolor": "#808080", "hatch": "////"}
    for hole in truth.holes:
        panel.axvspan(hole.first, hole.last + 1, linewidth=0.8, **look)
    lost = sum(hole.last - hole.first + 1 for hole in truth.holes)
    words = "at every t" if lost == model.horizon else f"at {lost:,} of {model.horizon:,} t"
    return Patch(label=rf"$D = \infty$ {words}", linewidth=0.8, **look)


def _share(run: Run, truth: Truth) -> str:
    found = share(run, truth)
    return "nothing to earn" if np.isnan(found) else rf"{found:.1%} of $\sum\rho^*_t$"


def _diameter(value: float) -> str:
    if np.isnan(value):
        return "not known"
    return r"$\infty$" if np.isinf(value) else number(value)


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


def _draw_bands(panel: Axes, model: DriftingMDP, course: PolicyCourse, bands: Bands) -> None:
    """Draw the bands and their legend."""
    changes = f"{course.changes:,} change{'' if course.changes == 1 else 's'} seen"
    title = "Optimal policy: " + "; ".join(filter(None, [changes, bands.remark]))
    if any(course.of_state(s)[0].size > _MOST_PIECES for s in bands.states):
        title += f"; shares of every {model.horizon / _POLICY_BINS:,.0f} steps"
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


def _label_bands(
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
    edges = np.linspace(1, horizon + 1, min(_POLICY_BINS, horizon) + 1)
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
