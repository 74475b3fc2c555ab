"""Where a side of a blend stands, at a base model or on the way between two, and when it moves.

Times at which a side is on its way between the same two bases form a family. Between two stops of a
schedule the side moves one way only: it may rest at its base for a while, moves, and may rest
again, for near a turning point the weight rounds to zero or one for as long as it takes. So the
moving times between two stops are one stretch, found by bisection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.models.blend import Mixture

__all__ = ["Line", "Place", "edges", "places", "points_and_lines", "rising"]

Reals = NDArray[np.float64]
Times = NDArray[np.int64]

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
