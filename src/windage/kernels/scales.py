"""Windows as experts: which of them has predicted best lately, for rewards and for transitions.

Each window k predicts what the next sample of a pair will be from what it remembers of that pair:

    x_k = (n_k(s, a, s') + 1/S) / (N_k(s, a) + 1)                        the next state
    y_k = q^R (1 - q)^(1 - R),   q = (S_k(s, a) + 1/2) / (N_k(s, a) + 1)  the reward

All windows are scored by every sample, so nothing need be played to compare them. A window has four
weights: of the whole world and of the pair, for rewards and for transitions. Each is multiplied by
the score, normalised, and a small share is handed out again (fixed share, Herbster and Warmuth
1998), so that a window that was wrong for long can come back soon.

What the windows in favour have forgotten of a pair may still say where it usually is. It counts as
a prior worth `strength` samples at most, or not at all: two more experts (`kernels.legacy`).

All windows share one ring of samples: window k is the last W_k of it. A step adds the new sample to
every window and takes from each the one that is too old for it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.cells import Cells, place_of
from windage.kernels.jit import compiled, inlined
from windage.kernels.legacy import Legacy, estimates, likelihood, weigh

TAKEN, AHEAD, LAST = 0, 1, 2  # places in Scales.clock
TRANSITIONS, REWARDS = 0, 1  # what weights are for

SAMPLE = np.dtype([("reward", np.float64), ("pair", np.int32), ("cell", np.int32)], align=True)
GRAIN = 2.0**26  # rewards are kept in multiples of 1 / GRAIN: sums over a window are exact


class Scales(NamedTuple):
    """Samples, counts and weights of all windows; `windage.confidence.scales` makes them."""

    windows: NDArray[np.int64]  # [K] rising; the last one is all history
    prior: NDArray[np.float64]  # [K] where the shares of the world's weights go
    share: float  # how much of the weights is handed out again each step
    by_world: bool  # whether the world's weights learn at all
    by_pair: bool  # ... and those of the pairs
    apart: bool  # whether rewards and transitions have weights of their own
    clock: NDArray[np.int64]  # samples taken, those of the time before t = 1, the last state
    ring: NDArray[np.void]  # as many samples as the longest window but one remembers
    cells: Cells
    visits: NDArray[np.float64]  # [pairs, K] N
    sums: NDArray[np.float64]  # [pairs, K] of rewards
    world: NDArray[np.float64]  # [2, K] weights: of transitions, of rewards
    pairs: NDArray[np.float64]  # [2, pairs, K]
    legacy: Legacy


@inlined
def score(scales, pair, cell, reward):
    """Weigh the windows, and the past they have forgotten, by what has just happened."""
    p, c = np.uint64(pair), np.uint64(cell)
    K = scales.windows.size
    world, pairs = scales.world, scales.pairs
    even = 1.0 / scales.cells.n_states
    certain = reward == 0.0 or reward == 1.0  # then y is 1 - q or q
    least, slope = 1.0 - reward, 2.0 * reward - 1.0
    total, total_p, total_r, total_pr = 0.0, 0.0, 0.0, 0.0
    mass, recent, hits = 0.0, 0.0, 0.0  # what was remembered: all of it, and of what came now
    mass_r, recent_r, hits_r = 0.0, 0.0, 0.0
    for k in range(np.uint64(K)):
        visits, sums, seen = scales.visits[p, k], scales.sums[p, k], scales.cells.counts[c, k]
        omega = world[0, k] * pairs[0, p, k]
        mass += omega
        recent += omega * visits
        hits += omega * seen
        omega = world[1, k] * pairs[1, p, k]
        mass_r += omega
        recent_r += omega * visits
        hits_r += omega * sums
        n = 1.0 / (visits + 1.0)
        x = (seen + even) * n
        y = (sums + 0.5) * n
        y = least + slope * y if certain else likelihood(y, reward)
        if not scales.apart:
            x = y = x * y
        if scales.by_world:
            world[0, k] *= x
            world[1, k] *= y
        if scales.by_pair:
            pairs[0, p, k] *= x
            pairs[1, p, k] *= y
        total += world[0, k]
        total_r += world[1, k]
        total_p += pairs[0, p, k]
        total_pr += pairs[1, p, k]
    kept, even_share = 1.0 - scales.share, scales.share / K
    total, total_r = kept / total, kept / total_r
    total_p, total_pr = kept / total_p, kept / total_pr
    for k in range(np.uint64(K)):
        world[0, k] = world[0, k] * total + scales.share * scales.prior[k]
        world[1, k] = world[1, k] * total_r + scales.share * scales.prior[k]
        pairs[0, p, k] = pairs[0, p, k] * total_p + even_share
        pairs[1, p, k] = pairs[1, p, k] * total_pr + even_share
    if scales.legacy.strength > 0.0:
        last = np.uint64(K - 1)
        ever, seen = scales.visits[p, last], np.float64(scales.cells.counts[c, last])
        without, counted = estimates(
            scales.legacy, 1.0, even, recent / mass, hits / mass, ever, seen
        )
        weigh(scales.legacy, TRANSITIONS, pair, without, counted, scales.share)
        sums = scales.sums[p, last]
        without, counted = estimates(
            scales.legacy, 2.0, 0.5, recent_r / mass_r, hits_r / mass_r, ever, sums
        )
        without, counted = likelihood(without, reward), likelihood(counted, reward)
        weigh(scales.legacy, REWARDS, pair, without, counted, scales.share)


@inlined
def count(scales, pair, cell, reward):
    """Add a sample to every window, and take from each the one that has become too old."""
    p, c = np.uint64(pair), np.uint64(cell)
    taken = scales.clock[TAKEN]
    K = scales.windows.size
    mask = np.uint64(scales.ring.size - 1)
    for k in range(np.uint64(K)):
        scales.cells.counts[c, k] += 1
        scales.visits[p, k] += 1.0
        scales.sums[p, k] += reward
    for k in range(np.uint64(K - 1)):
        if taken < scales.windows[k]:
            break
        old = scales.ring[np.uint64(taken - scales.windows[k]) & mask]
        left = np.uint64(old["pair"])
        scales.cells.counts[np.uint64(old["cell"]), k] -= 1
        scales.visits[left, k] -= 1.0
        scales.sums[left, k] -= old["reward"]
    new = scales.ring[np.uint64(taken) & mask]
    new["reward"] = reward
    new["pair"] = pair
    new["cell"] = cell
    scales.clock[TAKEN] = taken + 1


@inlined
def take(scales, pair, reward, after):
    """Learn from one sample, its reward in [0, 1]: first score the windows, then count it."""
    cell = place_of(scales.cells, pair, after)
    exact = math.floor(reward * GRAIN + 0.5) / GRAIN
    score(scales, pair, cell, exact)
    count(scales, pair, cell, exact)
    scales.clock[LAST] = after


@compiled
def take_all(scales, pairs, rewards, afters):
    """`take` many samples."""
    for i in range(pairs.size):
        take(scales, pairs[i], rewards[i], afters[i])
