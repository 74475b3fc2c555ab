"""What the tests of bandits share: their kinds, a small drifting model, silence."""

from __future__ import annotations

import warnings

import numpy as np

import windage as wd
from windage.agents import BOB, DUCB, EXP3S, REXP3, SWUCB, UCB1
from windage.rng import stream

KINDS = [UCB1, SWUCB, DUCB, REXP3, EXP3S, BOB]
SPACE = wd.StateActions([3, 1, 2])
TOLD = {SWUCB: {"changes": 1}, DUCB: {"changes": 1}, EXP3S: {"changes": 1}, REXP3: {"variation": 1}}


def small(T, noise="beta"):
    rng = stream(3, "small")
    models = [
        wd.MDP(SPACE, rng.random(6), rng.dirichlet(np.ones(3), size=6)),
        wd.MDP(SPACE, rng.random(6), rng.dirichlet(np.ones(3), size=6)),
    ]
    return wd.DriftingMDP.blend(models, wd.schedules.Cosine(3), horizon=T, noise=noise)


def quiet(kind, T, reward_range):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wd.GuaranteeWarning)
        return kind(SPACE, horizon=T, reward_range=reward_range, seed=2, **TOLD.get(kind, {}))
