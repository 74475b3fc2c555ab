"""Counts of a log in blocks of steps, and counts of stationary logs with the same visits.

All statistics of a log are made from these counts, so its length matters once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from windage.logs.log import Log

__all__ = ["BlockCounts", "StationaryNull", "count_blocks"]

Counts = NDArray[np.int64]
Reals = NDArray[np.float64]

_FINEST = 256
_LEAST = 4  # steps of a block
_ROOM = 1 << 25  # numbers in all tables together
_DENSE = 1 << 22  # (pair, next state) that are counted without sorting


@dataclass(frozen=True)
class BlockCounts:
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
    explained: Reals
    """The share of each pair's variance of rewards that the next state explains."""

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

    def merged(self, count: int) -> BlockCounts:
        """Return the same in fewer blocks; their number divides that of the blocks there are."""
        by = self.count // count
        visits, sums, squares, moves = (
            table.reshape(count, by, -1).sum(axis=1) for table in self.tables
        )
        ends = self.ends[by - 1 :: by]
        return replace(self, ends=ends, visits=visits, sums=sums, squares=squares, moves=moves)

    def running(self) -> BlockCounts:
        """Return the sums of all blocks before each, and after the last: one row more."""
        visits, sums, squares, moves = (
            np.concatenate([np.zeros((1, table.shape[1])), table.cumsum(axis=0)])
            for table in self.tables
        )
        return replace(self, visits=visits, sums=sums, squares=squares, moves=moves)

    def every_second(self, first: int) -> BlockCounts:
        """Return the same with every second block empty: those from `first`, 0 or 1, on stay."""
        kept = (np.arange(self.count) % 2 == first)[:, None]
        visits, sums, squares, moves = (np.where(kept, table, 0.0) for table in self.tables)
        return replace(self, visits=visits, sums=sums, squares=squares, moves=moves)

    def variances(self, least: float) -> Reals:
        """Return the variance of each pair's reward within blocks of time, at least `least`.

        So that a pair is met several times in a block, at most 16 blocks are made; what drifts
        within them counts as variance.
        """
        count = min(self.count, 16)
        while count > 1 and self.visits.sum() < 10 * count * self.visits.shape[1]:
            count //= 2
        wide = self.merged(count)
        within = (wide.squares - wide.sums**2 / np.maximum(wide.visits, 1)).sum(axis=0)
        spare = np.maximum(np.maximum(wide.visits - 1, 0).sum(axis=0), 1)
        return np.asarray(np.maximum(within / spare, least))

    def per_pair(self, cells: Reals) -> Reals:
        """Return sums over the cells of each pair, along the last axis."""
        return np.asarray(np.add.reduceat(cells, self.starts, axis=-1))


def count_blocks(log: Log) -> BlockCounts:
    """Return the blocks of a log, as many as it can fill and memory can hold, at most 256."""
    P, S, n = log.space.n_pairs, log.space.n_states, log.steps
    cells = _cells(log)
    count = _FINEST
    while count > 1 and (n < _LEAST * count or count * (cells.size + 3 * P) > _ROOM):
        count //= 2
    edges = np.linspace(0, n, count + 1).astype(np.int64)
    low, high = log.reward_range
    visits, sums, squares = (np.zeros((count, P)) for _ in range(3))
    moves, paid = np.zeros((count, cells.size)), np.zeros(cells.size)
    for k in range(count):
        here = slice(edges[k], edges[k + 1])
        pairs = log.pairs[here]
        rewards = (log.rewards[here] - low) / (high - low)
        visits[k] = np.bincount(pairs, minlength=P)
        sums[k] = np.bincount(pairs, rewards, minlength=P)
        squares[k] = np.bincount(pairs, rewards * rewards, minlength=P)
        place = _places(pairs.astype(np.int64) * S + log.nexts[here], cells, P * S)
        moves[k] = np.bincount(place, minlength=cells.size)
        paid += np.bincount(place, rewards, minlength=cells.size)
    counts = BlockCounts(
        edges[1:], visits, sums, squares, moves, cells // S, cells % S, np.zeros(P)
    )
    return replace(counts, explained=_explained(counts, paid))


def _explained(blocks: BlockCounts, paid: Reals) -> Reals:
    """Return how much of the variance of rewards lies between next states, given their sums."""
    visits = np.maximum(blocks.visits.sum(axis=0), 1)
    mean_part = blocks.sums.sum(axis=0) ** 2 / visits
    total = blocks.squares.sum(axis=0) - mean_part
    between = blocks.per_pair(paid**2 / np.maximum(blocks.moves.sum(axis=0), 1)) - mean_part
    return np.asarray(np.clip(between / np.maximum(total, 1e-12), 0.0, 1.0))


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


def _places(keys: Counts, cells: Counts, size: int) -> Counts:
    """Return the cell of each key."""
    if size > _DENSE:
        return np.searchsorted(cells, keys)
    table = np.zeros(size, dtype=np.int64)
    table[cells] = np.arange(cells.size)
    return np.asarray(table[keys])


class StationaryNull:
    """Logs in which the outcomes of every pair are exchanged at random between its visits.

    In a stationary environment they are exchangeable over time, so that a log is as likely as its
    exchange. Rewards of more than two values are normal with the same sum over the whole log.
    """

    def __init__(self, blocks: BlockCounts) -> None:
        self.blocks = blocks
        total = np.maximum(blocks.visits.sum(axis=0), 1)
        sums, squares = blocks.sums.sum(axis=0), blocks.squares.sum(axis=0)
        spread = squares - sums**2 / total
        self._variance = np.maximum(spread, 0.0) / np.maximum(total - 1, 1)
        self._two_valued = np.abs(blocks.squares - blocks.sums).sum() <= 1e-9 * total.sum()

    def drawn(self, rng: np.random.Generator) -> BlockCounts:
        """Return the counts of such a log: halves of time are filled, then halves of halves."""
        visits, pair = self.blocks.visits.astype(np.int64), self.blocks.cell_pair
        rank = np.arange(pair.size) - self.blocks.starts[pair]
        ranks = [np.flatnonzero(rank == k) for k in range(int(rank.max(initial=0)) + 1)]
        sums = self.blocks.sums.sum(axis=0, keepdims=True)
        moves = self.blocks.moves.sum(axis=0, keepdims=True).astype(np.int64)
        while sums.shape[0] < visits.shape[0]:
            halves = visits.reshape(2 * sums.shape[0], -1, visits.shape[1]).sum(axis=1)
            left, right = halves[::2], halves[1::2]
            parts = self._paid(rng, sums, left, right), _moved(rng, moves, left, right, pair, ranks)
            sums, moves = (
                np.stack([part, whole - part], axis=1).reshape(-1, whole.shape[1])
                for part, whole in zip(parts, (sums, moves), strict=True)
            )
        squares = sums
        if not self._two_valued:
            squares = sums**2 / np.maximum(visits, 1) + np.maximum(visits - 1, 0) * self._variance
        return replace(self.blocks, sums=sums, squares=squares, moves=moves.astype(np.float64))

    def _paid(self, rng: np.random.Generator, sums: Reals, left: Counts, right: Counts) -> Reals:
        """Return the part of the rewards that falls into left halves."""
        if self._two_valued:
            ones = np.rint(sums).astype(np.int64)
            return rng.hypergeometric(ones, left + right - ones, left).astype(np.float64)
        total = np.maximum(left + right, 1)
        spread = np.sqrt(left * right / total * self._variance)
        return np.asarray(sums * left / total + spread * rng.standard_normal(left.shape))


def _moved(
    rng: np.random.Generator, moves: Counts, left: Counts, right: Counts,
    pair: Counts, ranks: list[Counts],
) -> Counts:  # fmt: skip
    """Return the part of the moves that falls into left halves, one next state after another."""
    part, room, rest = np.zeros_like(moves), left.copy(), left + right
    for cells in ranks:
        of = pair[cells]
        rest[:, of] -= moves[:, cells]
        part[:, cells] = rng.hypergeometric(moves[:, cells], rest[:, of], room[:, of])
        room[:, of] -= part[:, cells]
    return part
