"""What a bias and a policy prove of the optimal gain, however they were found.

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
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from windage.errors import InputError, ModelError
from windage.spaces import StateActions
from windage.validation import as_csr, as_integers

__all__ = ["Bracket", "Model", "Solution", "certify", "checked"]

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Transitions: TypeAlias = Floats | csr_array

TOLERANCE = 1e-9
"""How far a row may be from summing to one and still be rounding; it counts as rescaled."""


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
        own equation g + h = r + P h; found by sweeps (`method` says so), only up to `tol`.
    parts
        `parts[k, s]`, whose exact sum over k is h up to a constant: one row, or more where the
        digits of a double a state would not close the bracket.
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
    parts: Floats


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


def certify(
    space: StateActions,
    rewards: ArrayLike,
    transitions: ArrayLike | Transitions,
    bias: ArrayLike,
    policy: ArrayLike,
) -> Bracket:
    """Return the bracket of the largest gain that a bias and a policy prove, however found.

    `bias` is h[s], or h[k, s] to be summed over k without rounding, as the `parts` of a solution.

    >>> space = StateActions([2])
    >>> lower, upper, _ = certify(space, [0.25, 0.5], [[1.0], [1.0]], bias=[0.0], policy=[0])
    >>> round(lower, 9), round(upper, 9)
    (0.25, 0.5)
    """
    model = checked(space, rewards, transitions)
    h = floats(bias, "bias")
    if h.shape[-1:] != (space.n_states,) or h.ndim > 2 or not (np.abs(h) < 1e290).all():
        raise InputError(
            f"is not one finite number a state (shape {h.shape})", field="bias", fix="pass h[s]"
        )
    return bracket_of(model, h, as_pairs(space, policy, "policy"))


def checked(space: StateActions, rewards: ArrayLike, transitions: ArrayLike | Transitions) -> Model:
    """Return the model of these arrays, its rows rescaled, or say what is impossible in them."""
    r = floats(rewards, "rewards")
    if r.shape != (space.n_pairs,) or not np.isfinite(r).all():
        raise ModelError(
            f"is not one finite number a pair (shape {r.shape}, {space.n_pairs} pairs)",
            field="rewards",
            fix="pass rewards[pair]",
        )
    p: Any = transitions if issparse(transitions) else floats(transitions, "transitions")
    if p.shape != (space.n_pairs, space.n_states):
        raise ModelError(
            f"has shape {p.shape}, the space needs {(space.n_pairs, space.n_states)}",
            field="transitions",
            fix="pass transitions[pair, s']",
        )
    rows = as_csr(p, "transitions") if issparse(p) else csr_array(p)
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


def bracket_of(model: Model, bias: Floats, pairs: Ints) -> Bracket:
    """Return the bracket of the module docstring for any h and any policy."""
    values, noise = residuals(model, bias)
    label = closed_classes(model.rows[pairs])
    least = np.full(label.max() + 1, np.inf)
    inside = np.flatnonzero(label >= 0)
    np.minimum.at(least, label[inside], (values - noise)[pairs[inside]])
    return Bracket(float(least.max()), float((values + noise).max()), float(noise.max()))


def residuals(model: Model, bias: Floats) -> tuple[Floats, Floats]:
    """Return the residuals of all pairs, and bounds of their rounding errors.

    A bias h[k, s] is summed over k; its products and sums are exact too, and rounded at the end.
    """
    from windage.kernels.gain import residuals

    if bias.ndim == 2:
        return _exact_residuals(model, bias)
    values, noise = np.empty(model.rewards.size), np.empty(model.rewards.size)
    residuals(model.space.offsets, *cells(model), model.rewards, bias, values, noise)
    return values, noise


def _exact_residuals(model: Model, bias: Floats) -> tuple[Floats, Floats]:
    starts, states, p = cells(model)
    here = np.repeat(model.space.state_of, np.diff(starts))
    moves = np.where(states == here, 0.0, p)
    terms = [product for h in bias for x in (h[states], -h[here]) for product in _product(moves, x)]
    table = np.stack(terms, axis=1)
    ends = pairwise(starts.tolist())
    up = np.array([math.fsum(table[a:b].ravel().tolist()) / math.fsum(p[a:b]) for a, b in ends])
    # fsum rounds once, but p * h may fall below the smallest double: 1e-200 is far above that
    return model.rewards + up, 2.0**-50 * (np.abs(model.rewards) + np.abs(up)) + 1e-200


def _product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return two doubles whose sum is a b, exactly (Dekker 1971)."""
    (a0, a1), (b0, b1) = _halves(a), _halves(b)
    product = a * b
    return product, ((a0 * b0 - product) + a0 * b1 + a1 * b0) + a1 * b1


def _halves(a: Floats) -> tuple[Floats, Floats]:
    big = 134217729.0 * a  # 2^27 + 1
    high = big - (big - a)
    return high, a - high


def cells(model: Model) -> tuple[Ints, NDArray[np.int32], Floats]:
    rows = model.rows
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data


def closed_classes(chain: csr_array) -> Ints:
    """Return the number of the closed class of each state, -1 for transient states."""
    from scipy.sparse.csgraph import connected_components

    n, part = connected_components(chain, directed=True, connection="strong")
    source = np.repeat(part, np.diff(chain.indptr))
    left = np.zeros(n, dtype=bool)
    left[source[source != part[chain.indices]]] = True
    found: Ints = np.where(left, -1, np.cumsum(~left) - 1)[part]
    return found


def as_pairs(space: StateActions, policy: ArrayLike, field: str) -> Ints:
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


def floats(values: object, field: str) -> Floats:
    try:
        return np.ascontiguousarray(values, dtype=np.float64).view()
    except (TypeError, ValueError) as err:
        raise ModelError(
            f"is not an array of numbers ({err})", field=field, fix="pass numbers in equal rows"
        ) from None


def solution(
    method: str,
    space: StateActions,
    pairs: Ints,
    gains: Floats,
    bias: Floats,
    bracket: Bracket,
    count: int,
) -> Solution:
    parts = np.atleast_2d(bias)
    if len(parts) > 1:
        bias = np.array([math.fsum(column) for column in parts.T.tolist()])
    bias, policy = bias - bias.min(), pairs - space.offsets[:-1]
    for array in (gains, bias, policy, parts):
        array.flags.writeable = False
    lower, upper, _ = bracket
    gain = min(max(float(gains.max()), lower), upper)
    return Solution(gain, gains, lower, upper, bias, policy, method, count, parts)
