"""RiverSwim, still and drifting: a chain to swim up against the current."""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import csr_array

from windage.envs.registry import Facts, Instance, register
from windage.models import MDP, DriftingMDP, Noise
from windage.schedules import Cosine, Steps
from windage.spaces import StateActions
from windage.validation import as_horizon, as_real, as_size, require_memory

__all__ = ["riverswim", "riverswim_mdp"]

_DOWN, _FIRST_UP, _LAST_STAY = 0.05, 0.6, 0.6
_SPARSE_FROM = 500  # states: a chain has three non-zeros a row
_BYTES_A_STATE = 600.0  # of a sparse chain while it is made


def _swim_up(states: int, up: float) -> float:
    """The expected time from the first state to the last with the action right."""
    climb = 1 / _FIRST_UP
    total = climb
    for _ in range(states - 2):
        climb = (1 + _DOWN * climb) / up
        total += climb
    return max(total, states - 1.0)


@register("riverswim-v0", title="RiverSwim")
def riverswim(
    horizon: int = 20_000,
    states: int = 6,
    noise: Noise | str = "bernoulli",
) -> Instance:
    """A river whose current turns with the season and whose prizes trade places.

    States
        0 .. states - 1, from the mouth to the spring.
    Actions
        0, "left": one state down for sure. 1, "right": up with probability .35 + .25 k_t, down
        .05, else stay; in the first state up .6, in the last stay .6 and down .4.
    Drift
        k_t = (1 + cos(2 pi t / T)) / 2. Left pays .05 in the first state and right pays 1 in the
        last; every T / 4 steps these change to .6 and .3, and back.
    B_r
        2.1: three swaps of .7.
    B_p
        1.0 up to the discrete sum: there and back over an L1 distance of .5.
    D
        The expected climb at k = 0: 14.7 with six states.
    Why communicating
        Left is deterministic, right always has a way up.
    Version history
        v0: first.
    """
    T, n = as_horizon(horizon), as_size(states, "states", low=2)
    Noise.of(noise)
    require_memory(_BYTES_A_STATE * n, "states", fix="ask for fewer states")

    def facts() -> Facts:
        half_wave = (1 - math.cos(2 * math.pi / T)) / 2
        return Facts(
            reward_budget=3 * 0.7 if T >= 4 else None,
            transition_budget=None if T % 2 or T < 4 else 0.5 * (2 - half_wave) if n > 2 else 0.0,
            diameter_bound=_swim_up(n, up=0.35),
        )

    def build() -> DriftingMDP:
        swaps = sorted({j * T // 4 + 1 for j in (1, 2, 3)} - {1})
        return DriftingMDP.blend(
            [
                riverswim_mdp(n, up=0.6, left_reward=0.05, right_reward=1.0),
                riverswim_mdp(n, up=0.35, left_reward=0.6, right_reward=0.3),
            ],
            Cosine(cycles=1),
            Steps(swaps),
            horizon=T,
            noise=noise,
        )

    return Instance(build, facts)


def riverswim_mdp(
    states: int = 6,
    *,
    up: float = 0.35,
    left_reward: float = 0.005,
    right_reward: float = 1.0,
) -> MDP:
    """Return the stationary river; its gain tends to 3/7 as the chain grows.

    Chains of 500 states and more are sparse.

    >>> riverswim_mdp(3).transitions[3]
    array([0.05, 0.6 , 0.35])
    """
    n = as_size(states, "states", low=2)
    rise = as_real(up, "up", low=0, high=1 - _DOWN, open_low=True)
    paid = (
        as_real(left_reward, "left_reward", low=0, high=1),
        as_real(right_reward, "right_reward", low=0, high=1),
    )
    require_memory(_BYTES_A_STATE * n, "states", fix="ask for fewer states")
    space = StateActions.uniform(n, 2, action_names=["left", "right"])
    s = np.arange(n)
    below, above = np.maximum(s - 1, 0), np.minimum(s + 1, n - 1)
    down = np.where(s == 0, 0.0, np.where(s == n - 1, 1 - _LAST_STAY, _DOWN))
    climb = np.where(s == 0, _FIRST_UP, np.where(s == n - 1, 0.0, rise))
    rows = np.concatenate([2 * s, 2 * s + 1, 2 * s + 1, 2 * s + 1])
    columns = np.concatenate([below, below, s, above])
    values = np.concatenate([np.ones(n), down, 1 - down - climb, climb])
    transitions = csr_array((values, (rows, columns)), shape=(2 * n, n))
    rewards = np.zeros(2 * n)
    rewards[0], rewards[-1] = paid
    return MDP(space, rewards, transitions if n >= _SPARSE_FROM else transitions.toarray())
