"""Value iteration: relative, certified, and never waiting for what cannot come.

Relative value iteration stops when the residuals of all states are within `tol` of each other, when
they have settled on different values, or after a number of sweeps set by S and `tol`. A short burst
of plain sweeps ends most searches early: many models forget where they were within a few steps.
"""

from __future__ import annotations

import math

import numpy as np

from windage.errors import NotConverged
from windage.oracle.certificate import (
    TOLERANCE,
    Bracket,
    Floats,
    Ints,
    Model,
    Solution,
    bracket_of,
    solution,
)
from windage.oracle.policy_iteration import POLICY, best_pairs
from windage.spaces import StateActions

__all__ = ["quick", "swept", "value_iteration"]

VALUE = "value-iteration"

_SWEEPS = 6
_MOST_QUICK = 60


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
    if high - low > tol / 2 or bracket.upper - bracket.lower > tol + 4.0 * bracket.rounding:
        ends = space.describe_state(int(best.argmin())), space.describe_state(int(best.argmax()))
        raise NotConverged(
            f"after {count} sweeps the gain seems to be {low:.12g} from {ends[0]} and "
            f"{high:.12g} from {ends[1]}, further apart than {tol:g}",
            field="value iteration",
            fix=f'take method="{POLICY}", or a larger tol',
        )
    gains = np.full(space.n_states, (bracket.lower + bracket.upper) / 2)
    return solution(VALUE, space, pairs, gains, bias, bracket, count)
