"""One step of a drifting MDP: draw the base kernel, then its alias table; then the reward.

sum_k w_k P_k is sampled exactly by drawing k with probability w_k and then from P_k, so a step
costs the same with and without drift and does not depend on S. The draws of base, state and reward
have keys of their own: the same word for two of them would correlate what must be independent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.alias import draw
from windage.kernels.compiled import inlined
from windage.kernels.random import gamma, normal, uniform

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
    rows: NDArray[np.int64]  # [bases * pairs + 1] where the cells of each row start
    table: NDArray[np.void]  # [cells] alias cells, see kernels.alias
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
def next_state(world, t, pair):
    """Draw s_{t+1} ~ p_t(. | pair)."""
    i = np.uint64(t - world.first)
    active = world.kernel_base.shape[1]
    j = np.uint64(0)
    if active == 2:  # nearly always; a sum instead of a branch that could go either way
        j = np.uint64(uniform(world.base_key, t, 0) >= world.kernel_weight[i, 0])
    elif active > 2:
        u = uniform(world.base_key, t, 0)
        while j < active - 1 and u >= world.kernel_weight[i, j]:
            u -= world.kernel_weight[i, j]
            j += np.uint64(1)
    row = np.uint64(world.kernel_base[i, j] * world.pairs + pair)
    return draw(world.rows, world.table, row, uniform(world.state_key, t, 0))


@inlined
def mean_reward(world, t, pair):
    """Return r_t(pair), the blended mean."""
    i = np.uint64(t - world.first)
    mean = 0.0
    for j in range(np.uint64(world.reward_base.shape[1])):
        base = np.uint64(world.reward_base[i, j])
        mean += world.reward_weight[i, j] * world.rewards[base, np.uint64(pair)]
    return mean


@inlined
def reward(world, t, mean):
    """Draw R_t with the given mean."""
    if world.noise == BERNOULLI:
        return 1.0 if uniform(world.reward_key, t, 0) < mean else 0.0
    if world.noise == GAUSSIAN:
        return mean + world.spread * normal(world.reward_key, t, 0)
    if world.noise == BETA and 0.0 < mean < 1.0:
        left, draw = gamma(world.reward_key, t, 0, world.spread * mean)
        right, draw = gamma(world.reward_key, t, draw, world.spread * (1.0 - mean))
        total = left + right
        if total > 0.0:
            return left / total
        return 1.0 if uniform(world.reward_key, t, draw) < mean else 0.0  # both underflowed
    return mean


@inlined
def step(world, t, pair):
    """Return (r_t(pair), R_t, s_{t+1}); t is the time of whoever plays."""
    t += world.ahead
    mean = mean_reward(world, t, pair)
    return mean, reward(world, t, mean), next_state(world, t, pair)
