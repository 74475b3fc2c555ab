"""A log counted in blocks of steps: visits, rewards and moves of every pair in every block.

All that is said of a log is made from these counts, so its length matters once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from windage.logs.log import Log

__all__ = ["Blocks", "count_blocks"]

Counts = NDArray[np.int64]
Reals = NDArray[np.float64]

_FINEST = 256
_LEAST = 4  # steps of a block
_ROOM = 1 << 25  # numbers in all tables together
_DENSE = 1 << 22  # (pair, next state) that are counted without sorting


@dataclass(frozen=True)
class Blocks:
    """Counts of each block: `visits[k, pair]`, sums of rewards and squares, `moves[k, cell]`.

    A cell is a pair and a next state that occur together; cells of a pair are neighbours. Rewards
    are scaled to [0, 1]. `ends[k]` is the first step after block k, from 0 on.
    """

    ends: Counts
    visits: Reals
    sums: Reals
    squares: Reals
    moves: Reals
    cell_pair: Counts
    cell_next: Counts

    @property
    def tables(self) -> tuple[Reals, Reals, Reals, Reals]:
        """Visits, sums, squares and moves."""
        return self.visits, self.sums, self.squares, self.moves

    @property
    def starts(self) -> Counts:
        """The first cell of each pair."""
        return np.flatnonzero(np.diff(self.cell_pair, prepend=-1))

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return self.ends.size

    def merged(self, count: int) -> Blocks:
        """Return the same in fewer blocks; their number divides that of the blocks there are."""
        by = self.count // count
        visits, sums, squares, moves = (
            table.reshape(count, by, -1).sum(axis=1) for table in self.tables
        )
        ends = self.ends[by - 1 :: by]
        return Blocks(ends, visits, sums, squares, moves, self.cell_pair, self.cell_next)

    def running(self) -> Blocks:
        """Return the sums of all blocks before each, and after the last: one row more."""
        visits, sums, squares, moves = (
            np.concatenate([np.zeros((1, table.shape[1])), table.cumsum(axis=0)])
            for table in self.tables
        )
        return replace(self, visits=visits, sums=sums, squares=squares, moves=moves)

    def per_pair(self, cells: Reals) -> Reals:
        """Return sums over the cells of each pair, along the last axis."""
        return np.asarray(np.add.reduceat(cells, self.starts, axis=-1))


def count_blocks(log: Log, *, halves: bool = False) -> list[Blocks]:
    """Return the blocks of a log: one table, or with `halves` those of even and of odd steps."""
    P, S, n = log.space.n_pairs, log.space.n_states, log.steps
    cells = _cells(log)
    count, parts = _FINEST, 2 if halves else 1
    while count > 1 and (n < _LEAST * count or parts * count * (cells.size + 3 * P) > _ROOM):
        count //= 2
    edges = np.linspace(0, n, count + 1).astype(np.int64)
    low, high = log.reward_range
    tables = [
        (np.zeros((count, P)), np.zeros((count, P)), np.zeros((count, P)),
         np.zeros((count, cells.size)))
        for _ in range(parts)
    ]  # fmt: skip
    for k in range(count):
        for part, (visits, sums, squares, moves) in enumerate(tables):
            here = slice(edges[k] + (part - edges[k]) % parts, edges[k + 1], parts)
            pairs = log.pairs[here]
            rewards = (log.rewards[here] - low) / (high - low)
            visits[k] = np.bincount(pairs, minlength=P)
            sums[k] = np.bincount(pairs, rewards, minlength=P)
            squares[k] = np.bincount(pairs, rewards * rewards, minlength=P)
            keys = pairs.astype(np.int64) * S + log.nexts[here]
            moves[k] = _counted(keys, cells, P * S)
    return [Blocks(edges[1:], *table, cells // S, cells % S) for table in tables]


def _cells(log: Log) -> Counts:
    """Return the (pair, next state) that occur, as pair * S + next, rising."""
    S, size = log.space.n_states, log.space.n_pairs * log.space.n_states
    seen = np.zeros(size, dtype=bool) if size <= _DENSE else None
    found: list[Counts] = []
    for start in range(0, log.steps, 1 << 20):
        part = slice(start, start + (1 << 20))
        keys = log.pairs[part].astype(np.int64) * S + log.nexts[part]
        if seen is None:
            found.append(np.unique(keys))
        else:
            seen[keys] = True
    return np.flatnonzero(seen) if seen is not None else np.unique(np.concatenate(found))


def _counted(keys: Counts, cells: Counts, size: int) -> Counts:
    if size <= _DENSE:
        return np.asarray(np.bincount(keys, minlength=size)[cells])
    return np.asarray(np.bincount(np.searchsorted(cells, keys), minlength=cells.size))
