"""Least times to many targets at once: of one kernel, and bounded along a segment of kernels.

One kernel (`Search`): sweeps for all targets, policy iteration for those they leave open. The
mathematics stands in `oracle.diameter`, whose model does the arithmetic.

A segment (`Segment`): the kernel is linear in a weight x, so the drop of a pair is too. If h >= 0
with h(g) = 0 is such that every state but g has an action that drops by c > 0 or more all along,
then all least times to g are at most h / c all along. Between two solved kernels three h are tried:

    the times h_0 of the one, and h_1 of the other: a drop is least at one of the two ends;
    the straight line (1 - y) h_0 + y h_1 between them: with d_ab the drop of h_a at end b it drops
        (1 - y) d_00 + y d_11 + y (1 - y) (d_01 + d_10 - d_00 - d_11).

The error of the last is of second order in the length where the best actions stay. That of the
others is of first order, but they are exact where one end is the worst of all kernels.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from windage.errors import ModelError, NotConverged
from windage.spaces import StateActions

if TYPE_CHECKING:
    from windage.oracle.diameter import _Model

__all__ = ["Point", "Search", "Segment", "Settled", "checked", "surely"]

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]
Transitions: TypeAlias = NDArray[np.float64] | csr_array

_MOST_SWEEPS = 64
_MOST_POLICIES = 200  # policy iteration takes a handful of steps
_ROUGH = 1e-5  # of a drop: what rounding may do before it is worth a closer look
_BLENDING = 32 * float(np.finfo(np.float64).eps)  # what rounding does to a blend of drops or rows


class Found(NamedTuple):
    """Times that solve a target, or suffice to drop it, and bounds of the longest of them."""

    times: Reals
    lower: float
    upper: float


class Settled(NamedTuple):
    """For each target a column of times, and bounds of the longest least time to it."""

    h: Reals
    lower: Reals
    upper: Reals


class Search:
    """Looks for the target that is farthest from its farthest state."""

    def __init__(self, model: _Model, tol: float) -> None:
        self.model = model
        self.tol = tol
        self.lower = self.upper = self.value = 0.0
        self.source = self.target = 0
        self.solves = self.sweeps = 0

    def visit(self, targets: Integers) -> None:
        """Raise the bounds until they hold for these targets too."""
        h = self.model.roads(targets)
        for _ in range(self._most_sweeps):
            best, lower, upper = self._bracket(targets, h)
            self.lower = max(self.lower, float(lower.max()))
            open_ = upper > max(self.lower, self.upper)
            targets, h, lower, upper = targets[open_], h[:, open_], lower[open_], upper[open_]
            if targets.size <= 2:
                break
            h = self._swept(targets, h, best[:, open_])
        for i in np.argsort(-lower, kind="stable"):
            enough = max(self.lower, self.upper)
            if upper[i] > enough:
                self._take(int(targets[i]), self.solve(int(targets[i]), h[:, i], enough))

    def settle(self, targets: Integers, h: Reals, enough: float) -> Settled:
        """Bracket the longest time to each target to within `tol`, or below `enough`.

        `h` is a guess, a column a target: the roads, or the times of a model nearby.
        """
        h = h.copy()
        lower, upper = np.zeros(targets.size), np.full(targets.size, math.inf)
        todo = np.arange(targets.size)
        for _ in range(self._most_sweeps):
            part = h[:, todo]
            best, lower[todo], upper[todo] = self._bracket(targets[todo], part)
            open_ = upper[todo] > np.maximum(enough, lower[todo] * (1.0 + self.tol))
            todo = todo[open_]
            if todo.size <= 2:
                break
            h[:, todo] = self._swept(targets[todo], part[:, open_], best[:, open_])
        for i in todo:
            h[:, i], lower[i], upper[i] = self.solve(int(targets[i]), h[:, i], enough)
        return Settled(h, lower, upper)

    @property
    def _most_sweeps(self) -> int:
        # so many sweeps cost about as much as one elimination a target
        return min(_MOST_SWEEPS, max(4, self.model.space.n_states // 4))

    def _bracket(self, targets: Integers, h: Reals) -> tuple[Reals, Reals, Reals]:
        """Return the largest drops of the states, and bounds of the longest time to each target."""
        model = self.model
        self.sweeps += 1
        best = np.maximum.reduceat(model.drops(h), model.space.offsets[:-1], axis=0)
        slack = model.slack(h)
        return best, *model.bracket(targets, h, best - slack, best + slack)

    def _swept(self, targets: Integers, h: Reals, best: Reals) -> Reals:
        level = np.maximum(best, 0.0).sum(axis=0) / (self.model.space.n_states - 1)
        swept: Reals = np.maximum(h - best, 0.0) + level  # below zero by rounding only
        swept[targets, np.arange(targets.size)] = 0.0
        return swept

    def solve(self, target: int, h: Reals, enough: float) -> Found:
        """Solve one target by policy iteration, or stop once it is bounded by `enough`."""
        model, goal = self.model, np.array([target])
        drops, noise = self._drops(h)
        policy = model.first_best(drops)
        if not math.isfinite(self._bounds(goal, h, drops, noise)[1]):
            # h does not show that these actions reach the target
            policy = model.along(model.roads(goal)[:, 0])
        lower, upper, times = 0.0, math.inf, h
        for _ in range(_MOST_POLICIES):
            times = model.evaluate(policy, target)
            self.solves += 1
            if not np.isfinite(times).all():
                break
            drops, noise = self._drops(times)
            greedy = model.first_best(drops)
            lower, upper = self._bounds(goal, times, drops, noise)
            # an improvement that rounding could have made would let policies go in circles
            margin = 2.0 * (noise[greedy] + noise[policy]) + np.abs(drops[policy] - 1.0)
            better = drops[greedy] > drops[policy] + margin
            better[target] = False
            if upper <= enough or not better.any():
                break
            policy = np.where(better, greedy, policy)
        if upper > max(enough, lower * (1.0 + self.tol)):
            raise NotConverged(
                f"the longest time to {model.space.describe_state(target)} lies between "
                f"{lower:.6g} and {upper:.6g} after {self.solves} evaluations",
                field="diameter",
                fix="pass a larger tol; the times may be too long for floating point",
            )
        return Found(times, lower, upper)

    def _drops(self, h: Reals) -> tuple[Reals, Reals]:
        drops, noise = self.model.precise_drops(h[:, None])
        return drops[:, 0], noise[:, 0]

    def _bounds(self, goal: Integers, h: Reals, drops: Reals, noise: Reals) -> tuple[float, float]:
        """Return bounds of the longest least time to one target."""
        starts = self.model.space.offsets[:-1]
        least, most = (
            np.maximum.reduceat(some, starts)[:, None] for some in (drops - noise, drops + noise)
        )
        lower, upper = self.model.bracket(goal, h[:, None], least, most)
        return float(lower[0]), float(upper[0])

    def _take(self, target: int, found: Found) -> None:
        self.lower, self.upper = max(self.lower, found.lower), max(self.upper, found.upper)
        if found.times.max() > self.value:
            self.value = float(found.times.max())
            self.source, self.target = int(found.times.argmax()), target


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
    """The kernels (1 - x) p_0 + x p_1 for 0 <= x <= 1."""

    def __init__(self, first: _Model, second: _Model) -> None:
        self.first, self.second = first, second
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


def surely(model: _Model, target: int) -> tuple[Integers, Integers]:
    """Return the states from which some policy reaches the target surely, and the pairs to use.

    Pairs that may leave the set go, then states that cannot reach the target by the others, until
    nothing changes. The target keeps all its pairs, which nobody plays.
    """
    from scipy.sparse.csgraph import breadth_first_order

    S, state_of = model.space.n_states, model.space.state_of
    pair = np.repeat(np.arange(state_of.size), np.diff(model.rows))
    alive = np.ones(S, dtype=bool)
    while True:
        kept = alive[state_of]
        kept[pair[~alive[model.states]]] = False
        kept[state_of == target] = True
        edges = kept[pair]
        places = model.states[edges], state_of[pair[edges]]
        backward = csr_array((np.ones(places[0].size), places), shape=(S, S))
        reached = breadth_first_order(backward, target, return_predecessors=False)
        if reached.size == np.count_nonzero(alive):
            return np.flatnonzero(alive), np.flatnonzero(kept)
        alive[:] = False
        alive[reached] = True


def checked(space: StateActions, transitions: Transitions) -> Transitions:
    """Return the transitions, dense or CSR, or refuse their shape."""
    shape = (space.n_pairs, space.n_states)
    if not issparse(transitions):
        transitions = np.asarray(transitions, dtype=np.float64)
    if transitions.shape != shape:
        raise ModelError(
            f"has shape {transitions.shape}, the space needs {shape}",
            field="transitions",
            fix="pass one row a pair",
        )
    return transitions
