"""Figures of a learner: the regret of a run over time, and its effective memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, PercentFormatter
from numpy.typing import NDArray

from windage.agents.multiscale.explanation import Forgetting
from windage.errors import InputError
from windage.report.figures.style import (
    COLOURS,
    GREY,
    describe,
    note,
    number,
    page,
    plain,
    steps,
    time_axis,
    upwards,
)

if TYPE_CHECKING:
    from windage.recording import Run
    from windage.regret import Regret

__all__ = ["forgetting_figure", "regret_figure", "share_of_intervals"]

Reals = NDArray[np.float64]
Times = NDArray[np.int64]

_BINS = 60
_POINTS = 2000
_TICKS = 400  # more would be a solid bar
_LOSS = "#F3D9C8"
_TICK_HEIGHT = 0.045  # of the panel

_KINDS = {"rewards": COLOURS[1], "transitions": COLOURS[0]}


def regret_figure(
    run: Run,
    regret: Regret,
    title: str | None = None,
    *,
    agent: str | None = None,
    details: str = "",
) -> Figure:
    """Return the picture of a run's regret.

    Above, the pseudo-regret and the observed regret as they accumulate, beside a straight line to
    where the first ends: a learner bends away from it. Below, the share of the optimal gains that
    was earned in each interval of time, and so far. Ticks are the starts of episodes, if the agent
    has any.

    Parameters
    ----------
    run
        The run.
    regret
        What `dynamic_regret` says of it.
    title
        What to call the model.
    agent
        Who made the run.
    details
        What else made the numbers what they are: radii, tie rules, parameters.

    Examples
    --------
    >>> import windage as wd
    >>> world = wd.envs.make("riverswim", horizon=400)
    >>> run = wd.run(world, wd.agents.make("random", world.space, horizon=400))
    >>> figure = regret_figure(run, wd.dynamic_regret(run, world), "riverswim", agent="random")
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Regret so far', 'Share of the optimal gains that was earned']
    """
    if (run.first, run.last, run.times.size) != (regret.first, regret.last, regret.times.size):
        raise InputError(
            f"{regret!r} is not that of {run!r}",
            field="regret",
            fix="pass dynamic_regret(run, drifting)",
        )
    figure, panels = page([3.6, 2.1])
    _regret_panel(panels[0], run, regret)
    _share_panel(panels[1], regret)
    time_axis(panels, regret.last)
    panels[1].set_xlim(regret.first, regret.last + 1)
    for panel in panels:
        panel.grid(axis="x", color="#E4E4E4", linewidth=0.6)
        panel.set_axisbelow(True)
    head = [plain(title or "regret", longest=50)]
    head += [f"{plain(agent, longest=40)} agent"] if agent else []
    when = f"T = {regret.last:,}" if regret.first == 1 else f"t = {regret.first:,}..{regret.last:,}"
    head += [when, f"seed {run.seed}"]
    figure.suptitle("    ".join(head), fontsize=15)
    if details:
        panels[0].set_title(plain(details, longest=80), loc="right", fontsize=10, color="#505050")
    return figure


def share_of_intervals(regret: Regret, bins: int = _BINS) -> tuple[Reals, Reals]:
    """Return the edges of time intervals and the share of the optimal gains earned in each.

    The edges are recorded times, so that shares are exact however coarse the record is. NaN where
    there was nothing to earn.
    """
    times, path, _, optimal = _course(regret)
    kept = np.unique(np.linspace(0, times.size - 1, bins + 1).astype(np.int64))
    return times[kept], 1.0 - _ratio(np.diff(path[kept]), np.diff(optimal[kept]))


def _course(regret: Regret) -> tuple[Reals, Reals, Reals, Reals]:
    """Return the sums from nothing at the start to the totals at the end; step t ends at t + 1."""
    times = [regret.times + 1.0]
    columns = [[regret.cumulative], [regret.observed], [regret.optimal]]
    if not regret.times.size or regret.times[-1] < regret.last:
        times.append(np.array([regret.last + 1.0]))
        totals = (regret.total, regret.total_observed, regret.total_optimal)
        for column, total in zip(columns, totals, strict=True):
            column.append(np.array([total]))
    path, observed, optimal = (np.concatenate([[0.0], *column]) for column in columns)
    return np.concatenate([[float(regret.first)], *times]), path, observed, optimal


def _regret_panel(panel: Axes, run: Run, regret: Regret) -> None:
    times, path, observed, _ = _course(regret)
    kept = np.unique(np.linspace(0, times.size - 1, _POINTS).astype(np.int64))
    rate = regret.total / (regret.last - regret.first + 1)
    total = f"{_signed(regret.total)} ±{upwards(regret.error)}"
    lines: list[Any] = panel.plot(
        times[kept], path[kept], color=COLOURS[0], linewidth=2.4, zorder=4,
        label=rf"$\sum(\rho^*_t - r_t(s_t, a_t))$: {total}",
    )  # fmt: skip
    lines += panel.plot(
        times[kept], observed[kept], color=COLOURS[1], linewidth=1.2, zorder=3,
        label=f"with the rewards drawn: {_signed(regret.total_observed)}",
    )  # fmt: skip
    lines += panel.plot(
        times[[0, -1]], path[[0, -1]], color="#707070", linewidth=1.2, linestyle="--", zorder=2,
        label=f"an even loss: {rate:.3g} per step",
    )  # fmt: skip
    drawn = np.concatenate([path[kept], observed[kept]])
    low, top = float(drawn.min()), float(drawn.max())
    room = (top - low) or 1.0
    panel.set_ylim(min(low - 0.06 * room, -0.06 * room), top + 0.04 * room)
    if low < 0:
        panel.axhline(0.0, color="#707070", linewidth=0.8, zorder=1)
    if not regret.times.size:
        note(panel, "totals only: no curve was recorded")
    panel.yaxis.set_major_formatter(FuncFormatter(lambda size, _: _signed(size)))
    episodes = getattr(run, "episodes", None)
    if episodes is not None and len(episodes):
        lines.append(_episode_ticks(panel, regret, episodes))
    describe(panel, "Regret so far", "reward lost", lines)


def _episode_ticks(panel: Axes, regret: Regret, episodes: Any) -> Line2D:
    """Draw the starts of episodes at the foot of a panel; return what stands for them."""
    starts = np.asarray(episodes.start)
    total = int(getattr(episodes, "total", starts.size))
    shown = _apart(starts, regret.first, regret.last)
    panel.vlines(
        shown, 0.0, _TICK_HEIGHT, transform=panel.get_xaxis_transform(), color=GREY, linewidth=0.8,
        zorder=1,
    )  # fmt: skip
    if total > starts.size:
        what = f"starts of the last {starts.size:,} of {total:,} episodes"
    elif shown.size < starts.size:
        what = f"{total:,} episodes, some starts drawn"
    else:
        what = f"starts of {total:,} episodes" if total > 1 else "start of the one episode"
    return Line2D([], [], linestyle="none", marker="|", markersize=9, color=GREY, label=what)


def _apart(starts: Times, first: int, last: int) -> Times:
    """Return starts that can be told apart: of those in one bin of time, the first."""
    if starts.size <= _TICKS:
        return starts
    bins = (starts - first) * _TICKS // (last - first + 1)
    return starts[np.unique(bins, return_index=True)[1]]


def _share_panel(panel: Axes, regret: Regret) -> None:
    edges, shares = share_of_intervals(regret)
    held = np.append(shares, shares[-1])
    times, path, _, optimal = _course(regret)
    so_far = 1.0 - _ratio(path, optimal)
    kept = np.unique(np.linspace(1, times.size - 1, _POINTS).astype(np.int64))
    each = (regret.last - regret.first + 1) / (edges.size - 1)
    panel.fill_between(
        edges, np.minimum(held, 1.0), 1.0, step="post", color=_LOSS, linewidth=0, zorder=1
    )
    lines: list[Any] = panel.plot(
        edges, held, drawstyle="steps-post", color=COLOURS[0], linewidth=1.6, zorder=3,
        label=f"in each {each:,.0f} steps" if each > 1 else "in each step",
    )  # fmt: skip
    share = regret.share
    lines += panel.plot(
        times[kept], so_far[kept], color="#000000", linewidth=1.6, zorder=4,
        label="so far" if np.isnan(share) else f"so far: {share:.1%}",
    )  # fmt: skip
    lines.append(Patch(facecolor=_LOSS, label="lost"))
    panel.axhline(1.0, color="#707070", linewidth=1.2, linestyle="--", zorder=2)
    settled = so_far[kept[kept.size // 50 :]]  # the first few may be anything
    both = np.concatenate([shares, settled, [1.0]])
    panel.set_ylim(min(0.0, 1.05 * float(np.nanmin(both))), 1.08 * float(np.nanmax(both)))
    panel.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    if np.isnan(share):
        note(panel, "there is nothing to earn")
    describe(panel, "Share of the optimal gains that was earned", r"of $\rho^*_t$", lines)


def _ratio(lost: Reals, optimal: Reals) -> Reals:
    found = np.full(lost.size, np.nan)
    np.divide(lost, optimal, out=found, where=optimal > 0)
    return found


def _signed(value: float) -> str:
    """Return a sum of rewards for a scale or a legend.

    >>> _signed(12345.6), _signed(-12345.6), _signed(2.0999999)
    ('12,346', '-12,346', '2.1')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def forgetting_figure(forgetting: Forgetting, horizon: int, title: str | None = None) -> Figure:
    """Return the picture of the weights over windows through time.

    Above, how many of the last steps count, for rewards and for transitions. Below, what each
    window has counted for each of the two: dark is short memory, light is long.

    Parameters
    ----------
    forgetting
        What `agent.forgetting()` returned.
    horizon
        T, the end of the time axis.
    title
        The name of the environment.

    Examples
    --------
    >>> import windage as wd
    >>> world = wd.envs.make("riverswim", horizon=2000)
    >>> agent = wd.MultiScale(world.space, horizon=2000)
    >>> run = wd.run(world, agent, seed=0)
    >>> figure = forgetting_figure(agent.forgetting(), 2000, "riverswim")
    >>> [axes.get_title(loc="left") for axes in figure.axes][:2]
    ['How many of the last steps count', 'Weight of each window: rewards']
    """
    if forgetting.times.size == 0:
        raise InputError(
            "the agent has not acted yet", field="forgetting", fix="run it before looking back"
        )
    figure, panels = page([2.6, 2.0, 2.0])
    _memory(panels[0], forgetting, horizon)
    for panel, kind in zip(panels[1:], _KINDS, strict=True):
        _weights(panel, forgetting, kind, horizon)
    time_axis(panels, horizon)
    for panel in panels[1:]:
        panel.grid(visible=False)
    head = [plain(title or "forgetting", longest=50), f"T = {number(horizon)}"]
    figure.suptitle("    ".join(head), fontsize=15)
    return figure


def _memory(panel: Axes, forgetting: Forgetting, horizon: int) -> None:
    handles = []
    for kind, colour in _KINDS.items():
        times, memory = steps(forgetting.times, forgetting.mean(kind), horizon)
        panel.plot(times, memory, color=colour, drawstyle="steps-post", linewidth=1.8)
        handles.append(Line2D([], [], color=colour, label=kind))
    course = np.linspace(1.0, horizon, 400)
    panel.plot(course, course, color=GREY, linestyle=":", linewidth=1.2)
    handles.append(Line2D([], [], color=GREY, linestyle=":", label="all so far"))
    panel.set_yscale("log")
    panel.set_ylim(bottom=max(1.0, 0.5 * forgetting.windows[0]), top=1.3 * horizon)
    panel.yaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:,.0f}"))
    describe(panel, "How many of the last steps count", "steps", handles)


def _weights(panel: Axes, forgetting: Forgetting, kind: str, horizon: int) -> None:
    weights: NDArray[np.float64] = getattr(forgetting, kind)
    K = len(forgetting.windows)
    shades = mpl.colormaps["cividis"](np.linspace(0.0, 1.0, K))
    times = np.repeat(np.append(forgetting.times, horizon + 1), 2)[
        1:-1
    ]  # each holds until the next
    panel.stackplot(times, np.repeat(weights, 2, axis=0).T, colors=shades, linewidth=0)
    panel.set_ylim(0.0, 1.0)
    panel.yaxis.set_major_formatter(PercentFormatter(1.0))
    ends = sorted({0, K // 2, K - 1}, reverse=True)
    names = [f"W = {forgetting.windows[k]:,}" + (", all" if k == K - 1 else "") for k in ends]
    patches = [Patch(color=shades[k], label=name) for k, name in zip(ends, names, strict=True)]
    describe(panel, f"Weight of each window: {kind}", "share", patches)
