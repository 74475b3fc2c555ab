"""Whole runs with everything written down, and values of sets that do not come from the planner."""

from __future__ import annotations

import functools
import warnings
from typing import Any, NamedTuple

import numpy as np

import windage as wd
from tests.models import random_mdp
from windage.proof import Hindsight, hindsight


class Start(NamedTuple):
    """An episode as it was planned."""

    tau: int
    gain: float
    bias: np.ndarray
    region: wd.ConfidenceRegion
    N: np.ndarray  # visits in the window, recounted from the history
    warm: bool


class Played(NamedTuple):
    """A run: the step t is (states[t - 1], pairs[t - 1]) in episode number[t - 1]."""

    name: str
    model: wd.DriftingMDP
    W: int
    boundary: str
    states: np.ndarray
    pairs: np.ndarray
    number: np.ndarray
    starts: list[Start]

    @property
    def block(self) -> np.ndarray:
        """The block of every step: [jW, (j + 1)W - 1], or jW + 1 .. (j + 1)W."""
        t = np.arange(1, self.pairs.size + 1)
        return t // self.W if self.boundary == "start" else (t - 1) // self.W


def ragged() -> wd.DriftingMDP:
    ends = [random_mdp(wd.StateActions([2, 3, 1, 1]), seed, density=0.6) for seed in (3, 4)]
    return wd.DriftingMDP.blend(ends, wd.schedules.Cosine(2), horizon=900)


TIGHT = wd.Radii.paper().scaled(0.1)
WORLDS = {
    "riverswim": lambda: wd.envs.make("riverswim", horizon=1200),
    "two-state-cosine": lambda: wd.envs.make("two-state-cosine", horizon=1500),
    "peril": lambda: wd.envs.make("peril", tau=50, repeats=5),
    "ragged": ragged,
}
SUITE: dict[str, tuple[str, dict[str, Any]]] = {
    "river": ("riverswim", {"window": 150, "widening": 0.3, "radii": TIGHT}),
    "river, cold": (
        "riverswim", {"window": 400, "widening": 0.1, "radii": TIGHT, "warm_start": False},
    ),
    "two states": ("two-state-cosine", {"window": 60, "widening": 0.2, "radii": TIGHT}),
    "two states, printed radii": ("two-state-cosine", {"window": 1000, "widening": 0.4}),
    "peril": ("peril", {"window": 200, "widening": 0.1, "radii": TIGHT.scaled(0.5)}),
    "peril, no widening": ("peril", {"window": 200, "widening": 0.0, "radii": TIGHT.scaled(0.5)}),
    "ragged": (
        "ragged", {"window": 75, "widening": 0.5, "radii": TIGHT, "boundary": "end"},
    ),
    "ragged, all history": (
        "ragged", {"window": 900, "widening": 0.05, "radii": TIGHT, "ties": "lowest"},
    ),
}  # fmt: skip


@functools.cache
def played(name: str) -> Played:
    """Play one of the suite step by step, looking at every episode when it starts."""
    world, options = SUITE[name]
    model = WORLDS[world]()
    space, T, W = model.space, model.horizon, options["window"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wd.GuaranteeWarning)
        agent = wd.SWUCRL2CW(space, horizon=T, seed=5, **options)
    simulator = wd.simulate.Simulator(model, seed=6)
    states, pairs, number, starts = [0], [], [], []
    for t in range(1, T + 1):
        s = simulator.state
        a = agent.act(s)
        if agent.n_episodes > len(starts):
            recent = np.array(pairs[max(0, t - 1 - W) :], dtype=np.int64)
            N = np.bincount(recent, minlength=space.n_pairs)
            starts.append(
                Start(t, agent.episode.gain, _bias(agent), agent.region(), N, agent.warm_start)
            )
        pairs.append(space.pair(s, a))
        number.append(agent.n_episodes - 1)
        reward, after = simulator.step(a)
        agent.observe(s, a, reward, after)
        states.append(after)
    return Played(
        name, model, W, agent.boundary, np.array(states), np.array(pairs), np.array(number), starts
    )


def in_hindsight(name: str) -> Hindsight:
    """The run of the suite, in one compiled loop, and looked at again."""
    kind, options = SUITE[name]
    model = WORLDS[kind]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wd.GuaranteeWarning)
        agent = wd.SWUCRL2CW(model.space, horizon=model.horizon, seed=5, **options)
    return hindsight(wd.run(model, agent, seed=6), model)


def _bias(agent: wd.SWUCRL2CW) -> np.ndarray:
    """gamma~ of the current episode: the one thing here that no public name shows."""
    if agent.episode.span == 0.0:
        return np.zeros(agent.space.n_states)
    return agent._learner.plan.u.copy()


def best_values(region: wd.ConfidenceRegion, u: np.ndarray) -> np.ndarray:
    """r~ + max q.u over the L1 set of every pair, level by level.

    q.u = min u + the integral over x of q(u > x), and q(u > x) <= min(1, p_hat(u > x) + width / 2);
    moving mass from the worst states to the best attains all of these at once.
    """
    order = np.argsort(u)
    rising = u[order]
    p = region.p_hat.toarray()[:, order]
    above = np.cumsum(p[:, ::-1], axis=1)[:, ::-1][:, 1:]  # p_hat of the states above each level
    reach = np.minimum(1.0, above + region.width[:, None] / 2)
    reach[~region.visited] = 1.0
    return region.reward_upper + rising[0] + reach @ np.diff(rising)


def printed_values(region: wd.ConfidenceRegion, u: np.ndarray) -> np.ndarray:
    """The right side of Property 1 as printed: every next state at its own largest q(s')."""
    most = np.minimum(1.0, region.p_hat.toarray() + region.width[:, None] / 2)
    most[~region.visited] = 1.0
    return region.reward_upper + most @ u
