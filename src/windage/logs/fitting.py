"""A drifting model of a log, as fine in time as the log can tell.

The log is cut into K blocks of time. In each, the estimate of a pair is that of its visits there
and of some visits' worth of its mean over the whole log. K, and how many visits that is, are chosen
by how well the model of every second block of steps (of 256) predicts the other blocks, for rewards
and for transitions separately: one may drift while the other is stationary. The best of many
choices looks better than one block even if nothing moves, so one block it stays unless it is beaten
by more than twice the standard error of the difference.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.errors import InputError
from windage.logs.counts import BlockCounts, count_blocks
from windage.logs.log import Log
from windage.models import DriftingMDP
from windage.models.mdp import Noise
from windage.validation import as_integer

__all__ = ["Fit", "fit"]

Reals = NDArray[np.float64]

_BORROWED = (2.0, 10.0, 50.0)
_ALL = 1e6  # one block may be as smooth as the means that finer blocks borrow
_FINEST = 64
_DENSE = 1 << 24  # numbers in all knots together: larger models are sparse
_SMALLEST = 1e-4  # variance of a reward in [0, 1]
_ERRORS = 2.0  # standard errors by which a drifting model must predict better than a stationary one


class Fit(NamedTuple):
    """The model, and in how many blocks of time its rewards and its transitions move."""

    model: DriftingMDP
    reward: Choice
    transition: Choice

    @property
    def blocks(self) -> int:
        """The finer of the two."""
        return max(self.reward.blocks, self.transition.blocks)


class Choice(NamedTuple):
    """How fine in time one half of a model is, and why."""

    blocks: int
    borrowed: float
    """How many visits' worth of the mean over the whole log each estimate takes."""
    scores: dict[int, float]
    """By how much K blocks predict a step better than one, in natural logarithms a step."""


def fit(log: Log, blocks: int | None = None, counted: BlockCounts | None = None) -> Fit:
    """Return the model of a log, whose counts may be at hand."""
    counted = counted or count_blocks(log)
    choices = [2**k for k in range(min(max(counted.count // 2, 1), _FINEST).bit_length())]
    if blocks is not None and as_integer(blocks, "blocks", low=1) not in choices:
        raise InputError(
            f"{blocks} blocks cannot be made of {log.steps:,} steps",
            field="blocks",
            fix="one of " + ", ".join(map(str, choices)),
        )
    allowed = [blocks] if blocks else choices
    spread = counted.variances(_SMALLEST)  # one for all choices: else few visits decide by theirs
    reward = _choose(counted, partial(_reward_score, spread), allowed)
    transition = _choose(counted, _transition_score, allowed)
    return Fit(_model(log, counted, reward, transition), reward, transition)


def _choose(
    blocks: BlockCounts,
    score: Callable[[BlockCounts, BlockCounts, float], Reals],
    choices: list[int],
) -> Choice:
    """Return the number of blocks, and what to borrow, that predict best; the fewest of equals."""
    scored: dict[tuple[int, float], Reals] = {}
    halves = [blocks.every_second(first) for first in (0, 1)]
    one, other = (half.merged(min(blocks.count, _FINEST)) for half in halves)
    for K in choices:
        ones, others = (half.merged(K) for half in halves)
        for borrowed in _worths(K):
            both = score(ones, other, borrowed) + score(others, one, borrowed)
            scored[K, borrowed] = both / blocks.visits.sum()
    best = {
        K: max(((K, borrow) for borrow in _worths(K)), key=lambda choice: scored[choice].sum())
        for K in choices
    }
    chosen = max(best.values(), key=lambda choice: (scored[choice].sum(), -choice[0]))
    stationary = best[choices[0]]
    gained = {K: scored[choice] - scored[stationary] for K, choice in best.items()}
    if gained[chosen[0]].sum() <= _ERRORS * _error(gained[chosen[0]]):
        chosen = stationary
    return Choice(*chosen, {K: float(gain.sum()) for K, gain in gained.items()})


def _worths(blocks: int) -> tuple[float, ...]:
    """Return how many visits' worth of the whole log's mean so many blocks may borrow."""
    return (*_BORROWED, _ALL) if blocks == 1 else _BORROWED


def _error(parts: Reals) -> float:
    """Return the standard error of a sum of parts that do not hang together."""
    return float(parts.std(ddof=1) * np.sqrt(parts.size)) if parts.size > 1 else 0.0


def _means(blocks: BlockCounts, borrowed: float) -> Reals:
    """Return mean rewards in every block, each leaning on the whole log's."""
    mean = (blocks.sums.sum(axis=0) + 0.5) / (blocks.visits.sum(axis=0) + 1.0)
    means = (blocks.sums + borrowed * mean) / (blocks.visits + borrowed)
    return np.asarray(np.clip(means, 0.0, 1.0))


def _chances(blocks: BlockCounts, borrowed: float) -> Reals:
    """Return the chance of every cell in every block, leaning on the whole log's."""
    pair = blocks.cell_pair
    width = blocks.per_pair(np.ones(pair.size))
    total = blocks.visits.sum(axis=0) + 0.5 * width
    row = (blocks.moves.sum(axis=0) + 0.5) / total[pair]
    return np.asarray((blocks.moves + borrowed * row) / (blocks.visits + borrowed)[:, pair])


def _reward_score(variance: Reals, seen: BlockCounts, other: BlockCounts, borrowed: float) -> Reals:
    """Return how well rewards that were seen predict those of each other block, in logarithms."""
    m = _at(other, _means(seen, borrowed))
    error = other.squares - 2 * m * other.sums + m**2 * other.visits
    return np.asarray(-0.5 * (error / variance + other.visits * np.log(variance)).sum(axis=1))


def _transition_score(seen: BlockCounts, other: BlockCounts, borrowed: float) -> Reals:
    """Return how well moves that were seen predict those of each other block, in logarithms."""
    return np.asarray((other.moves * _at(other, np.log(_chances(seen, borrowed)))).sum(axis=1))


def _at(blocks: BlockCounts, values: Reals) -> Reals:
    """Return values of some blocks of time in each of the finer blocks they are made of."""
    return np.repeat(values, blocks.count // values.shape[0], axis=0)


def _model(log: Log, blocks: BlockCounts, reward: Choice, transition: Choice) -> DriftingMDP:
    """Return the model that passes through the estimates in the middle of each block."""
    S, P, T = log.space.n_states, log.space.n_pairs, log.steps
    fine = blocks.merged(max(reward.blocks, transition.blocks))
    knots = _middles(fine)
    knots = knots if knots[0] == 1 else np.concatenate([[1], knots])
    parts = blocks.merged(reward.blocks), blocks.merged(transition.blocks)
    means = _between(knots, _middles(parts[0]), _means(parts[0], reward.borrowed))
    chances = _between(knots, _middles(parts[1]), _chances(parts[1], transition.borrowed))
    dense = knots.size * P * S <= _DENSE
    rows = [_rows(blocks, row, P, S, dense=dense) for row in chances]
    return DriftingMDP(log.space, knots, means, rows, horizon=T, noise=_noise(log, fine))


def _middles(blocks: BlockCounts) -> NDArray[np.int64]:
    """Return the time, from 1 on, in the middle of each block."""
    starts = np.concatenate([[0], blocks.ends[:-1]])
    return np.asarray((starts + blocks.ends) // 2 + (blocks.ends - starts > 0))


def _between(times: NDArray[np.int64], known: NDArray[np.int64], values: Reals) -> Reals:
    """Return values at times, on the straight line between those known before and after."""
    right = np.clip(np.searchsorted(known, times), 1, max(known.size - 1, 1))
    if known.size == 1:
        return np.repeat(values, times.size, axis=0)
    left = right - 1
    weight = np.clip((times - known[left]) / (known[right] - known[left]), 0.0, 1.0)[:, None]
    return np.asarray((1 - weight) * values[left] + weight * values[right])


def _rows(blocks: BlockCounts, cells: Reals, pairs: int, states: int, *, dense: bool) -> Reals:
    from scipy.sparse import csr_array

    shape = (pairs, states)
    rows = csr_array((cells, (blocks.cell_pair, blocks.cell_next)), shape=shape)
    rows = csr_array(rows.multiply(1.0 / rows.sum(axis=1)[:, None]))
    array: Reals = rows.toarray() if dense else rows
    return array


def _noise(log: Log, blocks: BlockCounts) -> Noise:
    """Return the law of rewards that spreads as those of the log: two values, or a Beta law."""
    total = blocks.visits.sum(axis=0)
    mean = blocks.sums.sum(axis=0) / np.maximum(total, 1)
    if float((total * mean).sum() - blocks.squares.sum()) <= 1e-9 * log.steps:
        return Noise.bernoulli()  # r^2 = r: nothing but 0 and 1
    visits = np.maximum(blocks.visits, 1)
    within = (blocks.squares - blocks.sums**2 / visits).sum()
    variance = within / max(1, np.maximum(blocks.visits - 1, 0).sum())
    if variance <= 1e-9:
        return Noise.none()
    possible = float((total * mean * (1 - mean)).sum() / total.sum())
    return Noise.beta(max(possible / variance - 1.0, 0.01))
