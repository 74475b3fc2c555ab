"""Bandits in every state of a space: upper confidence bounds, and exponential weights.

Every state has a bandit of its own, whose clock counts the visits of that state. `Bounds` serves
UCB1, SW-UCB and D-UCB: mean plus scale sqrt(xi ln(total) / N), where mean and N are those of all
samples, of the last `window`, or discounted, and total is min(t, window) or the sum of all N.
`Weights` serves REXP3 and EXP3.S with the arithmetic of `kernels.exp3`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.exp3 import Bank, pick, reset, update
from windage.kernels.jit import inlined
from windage.kernels.random import uniform
from windage.kernels.rollout import act, observe


class Bounds(NamedTuple):
    """Counts and sums of every pair, and the samples that will leave the window."""

    offsets: NDArray[np.int64]
    visits: NDArray[np.float64]  # [pairs] N
    sums: NDArray[np.float64]  # [pairs] of rewards ...
    lost: NDArray[np.float64]  # ... and what rounding took from them
    clock: NDArray[np.int64]  # [S] samples so far
    ring_pair: NDArray[np.int32]  # [S, window], or [S, 0] if nothing leaves it
    ring_reward: NDArray[np.float64]
    progress: NDArray[np.void]  # [1] rollout.PROGRESS
    window: int  # 0: total is the sum of all N
    discount: float
    scale: float
    xi: float
    low: float  # rewards are taken from [low, low + width] to [0, 1]
    width: float


class Weights(NamedTuple):
    """A bandit of `kernels.exp3` for every state, forgotten at the end of each batch."""

    bank: Bank
    batch: NDArray[np.int64]  # [S]
    progress: NDArray[np.void]  # [1] rollout.PROGRESS
    key: NDArray[np.uint64]
    low: float
    width: float


@act.register(Bounds)
def best_bound(bandit, t, s):  # noqa: ARG001 - the clock of the state counts
    """Return the pair with the largest bound: the first of those not seen, or the first best."""
    first, last = bandit.offsets[s], bandit.offsets[s + 1]
    total = 0.0
    for p in range(first, last):
        if bandit.visits[p] <= 0.0:
            return p
        total += bandit.visits[p]
    if bandit.window > 0:
        total = min(bandit.clock[s] + 1, bandit.window)
    level = bandit.xi * math.log(total)
    best, highest = first, -math.inf
    for p in range(first, last):
        mean = (bandit.sums[p] + bandit.lost[p]) / bandit.visits[p]
        bound = mean + bandit.scale * math.sqrt(level / bandit.visits[p])
        if bound > highest:
            best, highest = p, bound
    return best


@inlined
def _count(bandit, p, x, sign):
    """Add a sample or take it away; sums are compensated, so that what left leaves no trace."""
    bandit.visits[p] += sign
    old, x = bandit.sums[p], sign * x
    new = old + x
    bandit.lost[p] += (old - new) + x if abs(old) >= abs(x) else (x - new) + old
    bandit.sums[p] = new
    if bandit.visits[p] == 0.0:
        bandit.sums[p] = bandit.lost[p] = 0.0


@observe.register(Bounds)
def count(bandit, t, s, p, reward, after, seen):  # noqa: ARG001
    """Learn from a sample; the oldest one leaves a window that is full."""
    x = (reward - bandit.low) / bandit.width
    n = bandit.clock[s]
    size = bandit.ring_pair.shape[1]
    if size > 0:
        slot = n % size
        if n >= size:
            _count(bandit, bandit.ring_pair[s, slot], bandit.ring_reward[s, slot], -1.0)
        bandit.ring_pair[s, slot] = p
        bandit.ring_reward[s, slot] = x
    if bandit.discount < 1.0:
        for k in range(bandit.offsets[s], bandit.offsets[s + 1]):
            bandit.visits[k] *= bandit.discount
            bandit.sums[k] *= bandit.discount
            bandit.lost[k] *= bandit.discount
    _count(bandit, p, x, 1.0)
    bandit.clock[s] = n + 1
    bandit.progress[0]["taken"] += 1
    bandit.progress[0]["state"] = after


@act.register(Weights)
def drawn(bandit, t, s):
    """Return the pair drawn at time t."""
    return bandit.bank.offsets[s] + pick(bandit.bank, s, uniform(bandit.key, t, 0))


@observe.register(Weights)
def weigh(bandit, t, s, p, reward, after, seen):  # noqa: ARG001
    """Learn from a sample, and start anew at the end of a batch."""
    x = (reward - bandit.low) / bandit.width
    if not 0.0 <= x <= 1.0:
        bandit.progress[0]["clipped"] += 1
        x = min(1.0, max(0.0, x))
    bank = bandit.bank
    update(bank, s, p - bank.offsets[s], x)
    if bank.rounds[s] >= bandit.batch[s]:
        reset(bank, s)
    bandit.progress[0]["taken"] += 1
    bandit.progress[0]["state"] = after
