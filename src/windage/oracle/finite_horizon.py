"""The best reward of T steps over the true sequence of models, and how far it is from sum rho*_t.

Dynamic regret compares with sum_t rho*_t (spec 1.3), which is not the largest expected reward: a
policy may live on what a good start state still pays. `finite_horizon` computes that largest
reward, `benchmark_gap` bounds by how much it can exceed the sum (Proposition 1, corrected: E10).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from windage.errors import InputError, ModelError
from windage.spaces import StateActions
from windage.validation import (
    FrozenRows,
    as_csr,
    as_horizon,
    as_integer,
    as_real,
    require_memory,
)

__all__ = ["FiniteHorizon", "benchmark_gap", "finite_horizon", "printed_benchmark_gap"]

Reals = NDArray[np.float64]
Transitions: TypeAlias = NDArray[np.float64] | csr_array
ModelAt: TypeAlias = Callable[[int], tuple[Reals, Transitions]]


@dataclass(frozen=True)
class FiniteHorizon:
    """The optimum of the times `start`..`horizon`.

    Attributes
    ----------
    values
        `values[s]`, the largest expected sum of rewards from state s at time `start`.
    error
        A bound of what rounding may have done to any of the values.
    policy
        `policy[t - start, s]`, the action to take; no rows if it was not asked for.
    start, horizon
        The first and the last time.
    """

    values: Reals
    error: float
    policy: NDArray[np.int32]
    start: int
    horizon: int

    def action(self, t: int, s: int) -> int:
        """Return an optimal action in state `s` at time `t`; ties go to the first action."""
        if self.policy.shape[0] == 0:
            raise InputError("was not kept", field="policy", fix="ask for policy=True")
        time = as_integer(t, "t", low=self.start, high=self.horizon)
        state = as_integer(s, "s", low=0, high=self.values.size - 1)
        return int(self.policy[time - self.start, state])


def finite_horizon(
    space: StateActions, model_at: ModelAt, horizon: int, start: int = 1, policy: bool = False
) -> FiniteHorizon:
    """Return max over all policies of E[sum of r_t, t = start..horizon], by dynamic programming.

    The maximum over policies that remember their history is reached by one that looks at t and s
    only. Rows of transitions count as summing to one.

    Parameters
    ----------
    space
        States and actions.
    model_at
        `model_at(t)` returns the rewards over pairs and the transitions, dense or CSR, of time t.
        It is asked from the last time to the first, once each, and nothing is kept; steps that
        return the same two objects again cost next to nothing.
    horizon
        T, the last time.
    start
        The first time.
    policy
        Whether to keep the optimal action of every time and state.

    Examples
    --------
    Leaving state 0 pays 1 once; state 1 pays 0.1 for ever:

    >>> space = StateActions([2, 1])
    >>> model = np.array([1.0, 0.0, 0.1]), np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    >>> best = finite_horizon(space, lambda t: model, horizon=5, policy=True)
    >>> best.values.round(12), best.policy[:, 0]
    (array([1.4, 0.5]), array([0, 0, 0, 0, 0], dtype=int32))
    """
    T = as_horizon(horizon)
    first = as_integer(start, "start", low=1, high=T)
    steps = T - first + 1 if policy else 0
    require_memory(
        4.0 * steps * space.n_states, "policy", fix="pass policy=False, or a later start"
    )
    chosen = np.empty((steps, space.n_states), dtype=np.int32)
    excess, new, level = np.zeros(space.n_states), np.empty(space.n_states), np.zeros(3)

    def go_back(model: tuple[Reals, Transitions], last: int, repeats: int) -> None:
        made = _back(space, model, repeats, (excess, new, level, chosen, last - first), last)
        if made >= 0:
            raise ModelError(
                "rewards or transitions are not finite numbers",
                field="model_at",
                where=f"t={last - made}",
                fix="return finite rewards and rows of probabilities",
            )

    held, since = model_at(T), T
    for t in range(T - 1, first - 1, -1):
        model = model_at(t)
        if model[0] is not held[0] or model[1] is not held[1]:
            go_back(held, since, since - t)
            held, since = model, t
    go_back(held, since, since - first + 1)
    values = level[0] + (level[1] + excess)
    return FiniteHorizon(
        values, float(level[2] + math.ulp(float(np.abs(values).max()))), chosen, first, T
    )


def _back(
    space: StateActions,
    model: tuple[Reals, Transitions],
    repeats: int,
    state: tuple[Any, ...],
    t: int,
) -> int:
    from windage.kernels import horizon as kernel  # numba loads here, not with the package

    rewards, transitions = model
    if rewards.shape != (space.n_pairs,) or transitions.shape != (space.n_pairs, space.n_states):
        raise ModelError(
            f"rewards have shape {rewards.shape}, transitions {transitions.shape}; "
            f"the space has {space.n_pairs} pairs and {space.n_states} states",
            field="model_at",
            where=f"t={t}",
            fix="return rewards[pair] and transitions[pair, s']",
        )
    mean = _plain(rewards, np.float64)
    if isinstance(transitions, np.ndarray):
        dense = _plain(transitions, np.float64)
        return int(kernel.back_dense(space.offsets, mean, dense, repeats, *state))
    if not isinstance(transitions, FrozenRows):
        transitions = as_csr(transitions, "model_at")
    rows = _plain(transitions.indptr, np.int64)
    cells = _plain(transitions.indices, np.int32), _plain(transitions.data, np.float64)
    return int(kernel.back_sparse(space.offsets, mean, rows, *cells, repeats, *state))


def _plain(array: NDArray[Any], kind: type[np.generic]) -> NDArray[Any]:
    """Return a read-only contiguous view: arrays of one type compile one kernel."""
    view = np.ascontiguousarray(array, dtype=kind).view()
    view.flags.writeable = False
    return view


def benchmark_gap(
    horizon: int, diameter: float, reward_budget: float, transition_budget: float
) -> float:
    """Return by how much the best reward of T steps can exceed sum rho*_t (Proposition 1).

    This is the corrected form: the least, over whole numbers W from 1 to T, of

        ceil(T/W) D + 2 W (B_r + D B_p / 2),

    where D is the largest diameter of the T models. Blocks of W steps each cost the span of a bias,
    which is D at most, and every step twice the drift within its block.

    The search is exact without trying every W. With k = ceil(T/W) blocks, the shortest blocks that
    are long enough, ceil(T/k), are at least as good as W; so only windows ceil(T/k) matter, and
    those with k > sqrt(T) + 1 are no longer than sqrt(T) + 1.

    >>> benchmark_gap(horizon=1000, diameter=2.0, reward_budget=1.0, transition_budget=0.0)
    128.0
    """
    T, r, p = _as_problem(horizon, reward_budget, transition_budget)
    if diameter == math.inf:
        return math.inf
    D = as_real(diameter, "diameter", low=0.0)
    few = np.arange(1, min(math.isqrt(T) + 1, T) + 1)
    windows = np.concatenate([few, -(-T // few)])
    blocks = -(-T // windows)
    return float((blocks * D + 2.0 * windows * (r + D * p / 2.0)).min())


def printed_benchmark_gap(
    horizon: int, diameter: float, reward_budget: float, transition_budget: float
) -> float:
    """Return the error term of Proposition 1 as printed: 4 (D + 1) sqrt((B_r + 2 D B_p) T).

    E10: the statement can be false when 0 < B_r + 2 D B_p < 1/T. Its proof takes a window between
    x and 2x for x = sqrt(T / (B_r + 2 D B_p)), which must not exceed T. A model that pays 1 in its
    start state and next to nothing afterwards breaks it (tests/paper). Use `benchmark_gap`.

    >>> printed_benchmark_gap(horizon=100, diameter=1.0, reward_budget=1.0, transition_budget=0.0)
    80.0
    """
    T, r, p = _as_problem(horizon, reward_budget, transition_budget)
    if diameter == math.inf:
        return math.inf
    D = as_real(diameter, "diameter", low=0.0)
    return 4.0 * (D + 1.0) * math.sqrt((r + 2.0 * D * p) * T)


def _as_problem(
    horizon: int, reward_budget: float, transition_budget: float
) -> tuple[int, float, float]:
    return (
        as_horizon(horizon),
        as_real(reward_budget, "reward_budget", low=0.0),
        as_real(transition_budget, "transition_budget", low=0.0),
    )
