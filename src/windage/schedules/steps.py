"""From model to model at given times: by straight lines or by jumps."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windage.errors import ModelError
from windage.schedules.base import Reals, Schedule, Times
from windage.validation import LAST_TIME, as_choice, as_horizon, as_integers

__all__ = ["Knots", "Steps", "check_knots"]


@dataclass(frozen=True)
class Knots(Schedule):
    """Model k at time `times[k]`; in between the straight line, or the last model passed.

    With `interpolation="step"` a model holds until the next knot. After the last knot the last
    model stays.
    """

    times: tuple[int, ...]
    interpolation: str = "linear"

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", check_knots(self.times, LAST_TIME))
        as_choice(self.interpolation, "interpolation", ("linear", "step"))

    @property
    def n_models(self) -> int:
        """One model a knot."""
        return len(self.times)

    @functools.cached_property
    def _times(self) -> Times:
        return np.asarray(self.times, dtype=np.int64)

    def active(self, times: Times, horizon: int) -> tuple[NDArray[np.int32], Reals]:
        """Return the knots around each time."""
        left = np.searchsorted(self._times, times, side="right") - 1
        if self.interpolation == "step" or len(self.times) == 1:
            return left.astype(np.int32)[:, None], np.ones((times.size, 1))
        right = np.minimum(left + 1, len(self.times) - 1)
        gap = np.maximum(self._times[right] - self._times[left], 1)
        share = np.where(right > left, (times - self._times[left]) / gap, 0.0)
        models = np.stack([left, right], axis=1).astype(np.int32)
        return models, np.stack([1.0 - share, share], axis=1)

    def stops(self, horizon: int) -> Times:
        """Return the knots; for steps also the times before them."""
        return _stops_at(self._times[1:], as_horizon(horizon), jumps=self.interpolation == "step")


@dataclass(frozen=True)
class Steps(Schedule):
    """Jumps: model `order[0]` until `times[0]`, from then on `order[1]`, and so on.

    Without an order the models 0 and 1 take turns. No times at all is no drift.

    >>> Steps([3, 5]).weights([2, 3, 4, 5], 6)[:, 1]
    array([0., 1., 1., 0.])
    """

    times: tuple[int, ...] = ()
    order: tuple[int, ...] | None = None

    def __init__(self, times: Iterable[int] = (), order: Iterable[int] | None = None) -> None:
        jumps = as_integers(times, "times", low=1, error=ModelError)
        _rising(jumps, "times")
        object.__setattr__(self, "times", tuple(map(int, jumps)))
        if order is not None:
            models = as_integers(order, "order", low=0, error=ModelError)
            if models.size != jumps.size + 1:
                raise ModelError(
                    f"{models.size} models for {jumps.size} jumps",
                    field="order",
                    fix=f"give {jumps.size + 1} models: the one before each jump and the last",
                )
            order = tuple(map(int, models))
        object.__setattr__(self, "order", order)

    @property
    def n_models(self) -> int:
        """As many as the order names; two if it names none."""
        return 2 if self.order is None else max(self.order) + 1

    def active(self, times: Times, horizon: int) -> tuple[NDArray[np.int32], Reals]:
        """Return the model of the last jump."""
        jumps, order = self._arrays
        passed = np.searchsorted(jumps, times, side="right")
        model = passed % 2 if order is None else order[passed]
        return model.astype(np.int32)[:, None], np.ones((times.size, 1))

    def stops(self, horizon: int) -> Times:
        """Return the jumps and the times before them."""
        return _stops_at(self._arrays[0], as_horizon(horizon), jumps=True)

    @functools.cached_property
    def _arrays(self) -> tuple[Times, Times | None]:
        order = None if self.order is None else np.asarray(self.order, dtype=np.int64)
        return np.asarray(self.times, dtype=np.int64), order


def check_knots(knots: object, horizon: int) -> tuple[int, ...]:
    """Return knot times: integers that rise from 1 and stay within the horizon."""
    one = isinstance(knots, (int, np.integer)) or (isinstance(knots, np.ndarray) and not knots.ndim)
    times = as_integers([knots] if one else knots, "knots", low=1, high=horizon, error=ModelError)
    if times.size == 0 or times[0] != 1:
        raise ModelError(
            f"the first knot is {times[0] if times.size else 'missing'}",
            field="knots[0]",
            fix="start at time 1",
        )
    _rising(times, "knots")
    return tuple(map(int, times))


def _rising(times: Times, field: str) -> None:
    wrong = np.flatnonzero(np.diff(times) <= 0)
    if wrong.size:
        k = int(wrong[0]) + 1
        raise ModelError(
            f"{times[k]} does not rise above {times[k - 1]}",
            field=f"{field}[{k}]",
            fix="give strictly rising times",
        )


def _stops_at(times: Times, horizon: int, *, jumps: bool) -> Times:
    inner = np.stack([times - 1, times], axis=1).ravel() if jumps else times
    found: Times = np.concatenate([[1], np.clip(inner, 1, horizon), [horizon]])
    rising: Times = found[np.append(True, found[1:] > found[:-1])]  # no need to sort
    return rising
