"""The largest diameter of a drifting model, certified for every t without solving every kernel.

D(p_t) is not extreme where the kernel is: two kernels of diameter 1 may blend into one of diameter
2 (spec 1.12). At each time the kernel of a blend is a base or lies on a line between two
(`models.blend`). Lines are searched by branch and bound in their weight. Between two solved kernels
the least times to every target are bounded (`Segment`); where the bound of a target exceeds what is
attained by more than the tolerance, the piece is cut for it, the worst piece first. A cut is made
at a weight that occurs at some time t, so that a diameter solved is a diameter attained. Most
targets drop out at once. A piece inside which no weight occurs is done, for its ends are solved. So
the cost does not grow with T.

Drift that is no blend is solved kernel by kernel.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.errors import NotConverged
from windage.models.blend import Blend, Line, Mixture, places, points_and_lines
from windage.models.mdp import Transitions
from windage.oracle.diameter import Drops, search_of, solve_diameter
from windage.spaces import StateActions
from windage.validation import as_integers, as_real

if TYPE_CHECKING:
    from windage.models.drifting import DriftingMDP

__all__ = ["DiameterBound", "diameters", "max_diameter"]

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]

_MOST_STEPS = 2_000_000
_MOST_SOLVES = 100_000
_CELLS_A_BLOCK = 1 << 20  # pairs times targets looked at together: 8 MB an array
_ROUGH = 1e-5  # of a drop: what rounding may do before it is worth a closer look
_BLENDING = 32 * float(np.finfo(np.float64).eps)  # what rounding does to a blend of drops or rows
_SOLVER_SHARE = 0.125  # of the tolerance: what a solved kernel may be off by


@dataclass(frozen=True)
class DiameterBound:
    """The largest diameter D(p_t) over t = 1..T.

    Attributes
    ----------
    lower
        D(p_t) at the time `t` below is no smaller; it allows for rounding. It is inf if the model
        does not communicate there.
    upper
        No D(p_t) is larger; it allows for rounding.
    t
        The time of the largest diameter found; the first at which the model does not communicate,
        if there is one.
    solves
        How many kernels were solved.
    """

    lower: float
    upper: float
    t: int
    solves: int


def diameters(model: DriftingMDP, times: object, tol: float = 1e-3) -> Reals:
    """Return D(p_t) at the given times; every distinct kernel is solved once.

    One that rounding leaves further apart than `tol` times its size is refused.
    """
    limit = as_real(tol, "tol", low=0, open_low=True)
    asked = as_integers(np.atleast_1d(np.asarray(times)), "times", low=1, high=model.horizon)
    side = _side(model)
    place = None if side is None else places(side[0], asked)
    known: dict[object, float] = {}
    found = np.empty(asked.size)
    for n, t in enumerate(asked.tolist()):
        kernel = _kernel(model, t) if place is None else None
        key = (place.i[n], place.j[n], place.x[n]) if place is not None else _digest(kernel)
        if key not in known:
            solved = _kernel(model, t) if kernel is None else kernel
            known[key] = solve_diameter(model.space, solved, tol=limit).value
        found[n] = known[key]
    return found


def max_diameter(model: DriftingMDP, tol: float = 1e-3) -> DiameterBound:
    """Return the largest diameter; its bracket is no wider than tol times max(1, D)."""
    hunt = _Hunt(model, as_real(tol, "tol", low=0, open_low=True))
    if model.space.n_states == 1:
        return DiameterBound(0.0, 0.0, 1, 0)
    side = _side(model)
    if side is None:
        hunt.one_by_one()
    else:
        hunt.on_lines(*side)
    return hunt.result()


class _Piece(NamedTuple):
    """The weights of a line between two solved ones, and the targets not yet bounded there."""

    line: Line
    segment: Segment
    left: Point
    right: Point
    targets: Integers
    upper: Reals


class _Hunt:
    """The bracket as it closes: the largest diameter attained, and what bounds all others."""

    def __init__(self, model: DriftingMDP, tol: float) -> None:
        self.model = model
        self.space = model.space
        self.tol = tol
        self.lower = self.upper = 0.0
        self.t = 1
        self.solved: set[int] = set()
        self._heap: list[tuple[float, int, _Piece]] = []
        self._number = itertools.count()

    def result(self) -> DiameterBound:
        """Return the bracket; the diameter attained is solved once more, for all targets."""
        solves = len(self.solved)
        if self.lower == math.inf:
            return DiameterBound(math.inf, math.inf, self.t, solves)
        kernel = _kernel(self.model, self.t)
        best = solve_diameter(self.space, kernel, tol=_SOLVER_SHARE * self.tol)
        return DiameterBound(best.lower, max(self.upper, best.upper), self.t, solves)

    def one_by_one(self) -> None:
        """Solve every distinct kernel."""
        T = self.model.horizon
        if T > _MOST_STEPS:
            raise NotConverged(
                f"this drift is no blend: all {T} kernels would have to be solved, "
                f"{_MOST_STEPS} at the most are",
                field="max_diameter",
                fix="build the model from knots or as a blend, or take a shorter horizon",
            )
        seen = set()
        for t in range(1, T + 1):
            kernel = _kernel(self.model, t)
            key = _digest(kernel)
            if key not in seen and self.lower < math.inf:
                seen.add(key)
                self._whole(t, kernel)

    def on_lines(self, side: Mixture, stops: Integers) -> None:
        """Solve the bases that occur, and search the lines between them."""
        points, lines = points_and_lines(side, stops)
        for t in sorted([*points.values(), *(int(line.first.min()) for line in lines)]):
            if self.model.at(t).unreachable() is not None:  # with the moves of its whole family
                self.lower, self.t = math.inf, t
                return
        ends = [
            (
                (0.0, points[line.i]) if line.i in points else line.lowest(),
                (1.0, points[line.j]) if line.j in points else line.highest(),
            )
            for line in lines
        ]
        for t in sorted({*points.values(), *(t for pair in ends for _, t in pair)}):
            self._whole(t, _kernel(self.model, t))
        width = max(16, _CELLS_A_BLOCK // self.space.n_pairs)
        for first in range(0, self.space.n_states, width):
            targets = np.arange(first, min(first + width, self.space.n_states))
            at, h = 0, np.empty(0)
            for line, ((x0, t0), (x1, t1)) in zip(lines, ends, strict=True):
                segment = Segment(self.space, side.parts[line.i], side.parts[line.j])
                # the lines of knots follow one another: a line starts where the last one ended
                left = segment.point(x0, h if at == t0 else self._settle(t0, targets, None))
                at, h = t1, self._settle(t1, targets, left.h)
                self._open(line, segment, left, segment.point(x1, h), targets)
        self._branch()

    @property
    def _ceiling(self) -> float:
        return self.lower + self.tol * max(1.0, self.lower)

    def _branch(self) -> None:
        while self._heap:
            worst, _, (line, segment, left, right, targets, upper) = heapq.heappop(self._heap)
            open_ = self._close(upper)
            cut = line.between(left.x, right.x) if open_.any() else None
            if cut is None:
                continue
            if len(self.solved) >= _MOST_SOLVES:
                raise NotConverged(
                    f"after {len(self.solved)} kernels the largest diameter lies between "
                    f"{self.lower:.6g}, attained at t={self.t}, and {-worst:.6g}",
                    field="max_diameter",
                    fix="allow a larger tol",
                )
            x, t = cut
            left, right, targets = left.only(open_), right.only(open_), targets[open_]
            y = (x - left.x) / (right.x - left.x)
            h = self._settle(t, targets, (1.0 - y) * left.h + y * right.h)
            middle = segment.point(x, h)
            self._open(line, segment, left, middle, targets)
            self._open(line, segment, middle, right, targets)

    def _open(
        self, line: Line, segment: Segment, left: Point, right: Point, targets: Integers
    ) -> None:
        upper = segment.uppers(targets, left, right)
        open_ = self._close(upper)
        if open_.any():
            piece = _Piece(
                line, segment, left.only(open_), right.only(open_), targets[open_], upper[open_]
            )
            number = next(self._number)
            heapq.heappush(self._heap, (-float(upper.max()), number, piece))

    def _close(self, upper: Reals) -> NDArray[np.bool_]:
        """Accept the bounds that are low enough; return which are not."""
        open_ = upper > self._ceiling
        self.upper = max(self.upper, float(upper[~open_].max(initial=0.0)))
        return open_

    def _whole(self, t: int, kernel: Transitions) -> None:
        """Solve the kernel of time t."""
        found = solve_diameter(self.space, kernel, tol=_SOLVER_SHARE * self.tol)
        self._learn(t, found.lower, found.upper)

    def _settle(self, t: int, targets: Integers, h: Reals | None) -> Reals:
        """Return the times to some targets at time t; those far below the best are rough."""
        kernel = _kernel(self.model, t)
        search = search_of(self.space, kernel, _SOLVER_SHARE * self.tol)
        guess = search.model.roads(targets) if h is None else h
        found = search.settle(targets, guess, 0.5 * self.lower)
        self._learn(t, float(found.lower.max()), float(found.upper.max()))
        return found.h

    def _learn(self, t: int, lower: float, upper: float) -> None:
        self.solved.add(t)
        self.upper = max(self.upper, upper)
        if lower > self.lower:
            self.lower, self.t = lower, t


def _side(model: DriftingMDP) -> tuple[Mixture, Integers] | None:
    """Return the kernels of a blend and the stops of their schedule; None for other drift."""
    if not isinstance(model.source, Blend):
        return None
    kernels = model.source.kernels
    stops = kernels.schedule.stops(model.horizon)
    return None if stops is None else (kernels, stops)


def _kernel(model: DriftingMDP, t: int) -> Transitions:
    source = model.source
    found: Transitions = source.kernels.at(t) if isinstance(source, Blend) else source.at(t)[1]
    return found


def _digest(kernel: Transitions) -> bytes:
    if isinstance(kernel, np.ndarray):
        return blake2b(kernel.tobytes(), digest_size=16).digest()
    parts = (kernel.indptr, kernel.indices, kernel.data)
    return blake2b(b"".join(part.tobytes() for part in parts), digest_size=16).digest()


class Point(NamedTuple):
    """Times to some targets, a column each, and their drops along a segment.

    They need not solve the kernel at x, but bounds are close if they do.
    """

    x: float
    h: Reals
    part: Reals  # the drops at x = 0
    slope: Reals
    noise: Reals  # what rounding may do to any of them

    def drops(self, x: float) -> Reals:
        """Return the drops of every pair at a weight."""
        return self.part + x * self.slope

    def only(self, columns: NDArray[np.bool_]) -> Point:
        """Return the same for some of the targets."""
        return Point(self.x, *(array[:, columns] for array in self[1:]))


class Segment:
    """The kernels (1 - x) p_0 + x p_1 for 0 <= x <= 1.

    Drops are linear in the weight x too. If h >= 0 with h(g) = 0 is such that every state but g has
    an action that drops by c > 0 or more all along, all least times to g are at most h / c all
    along. Between two solved kernels three h are tried:

        the times h_0 of the one, and h_1 of the other: a drop is least at one of the two ends;
        the straight line (1 - y) h_0 + y h_1 between them: with d_ab the drop of h_a at end b it
            drops (1 - y) d_00 + y d_11 + y (1 - y) (d_01 + d_10 - d_00 - d_11).

    The error of the last is of second order in the length where the best actions stay. That of the
    others is of first order, but they are exact where one end is the worst of all kernels.
    """

    def __init__(self, space: StateActions, first: Transitions, second: Transitions) -> None:
        self.first, self.second = first, second = Drops(space, first), Drops(space, second)
        self.kappa = max(first.kappa, second.kappa) + _BLENDING
        self.largest_rate = np.maximum(first.largest_rate, second.largest_rate)

    def point(self, x: float, h: Reals) -> Point:
        """Return what bounds need of the times h at x.

        Where rounding would widen them, drops are summed from differences, which takes longer.
        """
        worst = h.max(axis=0)
        rough = 2.0 * self.kappa * self.largest_rate[self.first.space.state_of, None] * worst
        if rough.max() <= _ROUGH:
            part = self.first.drops(h)
            return Point(x, h, part, self.second.drops(h) - part, rough)
        ends = [model.precise_drops(h) for model in (self.first, self.second)]
        (part, noise), (other, its) = ends
        share = 2.0 * self.kappa / min(self.first.kappa, self.second.kappa)
        return Point(x, h, part, other - part, share * np.maximum(noise, its))

    def uppers(self, targets: Integers, left: Point, right: Point) -> Reals:
        """Return for each target what bounds its least times at all weights between two points."""
        d00, d01 = left.drops(left.x), left.drops(right.x)
        d10, d11 = right.drops(left.x), right.drops(right.x)
        worst = left.h.max(axis=0), right.h.max(axis=0)
        straight = _least(d00, d11, d01 + d10 - d00 - d11)
        straight -= np.maximum(left.noise, right.noise)
        upper = self._upper(targets, np.maximum(*worst), straight)
        for point, one, other in ((left, d00, d01), (right, d10, d11)):
            drops = np.minimum(one, other) - point.noise
            np.minimum(upper, self._upper(targets, point.h.max(axis=0), drops), out=upper)
        return upper

    def _upper(self, targets: Integers, worst: Reals, drops: Reals) -> Reals:
        best = np.maximum.reduceat(drops, self.first.space.offsets[:-1], axis=0)
        best[targets, np.arange(targets.size)] = math.inf
        c = best.min(axis=0)
        upper = np.full(targets.size, math.inf)
        np.divide(worst * (1.0 + self.kappa), c, out=upper, where=c > 0.0)
        return upper


def _least(a: Reals, b: Reals, bend: Reals) -> Reals:
    """Return the least of (1 - y) a + y b + y (1 - y) bend for 0 <= y <= 1."""
    least = np.minimum(a, b)
    sag = bend < 0.0
    a, b, bend = a[sag], b[sag], bend[sag]
    y = np.clip(0.5 * (1.0 + (b - a) / bend), 0.0, 1.0)
    least[sag] = (1.0 - y) * a + y * b + y * (1.0 - y) * bend
    return least
