"""EVI(H_r, H_p; epsilon), extended value iteration (paper, Algorithm 2).

Readings: an action whose value is the largest but for rounding attains the maximum of line 4; a
constant is taken off u in each sweep, which changes no difference; and what does not converge
raises an error, since a set of width 0 need not hold a communicating kernel (E39).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.errors import NotConverged
from windage.spaces import StateActions

__all__ = ["Plan", "evi", "inner_maximum", "tied"]

ROUNDING = 1e-12  # sums of the same numbers in another order differ by less


class Plan(NamedTuple):
    """What EVI returns (lines 12 and 13); arrays over pairs are flat, as in `StateActions`."""

    policy: NDArray[np.int64]  # pi~, an action for each state; the lowest of those that are best
    rewards: NDArray[np.float64]  # r~[pair]
    transitions: NDArray[np.float64]  # p~[pair, s']
    gain: float  # rho~
    bias: NDArray[np.float64]  # gamma~[s]
    values: NDArray[np.float64]  # Upsilon~_i[pair] of the last sweep
    sweeps: int  # i + 1


def evi(
    space: StateActions,
    reward_upper: NDArray[np.float64],
    p_hat: NDArray[np.float64],
    width: NDArray[np.float64],
    epsilon: float,
    max_sweeps: int = 1_000_000,
) -> Plan:
    """Return the optimistic plan for H_r and H_p, given for each pair.

    The largest reward of H_r is `reward_upper`; H_p holds the distributions q with
    ||q - p_hat||_1 <= width: all of them where width >= 2.

    >>> space = StateActions([2, 1])  # two actions in state 0, which pays nothing; one in state 1
    >>> p_hat = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    >>> plan = evi(space, np.array([0.0, 0.0, 1.0]), p_hat, np.full(3, 0.2), epsilon=0.01)
    >>> plan.policy, round(plan.gain, 2), plan.bias.round(2), plan.transitions[1]
    (array([1, 0]), 1.0, array([0.  , 1.66]), array([0.4, 0.6]))
    """
    first = space.offsets[:-1]  # the first pair of each state
    u = np.zeros(space.n_states)  # line 1
    for i in range(max_sweeps):  # line 2
        p_tilde = inner_maximum(p_hat, width, u)  # line 6
        values = reward_upper + p_tilde @ u  # line 3: Upsilon~_i, with r~ of line 5
        u_next = np.maximum.reduceat(values, first)  # line 3: u_{i+1}(s) = max over a
        rise = u_next - u
        if rise.max() - rise.min() <= epsilon:  # line 8
            lowest = np.where(tied(space, values), space.action_of, space.n_pairs)
            policy = np.minimum.reduceat(lowest, first)  # line 4
            gain, bias = float(rise.max()), u - u.min()  # line 7: of u_i, not of u_{i+1}
            return Plan(policy, reward_upper, p_tilde, gain, bias, values, i + 1)  # lines 12, 13
        u = u_next - u_next.min()
    raise NotConverged(
        f"after {max_sweeps} sweeps span(u' - u) is {np.ptp(rise):g}, wanted {epsilon:g}",
        field="evi",
        fix="pass wider sets, or a larger epsilon",
    )


def inner_maximum(
    p_hat: NDArray[np.float64], width: NDArray[np.float64], u: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the row of H_p with the largest q.u for each pair (Jaksch et al. 2010, figure 2).

    Half the width is added to the best state, and taken from the worst ones in turn.
    """
    order = np.argsort(u, kind="stable")
    best = order[-1]
    q = p_hat.copy()
    q[:, best] = np.minimum(1.0, p_hat[:, best] + width / 2)
    excess = q[:, best] - p_hat[:, best]
    for s in order[:-1]:
        taken = np.minimum(q[:, s], excess)
        q[:, s] -= taken
        excess -= taken
    return q


def tied(space: StateActions, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which pairs attain the largest value of their state, but for rounding."""
    best = np.maximum.reduceat(values, space.offsets[:-1])[space.state_of]
    attained: NDArray[np.bool_] = values >= best - ROUNDING * np.maximum(1.0, np.abs(best))
    return attained
