"""Differential Q-learning: values relative to an estimated gain, no model, no window."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.jit import inlined
from windage.kernels.random import uniform
from windage.kernels.rollout import act, observe


class Critic(NamedTuple):
    """Values, gain and step sizes of one learner."""

    values: NDArray[np.float64]  # [pairs]
    gain: NDArray[np.float64]  # [1]
    offsets: NDArray[np.int64]
    key: NDArray[np.uint64]
    rate: float  # alpha
    gain_rate: float  # eta, of the gain relative to alpha
    exploration: float
    low: float  # rewards are taken from [low, low + width] to [0, 1]
    width: float
    progress: NDArray[np.void]  # [1] rollout.PROGRESS


@inlined
def _best(critic, s):
    """Return the first pair of a state with the largest value."""
    best = critic.offsets[s]
    for p in range(critic.offsets[s] + 1, critic.offsets[s + 1]):
        if critic.values[p] > critic.values[best]:
            best = p
    return best


@act.register(Critic)
def choose(critic, t, s):
    """Return the pair to play: the best one, or with some probability any."""
    if uniform(critic.key, t, 0) < critic.exploration:
        first = critic.offsets[s]
        return first + np.int64(uniform(critic.key, t, 1) * (critic.offsets[s + 1] - first))
    return _best(critic, s)


@observe.register(Critic)
def learn(critic, t, s, p, reward, after, seen):  # noqa: ARG001 - a pair has its state
    """Move value and gain along the temporal difference."""
    scaled = (reward - critic.low) / critic.width
    ahead = critic.values[_best(critic, after)]
    difference = scaled - critic.gain[0] + ahead - critic.values[p]
    critic.values[p] += critic.rate * difference
    critic.gain[0] += critic.gain_rate * critic.rate * difference
    critic.progress[0]["taken"] += 1
    critic.progress[0]["state"] = after
