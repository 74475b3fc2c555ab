"""Jumps and drift: learners for l changes, and one for budgets, on models of equal variation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import windage as wd
from windage.drift import DriftingMDP
from windage.learn import tuning
from windage.paper.drawing import COLOURS, canvas, label
from windage.paper.result import Effort, Least, Result, Table
from windage.paper.suite import make
from windage.study import stats

__all__ = ["compute"]

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

LEAST = Least(20_000, "nobody would have learned anything between two jumps")

ABOUT = """
Restarts and SW-UCRL have guarantees in l, the number of times the model changes. A model that
drifts changes at every step, l = T - 1, and then their tuning leaves them nothing to remember,
however little it moves; the paper's guarantee is in B_r and B_p and does not ask how often. Two
random models with five states and three actions have the same budgets, B_r = B_p = 1: one spends
them in a few jumps, the other in a cosine. A cell is the regret a step with a bootstrap interval
over seeds; all learners are told the truth about what they need. Restarts at a period of W* are
shown too: the restart is not what fails, tuning it by l is.
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
    T = effort.steps(200_000, quick=5000)
    seeds = effort.runs(10, quick=2)
    found: dict[tuple[str, str], Reals] = {}
    changes = {}
    for shape in SHAPES:
        model = wd.envs.make("random-drift", horizon=T, shape=shape)
        changes[shape] = model.budgets().changes
        for name in AGENTS:
            effort.say(f"{SHAPES[shape]}: {name}")
            found[shape, name] = _shares(model, name, seeds, effort)
    means = {key: float(values.mean()) for key, values in found.items()}
    fooled = list(AGENTS)[:2]
    worse = [means["cosine", n] / means["jumps", n] for n in fooled]
    steady = (
        means["cosine", "SWUCRL2-CW, Laplace radii"] / means["jumps", "SWUCRL2-CW, Laplace radii"]
    )
    lost = means["cosine", fooled[0]] / means["cosine", "random"]
    return Result(
        name="piecewise",
        title="Jumps against drift: guarantees in l and in budgets",
        about=ABOUT,
        expected=(
            "learners tuned by the number of changes do well on jumps and lose their memory on "
            "drift of the same size; learners tuned by budgets do not care."
        ),
        seen=(
            f"with l = {changes['jumps']} and l = {changes['cosine']:,}, the regret of UCRL2 with "
            f"restarts grows by a factor of {worse[0]:.1f} from jumps to drift, that of SW-UCRL by "
            f"{worse[1]:.1f}, that of SWUCRL2-CW with Laplace radii by {steady:.2f}; on drift the "
            f"restarted one loses {lost:.0%} of what a random agent loses."
        ),
        holds=effort.is_quick or (min(worse) > 1.2 * steady and lost > 0.9),
        tables=[_table(found, changes, T, seeds)],
        figure=_draw(found, changes),
        is_quick=effort.is_quick,
    )


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
