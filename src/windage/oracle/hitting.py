"""Least times to many targets at once: sweeps for all, policy iteration for those they leave open.

The mathematics stands in `oracle.diameter`, whose model does the arithmetic.
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

__all__ = ["Search", "Settled", "checked", "surely"]

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]
Transitions: TypeAlias = NDArray[np.float64] | csr_array

_MOST_SWEEPS = 64
_MOST_POLICIES = 200  # policy iteration takes a handful of steps


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
        return best, *model.bracket(targets, h, best)

    def _swept(self, targets: Integers, h: Reals, best: Reals) -> Reals:
        level = np.maximum(best, 0.0).sum(axis=0) / (self.model.space.n_states - 1)
        swept: Reals = np.maximum(h - best, 0.0) + level  # below zero by rounding only
        swept[targets, np.arange(targets.size)] = 0.0
        return swept

    def solve(self, target: int, h: Reals, enough: float) -> Found:
        """Solve one target by policy iteration, or stop once it is bounded by `enough`."""
        model, goal = self.model, np.array([target])
        drops = model.drops(h[:, None])[:, 0]
        policy = model.first_best(drops)
        _, reached = model.bracket(goal, h[:, None], drops[policy][:, None])
        if not math.isfinite(reached[0]):  # h does not show that these actions reach the target
            policy = model.along(model.roads(goal)[:, 0])
        lower, upper, times = 0.0, math.inf, h
        for _ in range(_MOST_POLICIES):
            times = model.evaluate(policy, target)
            self.solves += 1
            if not np.isfinite(times).all():
                break
            drops = model.drops(times[:, None])[:, 0]
            greedy = model.first_best(drops)
            bounds = model.bracket(goal, times[:, None], drops[greedy][:, None])
            lower, upper = float(bounds[0][0]), float(bounds[1][0])
            # an improvement that rounding could have made would let policies go in circles
            margin = 4.0 * model.kappa * model.largest_rate * times.max()
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

    def _take(self, target: int, found: Found) -> None:
        self.lower, self.upper = max(self.lower, found.lower), max(self.upper, found.upper)
        if found.times.max() > self.value:
            self.value = float(found.times.max())
            self.source, self.target = int(found.times.argmax()), target


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
