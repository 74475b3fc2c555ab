"""What the tests of BORL's input share: a small model, and agents with three arms."""

from __future__ import annotations

import windage as wd
from tests.models import random_mdp
from windage.agents.meta.borl import BORL

SPACE = wd.StateActions([2, 3, 1])
T, H = 300, 40
FEW = [(15, 0.1), (70, 0.0), (500, 0.5)]


def drifting(noise="bernoulli"):
    ends = [random_mdp(SPACE, seed, density=0.7) for seed in (1, 2)]
    return wd.DriftingMDP.blend(ends, wd.schedules.Cosine(2), horizon=T, noise=noise)


MODEL = drifting()


def make(**options):
    given = {"horizon": T, "arms": FEW, "block_length": H, "seed": 5} | options
    return BORL(SPACE, **given)
