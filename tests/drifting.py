"""Drifting models of every kind, and schedules, that many tests use."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

import windage as wd
from tests.models import random_mdp

SPACE = wd.StateActions([2, 1, 3])
MODELS = [random_mdp(SPACE, seed) for seed in range(3)]
T = 60


def knots(times, interpolation="linear", sparse=False):
    rewards = [MODELS[k % 3].rewards for k in range(len(times))]
    rows = [MODELS[k % 3].transitions for k in range(len(times))]
    kernels = [csr_array(p) for p in rows] if sparse else rows
    return wd.DriftingMDP(SPACE, times, rewards, kernels, horizon=T, interpolation=interpolation)


def as_arrays(model):
    r = np.full((model.horizon, 3, 3), np.nan)
    p = np.full((model.horizon, 3, 3, 3), np.nan)
    for t in range(1, model.horizon + 1):
        r[t - 1, SPACE.state_of, SPACE.action_of] = model.at(t).rewards
        p[t - 1, SPACE.state_of, SPACE.action_of] = model.at(t).transitions
    return r, p


BUILDERS = {
    "knots": lambda: knots([1, 20, 21, 50]),
    "step knots": lambda: knots([1, 20, 21, 50], "step"),
    "sparse knots": lambda: knots([1, 20, 21, 50], sparse=True),
    "one knot": lambda: knots([1]),
    "cosine": lambda: wd.DriftingMDP.blend(MODELS[:2], wd.schedules.Cosine(2), horizon=T),
    "two schedules": lambda: wd.DriftingMDP.blend(
        MODELS[:2], wd.schedules.Linear(), wd.schedules.Steps([7, 30]), horizon=T
    ),
    "three models": lambda: wd.DriftingMDP.blend(
        MODELS, wd.schedules.Steps([9, 40], order=[2, 0, 1]), horizon=T
    ),
    "own weights": lambda: wd.DriftingMDP.blend(MODELS, Circling(), horizon=T),
    "arrays": lambda: wd.DriftingMDP.from_arrays(*as_arrays(knots([1, 20, 21, 50])), SPACE),
    "function": lambda: wd.DriftingMDP.from_function(
        lambda t: (MODELS[t % 3].rewards, MODELS[t % 3].transitions), space=SPACE, horizon=T
    ),
    "sparse function": lambda: wd.DriftingMDP.from_function(
        lambda t: (MODELS[t % 2].rewards, csr_array(MODELS[t % 2].transitions)),
        space=SPACE,
        horizon=T,
    ),
    "stationary": lambda: wd.DriftingMDP.stationary(MODELS[0], horizon=T),
}


class Circling:
    def weights(self, t, horizon):
        w = np.array([1 + np.cos(t), 1 + np.sin(t), 0.5])
        return w / w.sum()


SHAPES = {
    "cosine": wd.schedules.Cosine(3.3),
    "linear": wd.schedules.Linear(2.5),
    "walk": wd.schedules.RandomWalk(1, moves=40, size=0.3),
    "burst": wd.schedules.Burst(0.2, 0.6, 2),
    "steps": wd.schedules.Steps([100, 250, 251]),
    "knots": wd.schedules.Knots((1, 130, 131, 310)),
    "few knots": wd.schedules.Knots((1, 200)),
}
