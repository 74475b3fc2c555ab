"""The optimal gain of a model, with its proof: policy iteration or relative value iteration.

Every answer carries a bracket that does not depend on how the answer was found
(`oracle.certificate`); if it is wider than `tol`, up to rounding, `NotConverged` is raised. Small
dense models are solved in a compiled loop (`kernels.gain`), others by `oracle.policy_iteration`;
dense models of some size that forget quickly take a few sweeps (`oracle.value_iteration`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from windage.errors import InputError, ModelError
from windage.oracle.certificate import (
    Bracket,
    Floats,
    Ints,
    Model,
    Solution,
    Transitions,
    as_pairs,
    certify,
    checked,
    floats,
)
from windage.oracle.policy_iteration import POLICY, ROUNDS, aim, general
from windage.oracle.value_iteration import VALUE, quick, swept, value_iteration
from windage.spaces import StateActions
from windage.validation import as_choice, as_real

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

SMALL = 200
"""Up to so many states policy iteration runs compiled, on dense rows."""

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
        The widest bracket that is accepted; rounding may widen it further.
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
        transitions = transitions.toarray()  # type: ignore[union-attr]
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
            found.append(general(model, policies[i], tol, count, stuck=stuck))
    return found


def plain_seconds(space: StateActions) -> float:
    """Return how long policy iteration takes, roughly, where it is not compiled."""
    S, pairs = space.n_states, space.n_pairs
    return 5.0 * (1e-7 * S**3 + 5e-7 * pairs * S)


def _start(space: StateActions, rewards: Floats, transitions: Floats) -> Ints:
    found = swept(space, rewards, transitions)
    return aim(checked(space, rewards, transitions)) if found is None else found
