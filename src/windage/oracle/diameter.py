"""The diameter D(p) = max over s != s' of the least expected time from s to s' (spec 1.4, E28).

For a target g take any h >= 0 with h(g) = 0; the drop of a pair (s, a) is h(s) - sum p(.|s,a) h.

    every state but g has an action of drop >= c > 0   =>   least times <= h / c
    every pair of a state other than g has drop <= C   =>   least times >= h / C

For the first, h(s_n) + c n is a supermartingale under those actions until g is reached, so they
reach g for sure and in h(s) / c steps at most. For the second, h(s_n) + C n is a submartingale
under any policy that reaches g in finite time. One pass over the model thus brackets the least
times of a target, whatever h is. Three stages use it:

1. h starts as the cheapest roads, where a move of probability p costs 1/p, its expected number of
   attempts. No inverse is taken, so slow chains do no harm.
2. Sweeps over many targets at once: h(s) - (largest drop of s) + (mean of the largest drops). This
   is value iteration that finds the level of h by itself: where the chain forgets quickly the
   bracket shrinks by its second eigenvalue, not by 1 - 1/D. Most targets turn out to be below D.
3. Policy iteration for the others, from the best actions of the last sweep, until the bracket
   closes or shows that the target is below D.

Brackets allow for rounding: computed drops err by at most kappa (rate h(s) + sum p h), with kappa a
little above the number of summands times the machine precision. Where that matters they are summed
from differences and err by kappa sum p |h(s) - h| only. Only probabilities of leaving a state are
read: what a row lacks to sum to one, by rounding, counts as staying.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from windage.errors import ModelError, NotConverged
from windage.spaces import StateActions
from windage.validation import as_csr, as_real, require_memory, require_parts

__all__ = [
    "DiameterSolution",
    "Drops",
    "classes",
    "diameter",
    "hitting_times",
    "search_of",
    "solve_diameter",
    "unreachable",
]

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]
Transitions: TypeAlias = NDArray[np.float64] | csr_array

_SPARSE_STATES = 256  # from here on a model with few non-zeros is worth a sparse factorisation
_SPARSE_FILL = 0.1
_CELLS_A_BLOCK = 1 << 20  # pairs times targets swept together: 8 MB
_LEAST_PROBABILITY = 1e-280  # costs of roads over smaller ones would overflow
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class DiameterSolution:
    """The diameter with its certificate.

    Attributes
    ----------
    value
        D; inf exactly when the model is not communicating, 0 when it has one state.
    lower, upper
        Bounds of D that allow for rounding.
    source, target
        States that are D apart; if D is inf, no policy leads from `source` to `target`.
    solves
        How many policies were evaluated by elimination.
    sweeps
        How many passes over the model were made, each for a block of targets.
    """

    value: float
    lower: float
    upper: float
    source: int
    target: int
    solves: int
    sweeps: int


def diameter(space: StateActions, transitions: Transitions, *, tol: float = 1e-6) -> float:
    """Return the diameter: `solve_diameter(space, transitions, tol=tol).value`.

    >>> diameter(StateActions([1, 1]), np.array([[0.0, 1.0], [0.75, 0.25]]))
    1.3333333333333333
    >>> diameter(StateActions([1, 1]), np.eye(2))
    inf
    """
    return solve_diameter(space, transitions, tol=tol).value


def solve_diameter(
    space: StateActions, transitions: Transitions, *, tol: float = 1e-6
) -> DiameterSolution:
    """Return the diameter, its bracket, and two states that are that far apart.

    Parameters
    ----------
    space
        States and actions.
    transitions
        `transitions[pair, s']`, dense or CSR.
    tol
        The relative width of the bracket above which the answer is refused with `NotConverged`.
        Rounding alone makes it about 1e-15 n D for rows of n possible moves.

    Examples
    --------
    Three states on a ring; the only action moves on with probability 1/2:

    >>> ring = (np.eye(3) + np.roll(np.eye(3), 1, axis=1)) / 2
    >>> solution = solve_diameter(StateActions([1, 1, 1]), ring)
    >>> solution.value, solution.upper - solution.lower < 1e-12
    (4.0, True)
    """
    limit = as_real(tol, "tol", low=0.0, open_low=True)
    search = search_of(space, transitions, limit)
    model = search.model
    if space.n_states == 1:
        return DiameterSolution(0.0, 0.0, 0.0, 0, 0, 0, 0)
    cut = unreachable(space, model.rows, model.states)
    if cut is not None:
        return DiameterSolution(math.inf, math.inf, math.inf, *cut, 0, 0)
    entrance = np.bincount(model.states, model.probabilities, minlength=space.n_states)
    order = np.argsort(entrance, kind="stable")  # states hard to enter first: D shows early
    width = max(16, _CELLS_A_BLOCK // space.n_pairs)
    for first in range(0, order.size, width):
        search.visit(order[first : first + width])
    upper = max(search.lower, search.upper)
    value = min(max(search.value, search.lower), upper)
    ends = search.source, search.target
    return DiameterSolution(value, search.lower, upper, *ends, search.solves, search.sweeps)


def search_of(space: StateActions, transitions: Transitions, tol: float) -> Search:
    """Return a search for the longest of the least times of a model, not begun yet."""
    return Search(Drops(space, transitions), tol)


def hitting_times(
    space: StateActions, transitions: Transitions, target: int, *, tol: float = 1e-6
) -> Reals:
    """Return the least expected time from every state to `target`.

    It is inf where no policy reaches the target with probability one.

    >>> wait_or_gamble = np.array([[0.5, 0, 0.5], [0, 0.1, 0.9], [0, 1, 0], [0, 0, 1]])
    >>> hitting_times(StateActions([2, 1, 1]), wait_or_gamble, target=2)
    array([ 2., inf,  0.])
    """
    limit = as_real(tol, "tol", low=0.0, open_low=True)
    goal = space.check_state(target, "target")
    search = search_of(space, transitions, limit)
    states, pairs = surely(search.model, goal)
    times = np.full(space.n_states, math.inf)
    times[goal] = 0.0
    if states.size == 1:
        return times
    if states.size < space.n_states:
        counts = np.bincount(space.state_of[pairs], minlength=space.n_states)[states]
        moves = csr_array(csr_array(search.model.moves)[pairs][:, states])
        search = search_of(StateActions(counts), moves, limit)
        goal = int(np.searchsorted(states, goal))
    roads = search.model.roads(np.array([goal]))[:, 0]
    times[states] = search.solve(goal, roads, -math.inf).times
    return times


class Drops:
    """The probabilities of leaving the state of each pair, which make drops; dense or CSR."""

    def __init__(self, space: StateActions, transitions: Transitions) -> None:
        S, pairs = space.n_states, space.n_pairs
        moves: Any = checked(space, transitions).copy()
        if isinstance(moves, np.ndarray):
            moves[np.arange(pairs), space.state_of] = 0.0
            filled = np.count_nonzero(moves)
        else:
            moves.data[moves.indices == np.repeat(space.state_of, np.diff(moves.indptr))] = 0.0
            moves.eliminate_zeros()
            filled = moves.nnz
        self.sparse = S > _SPARSE_STATES and filled <= _SPARSE_FILL * S * pairs
        if self.sparse:
            moves = csr_array(moves)
            self.rows, self.states = moves.indptr.astype(np.int64), moves.indices
            self.probabilities = moves.data
        else:
            size = 8.0 * S * (2 * pairs + 3 * S)
            require_memory(size, "diameter", fix="use a smaller or sparser model")
            moves = moves.toarray() if issparse(moves) else np.ascontiguousarray(moves)
            positive = moves > 0
            self.rows = np.concatenate([[0], np.cumsum(np.count_nonzero(positive, axis=1))])
            self.states = np.nonzero(positive)[1].astype(np.int32)
            self.probabilities = moves[positive]
            self._work = np.empty((S, S)), np.empty(S)
        self.space = space
        self.moves = moves
        self.rates = np.asarray(moves.sum(axis=1)).ravel()
        self.largest_rate = np.maximum.reduceat(self.rates, space.offsets[:-1])
        self.kappa = (int(np.diff(self.rows).max()) + 4) * _EPS

    def drops(self, h: Reals) -> Reals:
        """Return h(s) - sum p(.|s,a) h for every pair and every column of h."""
        drops: Reals = self.rates[:, None] * h[self.space.state_of]
        drops -= self.moves @ h
        return drops

    def precise_drops(self, h: Reals) -> tuple[Reals, Reals]:
        """Return the same from differences, and bounds of what rounding has done to them."""
        from windage.kernels import diameter as kernel

        drops, sizes = (np.empty((self.space.n_pairs, h.shape[1])) for _ in range(2))
        cells = self.rows, self.states.astype(np.int32, copy=False), self.probabilities
        kernel.drops(*cells, self.space.state_of, np.ascontiguousarray(h), drops, sizes)
        return drops, self.kappa * sizes

    def slack(self, h: Reals) -> Reals:
        """Return bounds of what rounding has done to the largest drop of each state."""
        slack: Reals = 2.0 * self.kappa * self.largest_rate[:, None] * h.max(axis=0)
        return slack

    def bracket(
        self, targets: Integers, h: Reals, least: Reals, most: Reals
    ) -> tuple[Reals, Reals]:
        """Return bounds of the longest least time to each target.

        `least` and `most` bound the largest drop of each state; they are overwritten.
        """
        columns = np.arange(targets.size)
        worst = h.max(axis=0)
        least[targets, columns], most[targets, columns] = math.inf, -math.inf
        c, C = least.min(axis=0), most.max(axis=0)
        upper = np.full(targets.size, math.inf)
        np.divide(worst * (1.0 + self.kappa), c, out=upper, where=c > 0.0)
        return worst * (1.0 - self.kappa) / C, upper

    def evaluate(self, policy: Integers, target: int) -> Reals:
        """Return the expected times to the target under a policy that reaches it."""
        if self.sparse:
            return self._evaluate_sparse(policy, target)
        from windage.kernels import diameter as kernel  # numba loads here, not with the package

        times = np.empty(self.space.n_states)
        stuck = kernel.hitting_times(self.moves, policy, target, *self._work, times)
        return times if stuck < 0 else np.full(times.size, math.inf)

    def _evaluate_sparse(self, policy: Integers, target: int) -> Reals:
        from scipy.sparse import diags_array
        from scipy.sparse.linalg import splu

        others = np.ones(policy.size)
        others[target] = 0.0
        leave = diags_array(np.where(others > 0.0, self.rates[policy], 1.0))
        system = leave - diags_array(others) @ self.moves[policy]
        try:
            factors = splu(system.tocsc())
        except RuntimeError:  # singular in floating point
            return np.full(policy.size, math.inf)
        times: Reals = factors.solve(others)
        return np.maximum(times, 0.0)

    def roads(self, targets: Integers) -> Reals:
        """Return the cost of the cheapest road from every state to each of the targets."""
        if not self.sparse:
            return self._all_roads[:, targets]
        from scipy.sparse.csgraph import dijkstra

        return np.ascontiguousarray(dijkstra(self._backward, indices=targets).T)

    @functools.cached_property
    def _all_roads(self) -> Reals:
        from windage.kernels import diameter as kernel

        likeliest = np.maximum.reduceat(self.moves, self.space.offsets[:-1], axis=0)
        costs = np.full(likeliest.shape, math.inf)
        np.divide(1.0, np.maximum(likeliest, _LEAST_PROBABILITY), out=costs, where=likeliest > 0.0)
        np.fill_diagonal(costs, 0.0)
        kernel.all_roads(costs)
        return costs

    @functools.cached_property
    def _backward(self) -> csr_array:
        """The cost of every direct move, by target and source."""
        S = self.space.n_states
        sources = np.repeat(self.space.state_of, np.diff(self.rows))
        likeliest_first = np.lexsort((-self.probabilities, sources, self.states))
        edges = self.states[likeliest_first].astype(np.int64) * S + sources[likeliest_first]
        new = np.flatnonzero(np.diff(edges, prepend=-1))
        likeliest = self.probabilities[likeliest_first][new]
        costs = 1.0 / np.maximum(likeliest, _LEAST_PROBABILITY)
        return csr_array((costs, (edges[new] // S, edges[new] % S)), shape=(S, S))

    def along(self, roads: Reals) -> Integers:
        """Return the policy that tries to take the roads: it reaches their target surely."""
        costs = 1.0 / np.maximum(self.probabilities, _LEAST_PROBABILITY) + roads[self.states]
        moving = np.flatnonzero(np.diff(self.rows))
        value = np.full(self.space.n_pairs, -math.inf)
        value[moving] = -np.minimum.reduceat(costs, self.rows[moving])
        return self.first_best(value)

    def first_best(self, values: Reals) -> Integers:
        """Return for every state its first pair of largest value."""
        starts = self.space.offsets[:-1]
        best = np.maximum.reduceat(values, starts)
        hits = np.flatnonzero(values == best[self.space.state_of])
        return hits[np.searchsorted(hits, starts)]


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

    def __init__(self, model: Drops, tol: float) -> None:
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


def surely(model: Drops, target: int) -> tuple[Integers, Integers]:
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
    return as_csr(transitions, "transitions") if issparse(transitions) else transitions


def classes(
    space: StateActions, rows: NDArray[np.int64], states: NDArray[np.int32]
) -> tuple[int, NDArray[np.int32]]:
    """Return the number of strongly connected classes and the class of each state.

    `rows` and `states` list the possible next states of every pair, as in CSR.
    """
    from scipy.sparse.csgraph import connected_components

    n, labels = connected_components(
        _edges(space, rows, states), directed=True, connection="strong"
    )
    return int(n), labels


def unreachable(
    space: StateActions, rows: NDArray[np.int64], states: NDArray[np.int32]
) -> tuple[int, int] | None:
    """Return a pair (s, s') such that no policy leads from s to s', or None."""
    n, labels = classes(space, rows, states)
    if n == 1:
        return None
    edges = _edges(space, rows, states).tocoo()
    leaves = np.zeros(n, dtype=bool)
    leaves[labels[edges.row[labels[edges.row] != labels[edges.col]]]] = True
    closed = int(np.flatnonzero(~leaves)[0])  # a finite graph has a class that is never left
    return int(np.argmax(labels == closed)), int(np.argmax(labels != closed))


def _edges(space: StateActions, rows: NDArray[np.int64], states: NDArray[np.int32]) -> csr_array:
    require_parts(rows, states, states, (space.n_pairs, space.n_states), "transitions")
    starts = rows[space.offsets]  # the rows of a state's pairs lie side by side
    return csr_array(
        (np.ones(states.size, dtype=bool), states, starts), shape=(space.n_states, space.n_states)
    )
