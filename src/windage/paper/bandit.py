"""The remark on one state: SWUCRL2-CW as a sliding-window bandit, at the minimax rate."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import windage as wd
from windage.drift import DriftingMDP
from windage.learn import tuning
from windage.mdp import MDP
from windage.paper.drawing import COLOURS, MARKERS, canvas, label, legend
from windage.paper.result import Effort, Least, Result, Table
from windage.paper.suite import make
from windage.streams import stream
from windage.study import stats

__all__ = ["batches", "compute"]

Reals = NDArray[np.float64]

HORIZONS = (10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278, 10_000_000)
BUDGETS = (1.5, 3.0, 6.0, 12.0, 24.0, 48.0)
FAMILIES = ("waves", "batches")
RADII = ("paper", "laplace")

LEAST = Least(100_000, "slopes need three horizons from 10,000 on")

ABOUT = """
With one state there is nothing to widen and nowhere to go: D = 0, B_p = 0, and EVI is the largest
of r-hat + rad_r. The remark takes W = A^(1/3) T^(2/3) B_r^(-2/3) and says that the regret is at
most of order B_r^(1/3) A^(1/3) T^(2/3), up to logarithms: the minimax rate.

Two families of two arms. In *waves* they trade places smoothly; such a drift is easier than the
worst one, and a bound is all that is promised. In *batches*, the construction behind the lower
bound of Besbes, Gur and Zeevi (recalled), one arm is better by a gap of order (B_r/T)^(1/3), too
small to be found out within a batch of W steps, and which one is drawn anew for every batch: no
learner can do better than the rate, and the remark says that this one does no worse. Slopes are
of log mean regret, with bootstrap intervals over seeds; the last column of the tables is the
regret over B_r^(1/3) A^(1/3) T^(2/3), which must stay bounded.
"""


def batches(horizon: int, budget: float, seed: int = 0) -> DriftingMDP:
    """Return two arms of which one, drawn anew every W steps, is better by a gap no one can see."""
    space = wd.StateActions([2])
    W = tuning.as_window(tuning.bandit(space, horizon, budget).window, horizon)
    gap = min(0.25, 0.5 * budget * W / horizon)
    better = stream(seed, "paper.bandit").integers(2, size=-(-horizon // W))
    turns = [1 + W * i for i in range(1, better.size) if better[i] != better[i - 1]]
    stay = np.ones((2, 1))
    models = [MDP(space, rewards, stay) for rewards in ([0.5 + gap, 0.5], [0.5, 0.5 + gap])]
    first = int(better[0])
    return wd.DriftingMDP.blend(
        [models[first], models[1 - first]], wd.schedules.Steps(turns), horizon=horizon
    )


def _regrets(model: DriftingMDP, budget: float, radii: str, seeds: int, effort: Effort) -> Reals:
    best = model.optimal_gains().sum()
    W = tuning.as_window(tuning.bandit(model.space, model.horizon, budget).window, model.horizon)

    def play(seed: int) -> float:
        made = make("swucrl2-cw", model, seed, window=W, widening=0.0, radii=radii)
        return best - float(wd.run(model, made, seed=seed, record="totals").total_mean_reward)

    return np.array(effort.each(play, range(seeds)))


def _world(family: str, T: int, budget: float) -> DriftingMDP:
    if family == "batches":
        return batches(T, budget)
    return wd.envs.make("bandit", horizon=T, cycles=budget / 1.2)


class _Family(NamedTuple):
    """One family with one kind of radii: regrets [T, seed] at B_r = 3, and [B_r, seed]."""

    name: str
    radii: str
    in_t: Reals
    in_b: Reals
    slope_t: stats.Interval
    slope_b: stats.Interval


def compute(effort: Effort) -> Result:
    """Measure the slopes of a bandit's regret in T and B_r, and what widening changes."""
    seeds = effort.runs(8, quick=4)
    longest = effort.steps(HORIZONS[-1], quick=100_000)  # fmt: skip
    horizons = [T for T in HORIZONS if longest >= T]
    T = horizons[-2]
    found = []
    for family in FAMILIES:
        for radii in RADII:
            effort.say(f"bandits, {family}, {radii} radii")
            in_t = np.array([_regrets(_world(family, t, 3.0), 3.0, radii, seeds, effort)
                             for t in horizons])  # fmt: skip
            in_b = np.array([_regrets(_world(family, T, b), b, radii, seeds, effort)
                             for b in BUDGETS])  # fmt: skip
            found.append(
                _Family(family, radii, in_t, in_b, stats.slope(horizons[-3:], in_t[-3:].T),
                        stats.slope(BUDGETS, in_b.T))
            )  # fmt: skip
    same = _widening_changes_nothing()
    hard = [one for one in found if one.name == "batches"]
    easy = [one for one in found if one.name == "waves"]
    kept = all(
        abs(one.slope_t.estimate - 2 / 3) < 0.05 and abs(one.slope_b.estimate - 1 / 3) < 0.08
        for one in hard
    )
    if longest >= HORIZONS[-1]:  # before, what waves do is no rate yet
        kept &= all(one.slope_t.estimate < 2 / 3 + 0.05 for one in easy)
    worst = max(float(_over_rate(one.in_t, horizons, 3.0).max()) for one in found)
    kept &= worst < 3
    shown = hard[0]
    return Result(
        name="bandit",
        title="One state: the drifting bandit (Remark)",
        about=ABOUT,
        expected=(
            "regret of order T^(2/3) B_r^(1/3) at most, and just that where the drift is hardest; "
            "eta changes nothing."
        ),
        seen=(
            f"in batches, with printed radii, slopes of {_in_words(shown.slope_t)} in T over the "
            f"last three horizons and {_in_words(shown.slope_b)} in B_r; in waves, "
            + " and ".join(f"{_in_words(one.slope_t)} in T ({one.radii})" for one in easy)
            + f"; the regret is at most {worst:.2f} times B_r^(1/3) A^(1/3) T^(2/3) anywhere; runs "
            f"with eta = 0 and eta = 1.5 are {'the same to the last bit' if same else 'different'}."
        ),
        holds=same and (kept or effort.is_quick),
        tables=[_table(found, horizons), _budget_table(found, T)],
        figure=_draw(found, horizons, T),
        is_quick=effort.is_quick,
    )


def _over_rate(regrets: Reals, horizons: Any, budgets: Any) -> Reals:
    """Return mean regrets over B_r^(1/3) A^(1/3) T^(2/3), for two arms."""
    rate = np.cbrt(2 * np.asarray(budgets, float)) * np.asarray(horizons, float) ** (2 / 3)
    found: Reals = regrets.mean(axis=1) / rate
    return found


def _in_words(slope: stats.Interval) -> str:
    return f"{slope.estimate:.3f} ({slope.low:.3f} to {slope.high:.3f})"


def _widening_changes_nothing() -> bool:
    model = wd.envs.make("bandit", horizon=20_000)
    one, other = (
        wd.run(model, make("swucrl2-cw", model, 3, window=2000, widening=eta), seed=3)
        for eta in (0.0, 1.5)
    )
    return bool((one.actions == other.actions).all() and (one.rewards == other.rewards).all())


def _cell(values: Reals, over: float) -> str:
    found = stats.mean(values)
    return f"{found.estimate:,.0f} ({found.low:,.0f} to {found.high:,.0f}); {over:.2f}"


def _table(found: list[_Family], horizons: list[int]) -> Table:
    heads = [f"{one.name}, {one.radii} radii" for one in found]
    rows = [
        [f"{T:,}"] + [_cell(one.in_t[i], _over_rate(one.in_t, horizons, 3.0)[i]) for one in found]
        for i, T in enumerate(horizons)
    ]
    rows.append(["slope, last three (2/3)", *(_in_words(one.slope_t) for one in found)])
    return Table("Regret against T, B_r = 3; and over the rate", ("T", *heads), rows)


def _budget_table(found: list[_Family], T: int) -> Table:
    heads = [f"{one.name}, {one.radii} radii" for one in found]
    rows = [
        [f"{B:g}"] + [_cell(one.in_b[i], _over_rate(one.in_b, T, BUDGETS)[i]) for one in found]
        for i, B in enumerate(BUDGETS)
    ]
    rows.append(["slope (1/3)", *(_in_words(one.slope_b) for one in found)])
    return Table(f"Regret against B_r, T = {T:,}; and over the rate", ("B_r", *heads), rows)


def _draw(found: list[_Family], horizons: list[int], T: int) -> Any:
    figure, (left, right) = canvas("A bandit that drifts: two arms", height=4.6)
    for i, one in enumerate(found):
        name = f"{one.name}, {one.radii}, slope "
        left.plot(horizons, one.in_t.mean(axis=1), f"-{MARKERS[i]}", color=COLOURS[i],
                  label=f"{name}{one.slope_t.estimate:.2f}")  # fmt: skip
        right.plot(BUDGETS, one.in_b.mean(axis=1), f"-{MARKERS[i]}", color=COLOURS[i],
                   label=f"{name}{one.slope_b.estimate:.2f}")  # fmt: skip
    for panel, x, rate, y in (
        (left, horizons, 2 / 3, found[2].in_t), (right, BUDGETS, 1 / 3, found[2].in_b),
    ):  # fmt: skip
        ends = np.array([x[0], x[-1]], float)
        guide = 0.6 * float(y.mean(axis=1)[-1]) * (ends / ends[1]) ** rate
        panel.plot(ends, guide, "k--", linewidth=1, label=f"slope {rate:.2f}")
        legend(panel)
    label(left, "Regret against T, B_r = 3 (slopes of the last three)", "T", "regret", logs="xy")
    label(right, f"Regret against B_r, T = {T:,}", "B_r", "regret", logs="xy", ticks=BUDGETS)
    return figure
