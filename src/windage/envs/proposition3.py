"""Peril: the construction of Proposition 3, in which drift fools a sliding window."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.envs.registry import Facts, Instance, register
from windage.errors import InputError
from windage.models import MDP, DriftingMDP, Noise
from windage.schedules import Steps
from windage.spaces import StateActions
from windage.validation import as_horizon, as_integer, as_size, require_memory

__all__ = ["Replay", "peril", "peril_replay"]

_SPACE = StateActions(
    [2, 2], state_names=["1", "2"], action_names=[["a1", "a2"], ["b1", "b2"]]
)  # the paper's names; its state 1 is our state 0
_P1 = np.array([[[1.0, 0], [0, 1]], [[0, 1], [1, 0]]])  # a1 stays, a2 -> 2, b1 stays, b2 -> 1
_P2 = _P1[:, ::-1]  # the two actions of each state have changed places
_CYCLES = 5  # if neither a horizon nor the number of cycles is given


@register("peril-v0")
def peril(
    horizon: int | None = None,
    tau: int = 50,
    repeats: int | None = None,
    noise: Noise | str = "bernoulli",
) -> Instance:
    """Two states whose kernel changes every tau steps: each model is easy, their average is not.

    States
        "1" and "2", as in the paper.
    Actions
        a1, a2 in state 1 and b1, b2 in state 2, all deterministic. Under p1: a1 and b1 stay, a2
        and b2 change state; under p2 the two actions of a state have changed places.
    Drift
        p1 on [1, tau], p2 on [tau + 1, 2 tau], and so on; `repeats` cycles of 4 tau (five), or as
        many as a given horizon holds. The state that pays 1 is "2" in the first half of a cycle and
        "1" in the second; the other pays 0.
    B_r
        The number of half-cycles less one.
    B_p
        2 for every switch.
    D
        1 always; every step could be in the paying state, so the optimal gain is 1.
    Why communicating
        In each state one of the two actions leads to the other state for sure.
    Version history
        v0: first.
    """
    each = as_size(tau, "tau")
    cycles = as_size(_CYCLES if repeats is None else repeats, "repeats")
    Noise.of(noise)
    steps = 4 * each * cycles
    T = as_horizon(steps if horizon is None else horizon)
    if horizon is not None and repeats is not None and steps != T:
        raise InputError(
            f"{cycles} cycles of 4 tau are {steps} steps, the horizon is {T}",
            field="repeats",
            fix="give the horizon or the repeats, not both",
        )
    require_memory(200.0 * (T / each), "horizon", fix="ask for fewer changes: a larger tau")

    def facts() -> Facts:
        return Facts(
            reward_budget=float((T - 1) // (2 * each)),
            transition_budget=2.0 * ((T - 1) // each),
            diameter_bound=1.0,
        )

    def build() -> DriftingMDP:
        return DriftingMDP.blend(
            [_paying(1, _P1), _paying(0, _P2)],
            Steps(range(each + 1, T + 1, each)),
            Steps(range(2 * each + 1, T + 1, 2 * each)),
            horizon=T,
            noise=noise,
        )

    return Instance(build, facts)


class Replay(NamedTuple):
    """A forced trajectory of W steps: what a window then holds."""

    states: NDArray[np.int64]
    actions: NDArray[np.int64]
    counts: NDArray[np.int64]
    p_hat: NDArray[np.float64]


def peril_replay(tau: int) -> Replay:
    """Return the trajectory of Proposition 3: W = 4 tau steps that leave a poisoned window.

    The policy is (a1, b2) for t <= 2 tau and (a2, b1) afterwards, from state 1 on. Then a1 and b1
    were seen to change state once in tau + 1 visits, a2 and b2 never: the empirical model has
    diameter tau + 1 though every true model has diameter 1.

    >>> peril_replay(10).p_hat[0]
    array([0.90909091, 0.09090909])
    """
    each = as_integer(tau, "tau", low=2, error=InputError)
    W = 4 * each
    states = np.zeros(W + 1, dtype=np.int64)
    actions = np.zeros(W, dtype=np.int64)
    counts = np.zeros((_SPACE.n_pairs, 2), dtype=np.int64)
    early, late = (0, 1), (1, 0)  # the action in each state: (a1, b2), then (a2, b1)
    for t in range(1, W + 1):
        kernel = _P1 if (t - 1) // each % 2 == 0 else _P2
        s = states[t - 1]
        a = (early if t <= 2 * each else late)[s]
        actions[t - 1], states[t] = a, np.argmax(kernel[s, a])
        counts[_SPACE.pair(int(s), a), states[t]] += 1
    visits = counts.sum(axis=1)
    return Replay(states, actions, visits, counts / visits[:, None])


def _paying(state: int, kernel: NDArray[np.float64]) -> MDP:
    rewards = np.zeros((2, 2))
    rewards[state] = 1.0
    return MDP.from_arrays(rewards, kernel, _SPACE)
