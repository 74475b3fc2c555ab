"""The problems, written down before anything was tuned: two sets that share no model and no seed.

Constants of the learner are chosen on the tuning set only. The test set has other generator seeds,
other sizes, other shapes and longer horizons; it is run once for each frozen version of the
learner, and the result of every version is kept.

The first tuning set has no bandit that breaks and no small model that jumps: `BREAKS` was added to
it after version 1 of the learner, which was worst on `breaks` of the test set, and before anything
was tuned on them. The test set stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import windage as wd

TUNING_SEEDS = range(1000, 1012)
TEST_SEEDS = range(30)


@dataclass(frozen=True)
class Problem:
    """A model to play in, and what kind of drift it has."""

    name: str
    drift: str
    make: Callable[[], wd.DriftingMDP]

    @property
    def long(self) -> bool:
        """Whether it has more than 5,000 steps: too many for what runs step by step."""
        return self.make().horizon > 5000


def _env(name: str, drift: str, id: str, horizon: int, **options: object) -> Problem:  # noqa: A002
    return Problem(name, drift, lambda: wd.envs.make(f"{id}-v0", horizon=horizon, **options))


def _random(
    name: str, horizon: int, states: int, actions: int, seed: int, **how: object
) -> Problem:
    shape = str(how.get("shape", "cosine"))
    budgets = (how.setdefault("reward_budget", 2.0), how.setdefault("transition_budget", 2.0))
    drift = {(0.0, 0.0): "none"}.get(budgets, shape)  # type: ignore[call-overload]
    if 0.0 in budgets and drift != "none":
        drift += ", kernel only" if budgets[0] == 0.0 else ", rewards only"
    return _env(name, drift, "random-drift", horizon, states=states, actions=actions, seed=seed,
                **how)  # fmt: skip


STILL = {"reward_budget": 0.0, "transition_budget": 0.0}


def dominated(
    horizon: int, means: list[float], later: list[float], cycles: float
) -> wd.DriftingMDP:
    """A bandit whose arms drift and whose best arm stays the best."""
    space = wd.StateActions([len(means)])
    ends = [wd.MDP(space, arms, [[1.0]] * len(means)) for arms in (means, later)]
    return wd.DriftingMDP.blend(ends, wd.schedules.Cosine(cycles), horizon=horizon)


def switching(
    horizon: int, pieces: list[list[float]], breaks: list[int], order: list[int]
) -> wd.DriftingMDP:
    """A bandit whose means jump from one of a few sets to another."""
    space = wd.StateActions([len(pieces[0])])
    models = [wd.MDP(space, arms, [[1.0]] * len(arms)) for arms in pieces]
    return wd.DriftingMDP.blend(models, wd.schedules.Steps(breaks, order), horizon=horizon)


TUNING = [
    _env("two-state", "cosine", "two-state-cosine", 5000),
    _random("still-5x3", 5000, 5, 3, 11, **STILL),
    _random("cosine-5x3", 5000, 5, 3, 12),
    _random("jumps-6x2", 5000, 6, 2, 13, shape="jumps"),
    _env("waves", "bandit", "bandit", 5000),
    _env("peril-125", "peril", "peril", 5000, tau=125),
    _env("inventory-6", "season, shift", "inventory", 5000, capacity=5),
    _env("river-6", "cosine, jumps", "riverswim", 20_000),
    _env("queue-11", "cosine", "queue", 20_000),
    _env("replacement-7", "slow", "replacement", 20_000),
    _env("epidemic-11", "cosine, shift", "epidemic", 20_000, population=10),
    _random("still-10x3", 20_000, 10, 3, 14, **STILL),
    _random("walk-8x3", 20_000, 8, 3, 15, shape="walk"),
    _random("burst-5x4", 20_000, 5, 4, 16, shape="burst"),
    _random("rewards-5x3", 20_000, 5, 3, 17, transition_budget=0.0, reward_budget=4.0),
    _random("kernel-8x2", 20_000, 8, 2, 18, reward_budget=0.0, transition_budget=4.0),
    Problem("dominated-2", "bandit, policy stays",
            lambda: dominated(20_000, [0.8, 0.3], [0.6, 0.4], 3)),
    _env("queue-11 long", "cosine", "queue", 100_000),
]  # fmt: skip

BREAKS = [
    Problem("late-riser-4", "bandit, one break",
            lambda: switching(5000, [[0.6, 0.5, 0.4, 0.2], [0.6, 0.5, 0.4, 0.8]], [2001], [0, 1])),
    Problem("swaps-2", "bandit, four breaks",
            lambda: switching(5000, [[0.7, 0.4], [0.3, 0.6]], [901, 2101, 2701, 4001],
                              [0, 1, 0, 1, 0])),
    Problem("fall-3", "bandit, two breaks",
            lambda: switching(20_000, [[0.8, 0.6, 0.5], [0.4, 0.6, 0.5], [0.4, 0.3, 0.5]],
                              [6001, 13_001], [0, 1, 2])),
    _random("jumps-2x2", 5000, 2, 2, 19, shape="jumps"),
    _random("jumps-3x3", 20_000, 3, 3, 20, shape="jumps", reward_budget=4.0),
]  # fmt: skip

TEST = [
    _env("two-state-3-2", "cosine", "two-state-cosine", 5000, reward_cycles=3, transition_cycles=2),
    _random("still-5x4", 5000, 5, 4, 101, **STILL),
    _random("cosine-4x2", 5000, 4, 2, 102),
    _random("jumps-6x4", 5000, 6, 4, 103, shape="jumps"),
    _random("walk-3x5", 5000, 3, 5, 104, shape="walk"),
    _env("breaks", "bandit", "bandit", 5000, shape="breaks"),
    _env("peril-100", "peril", "peril", 5000, tau=100),
    _env("inventory-8", "season, shift", "inventory", 5000, capacity=7),
    _env("epidemic-9", "cosine, shift", "epidemic", 5000, population=8),
    _env("river-4", "cosine, jumps", "riverswim", 5000, states=4),
    _env("river-8", "cosine, jumps", "riverswim", 20_000, states=8),
    _env("queue-7", "cosine", "queue", 20_000, capacity=6, cycles=3),
    _env("inventory-10", "season, shift", "inventory", 20_000),
    _env("replacement-9", "slow", "replacement", 20_000, wear=8),
    _env("epidemic-16", "cosine, shift", "epidemic", 20_000),
    _env("ride-8", "day", "ride", 20_000),
    _env("bidding-21", "cosine", "bidding", 20_000, budget=6),
    _env("peril-400", "peril", "peril", 20_000, tau=400),
    _random("still-12x3", 20_000, 12, 3, 105, **STILL),
    _random("linear-12x3", 20_000, 12, 3, 106, shape="linear"),
    _random("burst-7x3", 20_000, 7, 3, 107, shape="burst"),
    _random("rewards-6x3", 20_000, 6, 3, 108, transition_budget=0.0, reward_budget=6.0),
    _random("kernel-6x3", 20_000, 6, 3, 109, reward_budget=0.0, transition_budget=6.0),
    _env("waves-4", "bandit", "bandit", 20_000, cycles=4),
    Problem("dominated-3", "bandit, policy stays",
            lambda: dominated(20_000, [0.9, 0.5, 0.3], [0.7, 0.2, 0.5], 4)),
    _env("two-state long", "cosine", "two-state-cosine", 100_000, reward_cycles=6,
         transition_cycles=4),
    _env("river-6 long", "cosine, jumps", "riverswim", 100_000),
    _env("queue-9 long", "cosine", "queue", 100_000, capacity=8, cycles=5),
    _random("jumps-20x4 long", 100_000, 20, 4, 110, shape="jumps"),
]  # fmt: skip
SETS = {"tuning": (TUNING + BREAKS, TUNING_SEEDS), "test": (TEST, TEST_SEEDS)}
