"""Back and forth between two models: cosines, lines, bursts and walks."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from windage.errors import ModelError
from windage.rng import stream
from windage.schedules.base import PIECE, Reals, Times, TwoModelSchedule, in_pieces
from windage.validation import LAST_TIME, as_horizon, as_integer, as_real, as_seed, require_memory

__all__ = ["Burst", "Cosine", "Linear", "RandomWalk"]


class Turns(NamedTuple):
    """The turning points origin + k / rate, k = first..last, of a wave; they may be fractions."""

    origin: float
    rate: float
    first: int
    last: int


class _Wave(TwoModelSchedule):
    """A schedule that is monotone between turning points at even distances.

    Its stops are the times next to the turning points. Where there is one in every other step or
    so, all times are stops: there are never more stops than times.
    """

    @abstractmethod
    def turns(self, horizon: int) -> Turns:
        """Return the turning points."""

    def stretches(self, horizon: int) -> Iterator[Times]:
        """Yield the stops piece by piece, each piece starting where the one before ended.

        >>> next(Cosine(cycles=2e7).stretches(10**9))[:4]
        array([ 1, 25, 50, 75])
        """
        T, last = as_horizon(horizon), 1
        for times in self._chunks(T):
            piece = np.unique(np.append(times.clip(1, T), last))
            if piece.size > 1:
                yield piece
                last = int(piece[-1])
        if last < T or T == 1:
            yield np.unique([last, T])

    def stops(self, horizon: int) -> Times:
        """Return the times next to the turning points, and 1 and T."""
        T = as_horizon(horizon)
        turns = self.turns(T)
        most = min(T, 2 * max(turns.last - turns.first + 2, 1))
        require_memory(40.0 * most, "stops", fix="ask for fewer turns or a shorter horizon")
        pieces = list(self.stretches(T))
        return np.concatenate([pieces[0], *(piece[1:] for piece in pieces[1:])])

    def _chunks(self, horizon: int) -> Iterator[Times]:
        origin, rate, first, last = self.turns(horizon)
        if rate <= 0 or last < first:
            return
        if rate >= 0.5:
            yield from in_pieces(
                max(math.floor(origin + first / rate), 1),
                min(math.ceil(origin + last / rate), horizon),
            )
            return
        for begin in range(first, last + 1, PIECE):
            exact = origin + np.arange(begin, min(begin + PIECE, last + 1)) / rate
            yield np.concatenate([np.floor(exact), np.ceil(exact)]).astype(np.int64)


@dataclass(frozen=True)
class Cosine(_Wave):
    """Back and forth on a cosine: the weight of model 0 is (1 + cos(2 pi cycles t / T)) / 2.

    >>> Cosine(cycles=1).weights(50, 100)
    array([0., 1.])
    """

    cycles: float = 1.0

    def __post_init__(self) -> None:
        _keep(self, cycles=as_real(self.cycles, "cycles", low=0, high=LAST_TIME, error=ModelError))

    def position(self, times: Times, horizon: int) -> Reals:
        """Return (1 - cos(2 pi cycles t / T)) / 2."""
        return (1.0 - np.cos(2.0 * math.pi * self.cycles * times / horizon)) / 2.0

    def turns(self, horizon: int) -> Turns:
        """Return the extremes t = k T / (2 cycles)."""
        return Turns(0.0, 2 * self.cycles / horizon, 1, int(2 * self.cycles))


@dataclass(frozen=True)
class Linear(_Wave):
    """From model 0 at t = 1 to model 1 at t = T in a straight line, or there and back in `legs`.

    >>> Linear().weights([1, 3, 5], 5)
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """

    legs: float = 1.0

    def __post_init__(self) -> None:
        _keep(self, legs=as_real(self.legs, "legs", low=0, high=LAST_TIME, error=ModelError))

    def position(self, times: Times, horizon: int) -> Reals:
        """Return the triangle wave of height 1 with `legs` sides."""
        phase = self.legs * (times - 1) / max(horizon - 1, 1)
        return 1.0 - np.abs(1.0 - np.mod(phase, 2.0))

    def turns(self, horizon: int) -> Turns:
        """Return the corners of the wave."""
        return Turns(1.0, self.legs / max(horizon - 1, 1), 1, int(self.legs))


@dataclass(frozen=True)
class Burst(_Wave):
    """Quiet, then a burst of `cycles` cosines between two fractions of the horizon, then quiet.

    >>> Burst(start=0.4, end=0.6, cycles=1).weights([40, 50, 60], 100)[:, 1]
    array([0., 1., 0.])
    """

    start: float = 0.4
    end: float = 0.6
    cycles: int = 3

    def __post_init__(self) -> None:
        start = as_real(self.start, "start", low=0, high=1, open_high=True, error=ModelError)
        end = as_real(self.end, "end", low=start, high=1, open_low=True, error=ModelError)
        cycles = as_integer(self.cycles, "cycles", low=1, high=LAST_TIME, error=ModelError)
        _keep(self, start=start, end=end, cycles=cycles)

    def position(self, times: Times, horizon: int) -> Reals:
        """Return the cosine inside the burst, zero outside."""
        inside = (times / horizon - self.start) / (self.end - self.start)
        wave = (1.0 - np.cos(2.0 * math.pi * self.cycles * inside)) / 2.0
        return np.where((inside > 0) & (inside < 1), wave, 0.0)

    def turns(self, horizon: int) -> Turns:
        """Return the edges and the extremes inside."""
        rate = 2 * self.cycles / ((self.end - self.start) * horizon)
        return Turns(self.start * horizon, rate, 0, 2 * self.cycles)


@dataclass(frozen=True)
class RandomWalk(_Wave):
    """A random walk reflected at 0 and 1, straight between its `moves` moves.

    The walk starts in the middle and each move is normal with standard deviation `size`. It is a
    function of its seed: any time can be asked for, in any order.
    """

    seed: int = 0
    moves: int = 1000
    size: float = 0.1

    def __post_init__(self) -> None:
        moves = as_integer(self.moves, "moves", low=1, error=ModelError)
        require_memory(40.0 * moves, "moves", fix="ask for fewer moves")
        size = as_real(self.size, "size", low=0, open_low=True, error=ModelError)
        _keep(self, seed=as_seed(self.seed), moves=moves, size=size)

    def position(self, times: Times, horizon: int) -> Reals:
        """Return the walk, interpolated between its nodes."""
        nodes = _walk(self.seed, self.moves, self.size)
        where: Reals = np.interp((times - 1) * self._rate(horizon), np.arange(nodes.size), nodes)
        return where

    def turns(self, horizon: int) -> Turns:
        """Return the nodes."""
        return Turns(1.0, self._rate(horizon), 1, self.moves)

    def _rate(self, horizon: int) -> float:
        return self.moves / max(horizon - 1, 1)


def _keep(schedule: TwoModelSchedule, **values: float) -> None:
    """Store parameters as plain numbers, however they came."""
    for name, value in values.items():
        object.__setattr__(schedule, name, value)


@functools.lru_cache(maxsize=32)
def _walk(seed: int, moves: int, size: float) -> Reals:
    jumps = size * stream(seed, "schedules.Walk").standard_normal(moves)
    free = np.concatenate([[0.5], 0.5 + np.cumsum(jumps)])  # reflection is folding: x -> |x| mod 2
    nodes: Reals = 1.0 - np.abs(1.0 - np.mod(free, 2.0))
    nodes.flags.writeable = False
    return nodes
