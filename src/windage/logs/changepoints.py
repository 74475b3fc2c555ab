"""Change points: the log cut into stationary segments.

Of all ways to cut at the ends of blocks the one is chosen under which the outcomes are most likely.
Within a segment every pair has one row and one mean reward, which are not known: the likelihood is
averaged over a prior around the pair's mean in the whole log. So a segment pays for each number
that describes it, and few visits prove little. Priors worth 1, 10 and 50 visits are tried: changes
may be large and rare, or small and many. A cut pays for its place, and the part of a reward
that the next state explains is not counted a second time. A drift without jumps comes out as steps.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from windage.logs.counts import BlockCounts, StationaryNull
from windage.rng import stream

__all__ = ["Segmentation", "segment"]

Reals = NDArray[np.float64]

_SHORTEST = 64  # a segment is at least this fraction of the log
_WORK = 1 << 20  # numbers looked at, all segments together
_NULLS = 19  # one stationary log in twenty is cut
_WORTH = (1.0, 10.0, 50.0)  # visits
_SMALLEST = 1e-4  # variance of a reward in [0, 1]: constant rewards must not explain everything


class Segmentation(NamedTuple):
    """Where the log is cut: the first step of each segment but the first, from 1 on."""

    cuts: list[int]
    gain: float
    """How much better this explains the log than one segment does, in natural logarithms."""


def segment(blocks: BlockCounts, seed: int = 0) -> Segmentation:
    """Return the best way to cut the log into segments, none if nothing needs a cut.

    Some way to cut always explains a log a little better. Cuts are kept only if they do so by more
    than in each of 19 stationary logs drawn with the seed.
    """
    count, width = blocks.count, blocks.cell_pair.size + blocks.visits.shape[1]
    while count > 1 and count * count * width > _WORK:
        count //= 2
    coarse = blocks.merged(count)
    best, null = _best(coarse), StationaryNull(coarse)
    if any(
        _best(null.drawn(stream(seed, "logs.cuts", k))).gain >= best.gain for k in range(_NULLS)
    ):
        return Segmentation([], 0.0)
    return best


def _best(blocks: BlockCounts) -> Segmentation:
    variance = blocks.variances(_SMALLEST)
    found = [_cut(blocks, _costs(blocks, variance, worth)) for worth in _WORTH]
    return max(found, key=lambda one: one.gain)


def _cut(blocks: BlockCounts, costs: Reals) -> Segmentation:
    """Return the cheapest way to cut, by dynamic programming."""
    count = blocks.count
    least = max(1, count // _SHORTEST)
    best = np.full(count + 1, np.inf)
    came = np.zeros(count + 1, dtype=np.int64)
    best[0], entry = 0.0, math.log(max(count // least, 2))
    for end in range(least, count + 1):
        begins = np.arange(end - least + 1)
        options = best[begins] + costs[begins, end] + entry * (begins > 0)
        came[end] = int(np.argmin(options))
        best[end] = options[came[end]]
    cuts, end = [], count
    while end > 0:
        end = int(came[end])
        if end:
            cuts.append(int(blocks.ends[end - 1]) + 1)
    return Segmentation(cuts[::-1], float(costs[0, count] - best[count]))


def _costs(blocks: BlockCounts, variance: Reals, worth: float) -> Reals:
    """Return minus the log-likelihood of each segment: `costs[start, end]` in blocks.

    A row has a Dirichlet prior around the row of the whole log, a mean reward a normal one around
    the mean of the whole log, both worth so many visits.
    """
    total, count, pair = blocks.running(), blocks.count, blocks.cell_pair
    left = 1.0 - blocks.explained
    visited = np.maximum(total.visits[-1], 1)
    prior = worth * np.maximum(total.moves[-1] / visited[pair], 1e-12)
    mean = total.sums[-1] / visited
    costs = np.full((count, count + 1), np.inf)
    for start in range(count):
        visits, sums, squares, moves = (table[start + 1 :] - table[start] for table in total.tables)
        rows = (gammaln(moves + prior) - gammaln(prior)).sum(axis=1)
        rows -= (gammaln(visits + worth) - gammaln(worth)).sum(axis=1)
        n = np.maximum(visits, 1)
        apart = visits * worth / (visits + worth) * (sums / n - mean) ** 2
        spread = (squares - sums**2 / n + apart) / variance
        rewards = (left * (np.log1p(visits / worth) + spread)).sum(axis=1)
        costs[start, start + 1 :] = 0.5 * rewards - rows
    return costs
