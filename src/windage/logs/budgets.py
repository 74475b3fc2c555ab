"""How much a log says its world varied, beside what a world that stands still would show.

Estimates of neighbouring blocks of time are compared as the variation budgets compare models of
neighbouring times: the largest difference over pairs, summed over time. Estimates differ even if
nothing changes, so the same sum is made of many logs with the same visits in which every pair's
outcomes are drawn from one law, that of the whole log: the null.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.logs.blocks import Blocks
from windage.logs.still import Still
from windage.rng import stream

__all__ = ["Estimate", "budgets", "finest"]

Reals = NDArray[np.float64]

_LEAST = 30  # visits of a pair in both blocks: the largest difference is that of the noisiest


class Estimate(NamedTuple):
    """One budget, and its null."""

    value: float
    null: Reals
    """What the same sum is in logs of a world that stands still, rising."""
    blocks: int
    """In how many blocks of time it was made."""
    covered: float
    """The share of all steps in pairs that are met often enough to be compared."""

    @property
    def null_mean(self) -> float:
        """The mean of the null."""
        return float(self.null.mean())

    @property
    def null_high(self) -> float:
        """What the null exceeds one time in twenty."""
        return float(np.quantile(self.null, 0.95))

    @property
    def p_value(self) -> float:
        """The share of logs that stand still and show as much, this one counted among them."""
        return float((1 + (self.null >= self.value).sum()) / (1 + self.null.size))

    @property
    def beyond_noise(self) -> float:
        """What is left when the mean of the null is taken away, at least 0."""
        return max(0.0, self.value - self.null_mean)


def finest(blocks: Blocks, wanted: int) -> int:
    """Return the largest number of blocks, up to `wanted`, in which half of all steps count."""
    count = min(wanted, blocks.count)
    while count > 2 and _covered(blocks.merged(count)) < 0.5:
        count //= 2
    return count


def _covered(blocks: Blocks) -> float:
    """Return the share of steps in pairs that are met often enough in two neighbouring blocks."""
    often = blocks.visits >= _LEAST
    used = np.zeros_like(often)
    used[1:] |= often[1:] & often[:-1]
    used[:-1] |= often[1:] & often[:-1]
    return float(blocks.visits[used].sum() / max(blocks.visits.sum(), 1))


def budgets(blocks: Blocks, seed: int, draws: int) -> tuple[Estimate, Estimate]:
    """Return the estimates of B_r and B_p, in blocks as given."""
    both = (blocks.visits[1:] >= _LEAST) & (blocks.visits[:-1] >= _LEAST)
    found, still = _sums(blocks, both), Still(blocks)
    null = np.empty((2, draws))
    for k in range(draws):
        null[:, k] = _sums(still.drawn(stream(seed, "logs.null", k)), both)
    null.sort(axis=1)
    facts = blocks.count, _covered(blocks)
    return Estimate(found[0], null[0], *facts), Estimate(found[1], null[1], *facts)


def _sums(blocks: Blocks, both: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the two sums over time of the largest difference over pairs."""
    visits = np.maximum(blocks.visits, 1)
    rewards = np.abs(np.diff(blocks.sums / visits, axis=0))
    moves = np.diff(blocks.moves / visits[:, blocks.cell_pair], axis=0)
    rows = blocks.per_pair(np.abs(moves))
    largest = (np.where(both, table, 0.0).max(axis=1, initial=0.0) for table in (rewards, rows))
    r, p = (float(each.sum()) for each in largest)
    return r, p
