"""Gymnasium environments that tell their table of transitions, as models: `tabular`.

The toy-text environments (FrozenLake, CliffWalking, Taxi) keep it in `P`: for each state and action
a list of (probability, next state, reward, terminated).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from windage.errors import InputError, ModelError
from windage.gym.problem import RESTARTS, require_discrete
from windage.models.mdp import MDP
from windage.spaces import StateActions
from windage.validation import as_choice, as_range, shown

__all__ = ["Row", "table_of", "tabular"]

_DENSE = 1 << 20  # numbers: larger tables of transitions are kept sparse


class Row(NamedTuple):
    """One way a step can go."""

    probability: float
    state: int
    reward: float
    terminated: bool


def tabular(
    env: gymnasium.Env[Any, Any],
    *,
    reward_range: tuple[float, float] = (0.0, 1.0),
    restart: str = "same-step",
) -> MDP:
    """Return the model of an environment that tells its transitions.

    What `windage.gym.wrap` with the same arguments plays has these mean rewards and transitions:
    where the environment ends it starts again, in a state drawn as its `reset` draws it.

    Parameters
    ----------
    env
        An environment whose `unwrapped` has `P` and `initial_state_distrib`, as FrozenLake,
        CliffWalking and Taxi have.
    reward_range
        The least and the largest reward; they become 0 and 1.
    restart
        "same-step" or "next-step": see `windage.gym.wrap`.

    Examples
    --------
    >>> import gymnasium
    >>> lake = tabular(gymnasium.make("FrozenLake-v1"))
    >>> print(f"{lake.solve().gain:.6f}")
    0.017974
    """
    as_choice(restart, "restart", RESTARTS)
    low, high = as_range(reward_range, "reward_range")
    table, first = table_of(env), _first_states(env)
    states = len(table)
    space = StateActions.uniform(states=states, actions=len(table[0]))
    last = _last_states(table) if restart == "next-step" else frozenset()
    rewards = np.empty(space.n_pairs)
    cells: tuple[list[int], list[int], list[float]] = ([], [], [])
    for pair in range(space.n_pairs):
        s, a = int(space.state_of[pair]), int(space.action_of[pair])
        row = np.zeros(states)
        mean = 0.0
        if s in last:
            row, mean = first, (min(max(0.0, low), high) - low) / (high - low)
        else:
            for one in table[s][a]:
                _check_reward(one, s, a, low, high)
                mean += one.probability * (one.reward - low) / (high - low)
                if one.terminated and restart == "same-step":
                    row = row + one.probability * first
                else:
                    row[one.state] += one.probability
        rewards[pair] = min(max(mean, 0.0), 1.0)  # rounding
        filled = np.flatnonzero(row)
        cells[0].extend([pair] * filled.size)
        cells[1].extend(filled.tolist())
        cells[2].extend((row[filled] / row.sum()).tolist())
    rows = csr_array((cells[2], (cells[0], cells[1])), shape=(space.n_pairs, states))
    return MDP(space, rewards, rows.toarray() if space.n_pairs * states <= _DENSE else rows)


def table_of(env: gymnasium.Env[Any, Any]) -> list[list[list[Row]]]:
    """Return `P` as lists over states and actions, checked."""
    states = int(require_discrete(env, "observation_space").n)
    actions = int(require_discrete(env, "action_space").n)
    found = getattr(env.unwrapped, "P", None)
    if found is None:
        raise InputError(
            f"{env} does not tell its transitions",
            field="env.unwrapped.P",
            fix="give it P[s][a] = [(probability, next state, reward, terminated), ...], or use "
            "wd.gym.wrap, which needs no table",
        )
    try:
        table = [
            [[_row(one, s, a, states) for one in found[s][a]] for a in range(actions)]
            for s in range(states)
        ]
    except (LookupError, TypeError) as err:
        raise ModelError(
            f"is no table of {states} states and {actions} actions ({err!r})",
            field="env.unwrapped.P",
            fix="give it P[s][a] = [(probability, next state, reward, terminated), ...]",
        ) from None
    for s, of_state in enumerate(table):
        for a, rows in enumerate(of_state):
            total = math.fsum(one.probability for one in rows)
            if abs(total - 1.0) > 1e-9:
                raise ModelError(
                    f"the probabilities sum to {total:.12g}",
                    field=f"env.unwrapped.P[{s}][{a}]",
                    fix="let them sum to 1",
                )
    return table


def _row(one: Any, s: int, a: int, states: int) -> Row:
    try:
        probability, state, reward, terminated = one
        row = Row(float(probability), int(state), float(reward), bool(terminated))
    except (TypeError, ValueError):
        row = Row(math.nan, -1, math.nan, False)
    if not (0.0 <= row.probability <= 1.0 + 1e-9 and 0 <= row.state < states):
        raise ModelError(
            f"{shown(one)} is no (probability, next state, reward, terminated)",
            field=f"env.unwrapped.P[{s}][{a}]",
            fix=f"give a probability and a state from 0 to {states - 1}",
        )
    return row


def _check_reward(one: Row, s: int, a: int, low: float, high: float) -> None:
    if not low <= one.reward <= high:
        raise InputError(
            f"pays {one.reward:g}, the declared range is [{low:g}, {high:g}]",
            field=f"env.unwrapped.P[{s}][{a}]",
            fix="declare the range of its rewards: reward_range=(low, high)",
        )


def _first_states(env: gymnasium.Env[Any, Any]) -> NDArray[np.float64]:
    found = getattr(env.unwrapped, "initial_state_distrib", None)
    states = int(require_discrete(env, "observation_space").n)
    first: NDArray[np.float64] = np.asarray([] if found is None else found, dtype=np.float64)
    if first.shape != (states,) or (first < 0).any() or abs(first.sum() - 1.0) > 1e-6:
        raise InputError(
            f"{shown(found)} is no distribution over {states} states",
            field="env.unwrapped.initial_state_distrib",
            fix="give it the probability of every first state",
        )
    return np.asarray(first / first.sum())


def _last_states(table: list[list[list[Row]]]) -> frozenset[int]:
    """Return the states in which the environment ends; it must not go on from them elsewhere."""
    rows = [one for of_state in table for row in of_state for one in row if one.probability > 0]
    ended = {one.state for one in rows if one.terminated}
    for s, of_state in enumerate(table):
        for a, row in enumerate(of_state):
            for one in row:
                if s not in ended and one.state in ended and not one.terminated:
                    raise InputError(
                        f"the step to state {one.state} does not end, another one there does",
                        field=f"env.unwrapped.P[{s}][{a}]",
                        fix='use restart="same-step"',
                    )
    return frozenset(ended)
