"""What a schedule offers, and how one of the user's own is taken in."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.validation import as_horizon, as_integer, as_integers

__all__ = ["PIECE", "Reals", "Schedule", "Times", "TwoModelSchedule", "in_pieces"]

Times = NDArray[np.int64]
Reals = NDArray[np.float64]

PIECE = 1 << 16
"""So many times are looked at together where a schedule is gone through."""


class Schedule(ABC):
    """What every schedule of the library offers."""

    @property
    @abstractmethod
    def n_models(self) -> int:
        """The number of base models the weights speak of."""

    @abstractmethod
    def active(self, times: Times, horizon: int) -> tuple[NDArray[np.int32], Reals]:
        """Return the models in play and their weights, two arrays [times, active].

        A draw takes the first model whose weight exceeds what is left of a uniform number, else the
        last: so the last of three or more must not have weight zero, or rounding could pick it.
        """

    @abstractmethod
    def stops(self, horizon: int) -> Times | None:
        """Return rising times from 1 to T that make variations telescope, or None if unknown.

        Between two of them weight only moves from one model to one other.
        """

    def stretches(self, horizon: int) -> Iterator[Times]:
        """Yield the stops piece by piece, each piece starting at the last time of the one before.

        Where the stops are not known these are all times. Sums over the steps of a long horizon are
        made from this: no piece is large, whatever the number of stops.
        """
        stops = self.stops(horizon)
        yield from in_pieces(1, horizon) if stops is None else (stops,)

    def weights(self, t: ArrayLike, horizon: int) -> Reals:
        """Return the weights at `t`: a vector, or one row a time if `t` is a list of times."""
        T = as_horizon(horizon)
        one = not hasattr(t, "__len__") or (isinstance(t, np.ndarray) and t.ndim == 0)
        if one:
            times = np.array([as_integer(t, "t", low=1, high=T)])
        else:
            times = as_integers(t, "t", low=1, high=T)
        models, weight = self.active(times, T)
        dense = np.zeros((times.size, self.n_models))
        row = np.arange(times.size)
        for column in range(models.shape[1]):  # a model may be in play twice
            dense[row, models[:, column]] += weight[:, column]
        return dense[0] if one else dense

    def variation(self, horizon: int) -> float:
        """Return how much weight moves over the horizon: half the L1 variation of the weights.

        >>> from windage.schedules import Cosine
        >>> Cosine(cycles=3).variation(600)  # six half-waves, less the way from t = 0 to t = 1
        5.999...
        """
        T = as_horizon(horizon)
        moved = (
            float(np.abs(np.diff(self.weights(times, T), axis=0)).sum())
            for times in self.stretches(T)
        )
        return 0.5 * math.fsum(moved)


class TwoModelSchedule(Schedule):
    """A schedule that moves between model 0 and model 1."""

    @property
    def n_models(self) -> int:
        """Two."""
        return 2

    @abstractmethod
    def position(self, times: Times, horizon: int) -> Reals:
        """Return the weight of model 1 at each time."""

    @abstractmethod
    def stops(self, horizon: int) -> Times:
        """Return rising times from 1 to T between which the position is monotone."""

    def active(self, times: Times, horizon: int) -> tuple[NDArray[np.int32], Reals]:
        """Return models 0 and 1 and their weights."""
        models = np.zeros((times.size, 2), dtype=np.int32)
        models[:, 1] = 1
        weight = np.empty((times.size, 2))
        weight[:, 1] = self.position(times, horizon)
        np.subtract(1.0, weight[:, 1], out=weight[:, 0])
        return models, weight


def in_pieces(first: int, last: int) -> Iterator[Times]:
    """Yield all times from first to last piece by piece, each starting where the last one ended."""
    for begin in range(first, max(last, first + 1), PIECE):
        yield np.arange(begin, min(begin + PIECE, last) + 1)
