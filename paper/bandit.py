"""The remark on one state: SWUCRL2-CW as a sliding-window bandit, beside broken learners."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import windage as wd
from paper.cases import make
from paper.claims import Check, Sides, check, worst
from paper.result import Effort, Least, Result, Table
from paper.style import COLOURS, MARKERS, canvas, label, legend
from windage.confidence import tuning
from windage.models import DriftingMDP
from windage.models.mdp import MDP
from windage.study import stats

__all__ = ["Found", "batches", "bound_slope", "compute", "judge"]

Reals = NDArray[np.float64]

HORIZONS = (10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278, 10_000_000)
BUDGET, BUDGETS = 3.0, (1.5, 3.0, 6.0, 12.0, 24.0, 48.0)
FAMILIES = ("waves", "batches")
RADII = {"printed radii": "paper", "Laplace radii": "laplace"}
BROKEN = ("forgets nothing", "random")
_WINDOWS = 30  # a batch lasts
_GAP = 0.8  # between the arms, at most

LEAST = Least(100_000, "slopes need three horizons from 10,000 on")

ABOUT = f"""
With one state there is nothing to widen and nowhere to go: D = 0, B_p = 0, and EVI is the largest
of r-hat + rad_r. The remark takes W = A^(1/3) T^(2/3) B_r^(-2/3) and says that the regret is at
most of order B_r^(1/3) A^(1/3) T^(2/3), up to logarithms.

Two families of two arms. In *waves* they trade places smoothly, as often at every T. In *batches*
they trade places at once, every {_WINDOWS} W steps, by a gap of B_r over the number of trades
(more trades where the gap would exceed {_GAP:g}): the longer T, the more trades and the smaller
the gap. Both spend B_r exactly.

So that something can fail, two broken learners play beside: one that forgets nothing (W = T,
Laplace radii), and a random one. In waves a random one loses in proportion to T. In batches it
loses half the gap at every step, about {_WINDOWS / 2:g} times the rate at long T: there its slope
is that of the rate, and what tells it apart is the level. Slopes are of log mean regret over the
last three horizons, with bootstrap intervals over seeds; far below the bound they may be above
that of the bound for a while. The numbers after the semicolons are the regret over B_r^(1/3)
A^(1/3) T^(2/3).
"""


def _window(model: DriftingMDP, budget: float) -> int:
    return tuning.as_window(tuning.bandit(model.space, model.horizon, budget).window, model.horizon)


def batches(horizon: int, budget: float) -> DriftingMDP:
    """Return two arms that trade places about every 30 W steps and spend the budget in it."""
    space = wd.StateActions([2])
    W = tuning.bandit(space, horizon, budget).window
    trades = max(math.ceil(budget / _GAP), int(horizon / (_WINDOWS * W)))
    half = budget / trades / 2
    turns = [1 + round(i * horizon / (trades + 1)) for i in range(1, trades + 1)]
    stay = np.ones((2, 1))
    one, other = (
        MDP(space, rewards, stay)
        for rewards in ([0.5 + half, 0.5 - half], [0.5 - half, 0.5 + half])
    )
    return wd.DriftingMDP.blend([one, other], wd.schedules.Steps(turns), horizon=horizon)


def _world(family: str, T: int, budget: float) -> DriftingMDP:
    if family == "batches":
        return batches(T, budget)
    return wd.envs.make("bandit", horizon=T, cycles=budget / 1.2)


def _regrets(model: DriftingMDP, budget: float, who: str, seeds: int, effort: Effort) -> Reals:
    best = model.optimal_gains().sum()

    def play(seed: int) -> float:
        if who == "random":
            made = make("random", model, seed)
        else:
            W = model.horizon if who == "forgets nothing" else _window(model, budget)
            made = make("swucrl2-cw", model, seed, window=W, widening=0.0,
                        radii=RADII.get(who, "laplace"))  # fmt: skip
        return best - float(wd.run(model, made, seed=seed, record="totals").total_mean_reward)

    return np.array(effort.each(play, range(seeds)))


class Found(NamedTuple):
    """One learner in one family: regrets [T, seed] at B_r = 3, and [B_r, seed] if not broken."""

    family: str
    who: str
    horizons: Sequence[int]
    in_t: Reals
    in_b: Reals

    @property
    def slope_t(self) -> stats.Interval:
        """The slope in T over the last three horizons."""
        return stats.slope(self.horizons[-3:], self.in_t[-3:].T)

    @property
    def slope_b(self) -> stats.Interval:
        """The slope in B_r."""
        return stats.slope(BUDGETS, self.in_b.T)


def compute(effort: Effort) -> Result:
    """Measure the slopes of a bandit's regret in T and B_r, and what widening changes."""
    seeds = effort.runs(8, quick=4)
    longest = effort.steps(HORIZONS[-1], quick=100_000)
    horizons = [T for T in HORIZONS if longest >= T]
    T = horizons[-2]
    found, off = [], 0.0
    for family in FAMILIES:
        in_t = [_world(family, t, BUDGET) for t in horizons]
        in_b = [_world(family, T, b) for b in BUDGETS]
        named = [BUDGET] * len(in_t) + list(BUDGETS)
        off = max(off, *(abs(model.budgets().reward / B - 1)
                         for model, B in zip(in_t + in_b, named, strict=True)))  # fmt: skip
        for who in (*RADII, *BROKEN):
            effort.say(f"bandits, {family}: {who}")
            rows = [_regrets(model, BUDGET, who, seeds, effort) for model in in_t]
            more = [] if who in BROKEN else [
                _regrets(model, B, who, seeds, effort)
                for model, B in zip(in_b, BUDGETS, strict=True)
            ]  # fmt: skip
            found.append(Found(family, who, horizons, np.array(rows), np.array(more)))
    full = not effort.is_quick and longest >= HORIZONS[-1]
    return Result(
        name="bandit",
        title="One state: the drifting bandit (Remark)",
        about=ABOUT,
        checks=judge(found, off, _changed_by_widening(), is_judged=full),
        remarks=_remarks(found, T),
        tables=[_table(found), _budget_table(found, T)],
        figure=_draw(found, T),
        is_quick=effort.is_quick,
    )


def bound_slope(horizons: Sequence[float], arms: int = 2, delta: float = 0.05) -> float:
    """Return the slope in T of T^(2/3) sqrt(ln(AT / delta)) at some horizons.

    >>> print(f"{bound_slope([10**6, 10**7]):.4f}")
    0.6935
    """
    T = np.asarray(horizons, float)
    bound = T ** (2 / 3) * np.sqrt(np.log(arms * T / delta))
    return float(np.polyfit(np.log(T), np.log(bound), 1)[0])


def judge(found: list[Found], off: float, changed: int, *, is_judged: bool = True) -> list[Check]:
    """Judge slopes and levels, that broken learners are found out, and that eta does nothing."""
    limit = bound_slope(found[0].horizons[-3:])
    mine = [one for one in found if one.who not in BROKEN]
    broken = [one for one in found if one.who in BROKEN]

    def slope(one: Found, value: float) -> Sides:
        fitted = one.slope_t
        where = f"{one.family}, {one.who}, interval {fitted.low:.3f} to {fitted.high:.3f}"
        return Sides(value, limit, where)

    levels = []
    for one in mine:
        others = [b.in_t.mean(axis=1) for b in broken if b.family == one.family]
        for T, lost, least in zip(one.horizons, one.in_t.mean(axis=1), np.min(others, axis=0),
                                  strict=True):  # fmt: skip
            if LEAST.steps <= T:  # before, printed radii see next to nothing
                levels.append(Sides(lost, least, f"{one.family}, {one.who}, T = {T:,}"))
    return [
        *(worst(family, f"in {family} the slope in T is at most that of T^(2/3) sqrt(ln(AT/delta))",
                [slope(one, one.slope_t.estimate) for one in mine if one.family == family],
                unit="slopes", is_judged=is_judged) for family in FAMILIES),
        worst("power", "in waves the slope of either broken learner is above it",
              [slope(one, one.slope_t.low) for one in broken if one.family == "waves"], ">",
              unit="slopes", is_judged=is_judged),
        worst("level", f"from T = {LEAST.steps:,} on less is lost than by either broken learner",
              levels, "<", unit="cells", is_judged=is_judged),
        check("B_r", "the worlds spend the budget they are named by, to a thousandth",
              off, "<=", 1e-3),
        check("eta", "steps that differ between eta = 0 and eta = 1.5: none", changed, "<=", 0),
    ]  # fmt: skip


def _remarks(found: list[Found], T: int) -> str:
    mine = [one for one in found if one.who not in BROKEN]
    beyond = [one for one in mine if one.slope_b.low > 1 / 3]
    worst_level = max(float(_over_rate(one.in_t, one.horizons, BUDGET).max()) for one in mine)
    slopes = ", ".join(f"{_in_words(one.slope_b)} in {one.family} with {one.who}" for one in mine)
    return (
        f"Slopes in B_r at T = {T:,}: {slopes}; "
        + (f"{len(beyond)} of {len(mine)} are above 1/3" if beyond else "none is above 1/3")
        + ", which at one T contradicts no bound and is not judged. The regret is at most "
        f"{worst_level:.2f} times B_r^(1/3) A^(1/3) T^(2/3) along T."
    )


def _over_rate(regrets: Reals, horizons: Any, budgets: Any) -> Reals:
    """Return mean regrets over B_r^(1/3) A^(1/3) T^(2/3), for two arms."""
    rate = np.cbrt(2 * np.asarray(budgets, float)) * np.asarray(horizons, float) ** (2 / 3)
    found: Reals = regrets.mean(axis=1) / rate
    return found


def _in_words(slope: stats.Interval) -> str:
    return f"{slope.estimate:.3f} ({slope.low:.3f} to {slope.high:.3f})"


def _changed_by_widening() -> int:
    """Return how many steps of a run differ between two widenings."""
    model = wd.envs.make("bandit", horizon=20_000)
    one, other = (
        wd.run(model, make("swucrl2-cw", model, 3, window=2000, widening=eta), seed=3)
        for eta in (0.0, 1.5)
    )
    return int(((one.actions != other.actions) | (one.rewards != other.rewards)).sum())


def _cell(values: Reals, over: float) -> str:
    found = stats.mean(values)
    return f"{found.estimate:,.0f} ({found.low:,.0f} to {found.high:,.0f}); {over:.2f}"


def _table(found: list[Found]) -> Table:
    over = [_over_rate(one.in_t, one.horizons, BUDGET) for one in found]
    rows = [
        [f"{T:,}", *(_cell(one.in_t[i], rate[i]) for one, rate in zip(found, over, strict=True))]
        for i, T in enumerate(found[0].horizons)
    ]
    rows.append(["slope, last three (2/3)", *(_in_words(one.slope_t) for one in found)])
    heads = [f"{one.family}, {one.who}" for one in found]
    return Table(f"Regret against T, B_r = {BUDGET:g}; and over the rate", ("T", *heads), rows)


def _budget_table(found: list[Found], T: int) -> Table:
    mine = [one for one in found if one.who not in BROKEN]
    over = [_over_rate(one.in_b, T, BUDGETS) for one in mine]
    rows = [
        [f"{B:g}", *(_cell(one.in_b[i], rate[i]) for one, rate in zip(mine, over, strict=True))]
        for i, B in enumerate(BUDGETS)
    ]
    rows.append(["slope (1/3)", *(_in_words(one.slope_b) for one in mine)])
    heads = [f"{one.family}, {one.who}" for one in mine]
    return Table(f"Regret against B_r, T = {T:,}; and over the rate", ("B_r", *heads), rows)


def _draw(found: list[Found], T: int) -> Any:
    figure, panels = canvas("Regret of a bandit that drifts, with slopes", columns=3, height=5.0)
    for panel, family in zip(panels, FAMILIES, strict=False):
        mine = [one for one in found if one.family == family]
        for i, one in enumerate(mine):
            panel.plot(one.horizons, one.in_t.mean(axis=1), f"-{MARKERS[i]}", color=COLOURS[i],
                       label=f"{one.who}, {one.slope_t.estimate:.2f}")  # fmt: skip
        _guide(panel, found[0].horizons, 2 / 3, 0.6 * float(mine[1].in_t[-1].mean()))
        label(panel, f"{family.capitalize()}: B_r = {BUDGET:g}", "T", "regret", logs="xy")
        legend(panel)
    last = panels[-1]
    for one in found:
        if one.who not in BROKEN:
            i, line = list(RADII).index(one.who), "-" if one.family == "waves" else "--"
            last.plot(BUDGETS, one.in_b.mean(axis=1), f"{line}{MARKERS[i]}", color=COLOURS[i],
                      label=f"{one.family}, {one.who}, {one.slope_b.estimate:.2f}")  # fmt: skip
    _guide(last, BUDGETS, 1 / 3, 0.4 * float(found[1].in_b[-1].mean()))
    label(last, f"T = {T:,}", "B_r", "regret", logs="xy", ticks=BUDGETS)
    legend(last, columns=1)
    return figure


def _guide(panel: Any, x: Sequence[float], rate: float, top: float) -> None:
    """Draw a line of the promised slope."""
    ends = np.array([x[0], x[-1]], float)
    panel.plot(ends, top * (ends / ends[1]) ** rate, "k:", linewidth=1.2, label=f"slope {rate:.2f}")
