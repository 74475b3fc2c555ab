"""Weights that change with t: the shape of a drift, apart from what drifts.

A schedule says how much of each base model there is at time t of a horizon T: `weights(t, T)` is a
point of the simplex. Most move between two models; `position` is then the weight of model 1, and
`stops` lists times between which it is monotone, which makes variations telescope. Anything with a
method `weights(t, T)` is a schedule; with `weights_many(times, T)` it is a fast one.
"""

from __future__ import annotations

import functools
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.errors import ModelError
from windage.rng import stream
from windage.validation import (
    LAST_TIME,
    as_choice,
    as_horizon,
    as_integer,
    as_integers,
    as_real,
    as_seed,
    require_memory,
    shown,
)  # fmt: skip

__all__ = [
    "Burst", "Cosine", "Custom", "Knots", "Linear", "RandomWalk", "Schedule", "Steps",
    "TwoModelSchedule", "as_schedule",
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


_TOLERANCE = 1e-9  # how far weights may be from summing to one: rounding, which is scaled away


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

    def __init__(self, inner: Any, horizon: int) -> None:
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
        many = hasattr(self.inner, "weights_many")
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
        # Each answer is copied: the object may hand out one array again and again.
        answers = [_copied(self.inner.weights(t, horizon)) for t in times.tolist()]
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
        return Custom(schedule, horizon)
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


def is_plain(schedule: Schedule) -> bool:
    """Return whether a schedule is one of the library's own and can be written as data."""
    return any(type(schedule) is its_type for its_type, _ in _KINDS.values())


def to_spec(schedule: Schedule) -> dict[str, Any]:
    """Return a schedule as plain data for a file."""
    for kind, (its_type, parameters) in _KINDS.items():
        if type(schedule) is its_type:
            return {"kind": kind} | {name: getattr(schedule, name) for name in parameters}
    raise ModelError(
        f"a schedule of type {type(schedule).__name__} cannot be written to a file",
        field="schedule",
        fix="use one of windage.schedules, or save the model as arrays",
    )


def from_spec(spec: Any) -> Schedule:
    """Return the schedule that `to_spec` wrote."""
    fields = dict(spec) if isinstance(spec, dict) else {}
    kind = fields.pop("kind", None)
    known = _KINDS.get(kind) if isinstance(kind, str) else None
    if known is None or set(fields) != set(known[1]):
        raise ModelError(
            f"{shown(spec)} is no known schedule",
            field="schedule",
            fix=f"give a kind, one of {', '.join(_KINDS)}, and its parameters",
        )
    return known[0](**fields)


_KINDS: dict[str, tuple[Callable[..., Schedule], tuple[str, ...]]] = {
    "Cosine": (Cosine, ("cycles",)),
    "Linear": (Linear, ("legs",)),
    "Burst": (Burst, ("start", "end", "cycles")),
    "Walk": (RandomWalk, ("seed", "moves", "size")),  # its name in files and fingerprints
    "Knots": (Knots, ("times", "interpolation")),
    "Steps": (Steps, ("times", "order")),
}


def __getattr__(name: str) -> Any:
    if name == "Walk":
        warnings.warn(
            "windage.schedules.Walk is now windage.schedules.RandomWalk",
            DeprecationWarning,
            stacklevel=2,
        )
        return RandomWalk
    raise AttributeError(f"module 'windage.schedules' has no attribute {name!r}")
