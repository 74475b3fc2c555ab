"""Logs of a world that stands still: the same visits, every pair's outcomes drawn from one law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from windage.logs.blocks import Blocks

__all__ = ["Still"]

Reals = NDArray[np.float64]


class Still:
    """The laws of a log that is taken to stand still: each pair's, over the whole log."""

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks
        total = np.maximum(blocks.visits.sum(axis=0), 1)
        self._mean = np.clip(blocks.sums.sum(axis=0) / total, 0.0, 1.0)
        self._variance = np.maximum(blocks.squares.sum(axis=0) / total - self._mean**2, 0.0)
        self._two_valued = np.abs(blocks.squares - blocks.sums).sum() <= 1e-9 * total.sum()
        self._left = _left(blocks, blocks.moves.sum(axis=0) / total[blocks.cell_pair])

    def drawn(self, rng: np.random.Generator) -> Blocks:
        """Return the counts of one such log; rewards of more than two values are normal."""
        visits = self.blocks.visits
        if self._two_valued:
            sums = rng.binomial(visits.astype(np.int64), self._mean).astype(np.float64)
            squares = sums
        else:
            spread = np.sqrt(visits * self._variance)
            sums = visits * self._mean + spread * rng.standard_normal(visits.shape)
            within = np.maximum(visits - 1, 0) * self._variance
            squares = sums**2 / np.maximum(visits, 1) + within
        return replace(self.blocks, sums=sums, squares=squares, moves=self._moves(rng))

    def _moves(self, rng: np.random.Generator) -> Reals:
        """Return moves of every block, drawn from one row a pair: binomials, cell after cell."""
        blocks, pair = self.blocks, self.blocks.cell_pair
        rank = np.arange(pair.size) - blocks.starts[pair]
        moves, rest = np.zeros(blocks.moves.shape), blocks.visits.astype(np.int64)
        for step in range(int(rank.max(initial=0)) + 1):
            cells = np.flatnonzero(rank == step)
            drawn = rng.binomial(rest[:, pair[cells]], self._left[cells])
            moves[:, cells] = drawn
            rest[:, pair[cells]] -= drawn
        return moves


def _left(blocks: Blocks, share: Reals) -> Reals:
    """Return the probability of each cell given that no cell of its pair before it was drawn."""
    before = np.cumsum(share) - share
    before -= before[blocks.starts][blocks.cell_pair]
    left = np.clip(share / np.maximum(1.0 - before, 1e-300), 0.0, 1.0)
    left[np.append(blocks.starts[1:], share.size) - 1] = 1.0  # what is left, whatever rounding did
    return np.asarray(left)
