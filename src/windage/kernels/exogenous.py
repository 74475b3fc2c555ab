"""One step of a model with a structure: draw the outcomes of its variables; the rest follows.

The outcome of a law is drawn by inversion of its cumulative probabilities, with a uniform number
whose address is (law, t): whoever plays, and whatever, meets the same outcomes, and two laws that
are close give the same one nearly always. An outcome of probability zero has no interval of its
own, so it cannot be drawn, whatever the rounding.

Laws that do not drift are stored once, the others a row a time: the cumulative probabilities of a
law at the i-th time start at `place + i * stride`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.jit import compiled, inlined, variants
from windage.kernels.random import uniform
from windage.kernels.simulator import (
    Bernoulli,
    Spread,
    draw_noise,
    land,
    mean_reward,
    noise_at,
    reward,
    uniforms,
)


class Fallen(NamedTuple):
    """Rewards are what the structure says of the outcomes."""

    key: NDArray[np.uint64]
    rewards: NDArray[np.float64]  # [joint]
    chances: NDArray[np.float64]  # workspace: probabilities of the joint outcomes of a pair


class Learned(NamedTuple):
    """Rewards have a mean of their own at each pair, and noise around it."""

    key: NDArray[np.uint64]
    low: float
    width: float
    around: Bernoulli | Spread
    rewards: NDArray[np.float64]  # [bases, pairs], and their weights as in `simulator.Dynamics`
    reward_base: NDArray[np.int32]
    reward_weight: NDArray[np.float64]
    first: int


class ExogenousDynamics(NamedTuple):
    """All a compiled loop needs to know of such a model for the times `first`..`last`."""

    first: int
    last: int
    ahead: int  # by how much its time is ahead of that of whoever plays
    law_of: NDArray[np.int32]  # [pairs, F] the law that acts at a pair, else -1
    drawn: NDArray[np.int32]  # [pairs, F] the same, and where the variable is seen all the same
    exact: NDArray[np.bool_]  # [F] whether a draw of it is shown
    sizes: NDArray[np.int64]  # [L] outcomes of each law
    place: NDArray[np.int64]  # [L]
    stride: NDArray[np.int64]  # [L]
    cumulative: NDArray[np.float64]
    keys: NDArray[np.uint64]  # [L, 2]
    joint: NDArray[np.int64]  # [pairs + 1] where the joint outcomes of each pair start
    next_state: NDArray[np.int32]  # [joint]
    spans: NDArray[np.int32]  # [joint, F, 2] the intervals that are shown; empty if there are none
    noise: Fallen | Learned
    seen: NDArray[np.int64]  # [F, 2] lowest and highest outcome each may have had; (0, -1)


@draw_noise.register(ExogenousDynamics)
def _draw_noise(model, t, _spins, _draws, coins):
    uniforms(model.noise.key, np.uint64(t + model.ahead), coins)


@noise_at.register(ExogenousDynamics, forceinline=True)
def _noise_at(model, t):
    return 0.0, np.uint64(0), uniform(model.noise.key, t + model.ahead, 0)


@land.register(ExogenousDynamics)
def _land(model, t, pair, _spin, _u, coin):
    t += model.ahead
    joint = 0
    for f in range(model.exact.size):
        model.seen[f, 0], model.seen[f, 1] = 0, -1
        law = model.drawn[pair, f]
        if law >= 0:
            outcome = _draw(model, law, t)
            if model.law_of[pair, f] >= 0:
                joint = joint * model.sizes[law] + outcome
            if model.exact[f]:
                model.seen[f, 0], model.seen[f, 1] = outcome, outcome
    joint += model.joint[pair]
    if model.spans.shape[0] > 0:
        for f in range(model.exact.size):
            if not model.exact[f]:
                model.seen[f, 0], model.seen[f, 1] = (
                    model.spans[joint, f, 0],
                    model.spans[joint, f, 1],
                )
    mean, paid = _paid(model.noise, model, t, pair, joint, coin)
    return mean, paid, np.int64(model.next_state[joint])


@inlined
def _draw(model, law, t):
    """Return the outcome of a law: the first whose cumulative probability exceeds the draw."""
    u = uniform((model.keys[law, 0], model.keys[law, 1]), t, 0)
    start = model.place[law] + (t - model.first) * model.stride[law]
    low, high = 0, model.sizes[law] - 1
    while low < high:
        middle = (low + high) // 2
        if u < model.cumulative[start + middle]:
            high = middle
        else:
            low = middle + 1
    return low


@variants
def _paid(noise, model, t, pair, joint, coin):
    """Return the mean reward of a pair, and the reward of a joint outcome of it."""


@_paid.register(Fallen)
def _by_outcome(noise, model, t, pair, joint, _coin):
    return _mean(noise, model, t, pair), noise.rewards[joint]


@_paid.register(Learned)
def _by_itself(noise, _model, t, pair, _joint, coin):
    mean = mean_reward(noise, t, pair)
    unit = (mean - noise.low) / noise.width
    return mean, noise.low + noise.width * reward(noise.around, t, unit, coin)


@compiled
def _mean(noise, model, t, pair):
    """Return the mean over the joint outcomes of a pair, the last variable going fastest.

    Written as a step away from the first of them: a reward that does not depend on outcomes is
    itself, to the last bit.
    """
    chances, n = noise.chances, 1
    chances[0] = 1.0
    for f in range(model.exact.size):
        law = model.law_of[pair, f]
        if law >= 0:
            size = model.sizes[law]
            start = model.place[law] + (t - model.first) * model.stride[law]
            for i in range(n - 1, -1, -1):
                before, below = chances[i], 0.0
                for o in range(size):
                    upto = model.cumulative[start + o]
                    chances[i * size + o] = before * (upto - below)
                    below = upto
            n *= size
    first = model.joint[pair]
    base, above = noise.rewards[first], 0.0
    for i in range(1, n):
        above += chances[i] * (noise.rewards[first + i] - base)
    return base + above
