"""What the tests of MASTER share: a tidal model, and agents whose tests can fire or cannot."""

from __future__ import annotations

import windage as wd
from tests.models import random_mdp
from windage.agents.meta.master import MASTER

SPACE = wd.StateActions([2, 3, 1])
TIGHT = wd.Radii.ucrl2().scaled(0.01)
OFF = 1e9  # a factor that no test reaches


def drifting(horizon):
    """Rewards near 0 at low tide and near 1 at high tide, every 32 steps."""
    one = random_mdp(SPACE, 1)
    tides = [wd.MDP(SPACE, low + 0.1 * one.rewards, one.transitions) for low in (0.0, 0.9)]
    return wd.DriftingMDP.blend(tides, wd.schedules.Cosine(horizon / 32), horizon=horizon)


def made(horizon, seed=0, **options):
    given = {"diameter": 4.0, "radii": TIGHT, **options}
    return MASTER(SPACE, horizon=horizon, seed=seed, **given)


FIRING = {"log_factor": 1.0, "regret_constant": 1.0, "test_1": 0.3, "test_2": 2.0}
