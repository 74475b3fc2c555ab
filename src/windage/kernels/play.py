"""Whole stretches of a run in one compiled loop: an agent's rule around `world.step`.

A loop fills, for every step i, the state s_t, the pair played, the reward R_t and its mean, and
returns the state it ends in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.jit import compiled, inlined
from windage.kernels.random import bits, split
from windage.kernels.world import AHEAD, draw_noise, land, step


class Census(NamedTuple):
    """How many samples of every pair an agent remembered, counted every so many steps of a run.

    The last time is that of the run's last step, whether it is a multiple of `every` or not.
    """

    every: int
    times: NDArray[np.int64]
    counts: NDArray[np.int64]  # [times, pairs]

    @property
    def before(self) -> int:
        """How many multiples of `every` lie before the first time."""
        return int(self.times[0] - 1) // self.every


class Block(NamedTuple):
    """Consecutive steps of a run, as a compiled loop fills them."""

    states: NDArray[np.int32]
    pairs: NDArray[np.int64]
    rewards: NDArray[np.float64]
    means: NDArray[np.float64]
    census: Census | None = None  # of the whole run, for loops that count what they remember

    @property
    def columns(
        self,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """What every loop fills."""
        return self[:4]

    @classmethod
    def empty(cls, n: int, census: Census | None = None) -> Block:
        """Return room for n steps."""
        return cls(np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n), np.empty(n), census)

    def head(self, n: int) -> Block:
        """Return the first n steps, sharing memory."""
        return self.part(0, n)

    def part(self, first: int, last: int) -> Block:
        """Return the steps from `first` up to before `last`, sharing memory."""
        here = slice(first, last)
        states, pairs, rewards, means = self.columns
        return Block(states[here], pairs[here], rewards[here], means[here], self.census)


@inlined
def uniform_action(key, t, actions):
    """Return one of `actions` actions, each as likely as the others."""
    action, _ = split(bits(key, t, 0), np.uint64(actions))
    return np.int64(action)


@compiled
def play_uniform(world, offsets, counts, key, state, t, states, pairs, rewards, means):
    """Play every action with equal probability, from time `t` on, for as many steps as fit."""
    for i in range(states.size):
        if i % AHEAD == 0:
            draw_noise(world, t, i, states, pairs, rewards)
        base, u, coin = states[i], pairs[i], rewards[i]
        here = np.uint64(state)
        pair = offsets[here] + uniform_action(key, t, counts[here])
        states[i] = state
        pairs[i] = pair
        means[i], rewards[i], state = land(world, t, pair, base, u, coin)
        t += 1
    return state


@compiled
def play_policies(world, policies, first, state, t, states, pairs, rewards, means):
    """Play the policy of each time: policies[t - first, state] is a pair."""
    for i in range(states.size):
        pair = policies[t - first, state]
        states[i] = state
        pairs[i] = pair
        means[i], rewards[i], state = step(world, t, pair)
        t += 1
    return state
