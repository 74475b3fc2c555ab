"""How much of what the windows have forgotten still counts.

A pair that was not tried lately is unknown to a short window, and finding out again what it pays
costs regret each time, though it may hardly have moved. Let E samples of a pair be remembered (the
windows' counts, averaged by their weights) and R forgotten. The forgotten ones count as a prior of
m R / (m + R) samples: as many as there are while they are few, m at most. Whether they should count
at all, two experts find out by prediction, m = 0 and m = `strength`, weighed like windows: by the
world and by the pair, for transitions and for rewards.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.jit import inlined


class Legacy(NamedTuple):
    """The weight of counting the forgotten past, rather than not."""

    strength: float  # m; 0: it never counts
    world: NDArray[np.float64]  # [2] transitions, rewards
    pairs: NDArray[np.float64]  # [2, pairs]


@inlined
def likelihood(q, reward):
    """Return q^R (1 - q)^(1 - R)."""
    if reward == 1.0:
        return q
    if reward == 0.0:
        return 1.0 - q
    return math.exp(reward * math.log(q) + (1.0 - reward) * math.log(1.0 - q))


@inlined
def kept(legacy, kind, pair, forgotten):
    """Return which share of a forgotten past of so many samples counts for a pair."""
    if legacy.strength == 0.0:
        return 0.0
    mine, world = legacy.pairs[kind, np.uint64(pair)], legacy.world[kind]
    both = mine * world
    chance = both / (both + (1.0 - mine) * (1.0 - world))
    return chance * legacy.strength / (legacy.strength + forgotten)


@inlined
def estimates(legacy, prior, mean, recent, hits, visits, seen):
    """Return a mean without the forgotten past, and with it counted in full.

    `prior` samples at `mean` come first; `recent` are remembered and sum to `hits`, `visits` and
    `seen` are those of all history.
    """
    forgotten = max(0.0, visits - recent)
    share = legacy.strength / (legacy.strength + forgotten)
    total, mass = prior * mean + hits, prior + recent
    counted = (total + share * max(0.0, seen - hits)) / (mass + share * forgotten)
    return total / mass, counted


@inlined
def weigh(legacy, kind, pair, without, counted, share):
    """Weigh anew, by how likely what came was without the past and with it counted."""
    world = legacy.world[kind] * counted
    world /= world + (1.0 - legacy.world[kind]) * without
    legacy.world[kind] = (1.0 - share) * world + 0.5 * share
    p = np.uint64(pair)
    mine = legacy.pairs[kind, p] * counted
    mine /= mine + (1.0 - legacy.pairs[kind, p]) * without
    legacy.pairs[kind, p] = (1.0 - share) * mine + 0.5 * share
