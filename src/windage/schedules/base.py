"""What a schedule offers, and how one of the user's own is taken in."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.errors import ModelError

__all__ = ["Custom", "HasWeights", "Reals", "Schedule", "Times", "TwoModelSchedule", "as_schedule"]

Times = NDArray[np.int64]
Reals = NDArray[np.float64]


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

    def weights(self, t: ArrayLike, horizon: int) -> Reals:
        """Return the weights at `t`: a vector, or one row a time if `t` is an array."""
        times = np.atleast_1d(np.asarray(t, dtype=np.int64))
        models, weight = self.active(times, horizon)
        dense = np.zeros((times.size, self.n_models))
        np.add.at(dense, (np.arange(times.size)[:, None], models), weight)
        return dense if np.ndim(t) else dense[0]

    def variation(self, horizon: int) -> float:
        """Return how much weight moves over the horizon: half the L1 variation of the weights.

        >>> from windage.schedules import Cosine
        >>> Cosine(cycles=3).variation(600)  # six half-waves, less the way from t = 0 to t = 1
        5.999...
        """
        stops = self.stops(horizon)
        times = np.arange(1, horizon + 1) if stops is None else stops
        return 0.5 * math.fsum(np.abs(np.diff(self.weights(times, horizon), axis=0)).ravel())


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


@runtime_checkable
class HasWeights(Protocol):
    """The least a schedule of one's own must offer."""

    def weights(self, t: int, horizon: int, /) -> ArrayLike:
        """Return the weights at time t: non-negative, summing to one."""
        ...


class Custom(Schedule):
    """A schedule of one's own: any object with `weights(t, T)`, asked one time after another."""

    def __init__(self, inner: HasWeights, horizon: int) -> None:
        self.inner = inner
        self._n_models = 0
        self._n_models = self._row(1, horizon).size

    @property
    def n_models(self) -> int:
        """As many as the object's weights."""
        return self._n_models

    def active(self, times: Times, horizon: int) -> tuple[NDArray[np.int32], Reals]:
        """Return all models, the heaviest last."""
        weight = np.stack([self._row(int(t), horizon) for t in times])
        models = np.argsort(weight, axis=1, kind="stable").astype(np.int32)
        return models, np.take_along_axis(weight, models, axis=1)

    def stops(self, horizon: int) -> None:
        """Return nothing: the object only answers for single times."""
        del horizon

    def _row(self, t: int, horizon: int) -> Reals:
        row = np.asarray(self.inner.weights(t, horizon), dtype=np.float64)
        legal = row.ndim == 1 and row.size > 0 and bool(np.isfinite(row).all() and (row >= 0).all())
        if not legal or abs(row.sum() - 1.0) > 1e-9 or row.size != (self._n_models or row.size):
            raise ModelError(
                f"{row.tolist()} is not a point of the simplex",
                field="schedule.weights",
                where=f"t={t}",
                fix="return non-negative numbers that sum to 1, as many at every t",
            )
        scaled: Reals = row / row.sum()
        return scaled


def as_schedule(schedule: object, horizon: int, field: str = "schedule") -> Schedule:
    """Return `schedule` as one of the library's, wrapping an object that only has `weights`."""
    if isinstance(schedule, Schedule):
        return schedule
    if isinstance(schedule, HasWeights):
        return Custom(schedule, horizon)
    raise ModelError(
        f"{schedule!r} has no method weights(t, T)",
        field=field,
        fix="pass one of windage.schedules, or an object with weights(t, T)",
    )
