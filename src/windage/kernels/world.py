"""One step of a drifting MDP: draw the base kernel, then its alias table; then the reward.

sum_k w_k P_k is sampled exactly by drawing k with probability w_k and then from P_k, so a step
costs the same with and without drift and does not depend on S. The draws of base, state and reward
have keys of their own: the same word for two of them would correlate what must be independent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.alias import Alias, draw
from windage.kernels.jit import compiled, inlined
from windage.kernels.random import bits, gamma, normal, uniform

AHEAD = 1 << 9  # steps whose noise is drawn beforehand: it stays in the cache

NO_NOISE, BERNOULLI, GAUSSIAN, BETA = 0, 1, 2, 3


class World(NamedTuple):
    """All a compiled loop needs to know of the environment for the times `first`..`last`.

    Weights are stored sparsely: at time t the kernel is the sum over j of
    `kernel_weight[t - first, j]` times base `kernel_base[t - first, j]`; likewise the rewards.
    """

    first: int
    last: int
    ahead: int  # by how much its time is ahead of that of whoever plays
    pairs: int
    alias: Alias  # of [bases * pairs] rows
    kernel_base: NDArray[np.int32]  # [times, active]
    kernel_weight: NDArray[np.float64]
    rewards: NDArray[np.float64]  # [bases, pairs]
    reward_base: NDArray[np.int32]
    reward_weight: NDArray[np.float64]
    noise: int
    spread: float  # sigma or concentration, as the noise has it
    base_key: NDArray[np.uint64]
    state_key: NDArray[np.uint64]
    reward_key: NDArray[np.uint64]


@inlined
def base_at(world, t, u):
    """Return the base kernel that the uniform number u picks at time t."""
    i = np.uint64(t - world.first)
    active = world.kernel_base.shape[1]
    j = np.uint64(0)
    if active == 2:  # nearly always; a sum instead of a branch that could go either way
        j = np.uint64(u >= world.kernel_weight[i, 0])
    elif active > 2:
        while j < active - 1 and u >= world.kernel_weight[i, j]:
            u -= world.kernel_weight[i, j]
            j += np.uint64(1)
    return world.kernel_base[i, j]


@inlined
def mean_reward(world, t, pair):
    """Return r_t(pair), the blended mean."""
    i = np.uint64(t - world.first)
    mean = _part(world, i, 0, pair)
    if world.reward_base.shape[1] > 1:
        mean += _part(world, i, 1, pair)
    for j in range(2, world.reward_base.shape[1]):  # seldom: a loop costs more than its two rounds
        mean += _part(world, i, j, pair)
    return mean


@inlined
def _part(world, i, j, pair):
    base = np.uint64(world.reward_base[i, np.uint64(j)])
    return world.reward_weight[i, np.uint64(j)] * world.rewards[base, np.uint64(pair)]


@inlined
def reward(world, t, mean, coin):
    """Draw R_t with the given mean; a coin in [0, 1) decides where rewards are 0 or 1."""
    if world.noise == BERNOULLI:
        return 1.0 if coin < mean else 0.0
    if world.noise == NO_NOISE:
        return mean
    return _spread_out(world.noise, world.spread, world.reward_key, t, mean)


@compiled
def _spread_out(noise, spread, key, t, mean):
    """Draw a reward that is more than a coin; not inlined, it would only be in a loop's way."""
    if noise == GAUSSIAN:
        return mean + spread * normal(key, t, 0)
    if 0.0 < mean < 1.0:
        left, draw = gamma(key, t, 0, spread * mean)
        right, draw = gamma(key, t, draw, spread * (1.0 - mean))
        total = left + right
        if total > 0.0:
            return left / total
        return 1.0 if uniform(key, t, draw) < mean else 0.0  # both underflowed
    return mean


@compiled
def draw_noise(world, t, i, bases, states, coins):
    """Draw the noise of step i, which is at time t, and of those after it: of AHEAD steps at most.

    It does not depend on what is played, so it goes before the loop that has to wait for it.
    """
    t += world.ahead - i
    last = min(i + AHEAD, bases.size)
    if world.kernel_base.shape[1] > 1:
        _uniforms(world.base_key, t, i, last, coins)
    for k in range(i, last):
        bases[k] = base_at(world, t + k, coins[k])
    key = (world.state_key[0], world.state_key[1])
    for k in range(i, last):
        states[k] = np.int64(bits(key, t + k, 0))
    if world.noise == BERNOULLI:
        _uniforms(world.reward_key, t, i, last, coins)


@inlined
def _uniforms(key, t, first, last, out):
    own = (key[0], key[1])  # read once, so that the loop may go eight at a time
    for k in range(first, last):
        out[k] = uniform(own, t + k, 0)


@inlined
def land(world, t, pair, base, u, coin):
    """Return (r_t(pair), R_t, s_{t+1}) for the noise of time t."""
    t += world.ahead
    mean = mean_reward(world, t, pair)
    row = np.uint64(base * world.pairs + pair)
    return mean, reward(world, t, mean, coin), draw(world.alias, row, np.uint64(u))


@inlined
def step(world, t, pair):
    """Return (r_t(pair), R_t, s_{t+1}); t is the time of whoever plays."""
    at = t + world.ahead
    base = base_at(world, at, uniform(world.base_key, at, 0))
    u, coin = bits(world.state_key, at, 0), uniform(world.reward_key, at, 0)
    return land(world, t, pair, base, u, coin)
