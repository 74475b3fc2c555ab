"""Back and forth between two models: cosines, lines, bursts and walks."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windage.errors import ModelError
from windage.inputs import as_integer, as_real, as_seed
from windage.schedules.base import Reals, Times, TwoModelSchedule
from windage.streams import stream

__all__ = ["Burst", "Cosine", "Linear", "Walk"]


@dataclass(frozen=True)
class Cosine(TwoModelSchedule):
    """Back and forth on a cosine: the weight of model 0 is (1 + cos(2 pi cycles t / T)) / 2.

    >>> Cosine(cycles=1).weights(50, 100)
    array([0., 1.])
    """

    cycles: float = 1.0

    def __post_init__(self) -> None:
        as_real(self.cycles, "cycles", low=0, error=ModelError)

    def position(self, times: Times, horizon: int) -> Reals:
        """Return (1 - cos(2 pi cycles t / T)) / 2."""
        return (1.0 - np.cos(2.0 * math.pi * self.cycles * times / horizon)) / 2.0

    def stops(self, horizon: int) -> Times:
        """Return the times around the extremes t = k T / (2 cycles)."""
        return _around(np.arange(1, int(2 * self.cycles) + 1), 2 * self.cycles / horizon, horizon)


@dataclass(frozen=True)
class Linear(TwoModelSchedule):
    """From model 0 at t = 1 to model 1 at t = T in a straight line, or there and back in `legs`.

    >>> Linear().weights([1, 3, 5], 5)
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """

    legs: float = 1.0

    def __post_init__(self) -> None:
        as_real(self.legs, "legs", low=0, error=ModelError)

    def position(self, times: Times, horizon: int) -> Reals:
        """Return the triangle wave of height 1 with `legs` sides."""
        phase = self.legs * (times - 1) / max(horizon - 1, 1)
        return 1.0 - np.abs(1.0 - np.mod(phase, 2.0))

    def stops(self, horizon: int) -> Times:
        """Return the times around the corners of the wave."""
        return _around(
            np.arange(1, int(self.legs) + 1), self.legs / max(horizon - 1, 1), horizon, origin=1
        )


@dataclass(frozen=True)
class Burst(TwoModelSchedule):
    """Quiet, then a burst of `cycles` cosines between two fractions of the horizon, then quiet.

    >>> Burst(start=0.4, end=0.6, cycles=1).weights([40, 50, 60], 100)[:, 1]
    array([0., 1., 0.])
    """

    start: float = 0.4
    end: float = 0.6
    cycles: int = 3

    def __post_init__(self) -> None:
        as_real(self.start, "start", low=0, high=1, open_high=True, error=ModelError)
        as_real(self.end, "end", low=self.start, high=1, open_low=True, error=ModelError)
        as_integer(self.cycles, "cycles", low=1, error=ModelError)

    def position(self, times: Times, horizon: int) -> Reals:
        """Return the cosine inside the burst, zero outside."""
        inside = (times / horizon - self.start) / (self.end - self.start)
        wave = (1.0 - np.cos(2.0 * math.pi * self.cycles * inside)) / 2.0
        return np.where((inside > 0) & (inside < 1), wave, 0.0)

    def stops(self, horizon: int) -> Times:
        """Return the times around the edges and the extremes inside."""
        rate = 2 * self.cycles / ((self.end - self.start) * horizon)
        return _around(np.arange(2 * self.cycles + 1), rate, horizon, origin=self.start * horizon)


@dataclass(frozen=True)
class Walk(TwoModelSchedule):
    """A random walk reflected at 0 and 1, straight between its `moves` moves.

    The walk starts in the middle and each move is normal with standard deviation `size`. It is a
    function of its seed: any time can be asked for, in any order.
    """

    seed: int = 0
    moves: int = 1000
    size: float = 0.1

    def __post_init__(self) -> None:
        as_seed(self.seed)
        as_integer(self.moves, "moves", low=1, error=ModelError)
        as_real(self.size, "size", low=0, open_low=True, error=ModelError)

    def position(self, times: Times, horizon: int) -> Reals:
        """Return the walk, interpolated between its nodes."""
        nodes = _walk(self.seed, self.moves, self.size)
        where: Reals = np.interp((times - 1) * self._rate(horizon), np.arange(nodes.size), nodes)
        return where

    def stops(self, horizon: int) -> Times:
        """Return the times around the nodes."""
        return _around(np.arange(1, self.moves + 1), self._rate(horizon), horizon, origin=1)

    def _rate(self, horizon: int) -> float:
        return self.moves / max(horizon - 1, 1)


def _around(phases: NDArray[Any], rate: float, horizon: int, origin: float = 0.0) -> Times:
    """Return 1, T and the integers next to the times at which rate (t - origin) is in `phases`."""
    ends = np.array([1, horizon], dtype=np.int64)
    if rate == 0 or phases.size == 0:
        return np.unique(ends)
    exact = origin + phases / rate
    near = np.concatenate([np.floor(exact), np.ceil(exact)])
    return np.unique(np.concatenate([ends, np.clip(near, 1, horizon).astype(np.int64)]))


@functools.lru_cache(maxsize=32)
def _walk(seed: int, moves: int, size: float) -> Reals:
    jumps = size * stream(seed, "schedules.Walk").standard_normal(moves)
    free = np.concatenate([[0.5], 0.5 + np.cumsum(jumps)])  # reflection is folding: x -> |x| mod 2
    nodes: Reals = 1.0 - np.abs(1.0 - np.mod(free, 2.0))
    nodes.flags.writeable = False
    return nodes
