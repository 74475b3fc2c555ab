"""Proposition 1: what T steps can bring at best, against the sum of rho*_t that regret uses."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import windage as wd
from paper.claims import Check, Sides, check, worst
from paper.result import Effort, Least, Result, Table
from paper.style import COLOURS, canvas, label
from windage.models import DriftingMDP
from windage.oracle.finite_horizon import benchmark_gap, printed_benchmark_gap

__all__ = ["Gap", "compute", "counterexample", "judge"]

WORLDS = (
    "two-state-cosine", "riverswim", "random-drift", "inventory", "queue", "bidding", "ride",
    "epidemic", "replacement",
)  # fmt: skip

EXAMPLE = "E10's example"

LEAST = Least(50, "the worlds' seasons would be a few steps")

ABOUT = """
Dynamic regret compares with the sum of rho*_t, which is not the largest expected reward of T
steps: that one is found by dynamic programming over the true sequence of models. Proposition 1
bounds what it can exceed the sum by. As printed, the bound is 4 (D + 1) sqrt((B_r + 2 D B_p) T),
and it can be false when B_r + 2 D B_p < 1/T (E10): the last rows are the smallest example.
Corrected, for every integer W from 1 to T the excess is at most ceil(T/W) D + 2 W (B_r + D B_p /
2), and the least of these is taken.
"""


def counterexample() -> DriftingMDP:
    """Return E10's example: state 1 pays once, and the way back to it takes twenty steps."""
    space, rows = wd.StateActions([1, 1]), [[0.0, 1.0], [0.05, 0.95]]
    return wd.DriftingMDP(space, [1, 2], [[1.0, 0.0], [1.0, 1e-8]], [rows, rows], horizon=2)


class Gap(NamedTuple):
    """The best of T steps beside the sum of rho*, and what may lie between them."""

    T: int
    optimum: float
    gains: float
    excess: float
    ours: float
    printed: float
    error: float


def _gap(model: DriftingMDP) -> Gap:
    gains = model.optimal_gains()
    best = model.finite_horizon()
    D, B, T = model.max_diameter().upper, model.budgets(), model.horizon
    optimum, total = float(best.values.max()), gains.sum()
    printed = printed_benchmark_gap(T, D, B.reward, B.transition) if B.reward + B.transition else 0
    return Gap(
        T, optimum, total, optimum - total,
        benchmark_gap(T, D, B.reward, B.transition), float(printed),
        best.error + gains.error * T,
    )  # fmt: skip


def compute(effort: Effort) -> Result:
    """Compute the finite-horizon optimum of every world and the two bounds."""
    T = effort.steps(20_000, quick=2000)
    found: dict[str, Gap] = {}
    for world in WORLDS:
        effort.say(f"stepping back from T: {world}")
        found[world] = _gap(wd.envs.make(f"{world}-v0", horizon=T))
    found[EXAMPLE] = _gap(counterexample())
    largest = max(WORLDS, key=lambda w: found[w].excess / found[w].ours)
    return Result(
        name="benchmark",
        title="The benchmark of dynamic regret (Proposition 1)",
        about=ABOUT,
        checks=judge(found),
        remarks=(
            f"Of the worlds, {largest} uses the largest share of the corrected bound, "
            f"{found[largest].excess / found[largest].ours:.2%}."
        ),
        tables=[_table(found)],
        figure=_draw(found),
        is_quick=effort.is_quick,
    )


def judge(found: dict[str, Gap]) -> list[Check]:
    """Judge the corrected bound on every model, and the printed one on the example."""
    example = found[EXAMPLE]
    return [
        worst(
            "Proposition 1",
            "the best of T steps exceeds the sum of rho* by no more than the corrected bound",
            [Sides(one.excess - one.error, one.ours, name) for name, one in found.items()],
            unit="models",
        ),
        check(
            "E10",
            "the example exceeds it by more than the printed bound",
            example.excess - example.error,
            ">",
            example.printed,
        ),
    ]


def _table(found: dict[str, Gap]) -> Table:
    return Table(
        "The best expected reward of T steps, from the best state, and the sum of rho*",
        ("model", "T", "best of T steps", "sum of rho*", "excess", "corrected bound", "printed"),
        [
            [
                name, f"{one.T:,}", f"{one.optimum:,.3f}", f"{one.gains:,.3f}",
                f"{one.excess:.3f} ± {one.error:.1g}", f"{one.ours:,.1f}",
                f"{one.printed:,.3g}",
            ]
            for name, one in found.items()
        ],
    )  # fmt: skip


def _draw(found: dict[str, Gap]) -> Any:
    figure, (panel,) = canvas("How far the optimum of T steps is from the sum of rho*", columns=1)
    x = np.arange(len(found))
    values = {
        "excess": [max(one.excess, 1e-2) for one in found.values()],
        "corrected bound": [one.ours for one in found.values()],
        "printed bound": [one.printed for one in found.values()],
    }
    for i, (name, heights) in enumerate(values.items()):
        panel.bar(x + (i - 1) * 0.27, heights, 0.26, color=COLOURS[i], label=name)
    panel.set_xticks(x, list(found), rotation=20, ha="right")
    panel.set_ylim(5e-3, None)
    label(panel, "Excess over the sum of rho*, and its bounds (those below 0.01 are drawn at 0.01)",
          "", "reward", logs="y")  # fmt: skip
    panel.legend(fontsize=9.5, frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1.0, 1.0))
    return figure
