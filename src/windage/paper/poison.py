"""What a window holds after the trajectory of Proposition 3's proof, and what its sets lead to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

import windage as wd
from windage.confidence.confidence import ConfidenceRegion
from windage.confidence.radii import Radii
from windage.envs.proposition3 import Replay, peril_replay
from windage.models.mdp import MDP
from windage.spaces import StateActions

__all__ = [
    "ETAS", "KINDS", "SPACE", "Sets", "best_diameter", "empirical_diameter", "poisoned", "replayed",
    "span_if_one_state_pays",
]  # fmt: skip

SPACE = StateActions([2, 2], ["1", "2"], [["a1", "a2"], ["b1", "b2"]])
DELTA = 0.05
ETAS = (0.0, 0.1, 0.5)
KINDS = {"printed": Radii.paper(), "proof": Radii.proof(), "Laplace": Radii.laplace()}


class Sets(NamedTuple):
    """What a poisoned window leads to."""

    diameter: float  # the best inside H_p(eta)
    span: float  # of gamma~ where one state pays


def poisoned(replay: Replay, radii: Radii | None, eta: float) -> ConfidenceRegion:
    """Return the sets after the replay; state 2 pays 1, state 1 nothing, and that is known.

    Without radii they are p-hat and what the widening adds.
    """
    W = int(replay.counts.sum())
    radius = (
        np.zeros(4)
        if radii is None
        else np.asarray(radii.transition(replay.counts, space=SPACE, horizon=W, delta=DELTA))
    )
    return ConfidenceRegion(SPACE, [0.0, 0.0, 1.0, 1.0], replay.p_hat, radius, [True] * 4, eta)


def empirical_diameter(replay: Replay) -> float:
    """Return the diameter of p-hat."""
    return MDP(SPACE, np.zeros(4), replay.p_hat).diameter()


def best_diameter(region: ConfidenceRegion) -> float:
    """Return the least diameter of a kernel in the sets of two states: each row changes its most.

    One kernel makes both ways as short as they can be, for the rows of a state only matter on the
    way out of it.
    """
    rows = np.stack([region.best_row(p, np.eye(2)[1 - SPACE.state_of[p]]) for p in range(4)])
    return MDP(SPACE, np.zeros(4), rows).diameter()


def span_if_one_state_pays(region: ConfidenceRegion) -> float:
    """Return span(gamma~) of EVI to high precision."""
    return wd.evi(region, epsilon=1e-6, max_sweeps=1_000_000).span


def replayed(taus: Iterable[int]) -> dict[tuple[int, str, float], Sets]:
    """Return what the sets lead to for each tau, kind of radii ("none": no radius) and eta."""
    found = {}
    for tau in taus:
        replay = peril_replay(tau)
        for name, radii in (KINDS | {"none": None}).items():
            for eta in ETAS:
                region = poisoned(replay, radii, eta)
                found[tau, name, eta] = Sets(best_diameter(region), span_if_one_state_pays(region))
    return found
