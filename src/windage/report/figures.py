"""Figures of drifting models: what moves, how much, and what an agent meets on its way.

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
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from windage.models import DriftingMDP
from windage.report.panels import (
    COLOURS,
    GREY,
    STYLES,
    describe,
    frame,
    note,
    number,
    page,
    plain,
    steps,
)
from windage.report.paths import are_numbered, path_panels, short_state_names
from windage.report.traces import (
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

if TYPE_CHECKING:
    from windage.simulate import Run

__all__ = ["drift_figure"]

Reals = NDArray[np.float64]

_MOST_CURVES = 60
_HATCHES = ("///", "\\\\\\", "|||", "---", "xxx", "...", "+++")


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
    key = "s -action-> s'" + (", states by number" if are_numbered(model.space) else "")
    describe(panels[1], "Transition probabilities" + coarse, "probability", lines, key)
    _budget_panel(panels[2], model, times)
    if run is not None:
        path_panels(panels[3], panels[4], model, run, agent)
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
    states = short_state_names(model.space)
    return f"{states[s]} -{plain(model.space.action_name(s, a))}-> {states[after]}"
