"""The optimal gain of a model: policy iteration, relative value iteration, and their certificate.

Every answer carries a bracket that does not depend on how the answer was found. For any vector h
let c(s, a) = r(s, a) + sum_s' p(s' | s, a) (h(s') - h(s)), the residual of a pair.

- `upper` = max c over all pairs is at least the gain of every policy from every state. Proof: the
  expected reward of n steps is that of n residuals plus h at the start minus h at the end, so the
  mean is at most `upper` + span(h) / n.
- `lower` = min c(s, pi(s)) over a closed class of the chain of pi is at most the gain of pi on that
  class. Proof: average over the stationary distribution of the class; h cancels. Of several
  classes the best bound counts.

On a model with several classes the policy's own h need not keep all residuals below the largest
gain: a pair that leads to a smaller gain may look good in h. Such a pair loses g(s) - P g > 0 of
gain. So h + M g leaves the policy's residuals as they are, since there P g = g, and lowers those
pairs by M times their loss; the least M that is enough is taken.

Policy iteration stops when no action is better by more than rounding, or after a fixed number of
policies. Relative value iteration stops when the residuals of all states are within `tol` of each
other, when they have settled on different values, or after a number of sweeps set by S and `tol`.
In all cases the bracket decides: wider than `tol`, up to rounding, it raises `NotConverged`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, diags_array, eye_array, issparse

from windage.errors import InputError, ModelError, NotConverged
from windage.inputs import as_choice, as_integers, as_real
from windage.spaces import StateActions

__all__ = ["Bracket", "Model", "Solution", "certify", "checked", "solve", "solve_many"]

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Transitions: TypeAlias = Floats | csr_array

POLICY, VALUE = "policy-iteration", "value-iteration"

TOLERANCE = 1e-9
"""How far a row may be from summing to one and still be rounding; it counts as rescaled."""

SMALL = 200
"""Up to so many states policy iteration runs compiled, on dense rows."""

ROUNDS = 60
"""Policies evaluated before policy iteration tries another way."""

LEAKS = (1e-6, 1e-8)
"""Chances per step of starting anew that keep every bias within reach, tried one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """An optimal policy, its gain, and the proof.

    Attributes
    ----------
    gain
        The largest gain over start states, which is the value of the linear program.
    gains
        The optimal gain of each start state; all the same if the model is weakly communicating.
    lower, upper
        The gain lies between them, rounding included; the module says why.
    bias
        The vector h of the certificate, its least entry 0. With `gains` it solves the policy's
        own equation g + h = r + P h.
    policy
        The action of each state, an index within A_s.
    method
        "policy-iteration" or "value-iteration".
    iterations
        Policies evaluated, or sweeps made.
    """

    gain: float
    gains: Floats
    lower: float
    upper: float
    bias: Floats
    policy: Ints
    method: str
    iterations: int


class Bracket(NamedTuple):
    """Bounds of the largest gain over start states, each moved outwards by up to `rounding`."""

    lower: float
    upper: float
    rounding: float


class Model(NamedTuple):
    """Arrays that were checked: rewards over pairs, and CSR rows that sum to one."""

    space: StateActions
    rewards: Floats
    rows: csr_array


def solve(
    space: StateActions,
    rewards: ArrayLike,
    transitions: ArrayLike | Transitions,
    tol: float = 1e-9,
    method: str = "auto",
    warm: ArrayLike | None = None,
) -> Solution:
    """Return an optimal policy with its gain, certified to `tol`.

    Parameters
    ----------
    space
        States and actions.
    rewards
        `rewards[pair]`, any finite numbers.
    transitions
        `transitions[pair, s']`, dense or sparse.
    tol
        The widest bracket that is accepted; rounding may widen it further.
    method
        "policy-iteration" (also "auto") solves linear systems. It takes any model, periodic or
        with several classes; a large one needs the memory of a sparse LU factorisation.
        "value-iteration" takes only models whose gain is the same from every start state.
    warm
        A policy for policy iteration to start from, one action a state.

    Examples
    --------
    A ring of two states that pays 1 every other step:

    >>> space = StateActions([1, 2])
    >>> found = solve(space, [0.0, 1.0, 0.2], [[0, 1], [1, 0], [0, 1]])
    >>> found.gain, found.policy.tolist(), found.bias.tolist()
    (0.5, [0, 0], [0.0, 0.5])
    """
    width = as_real(tol, "tol", low=0.0, open_low=True)
    if as_choice(method, "method", ["auto", POLICY, VALUE]) == VALUE:
        if warm is not None:
            raise InputError(
                "value iteration does not start from a policy",
                field="warm",
                fix=f'leave it out, or take method="{POLICY}"',
            )
        return _value_iteration(checked(space, rewards, transitions), width)
    start = None if warm is None else _as_pairs(space, warm, "warm")
    if space.n_states > SMALL:
        model = checked(space, rewards, transitions)
        return _general(model, _aim(model) if start is None else start, width, 0)
    if issparse(transitions):
        transitions = transitions.toarray()  # type: ignore[union-attr]
    r, p = _floats(rewards, "rewards"), _floats(transitions, "transitions")
    return _compiled(space, r[None], p[None], width, start)[0]


def solve_many(
    space: StateActions,
    rewards: ArrayLike,
    transitions: Floats | Sequence[Transitions],
    tol: float = 1e-9,
    warm: ArrayLike | None = None,
) -> list[Solution]:
    """Solve models that follow each other, each from the optimal policy of the one before.

    `rewards[i, pair]` and `transitions[i, pair, s']` are those of model i; transitions may also be
    a list of sparse matrices. Small dense models share one compiled loop.

    >>> space = StateActions([2])
    >>> found = solve_many(space, [[0.1, 0.2], [0.4, 0.3]], np.ones((2, 2, 1)))
    >>> [(one.gain, one.policy.tolist()) for one in found]
    [(0.2, [1]), (0.4, [0])]
    """
    width = as_real(tol, "tol", low=0.0, open_low=True)
    start = None if warm is None else _as_pairs(space, warm, "warm")
    r = _floats(rewards, "rewards")
    if r.ndim != 2 or len(transitions) != len(r):
        raise ModelError(
            f"has shape {r.shape}, there are {len(transitions)} transitions",
            field="rewards",
            fix="pass rewards[i, pair] and as many transitions",
        )
    if isinstance(transitions, np.ndarray) and space.n_states <= SMALL:
        p = _floats(transitions, "transitions")
        return _compiled(space, r, p, width, start) if len(r) else []
    found: list[Solution] = []
    for one, rows in zip(r, transitions, strict=True):
        found.append(solve(space, one, rows, width, warm=warm))
        warm = found[-1].policy
    return found


def certify(
    space: StateActions,
    rewards: ArrayLike,
    transitions: ArrayLike | Transitions,
    bias: ArrayLike,
    policy: ArrayLike,
) -> Bracket:
    """Return the bracket of the largest gain that a bias and a policy prove, however found.

    >>> space = StateActions([2])
    >>> lower, upper, _ = certify(space, [0.25, 0.5], [[1.0], [1.0]], bias=[0.0], policy=[0])
    >>> round(lower, 9), round(upper, 9)
    (0.25, 0.5)
    """
    model = checked(space, rewards, transitions)
    h = _floats(bias, "bias")
    if h.shape != (space.n_states,) or not np.isfinite(h).all():
        raise InputError(
            f"is not one finite number a state (shape {h.shape})", field="bias", fix="pass h[s]"
        )
    return _bracket(model, h, _as_pairs(space, policy, "policy"))


def checked(space: StateActions, rewards: ArrayLike, transitions: ArrayLike | Transitions) -> Model:
    """Return the model of these arrays, its rows rescaled, or say what is impossible in them."""
    r = _floats(rewards, "rewards")
    if r.shape != (space.n_pairs,) or not np.isfinite(r).all():
        raise ModelError(
            f"is not one finite number a pair (shape {r.shape}, {space.n_pairs} pairs)",
            field="rewards",
            fix="pass rewards[pair]",
        )
    p: Any = transitions if issparse(transitions) else _floats(transitions, "transitions")
    if p.shape != (space.n_pairs, space.n_states):
        raise ModelError(
            f"has shape {p.shape}, the space needs {(space.n_pairs, space.n_states)}",
            field="transitions",
            fix="pass transitions[pair, s']",
        )
    rows = csr_array(p, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    sums = np.asarray(rows.sum(axis=1)).ravel()
    wrong = ~(np.abs(sums - 1.0) <= TOLERANCE)
    wrong[np.repeat(np.arange(wrong.size), np.diff(rows.indptr))[rows.data < -TOLERANCE]] = True
    if wrong.any():
        pair = int(np.argmax(wrong))
        raise ModelError(
            f"row with least entry {rows[[pair]].min():.12g} sums to {sums[pair]:.12g}",
            field="transitions",
            where=space.describe(pair),
            fix="pass non-negative rows that sum to 1",
        )
    np.maximum(rows.data, 0.0, out=rows.data)
    rows.eliminate_zeros()
    rows.data /= np.repeat(np.asarray(rows.sum(axis=1)).ravel(), np.diff(rows.indptr))
    return Model(space, r, rows)


def _bracket(model: Model, bias: Floats, pairs: Ints) -> Bracket:
    """Return the bracket of the module docstring for any h and any policy."""
    values, noise = _residuals(model, bias)
    label = _closed_classes(model.rows[pairs])
    least = np.full(label.max() + 1, np.inf)
    inside = np.flatnonzero(label >= 0)
    np.minimum.at(least, label[inside], (values - noise)[pairs[inside]])
    return Bracket(float(least.max()), float((values + noise).max()), float(noise.max()))


def _residuals(model: Model, bias: Floats) -> tuple[Floats, Floats]:
    """Return the residuals of all pairs, and bounds of their rounding errors."""
    from windage.kernels.gain import residuals

    values, noise = np.empty(model.rewards.size), np.empty(model.rewards.size)
    residuals(model.space.offsets, *_cells(model), model.rewards, bias, values, noise)
    return values, noise


def _cells(model: Model) -> tuple[Ints, NDArray[np.int32], Floats]:
    rows = model.rows
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data


def _closed_classes(chain: csr_array) -> Ints:
    """Return the number of the closed class of each state, -1 for transient states."""
    from scipy.sparse.csgraph import connected_components

    n, part = connected_components(chain, directed=True, connection="strong")
    source = np.repeat(part, np.diff(chain.indptr))
    left = np.zeros(n, dtype=bool)
    left[source[source != part[chain.indices]]] = True
    found: Ints = np.where(left, -1, np.cumsum(~left) - 1)[part]
    return found


def _as_pairs(space: StateActions, policy: ArrayLike, field: str) -> Ints:
    actions = np.asarray(policy)
    if actions.dtype != np.int64:
        actions = as_integers(actions, field)
    if actions.shape != (space.n_states,) or ((actions < 0) | (actions >= space.counts)).any():
        raise InputError(
            f"is not an action of each of {space.n_states} states",
            field=field,
            fix="pass one action a state, below the number of its actions",
        )
    pairs: Ints = actions + space.offsets[:-1]
    return pairs


def _floats(values: object, field: str) -> Floats:
    try:
        return np.ascontiguousarray(values, dtype=np.float64).view()
    except (TypeError, ValueError) as err:
        raise ModelError(
            f"is not an array of numbers ({err})", field=field, fix="pass numbers in equal rows"
        ) from None


def _compiled(
    space: StateActions, rewards: Floats, transitions: Floats, tol: float, start: Ints | None
) -> list[Solution]:
    """Solve dense models in the compiled loop; those it cannot settle go the general way."""
    from windage.kernels import gain as kernels

    n, S = len(rewards), space.n_states
    if rewards.shape[1:] != (space.n_pairs,) or transitions.shape[1:] != (space.n_pairs, S):
        checked(space, rewards[0], transitions[0])  # raises
    policies = np.empty((n, S), dtype=np.int64)
    policies[0] = _aim(checked(space, rewards[0], transitions[0])) if start is None else start
    biases, numbers = np.empty((n, S)), np.empty((n, 3))
    ends = np.empty((n, 2), dtype=np.int64)
    rewards.flags.writeable = transitions.flags.writeable = False  # one version to compile
    kernels.policy_iterations(
        space.offsets, rewards, transitions, ROUNDS, policies, biases, ends, numbers,
        np.empty((S, S)), np.empty((4, S)), np.empty((3, S), dtype=np.int64),
    )  # fmt: skip
    gains, actions = np.repeat(numbers[:, :1], S, axis=1), policies - space.offsets[:-1]
    for array in (gains, biases, actions):
        array.flags.writeable = False
    found = []
    for i, (end, count) in enumerate(ends.tolist()):
        gain, lower, upper = numbers[i].tolist()
        if end == kernels.SETTLED and upper - lower <= tol:
            g = min(max(gain, lower), upper)
            found.append(Solution(g, gains[i], lower, upper, biases[i], actions[i], POLICY, count))
        else:
            model = checked(space, rewards[i], transitions[i])
            stuck = end == kernels.UNSETTLED
            found.append(_general(model, policies[i], tol, count, stuck=stuck))
    return found


def _general(
    model: Model, pairs: Ints, tol: float, rounds: int, *, stuck: bool = False
) -> Solution:
    """Policy iteration on sparse rows, for any structure of classes.

    Where a policy all but never leaves a bad part of the model its bias has no digits left, or
    overflows. Then the model with a small chance of starting anew at every step is solved first;
    its optimal policy does not have that flaw unless the model itself has.
    """
    bracket = Bracket(-math.inf, math.inf, 0.0)
    for leak in LEAKS if stuck else (0.0, *LEAKS):
        try:
            if leak > 0.0:
                pairs, count = _leaking(model, pairs, leak)
                rounds += count
            pairs, count, gains, bias, stable = _howard(model, pairs, tol)
        except ArithmeticError:
            continue
        rounds += count
        bias = _lifted(model, gains, bias, tol)
        bracket = _bracket(model, bias, pairs)
        if stable and bracket.upper - bracket.lower <= tol + 4.0 * bracket.rounding:
            return _solution(POLICY, model, pairs, gains, bias, bracket, rounds)
    raise NotConverged(
        f"after {rounds} policies the gain is only known to lie in "
        f"[{bracket.lower:.12g}, {bracket.upper:.12g}], and {tol:g} was asked for",
        field="policy iteration",
        fix="allow a larger tol; the model may be too slow for 64-bit numbers",
    )


def _howard(model: Model, pairs: Ints, tol: float) -> tuple[Ints, int, Floats, Floats, bool]:
    """Improve the policy until it is stable; return it with its gains and bias.

    The last value says whether the bracket can stand for all gains: it speaks of the largest, so
    not if they differ by start state and the policy was badly evaluated or not stable at the end.
    """
    state_of = model.space.state_of
    level = 64.0 * _margin(model, np.zeros(1))
    count = 0
    while True:
        gains, bias = _evaluate(model, pairs)
        count += 1
        values, noise = _residuals(model, bias)
        wrong = not np.abs(values[pairs] - gains).max() <= tol / 2 + noise.max()
        ahead = model.rows @ gains - gains[state_of]
        same = np.where(ahead >= -level, values, -np.inf)
        better = _switch(model, same, pairs, _margin(model, bias))
        first = _best(model, ahead)
        better = np.where(ahead[first] > level, first, better)  # a better gain comes first
        if np.array_equal(better, pairs) and not wrong:
            return pairs, count, gains, bias, True
        if wrong or count == ROUNDS:
            return pairs, count, gains, bias, bool(np.ptp(gains) <= tol)
        pairs = better


def _evaluate(model: Model, pairs: Ints) -> tuple[Floats, Floats]:
    """Return gain and bias of a policy; the bias is 0 at the first state of each closed class."""
    chain, rewards = model.rows[pairs], model.rewards[pairs]
    label, moves = _closed_classes(chain), _leaving(chain)
    if label.max() == 0:
        label = np.zeros_like(label)  # one closed class: one system for all states
    inside, outside = np.flatnonzero(label >= 0), np.flatnonzero(label < 0)
    gains, bias = np.empty(pairs.size), np.empty(pairs.size)
    gains[inside], bias[inside] = _relative_values(
        moves[inside][:, inside], rewards[inside], label[inside]
    )
    if outside.size:
        entry = chain[outside][:, inside]
        lu = _factor(moves[outside][:, outside])
        gains[outside] = lu(entry @ gains[inside])
        bias[outside] = lu(rewards[outside] - gains[outside] + entry @ bias[inside])
    return gains, bias


def _leaving(chain: csr_array) -> csr_array:
    """Return I - P, its diagonal summed from what leaves: 1 - p has no digits where p is near 1."""
    others = chain - diags_array(chain.diagonal())
    return diags_array(np.asarray(others.sum(axis=1)).ravel()) - others


def _relative_values(
    moves: csr_array, rewards: Floats, label: Ints, fixed: int | None = None
) -> tuple[Floats, Floats]:
    """Solve g + (I - P) h = r with one g for each label, and h = 0 at one state of each."""
    at = np.unique(label, return_index=True)[1] if fixed is None else np.array([fixed])
    free = np.ones(label.size)
    free[at] = 0.0
    place = (np.arange(label.size), at[label])
    gain_columns = csr_array((np.ones(label.size), place), shape=moves.shape)
    system = moves @ diags_array(free) + gain_columns
    lu = _factor(system)
    found = lu(rewards)
    found += lu(rewards - system @ found)
    return found[at][label], found * free


def _factor(matrix: Any) -> Callable[[Floats], Floats]:
    """Return the solver of a linear system: dense if that is cheaper, else sparse.

    A system it cannot solve is an `ArithmeticError`.
    """
    from scipy.linalg.lapack import dgetrf, dgetrs
    from scipy.sparse.linalg import splu

    if matrix.nnz > 0.1 * matrix.shape[0] ** 2:
        lu, pivots, _ = dgetrf(matrix.toarray(), overwrite_a=True)
        back = functools.partial(dgetrs, lu, pivots)
        return lambda b: _within_reach(back(b)[0])
    try:
        lu = splu(matrix.tocsc())
    except RuntimeError as err:  # SuperLU's word for a pivot that is exactly zero
        raise ArithmeticError("singular") from err
    return lambda b: _within_reach(lu.solve(b))


def _within_reach(values: Floats) -> Floats:
    if not np.abs(values).max() < 1e100:  # further on, sums and products could overflow
        raise ArithmeticError("out of reach")
    return values


def _leaking(model: Model, pairs: Ints, leak: float) -> tuple[Ints, int]:
    """Policy iteration on the model that starts anew with probability `leak` at every step.

    It starts with the better of two policies at every state: the one given, and the one that aims
    at the best paid state. Sweeps along the model and back before each switch carry news across
    it, which switches alone carry one state a round.
    """
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    from windage.kernels.gain import sweep

    space, keep = model.space, 1.0 - leak
    target = int(space.state_of[np.argmax(model.rewards)])
    one = np.zeros(pairs.size, dtype=np.int64)
    along = reverse_cuthill_mckee(_moves(model)).astype(np.int64)
    back = along[::-1].copy()

    def values(pairs: Ints) -> tuple[Floats, Floats]:
        moves = keep * _leaving(model.rows[pairs]) + leak * eye_array(pairs.size)
        return _relative_values(moves, model.rewards[pairs], one, target)

    aimed = _aim(model)
    (gain, bias), (other, its) = values(pairs), values(aimed)
    pairs = np.where(other / leak + its > gain / leak + bias, aimed, pairs)
    count = 2
    while count < ROUNDS:
        gain, bias = values(pairs)
        count += 1
        for order in (along, back, along, back):
            sweep(space.offsets, *_cells(model), model.rewards, gain[0], keep, target, order, bias)
        ahead = model.rewards + keep * (model.rows @ bias) - bias[space.state_of]
        better = _switch(model, ahead, pairs, _margin(model, bias))
        if np.array_equal(better, pairs):
            break
        pairs = better
    return pairs, count


def _aim(model: Model) -> Ints:
    """Return the policy that heads for the best paid pair, by reward where no way leads there.

    On long chains this is a far better start than the best paid pair everywhere.
    """
    from scipy.sparse.csgraph import dijkstra

    space, rows = model.space, model.rows
    goal = space.state_of[np.argmax(model.rewards)]
    far: Floats = dijkstra(_moves(model).T, indices=goal)
    here = far[space.state_of]
    nearer = far[rows.indices] < np.repeat(here, np.diff(rows.indptr))
    headway: Floats = np.add.reduceat(rows.data * nearer, rows.indptr[:-1])
    return _best(model, np.where((here > 0) & (here < np.inf), headway, model.rewards))


def _moves(model: Model) -> csr_array:
    """Return the graph of all moves, whatever the action, each with its expected tries 1 / p."""
    rows, n = model.rows, model.space.n_states
    return csr_array(
        (1.0 / rows.data, rows.indices, rows.indptr[model.space.offsets]), shape=(n, n)
    )


def _lifted(model: Model, gains: Floats, bias: Floats, tol: float) -> Floats:
    """Return h + M (g - max g) with the least M >= 0 that keeps all residuals below max g."""
    loss = gains[model.space.state_of] - model.rows @ gains
    excess = _residuals(model, bias)[0] - gains.max()
    wanting = (excess > tol / 4) & (loss > _margin(model, np.zeros(1)))
    enough = float(np.max(excess[wanting] / loss[wanting], initial=0.0))
    lifted: Floats = bias + enough * (gains - gains.max())
    return lifted


def _best(model: Model, values: Floats) -> Ints:
    """Return the first best pair of each state."""
    state_of = model.space.state_of
    top = np.maximum.reduceat(values, model.space.offsets[:-1])
    pairs = np.flatnonzero(values == top[state_of])
    return pairs[np.unique(state_of[pairs], return_index=True)[1]]


def _switch(model: Model, values: Floats, pairs: Ints, margin: float) -> Ints:
    """Return the best pair of each state where it beats the present one by more than `margin`."""
    best = _best(model, values)
    return np.where(values[best] > values[pairs] + margin, best, pairs)


def _margin(model: Model, bias: Floats) -> float:
    """Return what rounding may add to the difference of two action values."""
    from windage.kernels.gain import TIE

    return TIE * float(np.abs(model.rewards).max() + np.ptp(bias))


def _value_iteration(model: Model, tol: float) -> Solution:
    """Relative value iteration on p' = (1 - a) I + a p with a = 1/2, so that no period upsets it.

    The residuals of p' are a times those of p. Where gains differ the residuals settle on them:
    that is looked for each time the number of sweeps has doubled.
    """
    space = model.space
    bias, then = np.zeros(space.n_states), np.full(space.n_states, np.inf)
    digits = math.ceil(math.log(1.0 + np.ptp(model.rewards) / tol))
    limit, mark, count = 1000 + 100 * space.n_states * digits, max(1024, 8 * space.n_states), 0
    while True:
        count += 1
        ahead = model.rewards + model.rows @ bias - bias[space.state_of]
        best = np.maximum.reduceat(ahead, space.offsets[:-1])
        low, high = float(best.min()), float(best.max())
        if high - low <= tol / 2 or count == limit:
            break
        if count == mark:
            if np.abs(best - then).max() <= 1e-6 * (high - low):
                break
            mark, then = 2 * mark, best
        bias += 0.5 * best
        bias -= bias.min()
    pairs = _best(model, ahead)
    bracket = _bracket(model, bias, pairs)
    if high - low > tol / 2 or bracket.upper - bracket.lower > tol + 4.0 * bracket.rounding:
        ends = space.describe_state(int(best.argmin())), space.describe_state(int(best.argmax()))
        raise NotConverged(
            f"after {count} sweeps the gain seems to be {low:.12g} from {ends[0]} and "
            f"{high:.12g} from {ends[1]}, further apart than {tol:g}",
            field="value iteration",
            fix=f'take method="{POLICY}", or a larger tol',
        )
    gains = np.full(space.n_states, (bracket.lower + bracket.upper) / 2)
    return _solution(VALUE, model, pairs, gains, bias, bracket, count)


def _solution(
    method: str,
    model: Model,
    pairs: Ints,
    gains: Floats,
    bias: Floats,
    bracket: Bracket,
    count: int,
) -> Solution:
    bias, policy = bias - bias.min(), pairs - model.space.offsets[:-1]
    for array in (gains, bias, policy):
        array.flags.writeable = False
    gain = min(max(float(gains.max()), bracket.lower), bracket.upper)
    return Solution(gain, gains, bracket.lower, bracket.upper, bias, policy, method, count)
