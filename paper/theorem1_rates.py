"""Theorem 1's exponents: regret against T, B and S, with fitted slopes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import windage as wd
from paper.cases import make
from paper.claims import Check, check
from paper.result import Effort, Least, Result, Table
from paper.style import COLOURS, MARKERS, canvas, label, legend
from windage.models import DriftingMDP
from windage.study import stats

__all__ = ["Sweep", "bound_slope", "compute", "judge"]

Reals = NDArray[np.float64]

SETTINGS = {
    "printed": ("swucrl2-cw", {}),
    "Laplace": ("swucrl2-cw", {"radii": "laplace"}),
    "practical": ("swucrl2-cw-practical", {}),
}
HORIZONS = (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
MOST = {"printed": 100_000_000, "Laplace": 100_000_000, "practical": 10_000_000}
DRIFTS = (0.3, 1.0, 3.0, 10.0, 30.0)
STATES = (3, 6, 12, 24)
FIXED_T = 1_000_000
EXPONENTS = {"T": 0.75, "B + 1": 0.25, "S": 2 / 3}

LEAST = Least(100_000, "a slope needs two horizons from 10,000 on")

ABOUT = """
Theorem 1 bounds the regret at (W*, eta*) by D (B_r + B_p + 1)^(1/4) S^(2/3) A^(1/2) T^(3/4), up
to logarithms. Slopes of log mean regret are fitted by least squares, with bootstrap intervals
over seeds: in T on `two-state-cosine`, over all horizons and over the last three; in B + 1 = B_r
+ B_p + 1 and in S on `random-drift`, at T = 1,000,000. A bound is not a rate: measured slopes may
be smaller, and for a while also larger, from far below the bound. The logarithm in the radii adds
about 1/(2L), L = ln(SAT/delta), to the slope of the bound in T; slopes in T are judged against
that of T^(3/4) sqrt(L), fitted at the same horizons. In S the diameter moves too: random models
with more states have another one. `practical` is `swucrl2-cw-practical`,
which keeps the guarantee: Laplace radii, ties broken by a sampled model, a slack within the order
of the bound.
"""


class Sweep(NamedTuple):
    """One setting along one axis: regrets [value, seed]."""

    axis: str
    setting: str
    values: Sequence[float]
    regrets: Reals
    slopes: list[stats.Interval]


def _regrets(model: DriftingMDP, setting: str, seeds: int, effort: Effort) -> Reals:
    kind, options = SETTINGS[setting]
    best = model.optimal_gains().sum()

    def play(seed: int) -> float:
        made = make(kind, model, seed, **options)
        return best - float(wd.run(model, made, seed=seed, record="totals").total_mean_reward)

    return np.array(effort.each(play, range(seeds)))


def _fitted(values: Sequence[float], regrets: Reals, last: int) -> stats.Interval:
    return stats.slope(list(values)[-last:], regrets[-last:].T)


def compute(effort: Effort) -> Result:
    """Sweep T, B and S for printed and practical settings, and fit slopes."""
    longest = effort.steps(HORIZONS[-1], quick=100_000)  # fmt: skip
    seeds = effort.runs(6, quick=3)
    fixed = 20_000 if effort.is_quick else min(FIXED_T, longest)
    found = []
    for setting in SETTINGS:
        horizons = [T for T in HORIZONS if min(longest, MOST[setting]) >= T]
        rows = []
        for T in horizons:
            effort.say(f"regret against T: {setting}, T = {T:,}")
            rows.append(
                _regrets(wd.envs.make("two-state-cosine", horizon=T), setting, seeds, effort)
            )
        table = np.array(rows)
        slopes = [_fitted(horizons, table, last) for last in (len(horizons), min(3, len(horizons)))]
        found.append(Sweep("T", setting, horizons, table, slopes))
    for setting in SETTINGS:
        effort.say(f"regret against B: {setting}")
        table = np.array([
            _regrets(_random(fixed, 5, B), setting, seeds, effort) for B in DRIFTS
        ])  # fmt: skip
        moved = [2 * B + 1 for B in DRIFTS]
        found.append(Sweep("B + 1", setting, moved, table, [_fitted(moved, table, len(moved))]))
    for setting in SETTINGS:
        effort.say(f"regret against S: {setting}")
        table = np.array([
            _regrets(_random(fixed if setting != "practical" else fixed // 10, S, 1.0), setting,
                     max(2, seeds // 2), effort)
            for S in STATES
        ])  # fmt: skip
        found.append(Sweep("S", setting, STATES, table, [_fitted(STATES, table, len(STATES))]))
    return _result(found, effort, seeds, fixed)


def _random(T: int, S: int, B: float) -> DriftingMDP:
    return wd.envs.make("random-drift", horizon=T, states=S, reward_budget=B, transition_budget=B)


def _result(found: list[Sweep], effort: Effort, seeds: int, fixed: int) -> Result:
    in_t = {one.setting: one for one in found if one.axis == "T"}
    return Result(
        name="rates",
        title="Rates: regret against T, B and S (Theorem 1)",
        about=ABOUT,
        checks=judge(found, is_judged=not effort.is_quick),
        remarks=_remarks(found),
        tables=[_t_table(in_t, seeds), _slope_table(found, fixed), _level_table(found, fixed)],
        figure=_draw(found),
        is_quick=effort.is_quick,
    )


def bound_slope(horizons: Sequence[float], SA: int = 4, delta: float = 0.05) -> float:
    """Return the slope in T of the bound itself, T^(3/4) sqrt(ln(SAT / delta)), at some horizons.

    >>> print(f"{bound_slope([10**6, 10**7, 10**8]):.4f}")
    0.7745
    """
    T = np.asarray(horizons, float)
    bound = T**0.75 * np.sqrt(np.log(SA * T / delta))
    return float(np.polyfit(np.log(T), np.log(bound), 1)[0])


def judge(found: list[Sweep], *, is_judged: bool = True) -> list[Check]:
    """Judge the slopes in T over the last three horizons, setting by setting.

    Only at the longest horizons: before, most sets say nothing, and what is lost is no rate yet.
    Not those in B and S: at one T a regret far below its bound may grow faster than the bound.
    """
    return [
        check(
            f"{one.setting}, T",
            "the slope in T over the last three horizons is at most that of T^(3/4) "
            "sqrt(ln(SAT/delta))",
            one.slopes[1].estimate,
            "<=",
            bound_slope(one.values[-3:]),
            f"interval {one.slopes[1].low:.3f} to {one.slopes[1].high:.3f}; T from "
            f"{one.values[-3:][0]:,} to {one.values[-1]:,}",
            is_judged=is_judged and one.values[-1] >= MOST[one.setting],  # sets say something
        )
        for one in found
        if one.axis == "T"
    ]


def _remarks(found: list[Sweep]) -> str:
    said = []
    for axis in ("B + 1", "S"):
        slopes = ", ".join(
            f"{_words(one.slopes[0])} {one.setting}" for one in found if one.axis == axis
        )
        beyond = [
            one.setting for one in found
            if one.axis == axis and one.slopes[0].low > EXPONENTS[axis]
        ]  # fmt: skip
        said.append(
            f"Slopes in {axis}: {slopes}; the theorem's exponent is {EXPONENTS[axis]:.2f}, "
            + (f"exceeded by {' and '.join(beyond)}" if beyond else "which none exceeds")
            + "."
        )
    return " ".join(said) + " At one T that contradicts no bound, so they are not judged."


def _words(slope: stats.Interval) -> str:
    return f"{slope.estimate:.2f} ({slope.low:.2f} to {slope.high:.2f})"


def _t_table(in_t: dict[str, Sweep], seeds: int) -> Table:
    horizons = max((one.values for one in in_t.values()), key=len)
    rows = []
    for i, T in enumerate(horizons):
        cells = []
        for one in in_t.values():
            if i < len(one.values):
                found = stats.mean(one.regrets[i] / T)
                cells.append(f"{found.estimate:.4f} ({found.low:.4f} to {found.high:.4f})")
            else:
                cells.append("-")
        rows.append([f"{int(T):,}", *cells])
    return Table(f"Regret a step on two-state-cosine, {seeds} seeds", ("T", *in_t), rows)


def _slope_table(found: list[Sweep], fixed: int) -> Table:
    rows = []
    for axis, exponent in EXPONENTS.items():
        mine = [one for one in found if one.axis == axis]
        rows.append([f"{axis}, all values", f"{exponent:.2f}",
                     *(_words(one.slopes[0]) for one in mine)])  # fmt: skip
        if axis == "T":
            rows.append(["T, last three", f"{exponent:.2f}",
                         *(_words(one.slopes[1]) for one in mine)])  # fmt: skip
    return Table(
        f"Fitted slopes; B and S at T = {fixed:,} (practical in S: {fixed // 10:,})",
        ("in", "theorem", *SETTINGS),
        rows,
    )


def _level_table(found: list[Sweep], fixed: int) -> Table:
    rows = []
    for axis in ("B + 1", "S"):
        mine = [one for one in found if one.axis == axis]
        for i, value in enumerate(mine[0].values):
            rows.append([axis, f"{value:g}",
                         *(f"{one.regrets[i].mean() / _steps(one, fixed):.4f}" for one in mine)]
                        )  # fmt: skip
    return Table("Regret a step on random-drift", ("in", "value", *SETTINGS), rows)


def _steps(one: Sweep, fixed: int) -> int:
    return fixed // 10 if one.axis == "S" and one.setting == "practical" else fixed


def _draw(found: list[Sweep]) -> Any:
    figure, panels = canvas("Regret along T, B and S, with the theorem's slopes", columns=3)
    for panel, (axis, exponent) in zip(panels, EXPONENTS.items(), strict=True):
        mine = [one for one in found if one.axis == axis]
        for i, one in enumerate(mine):
            means = one.regrets.mean(axis=1)
            panel.plot(one.values, means, f"-{MARKERS[i]}", color=COLOURS[i],
                       label=f"{one.setting}, {one.slopes[-1].estimate:.2f}")  # fmt: skip
        x = np.array([mine[0].values[0], mine[0].values[-1]], float)
        top = float(mine[1].regrets.mean(axis=1)[-1])
        panel.plot(x, 0.5 * top * (x / x[1]) ** exponent, "k--", linewidth=1,
                   label=f"slope {exponent:.2f}")  # fmt: skip
        ticks = () if axis == "T" else mine[0].values
        label(panel, f"Regret against {axis}", axis, "regret", logs="xy", ticks=ticks)
        legend(panel)
    return figure
