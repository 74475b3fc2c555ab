"""How often a pair must be visited before its confidence sets say anything.

A transition set of L1 radius 2 or more is the whole simplex, a reward interval of radius 1 or more
may hold all of [0, 1]. Radii fall with the number of visits, so the first count below the mark is
found by bisection.
"""

from __future__ import annotations

from typing import NamedTuple

from windage.confidence.radii import Radii
from windage.confidence.search import first_integer
from windage.spaces import StateActions

__all__ = ["Visits", "visits_needed"]

_L1_KINDS = ("paper", "proof", "laplace", "ucrl2")  # boxes and added variations have no one mark
_SIMPLEX = 2.0
_UNIT = 1.0


class Visits(NamedTuple):
    """The visits a pair needs; None where no number of visits will do.

    Attributes
    ----------
    transitions
        Until the radius of transitions is below 2.
    widened
        The same with the widening added.
    rewards
        Until the radius of rewards is below 1.
    bounded_rewards
        The same for radii that know that rewards lie in [0, 1].
    """

    transitions: int | None
    widened: int | None
    rewards: int | None
    bounded_rewards: int | None


def visits_needed(
    space: StateActions, horizon: int, delta: float, widening: float
) -> dict[str, Visits]:
    """Return the visits needed under each kind of radii; UCRL2's are taken at t = T.

    >>> needed = visits_needed(StateActions.uniform(2, 2), 5_000, 0.05, widening=0.0)
    >>> [needed[kind].transitions for kind in ("paper", "proof", "laplace", "ucrl2")]
    [52, 24, 9, 91]
    """
    found = {}
    for kind in _L1_KINDS:
        radii = Radii(kind)
        tight = Radii(kind, bounded=True) if kind in ("proof", "laplace") else radii
        found[kind] = Visits(
            _first(radii, 1, _SIMPLEX, space, horizon, delta),
            _first(radii, 1, _SIMPLEX - widening, space, horizon, delta),
            _first(radii, 0, _UNIT, space, horizon, delta),
            _first(tight, 0, _UNIT, space, horizon, delta),
        )
    return found


def _first(
    radii: Radii, part: int, mark: float, space: StateActions, horizon: int, delta: float
) -> int | None:
    """Return the least n >= 1 whose radius is below the mark."""
    if mark <= 0:
        return None
    side = radii.transition if part else radii.reward

    def is_enough(n: int) -> bool:
        return float(side(n, space=space, horizon=horizon, delta=delta, t=horizon)) < mark

    return first_integer(is_enough)
