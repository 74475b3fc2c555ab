"""Right sides of Properties 1 and 2, without a planner: no sweeps, no order of states, no policy.

`wd.evi` fills the best state from the worst ones, in one pass for all pairs. Here the maximum over
a set is an integral over levels instead: two ways to one number, so that each can check the other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windage.proof import Look

__all__ = ["best_values", "printed_values", "reach", "width_of"]

Reals = NDArray[np.float64]


def width_of(look: Look) -> Reals:
    """Return radius plus widening of every pair's L1 set; 2 where it is the whole simplex (E8)."""
    return np.where(look.seen, np.minimum(look.transition_radius + look.widening, 2.0), 2.0)


def reward_upper(look: Look) -> Reals:
    """Return r~ of every pair: r-hat + rad_r cut to [0, 1], and 1 if it was never visited."""
    hope = np.clip(look.mean_reward + look.reward_radius, 0.0, 1.0)
    return np.where(look.seen, hope, 1.0)


def best_values(look: Look, u: Reals) -> Reals:
    """Return r~ + max q.u over the L1 set of every pair, level by level.

    q.u = min u + the integral over x of q(u > x), and q(u > x) <= min(1, p_hat(u > x) + width / 2);
    moving mass from the worst states to the best attains all of these at once.
    """
    order = np.argsort(u, kind="stable")
    rising = u[order]
    above = np.cumsum(look.p_hat[:, order][:, ::-1], axis=1)[:, ::-1][:, 1:]
    most = np.minimum(1.0, above + width_of(look)[:, None] / 2)
    most[~look.seen] = 1.0
    values: Reals = reward_upper(look) + rising[0] + most @ np.diff(rising)
    return values


def printed_values(look: Look, u: Reals) -> Reals:
    """Return the right side of Property 1 as printed: each next state at its own largest q(s')."""
    most = np.minimum(1.0, look.p_hat + width_of(look)[:, None] / 2)
    most[~look.seen] = 1.0
    values: Reals = reward_upper(look) + most @ u
    return values


def reach(look: Look, offsets: NDArray[np.int64]) -> float:
    """Return beta: from every state some action may put as much mass on any one state (spec 1.7).

    Then span(gamma~) <= 1 / beta, and with a widening beta >= min(1, eta / 2).
    """
    moved = np.minimum(1.0, width_of(look) / 2)
    return float(np.maximum.reduceat(moved, offsets[:-1]).min())
