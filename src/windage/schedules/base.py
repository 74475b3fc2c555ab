"""What a schedule offers, and how one of the user's own is taken in."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.errors import ModelError
from windage.validation import as_horizon, as_integer, as_integers, shown

__all__ = [
    "PIECE", "Custom", "HasManyWeights", "HasWeights", "Reals", "Schedule", "Times",
    "TwoModelSchedule", "as_schedule", "in_pieces",
]  # fmt: skip

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


_TOLERANCE = 1e-9  # how far weights may be from summing to one: rounding, which is scaled away


@runtime_checkable
class HasWeights(Protocol):
    """The least a schedule of one's own must offer."""

    def weights(self, t: int, horizon: int, /) -> ArrayLike:
        """Return the weights at time t: non-negative, summing to one."""
        ...


@runtime_checkable
class HasManyWeights(Protocol):
    """What makes a schedule of one's own fast: the weights of many times in one call."""

    def weights_many(self, times: Times, horizon: int, /) -> ArrayLike:
        """Return one row of weights for each of the times."""
        ...


class Custom(Schedule):
    """A schedule of one's own: any object with `weights(t, T)`.

    If the object also has `weights_many(times, T)`, which returns one row a time, that is asked
    instead, for many times at once.

    >>> class Half:
    ...     def weights(self, t, T):
    ...         return [1.0, 0.0] if t <= T / 2 else [0.0, 1.0]
    >>> Custom(Half(), horizon=4).weights([2, 3], 4)
    array([[1., 0.],
           [0., 1.]])
    """

    def __init__(self, inner: HasWeights | HasManyWeights, horizon: int) -> None:
        self.inner = inner
        self._n_models = 0
        self._n_models = self._rows(np.array([1]), horizon).shape[1]

    @property
    def n_models(self) -> int:
        """As many as the object's weights."""
        return self._n_models

    def active(self, times: Times, horizon: int) -> tuple[NDArray[np.int32], Reals]:
        """Return all models, the heaviest last."""
        weight = self._rows(times, horizon)
        models = np.argsort(weight, axis=1, kind="stable").astype(np.int32)
        return models, np.take_along_axis(weight, models, axis=1)

    def stops(self, horizon: int) -> None:
        """Return nothing: the object only says what the weights are, not how they move."""
        del horizon

    def _rows(self, times: Times, horizon: int) -> Reals:
        """Return checked rows of weights, scaled to sum to one."""
        many = isinstance(self.inner, HasManyWeights)
        rows = self._many(times, horizon) if many else self._one_by_one(times, horizon)
        with np.errstate(invalid="ignore", over="ignore"):
            total = rows.sum(axis=1)
            legal = (rows >= 0).all(axis=1) & (np.abs(total - 1.0) <= _TOLERANCE)
        if not legal.all():
            place = int(np.argmin(legal))
            raise self._no_point(int(times[place]), rows[place].tolist())
        scaled: Reals = rows / total[:, None]
        return scaled

    def _many(self, times: Times, horizon: int) -> Reals:
        assert isinstance(self.inner, HasManyWeights)
        rows = _table(self.inner.weights_many(times.copy(), horizon))
        if rows is None or rows.shape != (times.size, self._n_models or rows.shape[1]):
            shape = "no table of numbers" if rows is None else f"shape {rows.shape}"
            models = f", {self._n_models} models" if self._n_models else ""
            raise ModelError(
                f"returned {shape} for {times.size} times{models}",
                field="schedule.weights_many",
                where=f"t={times[0]}",
                fix="return an array with one row of weights a time, as many at every t",
            )
        return rows

    def _one_by_one(self, times: Times, horizon: int) -> Reals:
        assert isinstance(self.inner, HasWeights)
        asked = self.inner.weights
        # Each answer is copied: the object may hand out one array again and again.
        answers = [_copied(asked(t, horizon)) for t in times.tolist()]
        rows = _table(answers)
        if rows is not None and rows.shape[1] == (self._n_models or rows.shape[1]):
            return rows
        for t, answer in zip(times.tolist(), answers, strict=True):
            row = _table([answer])
            if row is None or row.shape[1] != (self._n_models or row.shape[1]):
                raise self._no_point(t, answer)
        raise self._no_point(int(times[0]), answers[0])

    def _no_point(self, t: int, answer: object) -> ModelError:
        count = f" of {self._n_models} numbers" if self._n_models else ""
        return ModelError(
            f"{shown(answer)} is not a point of the simplex{count}",
            field="schedule.weights",
            where=f"t={t}",
            fix="return non-negative numbers that sum to 1, as many at every t",
        )


def as_schedule(schedule: object, horizon: int, field: str = "schedule") -> Schedule:
    """Return `schedule` as one of the library's, wrapping an object that only has weights."""
    if isinstance(schedule, Schedule):
        return schedule
    if isinstance(schedule, type):
        raise ModelError(
            f"{schedule.__name__} is a class, not a schedule",
            field=field,
            fix=f"pass {schedule.__name__}(...)",
        )
    if any(callable(getattr(schedule, name, None)) for name in ("weights", "weights_many")):
        return Custom(schedule, horizon)  # type: ignore[arg-type]
    raise ModelError(
        f"{shown(schedule)} has no method weights(t, T)",
        field=field,
        fix="pass one of windage.schedules, or an object with weights(t, T)",
    )


def _copied(answer: ArrayLike) -> object:
    try:
        return list(answer)  # type: ignore[arg-type]
    except TypeError:
        return answer


def _table(rows: object) -> Reals | None:
    """Return a table of real numbers, or None if it is none."""
    try:
        table = np.asarray(rows)
    except (ValueError, TypeError):
        return None
    legal = table.ndim == 2 and table.dtype.kind in "biuf"
    return table.astype(np.float64) if legal else None
