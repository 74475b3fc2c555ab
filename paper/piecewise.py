"""Jumps and drift: learners for l changes, and one for budgets, on models of equal variation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import windage as wd
from paper.cases import make
from paper.claims import Check, Sides, check, worst
from paper.result import Effort, Least, Result, Table
from paper.style import COLOURS, canvas, label
from windage.confidence import tuning
from windage.models import DriftingMDP
from windage.study import stats

__all__ = ["AGENTS", "compute", "judge"]

Reals = NDArray[np.float64]

SHAPES = {"jumps": "a few jumps", "cosine": "drift at every step"}
AGENTS = {
    "UCRL2, restarts for l changes": ("ucrl2-restarts", "l"),
    "SW-UCRL, window for l changes": ("sw-ucrl", "l, D"),
    "SWUCRL2-CW, W* and eta*": ("swucrl2-cw", "B_r, B_p"),
    "SWUCRL2-CW, Laplace radii": ("swucrl2-cw", "B_r, B_p"),
    "UCRL2, restarts every W*": ("ucrl2-restarts", "B_r, B_p"),
    "random": ("random", "nothing"),
}

BY_CHANGES = tuple(AGENTS)[:2]
BY_BUDGETS = tuple(AGENTS)[2:5]

LEAST = Least(23_835, "between two jumps UCRL2 would have too few visits to say anything")

ABOUT = """
Restarts and SW-UCRL have guarantees in l, the number of times the model changes. A model that
drifts changes at every step, l = T - 1, and then their tuning leaves them nothing to remember,
however little it moves; the paper's guarantee is in B_r and B_p and does not ask how often. Two
random models with five states and three actions have the same budgets, B_r = B_p = 1: one spends
them in a few jumps, the other in a cosine. A cell is the regret a step with a bootstrap interval
over seeds; all learners are told the truth about what they need. Restarts at a period of W* are
among those tuned by budgets, to tell what a restart does from what tuning it by l does.
"""


def _shares(model: DriftingMDP, name: str, seeds: int, effort: Effort) -> Reals:
    kind, _ = AGENTS[name]
    options: dict[str, Any] = {}
    B = model.budgets()
    if name.endswith("every W*"):
        W = tuning.optimal_window(model.space, model.horizon, B.reward, B.transition)
        options["restarts"] = tuning.as_window(W, model.horizon)
    if "Laplace" in name:
        options["radii"] = "laplace"
    best = model.optimal_gains().sum()

    def play(seed: int) -> float:
        run = wd.run(model, make(kind, model, seed, **options), seed=seed, record="totals")
        return (best - run.total_mean_reward) / model.horizon

    return np.array(effort.each(play, range(seeds)))


def compute(effort: Effort) -> Result:
    """Compare learners for jumps and for drift on both."""
    T = effort.steps(200_000, quick=25_000)
    seeds = effort.runs(10, quick=2)
    found: dict[tuple[str, str], Reals] = {}
    changes = {}
    for shape in SHAPES:
        model = wd.envs.make("random-drift", horizon=T, shape=shape)
        changes[shape] = model.budgets().changes
        for name in AGENTS:
            effort.say(f"{SHAPES[shape]}: {name}")
            found[shape, name] = _shares(model, name, seeds, effort)
    return Result(
        name="piecewise",
        title="Jumps against drift: guarantees in l and in budgets",
        about=ABOUT,
        checks=judge(found, is_judged=not effort.is_quick),
        remarks=_remarks(found),
        tables=[_table(found, changes, T, seeds)],
        figure=_draw(found, changes),
        is_quick=effort.is_quick,
    )


def _growth(found: dict[tuple[str, str], Reals], name: str) -> stats.Interval:
    """By what factor the regret grows from jumps to drift."""
    return stats.ratio(found["cosine", name], found["jumps", name])


def judge(found: dict[tuple[str, str], Reals], *, is_judged: bool = True) -> list[Check]:
    """Judge how regrets grow from jumps to drift, and what is left of learners for changes."""
    growth = {name: _growth(found, name) for name in BY_CHANGES + BY_BUDGETS}
    at = {name: f"{name}, {one.low:.2f} to {one.high:.2f}" for name, one in growth.items()}
    means = {name: float(found["cosine", name].mean()) for name in AGENTS}
    best = min(BY_BUDGETS, key=lambda name: means[name])
    early = {name: float(found["jumps", name].mean()) for name in AGENTS}
    least = min(BY_BUDGETS, key=lambda name: early[name])
    return [
        worst(
            "on jumps",
            "learners tuned by l do well on jumps: they lose less than the best that is tuned by "
            "budgets",
            [Sides(early[name], early[least], f"{name}; {least}") for name in BY_CHANGES],
            "<",
            unit="learners",
            is_judged=is_judged,
        ),
        worst(
            "for changes",
            "learners tuned by l lose more on drift than on jumps: regrets grow, whole intervals "
            "above 1",
            [Sides(growth[name].low, 1.0, at[name]) for name in BY_CHANGES],
            ">",
            unit="learners",
            is_judged=is_judged,
        ),
        worst(
            "for budgets",
            "learners tuned by budgets do not care: regrets grow by a tenth at most",
            [Sides(growth[name].high, 1.1, at[name]) for name in BY_BUDGETS],
            unit="learners",
            is_judged=is_judged,
        ),
        worst(
            "on drift",
            "learners tuned by l lose more than the best that is tuned by budgets",
            [Sides(means[name], means[best], f"{name}; {best}") for name in BY_CHANGES],
            ">",
            unit="learners",
            is_judged=is_judged,
        ),
        check(
            "nothing left",
            "on drift restarts for l changes lose at least nine tenths of what random loses",
            means[BY_CHANGES[0]],
            ">=",
            0.9 * means["random"],
            is_judged=is_judged,
        ),
    ]


def _remarks(found: dict[tuple[str, str], Reals]) -> str:
    means = {name: float(found["jumps", name].mean()) for name in AGENTS}
    best = min(means, key=lambda name: means[name])
    return f"On jumps the least is lost by {best}, {means[best]:.4f} a step."


def _table(
    found: dict[tuple[str, str], Reals], changes: dict[str, int], T: int, seeds: int
) -> Table:
    rows = []
    for name, (_, told) in AGENTS.items():
        cells = [stats.mean(found[shape, name]) for shape in SHAPES]
        rows.append(
            [name, told, *(f"{c.estimate:.4f} ({c.low:.4f} to {c.high:.4f})" for c in cells)]
        )
    heads = [f"{words}, l = {changes[shape]:,}" for shape, words in SHAPES.items()]
    return Table(f"Regret a step, T = {T:,}, {seeds} seeds", ("agent", "is told", *heads), rows)


def _draw(found: dict[tuple[str, str], Reals], changes: dict[str, int]) -> Any:
    figure, (panel,) = canvas("The same budgets, spent in jumps or at every step", columns=1)
    y = np.arange(len(AGENTS))
    for i, (shape, words) in enumerate(SHAPES.items()):
        cells = [stats.mean(found[shape, name]) for name in AGENTS]
        means = np.array([c.estimate for c in cells])
        sides = np.array([[c.estimate - c.low, c.high - c.estimate] for c in cells]).T
        panel.barh(y - 0.2 + 0.4 * i, means, 0.38, xerr=sides, color=COLOURS[i],
                   label=f"{words}, l = {changes[shape]:,}")  # fmt: skip
    panel.set_yticks(y, list(AGENTS))
    panel.invert_yaxis()
    label(panel, "Regret a step", "rho* - mean reward", "")
    panel.legend(fontsize=9.5, frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1.0, 1.0))
    return figure
