"""Blend: a few base models and weights that change with t, and where each side stands at a time.

A side (a `Mixture`) stands at a base model or is on its way between two. Times at which it is on
its way between the same two form a family. Between two stops of a schedule the side moves one way
only: it may rest at its base for a while, moves, and may rest again, for near a turning point the
weight rounds to zero or one for as long as it takes. So the moving times between two stops are one
segment, found by bisection.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from windage.models.mdp import Transitions, cells_of, freeze
from windage.models.source import Tables, alias_table, join_cells
from windage.schedules import Custom, Schedule
from windage.spaces import StateActions

if TYPE_CHECKING:
    from windage.kernels.simulator import Alias

__all__ = [
    "Blend",
    "Line",
    "Mixture",
    "Place",
    "alike",
    "edges",
    "places",
    "points_and_lines",
    "rising",
]

Reals = NDArray[np.float64]
Times = NDArray[np.int64]

STEPS_A_CHUNK = 1 << 16
"""So many weights are asked for at a time."""

_CELLS_A_PIECE = 1 << 20  # of differences looked at together: 8 MB
_STRETCH = 1 << 8
_GRID = 1 << 14  # whole runs ask for these stretches; others would pile up
_KEPT_HORIZON = 1 << 20  # weights of a million steps are about 50 MB


class Mixture:
    """A few arrays and the schedule of their weights: the rewards or the kernel of a blend.

    Parameters
    ----------
    parts
        One array a base model, all of one shape; kernels may be CSR.
    schedule
        The weights.
    horizon
        T.
    distance
        The size of the difference of two arrays, or of each of many: max norm for rewards, largest
        L1 row for kernels.
    """

    def __init__(
        self,
        parts: Sequence[Any],
        schedule: Schedule,
        horizon: int,
        distance: Callable[[Any], Any],
    ) -> None:
        freeze(*parts)
        self.parts = tuple(parts)
        self.schedule = schedule
        self.horizon = horizon
        self._distance = distance
        self._known: dict[tuple[int, int], float] = {}
        self._stretch: tuple[int, NDArray[np.int32], Reals] | None = None

    def at(self, t: int) -> Any:
        """Return sum_k w_k(t) part_k; the part itself where its weight is one.

        Written as a step away from one part, so that what is the same in all parts stays the same
        to the last bit.
        """
        return self._blended(*self._active_at(t))

    def _blended(self, models: list[int], weight: list[float]) -> Any:
        if 1.0 in weight:
            return self.parts[models[weight.index(1.0)]]
        base = self.parts[models[-1]]
        total = base
        for k, w in zip(models[:-1], weight[:-1], strict=True):
            if w > 0.0:
                total = total + w * (self.parts[k] - base)
        freeze(total)
        return total

    def _active_at(self, t: int) -> tuple[list[int], list[float]]:
        """Return models and weights at one time; times near by are likely to be asked for next."""
        schedule = self.schedule
        if isinstance(schedule, Custom) and not hasattr(schedule.inner, "weights_many"):
            # it may be slow, and is asked for no more than needed
            models, weight = self.active(t, t)
            return models[0].tolist(), weight[0].tolist()
        number, place = divmod(t - 1, _STRETCH)
        stretch = self._stretch
        if stretch is None or stretch[0] != number:
            first = number * _STRETCH + 1
            stretch = (number, *self.active(first, min(first + _STRETCH - 1, self.horizon)))
            self._stretch = stretch
        return stretch[1][place].tolist(), stretch[2][place].tolist()

    def active(self, first: int, last: int) -> tuple[NDArray[np.int32], Reals]:
        """Return the models in play and their weights for t = first..last."""
        return self.schedule.active(np.arange(first, last + 1), self.horizon)

    def distance(self, i: int, j: int) -> float:
        """Return the size of part_i - part_j."""
        pair = (min(i, j), max(i, j))
        if pair not in self._known:
            self._known[pair] = float(self._distance(self.parts[pair[1]] - self.parts[pair[0]]))
        return self._known[pair]

    def variations(self, first: int, last: int) -> Reals:
        """Return the size of every step t -> t + 1 for t = first..last-1.

        Where only two weights change, they change by the same amount w, and the step has size
        w times the distance of the two parts; other steps are computed as they are.
        """
        return self._sizes(*self.active(first, last))

    def total(self, first: int, last: int) -> float:
        """Return the sum of the steps; it telescopes between the stops of the schedule."""
        sizes = itertools.chain.from_iterable(
            self._sizes(*self.schedule.active(times, self.horizon)).tolist()
            for times in self._stops_between(first, last)
        )
        return math.fsum(sizes)

    def _stops_between(self, first: int, last: int) -> Iterator[NDArray[np.int64]]:
        """Yield `first`, the stops in between and `last`, some thousands at a time.

        Each piece starts where the one before ended. Without known stops these are all times.
        """
        for stops in self.schedule.stretches(self.horizon):
            low, high = max(first, int(stops[0])), min(last, int(stops[-1]))
            if low < high:
                inside = stops[(stops > low) & (stops < high)]
                times = np.concatenate([[low], inside, [high]])
                for k in range(0, times.size - 1, STEPS_A_CHUNK):
                    yield times[k : k + STEPS_A_CHUNK + 1]

    def _sizes(self, models: NDArray[np.int32], weight: Reals) -> Reals:
        """Return the sizes of the steps from each row of weights to the next."""
        sizes = np.zeros(len(weight) - 1)
        moved = (models[1:] != models[:-1]).any(axis=1) | (weight[1:] != weight[:-1]).any(axis=1)
        steps = np.flatnonzero(moved)
        changes = _changes(models, weight, steps)
        if changes.simple.any():
            n = len(self.parts)
            codes = (changes.loser * n + changes.gainer)[changes.simple]
            pairs, which = np.unique(codes, return_inverse=True)
            apart = np.array([self.distance(*divmod(int(code), n)) for code in pairs])
            sizes[steps[changes.simple]] = changes.moved[changes.simple] * apart[which]
        others = steps[~changes.simple]
        piece = max(1, _CELLS_A_PIECE // math.prod(self.parts[0].shape))
        for k in range(0, others.size, piece):
            sizes[others[k : k + piece]] = self._others(models, weight, others[k : k + piece])
        return sizes

    def _others(self, models: NDArray[np.int32], weight: Reals, steps: NDArray[np.int64]) -> Reals:
        """Return the sizes of steps in which more than two weights change."""
        used = np.unique(models[[steps, steps + 1]])
        place = np.searchsorted(used, models)
        moved = _dense(place[steps + 1], weight[steps + 1], used.size)
        moved -= _dense(place[steps], weight[steps], used.size)
        *parts, base = (self.parts[k] for k in used)
        if not parts:
            return np.zeros(steps.size)
        apart = [part - base for part in parts]
        if isinstance(base, np.ndarray):
            sizes: Reals = self._distance(np.tensordot(moved[:, :-1], np.stack(apart), 1))
            return sizes
        differences = (sum(map(operator.mul, row, apart)) for row in moved[:, :-1])
        return np.array([self._distance(difference) for difference in differences])

    def __reduce__(self) -> tuple[object, ...]:
        """Travel between processes without what was kept."""
        return type(self), (self.parts, self.schedule, self.horizon, self._distance)


class Blend:
    """Base models and schedules: rewards and kernels may follow schedules of their own."""

    def __init__(self, space: StateActions, rewards: Mixture, kernels: Mixture) -> None:
        self.space = space
        self.rewards = rewards
        self.kernels = kernels
        self._stretches: dict[tuple[int, int], Tables] = {}

    def at(self, t: int) -> tuple[Reals, Transitions]:
        """Return rewards and transitions at time t."""
        return self.rewards.at(t), self.kernels.at(t)

    def variations(self, first: int, last: int) -> tuple[Reals, Reals]:
        """Return B_{r,t} and B_{p,t} for t = first..last-1."""
        return self.rewards.variations(first, last), self.kernels.variations(first, last)

    def totals(self, first: int, last: int) -> tuple[float, float]:
        """Return the sums of both series."""
        return self.rewards.total(first, last), self.kernels.total(first, last)

    def tables(self, first: int, last: int) -> Tables:
        """Return the alias table and the weights of the stretch, kept where the horizon is short.

        Runs of many seeds ask for the same stretches again.
        """
        if (first, last) in self._stretches:
            return self._stretches[first, last]
        kernel = self.kernels.active(first, last)
        shared = self.rewards.schedule == self.kernels.schedule
        reward = kernel if shared else self.rewards.active(first, last)
        tables = Tables(first, last, self._alias, *kernel, self._rewards, *reward)
        if self.kernels.horizon <= _KEPT_HORIZON and (first - 1) % _GRID == 0:
            self._stretches[first, last] = tables
        return tables

    def supports(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return which bases have positive weight, as a number."""
        models, weight = self.kernels.schedule.active(times, self.kernels.horizon)
        alone = (weight == 1.0).any(axis=1, keepdims=True)  # then `at` knows of no other
        there = np.where(alone, weight == 1.0, weight > 0)
        present = np.sort(np.where(there, models, -1), axis=1)
        return np.unique(present, axis=0, return_inverse=True)[1].ravel()

    def __reduce__(self) -> tuple[object, ...]:
        """Travel between processes without tables."""
        return type(self), (self.space, self.rewards, self.kernels)

    @functools.cached_property
    def _alias(self) -> Alias:
        return alias_table(join_cells([cells_of(part) for part in self.kernels.parts]))

    @functools.cached_property
    def _rewards(self) -> Reals:
        return np.ascontiguousarray(np.stack(list(self.rewards.parts)))


def alike(parts: Sequence[Transitions]) -> list[Transitions]:
    """Return all kernels dense if all are, else all in CSR: sums of the two kinds are neither."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return list(parts)
    found = [csr_array(part) for part in parts]
    freeze(*found)
    return found


def _dense(models: NDArray[np.int64], weight: Reals, n: int) -> Reals:
    """Return one weight a model, zero for those not in play; one row a time."""
    found = np.zeros((len(models), n))
    np.add.at(found, (np.arange(len(models))[:, None], models), weight)
    return found


class _Changes(NamedTuple):
    """For each step the models that lose and gain most, how much, and whether only those change."""

    loser: NDArray[np.int64]
    gainer: NDArray[np.int64]
    moved: Reals
    simple: NDArray[np.bool_]


def _changes(models: NDArray[np.int32], weight: Reals, steps: NDArray[np.int64]) -> _Changes:
    before, after = steps, steps + 1
    ids = np.concatenate([models[before], models[after]], axis=1).astype(np.int64)
    change = np.concatenate([-weight[before], weight[after]], axis=1)
    order = np.argsort(ids, axis=1, kind="stable")
    ids, change = np.take_along_axis(ids, order, 1), np.take_along_axis(change, order, 1)
    for column in range(ids.shape[1] - 1):  # gather the entries of one model in the last of them
        same = ids[:, column] == ids[:, column + 1]
        change[same, column + 1] += change[same, column]
        change[same, column] = 0.0
    loser, gainer = np.argmin(change, axis=1), np.argmax(change, axis=1)
    at = np.arange(steps.size)
    simple = np.count_nonzero(change, axis=1) == 2
    return _Changes(ids[at, loser], ids[at, gainer], change[at, gainer], simple)


_STRETCHES_AT_ONCE = 1 << 10


class Place(NamedTuple):
    """Where a side stands at some times: between bases i and j, a share x of the way.

    A side that rests has i = j and x = 0; one that moves has 0 < x < 1.
    """

    i: NDArray[np.int64]
    j: NDArray[np.int64]
    x: Reals


def places(side: Mixture, times: Times) -> Place:
    """Return where a side stands; one whose two bases do not differ rests.

    A weight of one, if only by rounding, is the base itself, as it is for `Mixture.at`.
    """
    models, weight = side.schedule.active(times, side.horizon)
    i = models[:, 0].astype(np.int64)
    if models.shape[1] == 1:
        return Place(i, i, np.zeros(times.size))
    j, x = models[:, -1].astype(np.int64), weight[:, -1].copy()
    n = len(side.parts)
    code = i * n + j
    one = code.size > 0 and (code == code[0]).all()
    pairs, which = (code[:1], 0) if one else np.unique(code, return_inverse=True)
    apart = [side.distance(int(k) // n, int(k) % n) if k // n != k % n else 0.0 for k in pairs]
    same = np.array(apart) == 0.0
    still = same[which] | (weight[:, 0] == 1.0)
    arrived = ~still & (x == 1.0)
    i, j = np.where(arrived, j, i), np.where(still, i, j)
    return Place(i, j, np.where(still | arrived, 0.0, x))


def rising(*times: Times) -> Times:
    """Return the distinct times, rising; sorted, for `np.unique` hashes millions slowly."""
    found = np.sort(np.concatenate(times))
    distinct: Times = found[np.append(True, found[1:] > found[:-1])]
    return distinct


def edges(side: Mixture, stops: Times) -> Times:
    """Return the stops and the times at which the side starts and ends to move, and next to them.

    Between two of these times a side is in one family.
    """
    first, last = _stretches(side, stops)
    return rising(
        stops, *(times.clip(1, stops[-1]) for times in (first - 1, first, last, last + 1))
    )


@dataclass(frozen=True)
class Line:
    """A family: the stretches of time in which a side is on its way between bases i and j.

    The weight is monotone on each stretch, from `x_first` at time `first` to `x_last` at `last`.
    """

    side: Mixture
    i: int
    j: int
    first: Times
    last: Times
    x_first: Reals
    x_last: Reals

    def lowest(self) -> tuple[float, int]:
        """Return the least weight that occurs, and a time."""
        return min(self._ends())

    def highest(self) -> tuple[float, int]:
        """Return the largest weight that occurs, and a time."""
        return max(self._ends())

    def between(self, low: float, high: float) -> tuple[float, int] | None:
        """Return a weight strictly between two, near their middle, and its time; None if none is.

        With many stretches the first weight in the middle half is good enough.
        """
        middle = 0.5 * (low + high)
        best: tuple[float, int] | None = None
        for begin in range(0, self.first.size, _STRETCHES_AT_ONCE):
            some = slice(begin, begin + _STRETCHES_AT_ONCE)
            times = self._crossing(some, middle)
            x = places(self.side, times).x
            far = np.where((x > low) & (x < high), np.abs(x - middle), np.inf)
            k = int(far.argmin())
            if far[k] < (np.inf if best is None else abs(best[0] - middle)):
                best = float(x[k]), int(times[k])
                if far[k] <= 0.25 * (high - low):
                    break
        return best

    def _ends(self) -> list[tuple[float, int]]:
        x, t = np.concatenate([self.x_first, self.x_last]), np.concatenate([self.first, self.last])
        ends = np.flatnonzero((x == x.min()) | (x == x.max()))
        return [(float(x[k]), int(t[k])) for k in ends]

    def _crossing(self, some: slice, x: float) -> Times:
        """Return for each stretch the two times between which its weight passes x."""
        before, after = self.first[some].copy(), self.last[some].copy()
        rising = self.x_first[some] <= self.x_last[some]
        while True:
            wide = np.flatnonzero(after - before > 1)
            if not wide.size:
                return np.concatenate([before, after])
            middle = (before[wide] + after[wide]) // 2
            passed = (places(self.side, middle).x > x) == rising[wide]
            after[wide[passed]] = middle[passed]
            before[wide[~passed]] = middle[~passed]


def points_and_lines(side: Mixture, stops: Times) -> tuple[dict[int, int], list[Line]]:
    """Return the bases at which a side ever rests, each with its first time, and all its lines."""
    times = edges(side, stops)
    place = places(side, times)
    rests = place.i == place.j
    bases, where = np.unique(place.i[rests], return_index=True)
    points = {int(k): int(t) for k, t in zip(bases, times[rests][where], strict=True)}
    first, last = _stretches(side, stops)
    start, end = places(side, first), places(side, last)
    order = np.lexsort((start.j, start.i))
    i, j = start.i[order], start.j[order]
    cuts = np.flatnonzero((np.diff(i) != 0) | (np.diff(j) != 0)) + 1
    lines = [
        Line(side, int(start.i[k[0]]), int(start.j[k[0]]), first[k], last[k], start.x[k], end.x[k])
        for k in np.split(order, cuts)
        if k.size
    ]
    return points, lines


def _stretches(side: Mixture, stops: Times) -> tuple[Times, Times]:
    """Return the first and last times of all stretches in which the side moves."""
    a, b = (stops[:-1], stops[1:]) if stops.size > 1 else (stops, stops)
    first, last = _leaving(side, a, b, 1), _leaving(side, b, a, -1)
    moves = first <= last
    return first[moves], last[moves]


def _leaving(side: Mixture, near: Times, far: Times, step: int) -> Times:
    """Return the time nearest to `near` at which the side does not rest where it does at `near`.

    That is `near` if it moves there, and a step beyond `far` if it rests all the way.
    """
    start, end = places(side, near), places(side, far)
    rests = start.i == start.j
    stays = rests & (end.i == start.i) & (end.j == start.i)
    here, there = near.copy(), np.where(stays, far + step, np.where(rests, far, near))
    while True:
        wide = np.flatnonzero((np.abs(there - here) > 1) & ~stays)
        if not wide.size:
            return there
        middle = (here[wide] + there[wide]) // 2
        now = places(side, middle)
        still = (now.i == start.i[wide]) & (now.j == start.i[wide])
        here[wide[still]] = middle[still]
        there[wide[~still]] = middle[~still]
