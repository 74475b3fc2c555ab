"""Theorem 2: BORL's regret is that of its best fixed arm and the master's, measured exactly."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import windage as wd
from paper.cases import make
from paper.claims import Check, Sides, worst
from paper.result import Effort, Least, Result, Table
from paper.style import COLOURS, canvas, label
from windage import adversarial
from windage.agents.meta.borl import BORL
from windage.agents.optimistic.swucrl2cw import SWUCRL2CW
from windage.confidence import tuning
from windage.kernels.rollout import Block
from windage.models import DriftingMDP
from windage.models.gains import GainCurve
from windage.simulators import world_of
from windage.study import stats

__all__ = ["Split", "World", "compute", "counterfactual", "judge", "nearest_arm"]

Reals = NDArray[np.float64]
Near = dict[tuple[tuple[int, int, int], tuple[float, float]], tuple[float, float]]

WORLDS = (("two-state-cosine", 5000), ("riverswim", 20_000), ("inventory", 20_000))
LONG = ("two-state-cosine", 1_000_000)
BUDGETS = ((0.0, 0.0), (1.0, 1.0), (10.0, 0.0), (0.0, 10.0), (100.0, 100.0), (0.0, 1000.0))
COVERED = ((2, 2, 5000), (6, 2, 20_000), (10, 4, 100_000), (20, 4, 1_000_000))

LEAST = Least(1069, "BORL would have one block in the inventory (E5)")

ABOUT = """
The proof of Theorem 2 splits BORL's regret into that of one fixed arm (W, eta), played afresh in
every block from the state in which BORL began it, and what the master lost by not choosing that
arm. Here every arm is played in every block, from the same state and with the same noise, so the
split is measured and exact: in the block's own arm the counterfactual must earn what BORL earned.
The best fixed arm is the one with the least regret in hindsight on each seed. The master's bound
is that of EXP3.P, 5.15 sqrt(n Delta ln Delta) + sqrt(n Delta / ln Delta) blocks of H steps,
recalled from its source; gamma beyond 1 makes it vacuous (E4), and the choice uniform.

The theorem also needs an arm near (W*, eta*), whatever the budgets: the second table says how
near the nearest one is.
"""


def counterfactual(model: DriftingMDP, agent: BORL, run: Any) -> Reals:
    """Return what every arm would have earned in every block: [block, arm], mean rewards summed."""
    blocks = agent.blocks
    found = np.empty((len(blocks), len(agent.arms)))
    for i, (start, steps) in enumerate((block.start, block.length) for block in blocks):
        state = int(run.states[start - 1])
        known: dict[tuple[int, float], float] = {}  # arms may be listed twice
        for k, arm in enumerate(agent.arms):
            if arm not in known:
                fresh = agent._learner(k, i)
                known[arm] = _block(model, fresh, run.seed, start, steps, state)
            found[i, k] = known[arm]
    return found


def _block(
    model: DriftingMDP, learner: SWUCRL2CW, seed: int, start: int, steps: int, state: int
) -> float:
    """Play a fresh learner in one block, on its own clock; return the mean rewards it collected."""
    earned, done = 0.0, 0
    while done < steps:
        world = world_of(model, seed, start + done, start + steps - 1)
        part = Block.empty(world.last - (start + done) + 1)
        state = learner.play(world._replace(ahead=world.ahead + start - 1), state, part)
        learner.last_state = state
        learner.t += part.states.size
        earned += float(part.means.sum())
        done += part.states.size
    return earned


class Split(NamedTuple):
    """The regret of a run of BORL, and its two parts."""

    regret: float
    fixed: float
    master: float
    arm: tuple[int, float]
    apart: float  # what its own arm, played again, earned more or less, in the worst block


class World(NamedTuple):
    """The runs in a world, and what EXP3.P promises there."""

    name: str
    T: int
    agent: BORL
    splits: list[Split]
    bound: float
    gamma: float


def _split(model: DriftingMDP, gains: GainCurve, seed: int) -> Split:
    agent: BORL = make("borl", model, seed)
    run = wd.run(model, agent, seed=seed)
    arms = counterfactual(model, agent, run)
    blocks = agent.blocks
    optimal = np.add.reduceat(gains.values, blocks.start - 1)
    own = np.add.reduceat(run.mean_rewards, blocks.start - 1)
    chosen = arms[np.arange(len(blocks)), blocks.arm]
    best = int(arms.sum(axis=0).argmax())
    return Split(
        regret=wd.dynamic_regret(run, model, gains=gains).total,
        fixed=float((optimal - arms[:, best]).sum()),
        master=float((arms[:, best] - chosen).sum()),
        arm=agent.arms[best],
        apart=float(np.abs(chosen - own).max()),
    )


def nearest_arm(S: int, A: int, T: int, B_r: float, B_p: float) -> tuple[float, float]:
    """Return by what factors the nearest arm misses W* and eta*, as an agent uses them (E6, E7)."""
    space = wd.StateActions.uniform(S, A)
    grid = tuning.borl_grid(space, T)
    W = tuning.as_window(tuning.optimal_window(space, T, B_r, B_p), T)
    eta = tuning.as_widening(tuning.optimal_widening(space, T, B_r, B_p))
    off = [min(max(x / y, y / x) for y in side) for x, side in
           ((W, grid.windows), (eta, grid.widenings))]  # fmt: skip
    return off[0], off[1]


def compute(effort: Effort) -> Result:
    """Split BORL's regret on several worlds and check the grid's coverage."""
    seeds = effort.runs(10, quick=3)
    found = []
    todo = [(name, effort.steps(T, quick=2000), seeds)
            for name, T in WORLDS]  # fmt: skip
    if not effort.is_quick and effort.horizon is None:
        todo.append((*LONG, min(seeds, 2)))
    for name, T, n in todo:
        effort.say(f"playing every arm in every block: {name}, T = {T:,}")
        model = wd.envs.make(f"{name}-v0", horizon=T)
        gains = model.optimal_gains()
        splits = effort.each(partial(_split, model, gains), range(n))
        agent: BORL = make("borl", model)
        K, rounds = len(agent.arms), agent.n_blocks
        bound = agent.block_length * (
            5.15 * math.sqrt(rounds * K * math.log(K)) + math.sqrt(rounds * K / math.log(K))
        )
        gamma = adversarial.make("exp3p", K, rounds, quiet=True).raw_gamma
        found.append(World(name, T, agent, splits, bound, gamma))
    near = {(size, budget): nearest_arm(*size, *budget) for size in COVERED for budget in BUDGETS}
    return Result(
        name="borl",
        title="BORL: the best arm and the master (Theorem 2)",
        about=ABOUT,
        checks=judge(found, near),
        remarks=_remarks(found),
        tables=[_table(found), _cover(near)],
        figure=_draw(found),
        is_quick=effort.is_quick,
    )


def judge(found: list[World], near: Near) -> list[Check]:
    """Judge the split, block by block and in sum, the master's bound and the grid's coverage."""
    runs = [(w, s, f"{w.name}, T = {w.T:,}") for w in found for s in w.splits]
    return [
        worst(
            "replay",
            "in every block its own arm, played again, earns what BORL earned",
            [Sides(s.apart, 1e-9, at) for _, s, at in runs],
        ),
        worst(
            "split",
            "the best fixed arm's regret and the master's are off BORL's by rounding at most",
            [Sides(abs(s.fixed + s.master - s.regret), 1e-6 * w.T, at) for w, s, at in runs],
        ),
        worst(
            "master",
            "the master's regret is at most EXP3.P's bound",
            [Sides(s.master, w.bound, at) for w, s, at in runs],
        ),
        worst(
            "grid",
            "some arm is within a factor of e of W* and of eta*",
            [
                Sides(max(pair), math.e, "S = {}, A = {}, T = {:,}".format(*size)
                      + ", B_r = {:g}, B_p = {:g}".format(*budget))
                for (size, budget), pair in near.items()
            ],
            unit="settings",
        ),
    ]  # fmt: skip


def _remarks(found: list[World]) -> str:
    vacuous = sum(w.bound > w.T for w in found)
    random = sum(w.gamma > 1 for w in found)
    shares = [
        (w, stats.ratio([s.master for s in w.splits], [s.regret for s in w.splits])) for w in found
    ]
    return (
        f"The master's bound exceeds T on {vacuous} of {len(found)} worlds, and gamma exceeds 1 on "
        f"{random}: there it draws at random. Its share of the regret is "
        + ", ".join(
            f"{share.estimate:.0%} ({share.low:.0%} to {share.high:.0%}) on {w.name} at T = {w.T:,}"
            for w, share in shares
        )
        + "."
    )


def _table(found: list[World]) -> Table:
    rows = []
    for w in found:
        columns = np.array([(s.regret, s.fixed, s.master) for s in w.splits])
        means = [stats.mean(column) for column in columns.T]
        arms = [s.arm for s in w.splits]
        W, eta = max(set(arms), key=arms.count)
        rows.append(
            [
                w.name, f"{w.T:,}", str(w.agent.n_blocks), str(len(w.agent.arms)),
                f"{w.gamma:.2f}",
                *(f"{m.estimate:,.0f} ({m.low:,.0f} to {m.high:,.0f})" for m in means),
                f"{w.bound:,.0f}", f"{W:,}, {eta:.3g}",
            ]
        )  # fmt: skip
    return Table(
        "BORL's regret = regret of the best fixed arm + the master's regret; means over seeds",
        ("world", "T", "blocks", "arms", "gamma", "regret", "best fixed arm", "master",
         "EXP3.P's bound", "best W, eta most often"),
        rows,
    )  # fmt: skip


def _cover(near: Near) -> Table:
    return Table(
        "By what factors the nearest arm misses W* and eta*, for budgets (B_r, B_p)",
        ("S, A, T", *(f"({r:g}, {p:g})" for r, p in BUDGETS)),
        [
            [f"{S}, {A}, {T:,}"]
            + ["{:.2f}, {:.2f}".format(*near[(S, A, T), budget]) for budget in BUDGETS]
            for S, A, T in COVERED
        ],
    )


def _draw(found: list[World]) -> Any:
    figure, (panel,) = canvas("What BORL loses, and to what", columns=1, height=4.6)
    x = np.arange(len(found))
    fixed = np.array([np.mean([s.fixed for s in w.splits]) / w.T for w in found])
    master = np.array([np.mean([s.master for s in w.splits]) / w.T for w in found])
    panel.bar(x, fixed, 0.5, color=COLOURS[0], label="the best fixed arm, from BORL's states")
    panel.bar(x, master, 0.5, bottom=fixed, color=COLOURS[1], label="the master")
    for i, w in enumerate(found):
        panel.text(
            i, fixed[i] + master[i] + 0.01, f"gamma = {w.gamma:.2f}",
            ha="center", fontsize=10,
        )  # fmt: skip
    panel.set_xticks(x, [f"{w.name}\nT = {w.T:,}" for w in found])
    panel.set_ylim(0, 1.2 * float((fixed + master).max()))
    label(panel, "Regret a step, split exactly", "", "regret a step")
    panel.legend(fontsize=9.5, frameon=False, loc="upper right")
    return figure
