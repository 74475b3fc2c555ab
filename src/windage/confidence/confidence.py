"""Confidence regions: the plausible rewards and kernels an optimist chooses from (Eqs. (4), (5)).

For every pair, the largest plausible reward and an L1 ball of kernels around p_hat; the ball's
radius is widened by eta, the paper's remedy against drift. A pair never visited may do anything:
its set is the whole simplex, said explicitly, since its p_hat is no distribution (E8).

Boxes of kernels: bounds for every entry of a row instead of one L1 radius (UCRL2B).

An L1 ball of radius eta inside the simplex moves at most eta / 2 of mass to or from any one state,
so a box is widened by eta / 2 at both ends of every entry: it then holds every kernel within eta of
one it held before, which is what the widening is for (docs/adr/0011).

EVI finds the optimistic policy of a region, with its certificate (section 4, Eq. (6)). It
stops when span(Tu - u) <= epsilon and then returns rho~ = max(Tu - u) and gamma~ = u - min u, for
which the corrected Properties 1 and 2 of the paper hold exactly:

1. rho~ + gamma~(s) >= r~(s, a) + max_q q.gamma~ for every pair (E11: the maximum of the sum);
2. r~(s, pi~) >= rho~ + gamma~(s) - p~.gamma~ - epsilon for every state.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from windage.errors import InputError, ModelError, NotConverged
from windage.rng import key
from windage.spaces import StateActions, as_space
from windage.validation import as_choice, as_csr, as_floats, as_integer, as_real, as_seed, shown

__all__ = ["BoxRegion", "ConfidenceRegion", "OptimisticModel", "evi", "not_converged"]

_GRID = 1 << 20  # up to as many cells may be kept in full, zeros and all
_OFF = 1e-9  # a row of p_hat may sum to 1 within this


@dataclass(frozen=True, eq=False, init=False)
class ConfidenceRegion:
    """Optimistic rewards and L1 balls of kernels, over pairs.

    Parameters
    ----------
    space
        States and actions.
    reward_upper
        The largest plausible mean reward of each pair, r~.
    p_hat
        Estimated kernels [pair, state], dense or CSR; rows of pairs not visited are not looked at.
    radius
        L1 radius of each pair's set, without the widening.
    visited
        Which pairs were visited; all others may do anything.
    widening
        eta, one number or one for each pair.

    Examples
    --------
    >>> space = StateActions([1, 1])
    >>> region = ConfidenceRegion(space, [1.0, 0.0], [[0, 1], [1, 0]], [0.0, 0.0], [True, True],
    ...                           widening=0.5)
    >>> region.best_row(0, np.array([1.0, 0.0])).tolist()
    [0.25, 0.75]
    """

    space: StateActions
    reward_upper: NDArray[np.float64]
    p_hat: scipy.sparse.csr_array
    radius: NDArray[np.float64]
    visited: NDArray[np.bool_]
    widening: NDArray[np.float64]

    def __init__(
        self,
        space: StateActions,
        reward_upper: ArrayLike,
        p_hat: ArrayLike | scipy.sparse.csr_array,
        radius: ArrayLike,
        visited: ArrayLike,
        widening: ArrayLike = 0.0,
    ) -> None:
        as_space(space)
        pairs = space.n_pairs
        try:
            seen = np.array(visited)
        except ValueError:
            seen = np.array(None)  # uneven rows: no booleans either
        if seen.dtype != np.bool_ or seen.shape != (pairs,):
            raise InputError(
                f"has type {seen.dtype} and shape {seen.shape}",
                field="visited",
                fix=f"pass {pairs} booleans",
            )
        fields = {
            "space": space,
            "reward_upper": over_pairs(reward_upper, "reward_upper", space, low=-np.inf),
            "radius": self._radii(radius, space),
            "visited": seen,
            "widening": over_pairs(widening, "widening", space, one_for_all=True),
            "p_hat": _kernels(p_hat, space, seen),
        }
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    @staticmethod
    def _radii(value: ArrayLike, space: StateActions) -> NDArray[np.float64]:
        return over_pairs(value, "radius", space)

    @staticmethod
    def box(
        space: StateActions,
        reward_upper: ArrayLike,
        p_hat: ArrayLike | scipy.sparse.csr_array,
        radius: ArrayLike,
        visited: ArrayLike,
        widening: ArrayLike = 0.0,
    ) -> BoxRegion:
        """Return a region of boxes: `radius[pair, state]` bounds every entry of a row by itself.

        A widening of eta adds eta / 2 to both ends of every entry.
        """
        return BoxRegion(space, reward_upper, p_hat, radius, visited, widening)

    def without_widening(self) -> Self:
        """Return the same sets with eta = 0."""
        made = copy.copy(self)
        object.__setattr__(made, "widening", np.zeros(self.space.n_pairs))
        return made

    @property
    def is_free(self) -> NDArray[np.bool_]:
        """Which sets are the whole simplex."""
        return np.asarray(self.width >= 2.0)

    @property
    def width(self) -> NDArray[np.float64]:
        """Radius plus widening of every pair; 2 where the set is the whole simplex."""
        return np.where(self.visited, np.minimum(self.radius + self.widening, 2.0), 2.0)

    def best_row(self, pair: int, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the kernel in the pair's set that makes q.u largest.

        Half the width moves to the best state; it is taken from the worst states first.
        """
        pair, u = self._asked(pair, u)
        order = np.lexsort((np.arange(u.size), u))
        best = order[-1]
        row = np.zeros(self.space.n_states)
        if self.width[pair] >= 2.0:
            row[best] = 1.0
            return row
        start, stop = self.p_hat.indptr[pair : pair + 2]
        row[self.p_hat.indices[start:stop]] = self.p_hat.data[start:stop]
        left = min(self.width[pair] / 2.0, 1.0 - row[best])
        row[best] += left
        for state in order[:-1]:
            take = min(left, row[state])
            row[state] -= take
            left -= take
        return row

    def _asked(self, pair: int, u: ArrayLike) -> tuple[int, NDArray[np.float64]]:
        """Return a pair and numbers over states, or say which is impossible."""
        place = as_integer(pair, "pair", low=0, high=self.space.n_pairs - 1)
        return place, one_each(u, "u", self.space.n_states, "state", low=-np.inf)

    def as_plan(self, u: NDArray[np.float64]) -> Any:
        """Return sets and workspace for the compiled planner, which starts from u."""
        from windage.kernels.evi import BOUND, VACUOUS

        u = self._asked(0, u)[1]
        free = self.width >= 2.0
        entries = np.where(free, 0, np.diff(self.p_hat.indptr))
        plan = blank_plan(self.space, int(entries.sum()))
        plan.pairs["reward"] = self.reward_upper
        plan.pairs["half"] = self.width / 2.0
        plan.pairs["kind"] = np.where(free, VACUOUS, BOUND)
        plan.pairs["row"] = np.cumsum(entries) - entries
        plan.pairs["entries"] = entries
        keep = np.repeat(~free, np.diff(self.p_hat.indptr))
        plan.rows["index"] = self.p_hat.indices[keep]
        plan.rows["probability"] = self.p_hat.data[keep]
        plan.u[:] = u
        return plan


def has_grid(cells: int, entries: int) -> bool:
    """Whether a plan with room for so many non-zeros keeps a grid of all cells beside them."""
    from windage.kernels.evi import SPARSEST

    return cells <= _GRID and SPARSEST * entries >= cells


def blank_plan(space: StateActions, entries: int, *, boxes: bool = False) -> Any:
    """Return an empty plan, `Balls` or `Boxes`, with room for so many non-zeros of p_hat."""
    from windage.kernels.evi import ENTRY, Balls, Boxes

    shared = plan_arrays(space, entries)
    if boxes:
        return Boxes(**shared, rooms=np.zeros(entries))
    lines = space.n_states + 2 if has_grid(space.n_pairs * space.n_states, entries) else 0
    return Balls(**shared, columns=np.zeros(entries, ENTRY), grid=np.zeros((lines, space.n_pairs)))


def plan_arrays(space: StateActions, entries: int) -> dict[str, Any]:
    """Return what plans of every class have, with room for so many non-zeros of p_hat."""
    from windage.kernels.evi import ANSWER, ENTRY, PAIR, STATE

    shared: dict[str, Any] = {
        "pairs": np.zeros(space.n_pairs, PAIR),
        "states": np.zeros(space.n_states, STATE),
        "u": np.zeros(space.n_states),
        "rows": np.zeros(entries, ENTRY),
        "answer": np.zeros(1, ANSWER),
    }
    shared["states"]["first"], shared["states"]["last"] = space.offsets[:-1], space.offsets[1:]
    return shared


def over_pairs(
    value: ArrayLike,
    field: str,
    space: StateActions,
    *,
    low: float = 0.0,
    one_for_all: bool = False,
) -> NDArray[np.float64]:
    """Return numbers over pairs, or say which one is impossible."""
    return one_each(
        value,
        field,
        space.n_pairs,
        "pair",
        low=low,
        one_for_all=one_for_all,
        place=space.describe,
    )


def one_each(
    value: ArrayLike,
    field: str,
    n: int,
    noun: str,
    *,
    low: float = 0.0,
    one_for_all: bool = False,
    place: Callable[[int], str] | None = None,
) -> NDArray[np.float64]:
    """Return a number for each of n things, or say which one is impossible."""
    fix = f"pass {n} numbers, by {noun}"
    try:
        array = as_floats(value, field)
    except ModelError as err:
        raise InputError(err.problem, field=field, fix=fix) from None
    if _has_boolean(value):
        raise InputError(f"{shown(value)} holds booleans, not numbers", field=field, fix=fix)
    if one_for_all and array.ndim == 0:
        array = np.full(n, array)
    if array.shape != (n,):
        raise InputError(f"has shape {array.shape}", field=field, fix=fix)
    wrong = ~np.isfinite(array) | (array < low)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise InputError(
            f"{array[i]} is not allowed",
            field=field,
            where=f"{noun} {i + 1}" if place is None else place(i),
            fix="pass finite numbers" + (" from 0 on" if low == 0.0 else ""),
        )
    return array


def _has_boolean(value: ArrayLike) -> bool:
    """Whether a boolean stands where numbers should; NumPy makes a 1 of it among other numbers."""
    if isinstance(value, (list, tuple)):
        return any(_has_boolean(entry) for entry in value)
    return np.asarray(value).dtype == np.bool_


def _kernels(
    value: ArrayLike | scipy.sparse.csr_array, space: StateActions, seen: NDArray[np.bool_]
) -> scipy.sparse.csr_array:
    """Return p_hat as CSR without zeros, the rows of pairs never visited left empty."""
    try:
        given: Any = value if scipy.sparse.issparse(value) else as_floats(value, "p_hat")
        if given.shape != (space.n_pairs, space.n_states):
            raise InputError(
                f"has shape {given.shape}",
                field="p_hat",
                fix=f"pass one of shape ({space.n_pairs}, {space.n_states})",
            )
        p = scipy.sparse.csr_array(given) if given is not value else as_csr(given, "p_hat")
    except ModelError as err:
        fix = "pass p_hat[pair, state]"
        raise InputError(err.problem, field="p_hat", where=err.where, fix=fix) from None
    p.data[np.repeat(~seen, np.diff(p.indptr))] = 0.0
    p.eliminate_zeros()
    row_of = np.repeat(np.arange(space.n_pairs), np.diff(p.indptr))
    wrong = ~np.isfinite(p.data) | (p.data < 0.0)
    sums = np.zeros(space.n_pairs)
    if wrong.any():
        place = int(np.argmax(wrong))
        raise InputError(
            f"{p.data[place]} is no probability",
            field="p_hat",
            where=f"{space.describe(int(row_of[place]))}, next state {p.indices[place]}",
            fix="pass numbers from 0 to 1",
        )
    np.add.at(sums, row_of, p.data)
    off = seen & (np.abs(sums - 1.0) > _OFF)
    if off.any():
        pair = int(np.argmax(off))
        raise InputError(
            f"the row sums to {float(sums[pair])!r}",
            field="p_hat",
            where=space.describe(pair),
            fix="divide the counts of a visited pair by its visits",
        )
    return p


@dataclass(frozen=True, eq=False, init=False)
class BoxRegion(ConfidenceRegion):
    """Optimistic rewards and boxes of kernels; `ConfidenceRegion.box` makes one.

    `radius` is [pair, state]: how far each entry may be from its estimate.
    """

    @staticmethod
    def _radii(value: ArrayLike, space: StateActions) -> NDArray[np.float64]:
        fix = f"pass radius[pair, state] of shape ({space.n_pairs}, {space.n_states}), from 0 on"
        try:
            radius = as_floats(value, "radius")
        except ModelError as err:
            raise InputError(err.problem, field="radius", fix=fix) from None
        if radius.shape != (space.n_pairs, space.n_states):
            raise InputError(f"has shape {radius.shape}", field="radius", fix=fix)
        wrong = ~np.isfinite(radius) | (radius < 0.0)
        if wrong.any():
            pair, state = (int(i) for i in np.argwhere(wrong)[0])
            raise InputError(
                f"{radius[pair, state]} is not allowed",
                field="radius",
                where=f"{space.describe(pair)}, next state {state}",
                fix=fix,
            )
        return radius

    @property
    def lower(self) -> NDArray[np.float64]:
        """The least plausible probability of every entry."""
        return np.where(self.visited[:, None], np.maximum(self._estimate() - self._off(), 0.0), 0.0)

    @property
    def upper(self) -> NDArray[np.float64]:
        """The largest plausible probability of every entry."""
        return np.where(self.visited[:, None], np.minimum(self._estimate() + self._off(), 1.0), 1.0)

    def _estimate(self) -> NDArray[np.float64]:
        return np.asarray(self.p_hat.toarray())

    def _off(self) -> NDArray[np.float64]:
        return np.asarray(self.radius + self.widening[:, None] / 2.0)

    @property
    def width(self) -> NDArray[np.float64]:
        """[pair, state] how far apart the bounds of every entry are."""
        return np.asarray(self.upper - self.lower)

    @property
    def is_free(self) -> NDArray[np.bool_]:
        """Which sets are the whole simplex."""
        return np.asarray((self.lower == 0.0).all(axis=1) & (self.upper == 1.0).all(axis=1))

    def best_row(self, pair: int, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the kernel in the pair's box that makes q.u largest.

        Every state gets its lower bound; what is left goes to the best states first.
        """
        pair, u = self._asked(pair, u)
        row: NDArray[np.float64] = self.lower[pair]
        upper = self.upper[pair]
        left = 1.0 - row.sum()
        for state in np.lexsort((np.arange(u.size), u))[::-1]:
            given = min(left, upper[state] - row[state])
            row[state] += given
            left -= given
        return row

    def as_plan(self, u: NDArray[np.float64]) -> Any:
        """Return sets and workspace for the compiled planner, which starts from u."""
        from windage.kernels.evi import BOUND, VACUOUS

        u = self._asked(0, u)[1]
        pairs, states, free = self.space.n_pairs, self.space.n_states, self.is_free
        plan = blank_plan(self.space, pairs * states, boxes=True)
        plan.pairs["reward"] = self.reward_upper
        plan.pairs["kind"] = np.where(free, VACUOUS, BOUND)
        plan.pairs["row"] = np.arange(pairs) * states
        plan.pairs["entries"] = np.where(free, 0, states)
        plan.rows["index"] = np.tile(np.arange(states), pairs)
        plan.rows["probability"] = self.lower.ravel()
        plan.rooms[:] = (self.upper - self.lower).ravel()
        plan.u[:] = u
        return plan


SWEEPS = 100_000
"""EVI gives up after as many full sweeps."""


@dataclass(frozen=True, eq=False)
class OptimisticModel:
    """What EVI found.

    Attributes
    ----------
    policy
        pi~, the action of each state.
    gain
        rho~, the optimistic gain.
    bias
        gamma~ = u - min u, of the vector that was swept last.
    span
        max gamma~.
    gap
        span(Tu - u), at most epsilon.
    sweeps
        Full sweeps it took.
    action_values
        r~ + max q.u of every pair in the last sweep.
    tied
        Whether the pair is within the slack of its state's best.
    """

    region: ConfidenceRegion
    policy: NDArray[np.int64]
    gain: float
    bias: NDArray[np.float64]
    span: float
    gap: float
    sweeps: int
    action_values: NDArray[np.float64]
    tied: NDArray[np.bool_]

    @cached_property
    def transitions(self) -> NDArray[np.float64]:
        """p~(. | s, pi~(s)) of every state: the plausible kernels the policy counts on."""
        pairs = self.region.space.offsets[:-1] + self.policy
        return np.stack([self.region.best_row(int(pair), self.bias) for pair in pairs])


def evi(
    region: ConfidenceRegion,
    epsilon: float = 1e-3,
    warm_start: ArrayLike | None = None,
    ties: str = "lowest",
    slack: float = 0.0,
    *,
    method: str = "auto",
    seed: int = 0,
    max_sweeps: int = SWEEPS,
) -> OptimisticModel:
    """Return the optimistic policy, gain and bias of a confidence region.

    Parameters
    ----------
    region
        Plausible rewards and kernels.
    epsilon
        How far the gain may be off: it stops when span(Tu - u) is at most this.
    warm_start
        Any vector over states to start from, such as the last bias; None starts from 0.
    ties
        Which of the actions within `slack` of the best to play: the "lowest", or a "random" one
        drawn with `seed`.
    slack
        How much worse than the best an action may be and still count as tied.
    method
        "auto" evaluates the greedy policy between full sweeps if there is a warm start; "plain" is
        the paper's iteration and nothing else. Both end with a full sweep that passes the test.

    Raises
    ------
    NotConverged
        When the span stops falling or `max_sweeps` full sweeps were not enough: plausible kernels
        that do not communicate. Sets of positive width always do.

    Examples
    --------
    >>> import windage as wd
    >>> space = wd.StateActions([1, 1])
    >>> region = wd.ConfidenceRegion(space, [1, 0], [[0, 1], [1, 0]], [0, 0], [True, True], 0.5)
    >>> model = wd.evi(region, epsilon=1e-9)
    >>> round(model.gain, 6)
    0.571429
    """
    from windage.kernels import evi as kernel
    from windage.kernels.random import uniform

    if not isinstance(region, ConfidenceRegion):
        raise InputError(f"{region!r} is no region", field="region", fix="pass a ConfidenceRegion")
    epsilon = as_real(epsilon, "epsilon", low=0.0, open_low=True)
    slack = as_real(slack, "slack", low=0.0)
    ties = as_choice(ties, "ties", ("lowest", "random"))
    quick = as_choice(method, "method", ("auto", "plain")) == "auto"
    most = as_integer(max_sweeps, "max_sweeps", low=1)
    seed_key = key(as_seed(seed), "evi.ties")
    space = region.space
    plan = region.as_plan(_start(warm_start, space.n_states))
    if isinstance(plan, kernel.Balls):
        kernel.arrange(plan, plan.rows.size)
    if not kernel.solve(plan, epsilon, quick, most):
        raise not_converged(plan.answer[0], epsilon)
    values = plan.pairs["value"].copy()
    bars = np.array([kernel.tie_bar(best, slack) for best in plan.states["swept"]])
    tied = values >= bars[space.state_of]
    policy = np.empty(space.n_states, np.int64)
    for s in range(space.n_states):
        choices = np.flatnonzero(tied[space.offsets[s] : space.offsets[s + 1]])
        skip = int(uniform(seed_key, 0, s) * choices.size) if ties == "random" else 0
        policy[s] = choices[skip]
    gain, span, gap, sweeps = plan.answer[0].item()[:4]
    return OptimisticModel(
        region, policy, float(gain), plan.u, float(span), float(gap), int(sweeps), values, tied
    )


def not_converged(answer: Any, epsilon: float) -> NotConverged:
    """Return the error that says how far EVI came."""
    return NotConverged(
        f"after {answer['sweeps']} sweeps span(Tu - u) is {answer['gap']:.3g}, "
        f"wanted {epsilon:.3g}",
        field="evi",
        fix="use a positive radius or widening, so that the plausible kernels communicate",
    )


def _start(warm_start: ArrayLike | None, states: int) -> NDArray[np.float64]:
    if warm_start is None:
        return np.zeros(states)
    fix = f"pass {states} finite numbers"
    try:
        u = as_floats(warm_start, "warm_start")
    except ModelError as err:
        raise InputError(err.problem, field="warm_start", fix=fix) from None
    if u.shape != (states,) or not np.isfinite(u).all():
        raise InputError(
            f"has shape {u.shape}" if u.shape != (states,) else "holds NaN or infinity",
            field="warm_start",
            fix=fix,
        )
    u -= u.min()  # a common offset would cost the gain its digits
    return u
