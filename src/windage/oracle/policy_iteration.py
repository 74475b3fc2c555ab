"""Policy iteration for models of any structure and size: Howard's, gains before biases.

A policy is evaluated by elimination, class by class. It stops when no action is better by more than
rounding, or after a fixed number of policies; the bracket decides. Where a bias is so large that
doubles cannot close it, policy iteration goes on with biases of several doubles a state, each the
answer to what the ones before left over, and residuals that are rounded once (`residuals`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array

from windage.errors import NotConverged
from windage.oracle.certificate import (
    Bracket,
    Floats,
    Ints,
    Model,
    Solution,
    bracket_of,
    cells,
    closed_classes,
    residuals,
    solution,
)
from windage.spaces import StateActions

__all__ = ["aim", "best_pairs", "general"]

POLICY = "policy-iteration"

SMALL = 200
"""Up to so many states chains are taken apart without subtractions, and `gain` runs compiled."""

ROUNDS = 60
"""Policies evaluated before policy iteration tries another way."""

_PARTS = 24  # doubles a state; each halves what is left at least, or no more digits are to be had

_LEAST = 1e-290
"""Smaller probabilities are none to a linear system: they are slow, and 1 over them overflows."""

LEAKS = (1e-6, 1e-8)
"""Chances per step of starting anew that keep every bias within reach, tried one by one."""


def general(model: Model, pairs: Ints, tol: float, rounds: int, *, stuck: bool = False) -> Solution:
    """Policy iteration on sparse rows, for any structure of classes.

    Where a policy all but never leaves a bad part of the model its bias has no digits left, or
    overflows. Then the model with a small chance of starting anew at every step is solved first;
    its optimal policy does not have that flaw unless the model itself has.
    """
    bracket = Bracket(-math.inf, math.inf, 0.0)
    for leak in LEAKS if stuck else (0.0, *LEAKS):
        for evaluate in (_evaluate, _evaluate_further):
            try:
                if leak > 0.0 and evaluate is _evaluate:
                    pairs, count = _leaking(model, pairs, leak)
                    rounds += count
                pairs, count, gains, bias, stable = _howard(model, pairs, tol, evaluate)
            except ArithmeticError:
                break
            rounds += count
            bias = _lifted(model, gains, bias, tol)
            bracket = bracket_of(model, bias, pairs)
            if stable and bracket.upper - bracket.lower <= tol:
                return solution(POLICY, model.space, pairs, gains, bias, bracket, rounds)
            if not stable:
                break  # more digits are of no help
    raise NotConverged(
        f"after {rounds} policies the gain is only known to lie in "
        f"[{bracket.lower:.12g}, {bracket.upper:.12g}], and {tol:g} was asked for",
        field="policy iteration",
        fix="allow a larger tol; the model may be too slow for floating point",
    )


def _howard(
    model: Model, pairs: Ints, tol: float, evaluate: Callable[..., tuple[Floats, Floats]]
) -> tuple[Ints, int, Floats, Floats, bool]:
    """Improve the policy until it is stable; return it with its gains and bias.

    The last value says whether the bracket can stand for all gains: it speaks of the largest, so
    not if they differ by start state and the policy was badly evaluated or not stable at the end.
    """
    level = 64.0 * _margin(model, np.zeros(1))
    count = 0
    while True:
        gains, bias = evaluate(model, pairs)
        count += 1
        values, noise = residuals(model, bias)
        wrong = not np.abs(values[pairs] - gains).max() <= tol / 2 + noise.max()
        ahead, doubt = _rise(model, gains, level)
        same = np.where(ahead >= -doubt, values, -np.inf)
        better = _switch(model, same, pairs, 2.0 * noise, np.abs(values[pairs] - gains))
        first = best_pairs(model.space, ahead)
        better = np.where(ahead[first] > doubt[first], first, better)  # a better gain comes first
        if np.array_equal(better, pairs) and not wrong:
            return pairs, count, gains, bias, True
        if wrong or count == ROUNDS:
            return pairs, count, gains, bias, bool(np.ptp(gains) <= tol)
        pairs = better


def _rise(model: Model, gains: Floats, level: float) -> tuple[Floats, Floats]:
    """Return what each pair adds to the gain on average, and what rounding may have done to it.

    Summed over differences, so that even a move of tiny probability counts; gains that are closer
    than `level` are the same.
    """
    rows = model.rows
    step = gains[rows.indices] - np.repeat(gains[model.space.state_of], np.diff(rows.indptr))
    step[np.abs(step) <= level] = 0.0
    parts = rows.data * step
    starts = rows.indptr[:-1]
    return np.add.reduceat(parts, starts), 1e-12 * np.add.reduceat(np.abs(parts), starts)


def _evaluate_further(model: Model, pairs: Ints) -> tuple[Floats, Floats]:
    """Return gain and bias of a policy, the bias as rows to be added up, until nothing is left."""
    S = pairs.size
    chain = Model(StateActions.uniform(S, 1), model.rewards[pairs], model.rows[pairs])
    gains, parts, defect, before = np.zeros(S), np.empty((0, S)), chain.rewards, math.inf
    while len(parts) < _PARTS:
        more, part = _evaluate(chain, np.arange(S), defect)
        gains, parts = gains + more, np.vstack([parts, part])
        values, noise = residuals(chain, parts)
        defect = values - gains
        size = float(np.abs(defect).max())
        if size <= noise.max() or not size <= 0.5 * before:
            break
        before = size
    return gains, parts


def _evaluate(model: Model, pairs: Ints, rewards: Floats | None = None) -> tuple[Floats, Floats]:
    """Return gain and bias of a policy; the bias is 0 at one state of each closed class."""
    chain = model.rows[pairs]
    rewards = model.rewards[pairs] if rewards is None else rewards
    label, moves = closed_classes(chain), _leaving(chain)
    if label.max() == 0:
        if pairs.size <= SMALL:
            return _without_subtractions(chain, rewards)
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


def _without_subtractions(chain: csr_array, rewards: Floats) -> tuple[Floats, Floats]:
    """Return gain and bias of a chain with one closed class, however slow it is."""
    from windage.kernels.gain import evaluate
    from windage.kernels.jit import call

    S = rewards.size
    bias, work, order = np.empty(S), np.empty((4, S)), np.empty(S, dtype=np.int64)
    work[0] = rewards
    gain = call(evaluate, chain.toarray(), work, order, bias, seconds=5e-7 * S**3)
    return np.full(S, _within_reach(np.array([gain]))[0]), _within_reach(bias)


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

    matrix.data[np.abs(matrix.data) < _LEAST] = 0.0
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

    aimed = aim(model)
    (gain, bias), (other, its) = values(pairs), values(aimed)
    pairs = np.where(other / leak + its > gain / leak + bias, aimed, pairs)
    count = 2
    while count < ROUNDS:
        gain, bias = values(pairs)
        count += 1
        for order in (along, back, along, back):
            sweep(space.offsets, *cells(model), model.rewards, gain[0], keep, target, order, bias)
        ahead = model.rewards + keep * (model.rows @ bias) - bias[space.state_of]
        noise = np.full(ahead.size, 0.5 * _margin(model, bias))
        better = _switch(model, ahead, pairs, noise, np.zeros(pairs.size))
        if np.array_equal(better, pairs):
            break
        pairs = better
    return pairs, count


def aim(model: Model) -> Ints:
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
    return best_pairs(model.space, np.where((here > 0) & (here < np.inf), headway, model.rewards))


def _moves(model: Model) -> csr_array:
    """Return the graph of all moves, whatever the action, each with its expected tries 1 / p."""
    rows, n = model.rows, model.space.n_states
    return csr_array(
        (1.0 / np.maximum(rows.data, _LEAST), rows.indices, rows.indptr[model.space.offsets]),
        shape=(n, n),
    )


def _lifted(model: Model, gains: Floats, bias: Floats, tol: float) -> Floats:
    """Return h + M (g - max g) with the least M >= 0 that keeps all residuals below max g."""
    loss = gains[model.space.state_of] - model.rows @ gains
    excess = residuals(model, bias)[0] - gains.max()
    wanting = (excess > tol / 4) & (loss > _margin(model, np.zeros(1)))
    enough = float(np.max(excess[wanting] / loss[wanting], initial=0.0))
    lift = enough * (gains - gains.max())
    lifted: Floats = bias + lift if bias.ndim == 1 else np.vstack([bias, lift])
    return lifted


def best_pairs(space: StateActions, values: Floats) -> Ints:
    """Return the first best pair of each state."""
    starts = space.offsets[:-1]
    top = np.maximum.reduceat(values, starts)
    pairs = np.flatnonzero(values == top[space.state_of])
    return pairs[np.searchsorted(pairs, starts)]


def _switch(model: Model, values: Floats, pairs: Ints, noise: Floats, defect: Floats) -> Ints:
    """Return the best pair of each state where it beats the present one for sure.

    That is by more than the noise of both, and than the state's own equation is off by.
    """
    best = best_pairs(model.space, values)
    margin = noise[best] + noise[pairs] + defect
    return np.where(values[best] > values[pairs] + margin, best, pairs)


def _margin(model: Model, bias: Floats) -> float:
    """Return what rounding may add to the difference of two action values."""
    from windage.kernels.gain import TIE

    return TIE * float(np.abs(model.rewards).max() + np.ptp(bias))
