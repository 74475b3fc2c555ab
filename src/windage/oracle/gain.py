"""The optimal gain of a model, with its proof: policy iteration or relative value iteration.

Every answer carries a bracket that does not depend on how the answer was found
(`oracle.certificate`); if it is wider than `tol`, `NotConverged` is raised. Small dense models are
solved in a compiled loop (`kernels.gain`), others, and very slow ones, by `policy_iteration`;
dense models of some size that forget quickly take a few sweeps.

Relative value iteration stops when the residuals of all states are within `tol` of each other, when
they have settled on different values, or after a number of sweeps set by S and `tol`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from windage.errors import InputError, ModelError, NotConverged
from windage.oracle.certificate import (
    TOLERANCE,
    Bracket,
    Floats,
    Ints,
    Model,
    Solution,
    Transitions,
    as_pairs,
    bracket_of,
    certify,
    checked,
    floats,
    solution,
)
from windage.oracle.policy_iteration import POLICY, ROUNDS, SMALL, aim, best_pairs, general
from windage.spaces import StateActions
from windage.validation import as_choice, as_csr, as_real

__all__ = [
    "ROUNDS",
    "SMALL",
    "Bracket",
    "Model",
    "Solution",
    "certify",
    "checked",
    "solve",
    "solve_many",
]

VALUE = "value-iteration"

_SWEEPS = 6
_MOST_QUICK = 60
_SWEEP_FROM = 64
"""From so many states on a dense model is worth sweeping before anything is eliminated."""


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
        The width of the bracket: it is no wider, or `NotConverged` is raised. Where the digits of
        doubles do not suffice, biases of several doubles a state are used.
    method
        "policy-iteration" solves linear systems. It takes any model, periodic or with several
        classes; a large one needs the memory of a sparse LU factorisation. "auto" is the same, but
        larger dense models that forget quickly are settled by a few sweeps.
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
        return value_iteration(checked(space, rewards, transitions), width)
    start = None if warm is None else as_pairs(space, warm, "warm")
    sweep = start is None and method == "auto" and space.n_states >= _SWEEP_FROM
    if sweep and not issparse(transitions):
        rewards, transitions = floats(rewards, "rewards"), floats(transitions, "transitions")
        found = quick(space, rewards, transitions, width)
        if found is not None:
            return found
    if space.n_states > SMALL:
        model = checked(space, rewards, transitions)
        return general(model, aim(model) if start is None else start, width, 0)
    if issparse(transitions):
        if transitions.shape != (space.n_pairs, space.n_states):  # type: ignore[union-attr]
            checked(space, rewards, transitions)  # raises
        transitions = as_csr(transitions, "transitions").toarray()
    r, p = floats(rewards, "rewards"), floats(transitions, "transitions")
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
    start = None if warm is None else as_pairs(space, warm, "warm")
    r = floats(rewards, "rewards")
    if r.ndim != 2 or len(transitions) != len(r):
        raise ModelError(
            f"has shape {r.shape}, there are {len(transitions)} transitions",
            field="rewards",
            fix="pass rewards[i, pair] and as many transitions",
        )
    if isinstance(transitions, np.ndarray) and space.n_states <= SMALL:
        p = floats(transitions, "transitions")
        return _compiled(space, r, p, width, start) if len(r) else []
    found: list[Solution] = []
    for one, rows in zip(r, transitions, strict=True):
        found.append(solve(space, one, rows, width, warm=warm))
        warm = found[-1].policy
    return found


def _compiled(
    space: StateActions, rewards: Floats, transitions: Floats, tol: float, start: Ints | None
) -> list[Solution]:
    """Solve dense models in the compiled loop; those it cannot settle go the general way."""
    from windage.kernels import gain as kernels
    from windage.kernels.jit import call

    n, S = len(rewards), space.n_states
    if rewards.shape[1:] != (space.n_pairs,) or transitions.shape[1:] != (space.n_pairs, S):
        checked(space, rewards[0], transitions[0])  # raises
    policies = np.empty((n, S), dtype=np.int64)
    policies[0] = _start(space, rewards[0], transitions[0]) if start is None else start
    biases, numbers = np.empty((n, S)), np.empty((n, 3))
    ends = np.empty((n, 2), dtype=np.int64)
    rewards.flags.writeable = transitions.flags.writeable = False  # one version to compile
    call(
        kernels.policy_iterations,
        space.offsets, rewards, transitions, ROUNDS, policies, biases, ends, numbers,
        np.empty((S, S)), np.empty((4, S)), np.empty((3, S), dtype=np.int64),
        seconds=n * plain_seconds(space),
    )  # fmt: skip
    gains, actions = np.repeat(numbers[:, :1], S, axis=1), policies - space.offsets[:-1]
    shifted = biases - biases.min(axis=1, keepdims=True)  # which may cost digits
    for array in (gains, biases, shifted, actions):
        array.flags.writeable = False
    found = []
    for i, (end, count) in enumerate(ends.tolist()):
        gain, lower, upper = numbers[i].tolist()
        if end == kernels.SETTLED and upper - lower <= tol:
            g = min(max(gain, lower), upper)
            some = gains[i], lower, upper, shifted[i], actions[i], POLICY, count, biases[i, None]
            found.append(Solution(g, *some))
        else:
            model = checked(space, rewards[i], transitions[i])
            stuck = end == kernels.UNSETTLED
            found.append(general(model, policies[i], tol, count, stuck=stuck))
    return found


def plain_seconds(space: StateActions) -> float:
    """Return how long policy iteration takes, roughly, where it is not compiled."""
    S, pairs = space.n_states, space.n_pairs
    return 5.0 * (1e-7 * S**3 + 5e-7 * pairs * S)


def _start(space: StateActions, rewards: Floats, transitions: Floats) -> Ints:
    found = swept(space, rewards, transitions)
    return aim(checked(space, rewards, transitions)) if found is None else found


def swept(space: StateActions, rewards: Floats, transitions: Floats) -> Ints | None:
    """Return the policy of a few sweeps if they converge quickly, as pairs.

    They then all but end on the optimal policy; on slow models they would end on a short-sighted
    one, and None is returned.
    """
    h, widths = np.zeros(space.n_states), []
    with np.errstate(all="ignore"):  # what the arrays hold is looked at later
        for _ in range(_SWEEPS):
            ahead = rewards + transitions @ h
            best = np.maximum.reduceat(ahead, space.offsets[:-1])
            widths.append(float(np.ptp(best - h)))
            h = best
        if widths[-1] <= 0.6**_SWEEPS * widths[0]:
            return best_pairs(space, ahead)
    return None


def quick(space: StateActions, rewards: Floats, transitions: Floats, tol: float) -> Solution | None:
    """Return the solution if plain sweeps reach `tol` soon, on dense rows.

    None for arrays that are no model, for periodic and for slow models: others know better.
    """
    if rewards.shape != (space.n_pairs,) or transitions.shape != (space.n_pairs, space.n_states):
        return None
    off = float(np.abs(transitions @ np.ones(space.n_states) - 1.0).max())
    if not (off <= TOLERANCE and transitions.min() >= 0.0 and np.isfinite(rewards).all()):
        return None
    starts = space.offsets[:-1]
    h, first, ahead = np.zeros(space.n_states), math.inf, rewards  # a sweep of zeros is no work
    for count in range(1, _MOST_QUICK + 1):
        best = np.maximum.reduceat(ahead, starts)
        change = best - h
        low, high = float(change.min()), float(change.max())
        if high - low <= tol:
            size = float(np.abs(best).max()) + float(np.abs(h).max())
            rounding = ((space.n_states + 4) * 2.0**-52 + off) * (1.0 + size)
            if high - low + 2.0 * rounding <= tol:
                found = Bracket(low - rounding, high + rounding, rounding)
                gains = np.full(space.n_states, 0.5 * (low + high))
                pairs = best_pairs(space, ahead)
                return solution(VALUE, space, pairs, gains, h, found, count)
        first = high - low if count == 1 else first
        if count == _SWEEPS and high - low > 0.6**_SWEEPS * first:
            return None
        h = best - best[0]
        ahead = transitions @ h
        ahead += rewards
    return None


def value_iteration(model: Model, tol: float) -> Solution:
    """Relative value iteration on p' = (1 - a) I + a p with a = 1/2, so that no period upsets it.

    The residuals of p' are a times those of p. Where gains differ the residuals settle on them:
    that is looked for each time the number of sweeps has doubled.
    """
    space = model.space
    bias, then = np.zeros(space.n_states), np.full(space.n_states, np.inf)
    low, high = float(model.rewards.min()), float(model.rewards.max())
    digits = math.ceil(math.log(1.0 + min((high - low) / tol, 1e300)))
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
    pairs = best_pairs(space, ahead)
    bracket = bracket_of(model, bias, pairs)
    if high - low > tol / 2 or bracket.upper - bracket.lower > tol:
        ends = space.describe_state(int(best.argmin())), space.describe_state(int(best.argmax()))
        raise NotConverged(
            f"after {count} sweeps the gain seems to be {low:.12g} from {ends[0]} and "
            f"{high:.12g} from {ends[1]}, further apart than {tol:g}",
            field="value iteration",
            fix=f'take method="{POLICY}", or a larger tol',
        )
    gains = np.full(space.n_states, (bracket.lower + bracket.upper) / 2)
    return solution(VALUE, space, pairs, gains, bias, bracket, count)
