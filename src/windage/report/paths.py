"""A run over time: where it was, and what it collected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from windage.models import DriftingMDP
from windage.report.panels import describe, literal, note
from windage.spaces import StateActions

if TYPE_CHECKING:
    from windage.simulate import Run

__all__ = ["are_numbered", "occupancy", "path_panels", "short_state_names"]

_TIME_BINS = 120
_REWARD_BINS = 60
_STATE_BANDS = 100
_NAMED_STATES = 12
_POINTS = 2000
_SHORT_NAME = 10

Reals = NDArray[np.float64]


def path_panels(
    states: Axes, rewards: Axes, model: DriftingMDP, run: Run, agent: str | None
) -> None:
    """Draw the time spent in each state and the reward collected."""
    who = f"the {agent} agent" if agent else "a run"
    recorded = run.times.size > 0
    states.set_title(f"Path of {who}, seed {run.seed}", loc="left")
    states.set_ylabel("state")
    lines = _reward_lines(rewards, run) if recorded else []
    describe(rewards, f"Reward collected by {who}", "reward a step", lines)
    if not recorded:
        note(states, "no path recorded")
        note(rewards, "no path recorded")
    elif model.space.n_states == 1:
        states.set_ylim(-0.5, 0.5)
        states.set_yticks([0], short_state_names(model.space))
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


def short_state_names(space: StateActions) -> list[str]:
    """Return what to call the states where there is little room: numbers if names are long."""
    names = space.state_names
    if not names or are_numbered(space):
        return [str(s) for s in range(space.n_states)]
    return [literal(name) for name in names]


def are_numbered(space: StateActions) -> bool:
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
        panel.set_yticks(range(S), short_state_names(model.space))
    else:
        panel.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        if highest - lowest + 1 < S:
            panel.set_ylabel(f"state ({lowest} to {highest} of {S})")
    scale = panel.inset_axes((1.012, 0.0, 0.014, 1.0))
    panel.figure.colorbar(mesh, cax=scale, label="share of time")


def _reward_lines(panel: Axes, run: Run) -> list[Line2D]:
    """Draw the means of stretches and the mean so far."""
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
