"""A change-point view: the log cut into stretches in each of which it stands still.

Of all ways to cut at the ends of blocks the one is chosen that explains the outcomes best, where
each stretch pays for the numbers that describe it (half a logarithm of its visits each, as in the
Bayesian information criterion) and for where it begins. What the next state explains of a reward is
not counted a second time. A drift without jumps comes out as steps.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from windage.logs.blocks import Blocks

__all__ = ["Segmentation", "segment"]

Reals = NDArray[np.float64]

_SHORTEST = 64  # a stretch is at least this fraction of the log
_WORK = 1 << 27  # numbers looked at, all stretches together
_ENTRY = 2.5  # logarithms of the places a cut could be at: what a cut must bring at least
_SMALLEST = 1e-4  # variance of a reward in [0, 1]: constant rewards must not explain everything


class Segmentation(NamedTuple):
    """Where the log is cut: the first step of each stretch but the first, from 1 on."""

    cuts: list[int]
    gain: float
    """How much better this explains the log than one stretch does, in natural logarithms."""


def segment(blocks: Blocks) -> Segmentation:
    """Return the best way to cut the log into stretches."""
    count, width = blocks.count, blocks.cell_pair.size + blocks.visits.shape[1]
    while count > 1 and count * count * width > _WORK:
        count //= 2
    coarse = blocks.merged(count)
    costs = _costs(coarse, blocks.variances(_SMALLEST))
    least = max(1, count // _SHORTEST)
    best = np.full(count + 1, np.inf)
    came = np.zeros(count + 1, dtype=np.int64)
    best[0], entry = 0.0, _ENTRY * math.log(max(count // least, 2))
    for end in range(least, count + 1):
        begins = np.arange(end - least + 1)
        options = best[begins] + costs[begins, end] + entry * (begins > 0)
        came[end] = int(np.argmin(options))
        best[end] = options[came[end]]
    cuts, end = [], count
    while end > 0:
        end = int(came[end])
        if end:
            cuts.append(int(coarse.ends[end - 1]) + 1)
    return Segmentation(cuts[::-1], float(costs[0, count] - best[count]))


def _costs(blocks: Blocks, variance: Reals) -> Reals:
    """Return what each stretch costs: `costs[start, end]` in blocks."""
    total, count, left = blocks.running(), blocks.count, 1.0 - blocks.explained
    costs = np.full((count, count + 1), np.inf)
    for start in range(count):
        visits, sums, squares, moves = (table[start + 1 :] - table[start] for table in total.tables)
        fit = xlogy(moves, moves).sum(axis=1) - xlogy(visits, visits).sum(axis=1)
        spread = (squares - sums**2 / np.maximum(visits, 1)) * left / variance
        numbers = blocks.per_pair((moves > 0).astype(np.float64)) - (visits > 0) * (1 - left)
        paid = 0.5 * (numbers * np.log1p(visits)).sum(axis=1)
        costs[start, start + 1 :] = 0.5 * spread.sum(axis=1) - fit + paid
    return costs
