"""Figure of a drifting model: rewards, transitions and budgets over time, and the path of a run.

Figures are plain `matplotlib.figure.Figure` objects: no window opens, nothing global changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from windage.models import DriftingMDP
from windage.report.figures.sampling import (
    BINS,
    Curves,
    Times,
    accumulated,
    envelope,
    is_crowded,
    kernel_curves,
    reward_curves,
    sample_times,
)
from windage.report.figures.style import (
    COLOURS,
    GREY,
    STYLES,
    describe,
    frame,
    literal,
    note,
    number,
    page,
    plain,
    steps,
)
from windage.spaces import StateActions

if TYPE_CHECKING:
    from windage.simulate import Run

__all__ = ["drift_figure", "occupancy"]

Reals = NDArray[np.float64]

_MOST_CURVES = 60
_HATCHES = ("///", "\\\\\\", "|||", "---", "xxx", "...", "+++")

_TIME_BINS = 120
_REWARD_BINS = 60
_STATE_BANDS = 100
_NAMED_STATES = 12
_POINTS = 2000
_SHORT_NAME = 10


def drift_figure(
    model: DriftingMDP,
    run: Run | None = None,
    title: str | None = None,
    *,
    agent: str | None = None,
) -> Figure:
    """Return the picture of a model: rewards, transitions and budgets over time, and a path.

    Parameters
    ----------
    model
        What drifts.
    run
        A run in that model: adds the time spent in each state and the reward collected.
    title
        What to call the model; its id if not given.
    agent
        Who made the run.

    Examples
    --------
    >>> import windage as wd
    >>> figure = drift_figure(wd.envs.make("riverswim", horizon=400))
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Mean rewards', 'Transition probabilities', 'Variation budgets']
    """
    figure, panels = page([2.5, 2.5, 1.8] + ([2.0, 1.6] if run is not None else []))
    times = sample_times(model)
    budgets = model.budgets()
    crowded = is_crowded(times)
    coarse = f" (their range in every {model.horizon // BINS:,} steps)" if crowded else ""
    curves = reward_curves(model, times, _MOST_CURVES)
    lines = _curve_panel(panels[0], model, times, curves, _pair_label)
    describe(panels[0], "Mean rewards" + coarse, "mean reward", lines, "state, action")
    curves = kernel_curves(model, times, _MOST_CURVES)
    lines = _curve_panel(panels[1], model, times, curves, _move_label)
    key = "s -action-> s'" + (", states by number" if _are_numbered(model.space) else "")
    describe(panels[1], "Transition probabilities" + coarse, "probability", lines, key)
    _budget_panel(panels[2], model, times)
    if run is not None:
        _path_panels(panels[3], panels[4], model, run, agent)
    facts = {"$B_r$": number(budgets.reward), "$B_p$": number(budgets.transition)}
    frame(figure, panels, model, title, facts, filled=panels[3] if run is not None else None)
    return figure


def _curve_panel(
    panel: Axes,
    model: DriftingMDP,
    times: Times,
    curves: Curves,
    label: Callable[[DriftingMDP, int], str],
) -> list[Line2D | Patch]:
    """Draw the curves that move most in colour, the others in grey; return what to name."""
    keys: list[Line2D | Patch] = []
    shown = min(curves.moving, len(COLOURS))
    draw = _draw_band if is_crowded(times) else _draw_curve
    for curve in range(curves.entries.size):
        x, y = _course(model, times, curves.values[:, curve])
        if curve >= shown:
            panel.plot(x, y, drawstyle="steps-post", color=GREY, linewidth=0.8, zorder=2)
            continue
        alike = int(curves.alike[curve]) - 1
        text = label(model, int(curves.entries[curve])) + (f"  (+{alike} alike)" if alike else "")
        keys.append(draw(panel, x, y, curve, text))
    rest = curves.total - int(curves.alike[:shown].sum())
    if rest:
        drawn = int(curves.alike[shown:].sum())
        still = curves.moving == shown < curves.entries.size
        kind = "constant" if still else "others" if rest > 1 else "other"
        more = f", {drawn:,} drawn" if drawn < rest else ""
        keys.append(Line2D([], [], color=GREY, linewidth=0.8, label=f"{rest:,} {kind}{more}"))
    if not curves.moving:
        panel.set_ylim(-0.05, 1.05)
        note(panel, "no drift")
    return keys


def _draw_curve(panel: Axes, x: Times, y: Reals, curve: int, label: str) -> Line2D:
    (line,) = panel.plot(
        x, y, drawstyle="steps-post", color=COLOURS[curve], linestyle=STYLES[curve % 2],
        linewidth=1.8, zorder=3, label=label,
    )  # fmt: skip
    return line


def _draw_band(panel: Axes, x: Times, y: Reals, curve: int, label: str) -> Patch:
    """Draw the range of a curve in every time bin; hatches show bands through each other."""
    look: dict[str, Any] = {
        "facecolor": "none", "edgecolor": COLOURS[curve], "hatch": _HATCHES[curve % len(_HATCHES)]
    }  # fmt: skip
    low, high = np.append(y[0:-1:2], y[-3]), np.append(y[1:-1:2], y[-2])
    edges = np.append(x[0:-1:2], x[-1])
    panel.fill_between(edges, low, high, step="post", linewidth=1.0, zorder=3, **look)
    return Patch(label=label, linewidth=1.0, **look)


def _budget_panel(panel: Axes, model: DriftingMDP, times: Times) -> None:
    totals = accumulated(model, times)
    names = ("$B_r$ (rewards, max norm)", "$B_p$ (transitions, L1)")
    lines = []
    for total, name, colour, style in zip(totals, names, COLOURS, STYLES, strict=False):
        x, y = _course(model, times, total)
        lines += panel.plot(
            x, y, drawstyle="steps-post", color=colour, linestyle=style, linewidth=1.8, label=name
        )
    if totals[0][-1] == totals[1][-1] == 0:
        panel.set_ylim(-0.05, 1)
        note(panel, "no drift")
    else:
        panel.set_ylim(bottom=-0.03 * max(totals[0][-1], totals[1][-1]))  # a line at 0 shows
    panel.yaxis.set_major_formatter(FuncFormatter(lambda size, _: number(size)))
    describe(panel, "Variation budgets", "variation so far", lines)


def _course(model: DriftingMDP, times: Times, values: Reals) -> tuple[Times, Reals]:
    at, seen = envelope(times, values[:, None])
    return steps(at, seen[:, 0], model.horizon)


def _pair_label(model: DriftingMDP, pair: int) -> str:
    s, a = int(model.space.state_of[pair]), int(model.space.action_of[pair])
    return f"{plain(model.space.state_name(s))}, {plain(model.space.action_name(s, a))}"


def _move_label(model: DriftingMDP, entry: int) -> str:
    pair, after = divmod(entry, model.space.n_states)
    s, a = int(model.space.state_of[pair]), int(model.space.action_of[pair])
    states = _short_state_names(model.space)
    return f"{states[s]} -{plain(model.space.action_name(s, a))}-> {states[after]}"


def _path_panels(
    states: Axes, rewards: Axes, model: DriftingMDP, run: Run, agent: str | None
) -> None:
    """Draw the time spent in each state and the reward collected."""
    who = f"the {agent} agent" if agent else "a run"
    recorded = run.times.size > 0
    states.set_title(f"Path of {who}, seed {run.seed}", loc="left")
    states.set_ylabel("state")
    lines = _reward_lines(rewards, run) if recorded else []
    describe(rewards, f"Reward collected by {who}", "reward per step", lines)
    if not recorded:
        note(states, "no path recorded")
        note(rewards, "no path recorded")
    elif model.space.n_states == 1:
        states.set_ylim(-0.5, 0.5)
        states.set_yticks([0], _short_state_names(model.space))
        note(states, "one state")
    else:
        _state_panel(states, model, run)


def occupancy(run: Run, lowest: int, highest: int) -> tuple[Reals, Reals, Reals]:
    """Return time edges, state edges and the share of each time bin spent in each state band.

    The states from `lowest` to `highest` must hold the run. A column of shares sums to one; a band
    is one state unless there are many.
    """
    n_states = highest - lowest + 1
    columns = min(_TIME_BINS, run.times.size)
    bands = min(_STATE_BANDS, n_states)
    edges = np.linspace(run.first, run.last + 1, columns + 1)
    column = np.clip(np.searchsorted(edges, run.times, side="right") - 1, 0, columns - 1)
    band = (run.states[: run.times.size].astype(np.int64) - lowest) * bands // n_states
    counts = np.bincount(band * columns + column, minlength=bands * columns)
    shares = counts.reshape(bands, columns).astype(np.float64)
    total = shares.sum(axis=0)
    np.divide(shares, total, out=shares, where=total > 0)
    borders = lowest - (-np.arange(bands + 1) * n_states // bands)  # the first state of each band
    return edges, borders.astype(np.float64) - 0.5, shares


def _short_state_names(space: StateActions) -> list[str]:
    """Return what to call the states where there is little room: numbers if names are long."""
    names = space.state_names
    if not names or _are_numbered(space):
        return [str(s) for s in range(space.n_states)]
    return [literal(name) for name in names]


def _are_numbered(space: StateActions) -> bool:
    """Return whether states have names, but names too long for little room."""
    return any(len(name) > _SHORT_NAME for name in space.state_names or ())


def _state_panel(panel: Axes, model: DriftingMDP, run: Run) -> None:
    S = model.space.n_states
    lowest, highest = 0, S - 1
    if S > _NAMED_STATES:  # of many states, show those the path came to
        path = run.states[: run.times.size]
        lowest, highest = int(path.min()), int(path.max())
    times, states, shares = occupancy(run, lowest, highest)
    darkest = max(float(shares.max()), 2 / S)  # twice an equal share: that one is half dark
    mesh = panel.pcolormesh(
        times, states, shares, cmap="Blues", vmin=0.0, vmax=darkest, rasterized=True
    )
    panel.set_ylim(lowest - 0.5, highest + 0.5)
    if S <= _NAMED_STATES:
        panel.set_yticks(range(S), _short_state_names(model.space))
    else:
        panel.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        if highest - lowest + 1 < S:
            panel.set_ylabel(f"state ({lowest} to {highest} of {S})")
    scale = panel.inset_axes((1.012, 0.0, 0.014, 1.0))
    panel.figure.colorbar(mesh, cax=scale, label="share of time")


def _reward_lines(panel: Axes, run: Run) -> list[Line2D]:
    """Draw the means over intervals and the mean so far."""
    running = run.cumulative_reward / (run.times - run.first + 1)
    kept = np.unique(np.linspace(0, run.times.size - 1, _POINTS).astype(np.int64))
    bins = min(_REWARD_BINS, run.times.size)
    starts = np.arange(bins) * run.times.size // bins
    means = np.add.reduceat(run.rewards, starts) / np.diff([*starts, run.times.size])
    each = run.steps / bins
    label = "reward" if each == 1 else f"mean of {each:,.0f} steps"
    lines = panel.plot(
        np.append(run.times[starts], run.last + 1), np.append(means, means[-1]),
        drawstyle="steps-post", color="#E69F00", linewidth=1.2, label=label,
    )  # fmt: skip
    lines += panel.plot(
        np.append(run.times[kept], run.last + 1), np.append(running[kept], running[-1]),
        drawstyle="steps-post", color="#000000", linewidth=1.8, label="mean so far",
    )  # fmt: skip
    settled = running[kept[kept.size // 50 :]]  # the first few means are all or nothing
    both = np.concatenate([means, settled])
    panel.set_ylim(min(0.0, 1.05 * float(both.min())), 1.08 * float(both.max()) or 1.0)
    return lines
