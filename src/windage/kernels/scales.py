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
from windage.kernels.compiled import compiled, inlined
from windage.kernels.legacy import Legacy, likelihood, weigh

TAKEN, AHEAD, LAST = 0, 1, 2  # places in Scales.clock
TRANSITIONS, REWARDS = 0, 1  # what weights are for

SAMPLE = np.dtype([("reward", np.float64), ("pair", np.int32), ("cell", np.int32)], align=True)
GRAIN = 2.0**26  # rewards are kept in multiples of 1 / GRAIN: sums over a window are exact


class Scales(NamedTuple):
    """Samples, counts and weights of all windows; `windage.learn.scales` makes them."""

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
    omega: NDArray[np.float64]  # [K] workspace


@inlined
def effective(scales, kind, pair, out):
    """Write what each window counts for a pair, for TRANSITIONS or REWARDS, to `out`."""
    p = np.uint64(pair)
    total = 0.0
    for k in range(np.uint64(scales.windows.size)):
        out[k] = scales.world[kind, k] * scales.pairs[kind, p, k]
        total += out[k]
    total = 1.0 / total
    for k in range(np.uint64(scales.windows.size)):
        out[k] *= total


@inlined
def score(scales, pair, cell, reward):
    """Weigh the windows anew by how likely each held what has just happened."""
    p, c = np.uint64(pair), np.uint64(cell)
    K = scales.windows.size
    even = 1.0 / scales.cells.n_states
    total, total_p, total_r, total_pr = 0.0, 0.0, 0.0, 0.0
    for k in range(np.uint64(K)):
        n = 1.0 / (scales.visits[p, k] + 1.0)
        x = (scales.cells.counts[c, k] + even) * n
        y = likelihood((scales.sums[p, k] + 0.5) * n, reward)
        if not scales.apart:
            x = y = x * y
        if scales.by_world:
            scales.world[0, k] *= x
            scales.world[1, k] *= y
        if scales.by_pair:
            scales.pairs[0, p, k] *= x
            scales.pairs[1, p, k] *= y
        total += scales.world[0, k]
        total_r += scales.world[1, k]
        total_p += scales.pairs[0, p, k]
        total_pr += scales.pairs[1, p, k]
    kept, even = 1.0 - scales.share, scales.share / K
    total, total_r = kept / total, kept / total_r
    total_p, total_pr = kept / total_p, kept / total_pr
    for k in range(np.uint64(K)):
        scales.world[0, k] = scales.world[0, k] * total + scales.share * scales.prior[k]
        scales.world[1, k] = scales.world[1, k] * total_r + scales.share * scales.prior[k]
        scales.pairs[0, p, k] = scales.pairs[0, p, k] * total_p + even
        scales.pairs[1, p, k] = scales.pairs[1, p, k] * total_pr + even


@inlined
def score_legacy(scales, pair, cell, reward):
    """Weigh anew whether what the windows have forgotten counts, by what has just happened."""
    p, c, last = np.uint64(pair), np.uint64(cell), np.uint64(scales.windows.size - 1)
    visits, sums, counts = scales.visits, scales.sums, scales.cells.counts
    for kind in range(2):
        effective(scales, kind, pair, scales.omega)
        recent, hits = 0.0, 0.0  # what is remembered: all, and of what came now
        for k in range(np.uint64(scales.windows.size)):
            recent += scales.omega[k] * visits[p, k]
            hits += scales.omega[k] * (sums[p, k] if kind == REWARDS else counts[c, k])
        forgotten = max(0.0, visits[p, last] - recent)
        old = max(0.0, (sums[p, last] if kind == REWARDS else counts[c, last]) - hits)
        share = scales.legacy.strength / (scales.legacy.strength + forgotten)
        if kind == REWARDS:
            without = likelihood((1.0 + hits) / (2.0 + recent), reward)
            counted = (1.0 + hits + share * old) / (2.0 + recent + share * forgotten)
            counted = likelihood(counted, reward)
        else:
            even = 1.0 / scales.cells.n_states
            without = (even + hits) / (1.0 + recent)
            counted = (even + hits + share * old) / (1.0 + recent + share * forgotten)
        weigh(scales.legacy, kind, pair, without, counted, scales.share)


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
    if scales.legacy.strength > 0.0:
        score_legacy(scales, pair, cell, exact)
    score(scales, pair, cell, exact)
    count(scales, pair, cell, exact)
    scales.clock[LAST] = after


@compiled
def take_all(scales, pairs, rewards, afters):
    """`take` many samples."""
    for i in range(pairs.size):
        take(scales, pairs[i], rewards[i], afters[i])
