"""BORL's blocks, arms and gamma, and the horizon from which it can adapt.

EXP3.P mixes its choice of an arm with a uniform one: gamma = 1.05 (K ln K / n)^(1/2) of it is
uniform, for K arms and n blocks. Where gamma >= 1 all of it is, and BORL learns nothing (E4).

The number of arms is constant between the T at which floor(ln H) or floor(ln 1/Phi) changes, so
gamma <= 1 asks there for a least number of blocks m. With blocks of h steps there are m of them
from T = (m - 1) h + 1 on. As h = ceil(c T^(1/2)) grows with T, only a handful of h near (m - 1) c^2
decide; they are looked at one by one. So the answers are exact though gamma is not monotone in T.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import NamedTuple

from windage.confidence.search import first_integer
from windage.confidence.tuning import borl_grid, window_of
from windage.spaces import StateActions

__all__ = ["Blocks", "borl_blocks", "exploration", "horizons_to_adapt"]


class Blocks(NamedTuple):
    """What BORL makes of a horizon.

    Attributes
    ----------
    block_length, blocks, arms
        Steps a block, their number, and the number of (window, widening) pairs.
    gamma
        The share of uniform choices that EXP3.P asks for; used is min(1, gamma).
    adapts_first, adapts_from
        The first T at which gamma <= 1, and the T from which that holds for good.
    """

    block_length: int
    blocks: int
    arms: int
    gamma: float
    adapts_first: int
    adapts_from: int


def borl_blocks(space: StateActions, horizon: int) -> Blocks:
    """Return BORL's numbers at this horizon.

    >>> found = borl_blocks(StateActions.uniform(states=10, actions=4), 100_000)
    >>> found.blocks, found.arms, round(found.gamma, 2), found.adapts_from
    (12, 70, 5.23, 566981281)
    """
    grid = borl_grid(space, horizon)
    first, always = horizons_to_adapt(space.n_states, space.mean_actions)
    return Blocks(
        grid.block_length,
        grid.blocks,
        grid.arms,
        exploration(grid.arms, grid.blocks),
        first,
        always,
    )


def exploration(arms: int, rounds: int) -> float:
    """Return the gamma of EXP3.P before it is capped at 1."""
    return 1.05 * math.sqrt(arms * math.log(arms) / rounds)


@cache
def horizons_to_adapt(S: int, A: float, gamma: float = 1.0) -> tuple[int, int]:
    """Return the first T at which EXP3.P's gamma is at most this (1 or less), and for good.

    >>> horizons_to_adapt(2, 2)
    (9022581, 11385226)
    """
    first: int | None = None
    last_miss = 1  # four arms and one block: gamma is 2.5
    for piece in _pieces(S, A):
        enough = math.ceil(1.05**2 * piece.arms * math.log(piece.arms) / gamma**2)
        reached, missed = _crossing(S, A, piece, enough)
        first = reached if first is None else first
        last_miss = max(last_miss, missed or 0)
        # While T grows by e^2, blocks grow by about e and arms by (6/5)^2 at most from here on: a
        # whole such stretch without a miss is followed by others.
        if first is not None and piece.least_side >= 4 and piece.start > 9 * last_miss:
            return first, last_miss + 1
    raise AssertionError("unreachable")


class _Piece(NamedTuple):
    """A stretch of T with one number of arms."""

    start: int
    end: int
    arms: int
    least_side: int


def _pieces(S: int, A: float) -> Iterator[_Piece]:
    """Yield the stretches one after another."""

    def sides(T: int) -> tuple[int, int]:
        H = window_of(S, A, T, 0.0)
        return max(1, math.floor(math.log(H))), max(1, math.floor(math.log(2 * math.sqrt(T))))

    start = 1
    while True:
        steps = first_integer(partial(_differs, sides, start))
        here = sides(start)
        yield _Piece(start, start + steps - 1, (here[0] + 1) * (here[1] + 1), min(here))
        start += steps


def _differs(sides: Callable[[int], tuple[int, int]], start: int, steps: int) -> bool:
    return sides(start + steps) != sides(start)


def _crossing(S: int, A: float, piece: _Piece, m: int) -> tuple[int | None, int | None]:
    """Return the first T of a piece with m blocks or more, and the last with fewer."""

    def length(T: int) -> int:
        return math.ceil(window_of(S, A, T, 0.0))

    def opening(h: int) -> int:
        return first_integer(lambda T: length(T) >= h)

    low, high = length(piece.start), length(piece.end)
    about = math.floor((m - 1) * window_of(S, A, 1.0, 0.0) ** 2)
    if high < about - 2:
        return None, piece.end
    if low > about + 6:
        return piece.start, None
    reached: int | None = None
    missed: int | None = None
    for h in range(max(low, about - 2), min(high, about + 6) + 1):
        opens = piece.start if h == low else opening(h)
        closes = piece.end if h == high else opening(h + 1) - 1
        last_short = (m - 1) * h
        if reached is None and max(opens, last_short + 1) <= closes:
            reached = max(opens, last_short + 1)
        if opens <= min(closes, last_short):
            missed = min(closes, last_short)
    return reached, missed
