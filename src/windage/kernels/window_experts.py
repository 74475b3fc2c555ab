"""Windows as experts: which of them has predicted best lately, for laws and for rewards.

What is learned is the law of what a step shows: a distribution over outcomes. In a tabular model
every pair has a law of its own, whose outcomes are the next states; a structure says which pairs
share one (`kernels.structured`). Each window k predicts what the next sample of law l will be from
what it remembers of that law, and the reward of pair z likewise:

    x_k = (n_k(l, o) + 1/O) / (N_k(l) + 1)                               one of O outcomes
    y_k = q^R (1 - q)^(1 - R),   q = (S_k(z) + 1/2) / (N_k(z) + 1)       the reward

All windows are scored by every sample, so nothing need be played to compare them. A window has four
weights: overall and of the law, overall and of the pair's rewards. Each is multiplied by
the score, normalised, and a small share is handed out again (fixed share, Herbster and Warmuth
1998), so that a window that was wrong for long can come back soon.

What the windows in favour have forgotten of a law may still say where it usually is. Let E samples
of a law be remembered (the windows' counts, averaged by their weights) and R forgotten. The
forgotten ones count as a prior of m R / (m + R) samples: as many as there are while they are few, m
at most. Whether they should count at all, two more experts find out by prediction, m = 0 and m =
`strength`, weighed like windows (`Weights.past`).

All windows share one ring of steps: window k is the last W_k of them. A step adds its samples to
every window and takes from each those that are too old for it. Which outcome each law had is
counted in cells (`Cells`), one count for each window; the longest window is all history, so a cell
never goes away: cells are numbered as they are met, and those of a law form a chain from the last
met to the first. A cell is found through a table, one place for every (law, outcome) of a small
model, a hash table for a large one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.jit import compiled, inlined
from windage.kernels.random import mix

SAMPLE = np.dtype([("reward", np.float64), ("pair", np.int32), ("cell", np.int32)], align=True)
CLOCK = np.dtype(
    [
        ("taken", np.int64),  # steps so far
        ("ahead", np.int64),  # those of the time before t = 1
        ("state", np.int64),  # the last one led to
    ],
    align=True,
)
GRAIN = 2.0**26  # rewards are kept in multiples of 1 / GRAIN: sums over a window are exact
NONE = -1  # no cell


class Cells(NamedTuple):
    """All outcomes ever seen; `windage.agents.multiscale.windows` makes them and gives room."""

    stride: int  # how many outcomes the law with most of them has
    hashed: bool
    met: NDArray[np.int64]  # [1] how many cells there are
    table: NDArray[np.int32]  # [laws * stride], or a power of two: 1 + cell, 0 if there is none
    law: NDArray[np.int32]  # [room]
    outcome: NDArray[np.int32]
    older: NDArray[np.int32]  # the cell of the same law that was met before, or NONE
    newest: NDArray[np.int32]  # [laws] where a law's chain starts, or NONE
    counts: NDArray[np.int32]  # [room, windows]


@inlined
def place_of(cells, law, outcome):
    """Return the cell of (law, outcome); one that is new gets the next number."""
    slot = np.uint64(law * cells.stride + outcome)
    if cells.hashed:
        mask = np.uint64(cells.table.size - 1)
        slot = mix(slot) & mask
        while cells.table[slot] != 0:
            cell = np.uint64(cells.table[slot] - 1)
            if cells.law[cell] == law and cells.outcome[cell] == outcome:
                break
            slot = (slot + np.uint64(1)) & mask
    if cells.table[slot] == 0:
        _meet(cells, slot, law, outcome)
    return np.int64(cells.table[slot]) - 1


@compiled
def _meet(cells, slot, law, outcome):
    cell = cells.met[0]
    cells.met[0] = cell + 1
    cells.table[slot] = cell + 1
    cells.law[cell] = law
    cells.outcome[cell] = outcome
    cells.older[cell] = cells.newest[law]
    cells.newest[law] = cell


@compiled
def enter(cells, laws, outcomes):
    """Meet many cells, in this order, none of them twice."""
    for i in range(laws.size):
        place_of(cells, np.int64(laws[i]), np.int64(outcomes[i]))


class Weights(NamedTuple):
    """How much the windows count, and what they have forgotten, of n laws or mean rewards."""

    overall: NDArray[np.float64]  # [K]
    own: NDArray[np.float64]  # [n, K]
    past: NDArray[np.float64]  # [1] the chance that the forgotten past should count
    own_past: NDArray[np.float64]  # [n]


class Experts(NamedTuple):
    """Samples, counts and weights of all windows; `agents.multiscale.windows` makes them."""

    windows: NDArray[np.int64]  # [K] rising; the last one is all history
    prior: NDArray[np.float64]  # [K] where the shares of the overall weights go
    share: float  # how much of the weights is handed out again each step
    strength: float  # m, for how many samples the forgotten past counts; 0: it never does
    by_overall: bool  # whether the overall weights learn at all
    by_law: bool  # ... and those of the laws and pairs
    apart: bool  # whether rewards have weights of their own
    clock: NDArray[np.void]  # [1] CLOCK
    ring: NDArray[np.void]  # SAMPLE, as many steps as the longest window but one remembers
    shown: NDArray[np.int32]  # [steps, samples] cells, where a step may bring several samples
    cells: Cells
    even: NDArray[np.float64]  # [laws] 1 / O
    visits: NDArray[np.float64]  # [laws, K] N
    tried: NDArray[np.float64]  # [pairs, K] N of the rewards; `visits` where a pair is a law
    sums: NDArray[np.float64]  # [pairs, K] of rewards
    of_laws: Weights
    of_rewards: Weights
    chances: NDArray[np.float64]  # [2, K] workspace


@inlined
def likelihood(q, reward):
    """Return q^R (1 - q)^(1 - R)."""
    if reward == 1.0:
        return q
    if reward == 0.0:
        return 1.0 - q
    return math.exp(reward * math.log(q) + (1.0 - reward) * math.log(1.0 - q))


@inlined
def kept(strength, weights, i, forgotten):
    """Return which share of a forgotten past of so many samples counts."""
    if strength == 0.0:
        return 0.0
    mine, overall = weights.own_past[np.uint64(i)], weights.past[0]
    both = mine * overall
    chance = both / (both + (1.0 - mine) * (1.0 - overall))
    return chance * strength / (strength + forgotten)


@inlined
def estimates(strength, prior, mean, recent, hits, visits, seen):
    """Return a mean without the forgotten past, and with it counted in full.

    `prior` samples at `mean` come first; `recent` are remembered and sum to `hits`, `visits` and
    `seen` are those of all history.
    """
    forgotten = visits - recent if visits > recent else 0.0
    share = strength / (strength + forgotten)
    total, mass = prior * mean + hits, prior + recent
    more = seen - hits if seen > hits else 0.0
    counted = (total + share * more) / (mass + share * forgotten)
    return total / mass, counted


@inlined
def weigh_past(weights, i, without, counted, share):
    """Weigh the past anew, by how likely what came was without it and with it counted."""
    overall = weights.past[0] * counted
    overall /= overall + (1.0 - weights.past[0]) * without
    weights.past[0] = (1.0 - share) * overall + 0.5 * share
    p = np.uint64(i)
    mine = weights.own_past[p] * counted
    mine /= mine + (1.0 - weights.own_past[p]) * without
    weights.own_past[p] = (1.0 - share) * mine + 0.5 * share


@inlined
def weigh(experts, weights, i, k, chance):
    """Multiply the weights of window k by how likely it held what came; returns both."""
    if experts.by_overall:
        weights.overall[k] *= chance
    if experts.by_law:
        weights.own[i, k] *= chance
    return weights.overall[k], weights.own[i, k]


@inlined
def share_out(experts, weights, i, k, scale, own_scale, even_share):
    """Normalise the weights of window k, and give it its share of what is handed out again."""
    weights.overall[k] = weights.overall[k] * scale + experts.share * experts.prior[k]
    weights.own[i, k] = weights.own[i, k] * own_scale + even_share


@inlined
def reweigh(experts, weights, i, chances):
    """Weigh all windows by how likely each held what came."""
    n, K = np.uint64(i), experts.windows.size
    total, own_total = 0.0, 0.0
    for k in range(np.uint64(K)):
        overall, own = weigh(experts, weights, n, k, chances[k])
        total += overall
        own_total += own
    rest, even_share = 1.0 - experts.share, experts.share / K
    total, own_total = rest / total, rest / own_total
    for k in range(np.uint64(K)):
        share_out(experts, weights, n, k, total, own_total, even_share)


@inlined
def predict_outcome(experts, law, cell, chances):
    """Fill in how likely each window held an outcome; returns what is remembered: N and n."""
    i, c = np.uint64(law), np.uint64(cell)
    weights, even = experts.of_laws, experts.even[i]
    mass, recent, hits = 0.0, 0.0, 0.0
    for k in range(np.uint64(experts.windows.size)):
        visits, seen = experts.visits[i, k], experts.cells.counts[c, k]
        omega = weights.overall[k] * weights.own[i, k]
        mass += omega
        recent += omega * visits
        hits += omega * seen
        chances[k] = (seen + even) / (visits + 1.0)
    return recent / mass, hits / mass


@inlined
def predict_reward(experts, pair, reward, chances):
    """Fill in how likely each window held a reward; returns what is remembered: N and S."""
    p, weights = np.uint64(pair), experts.of_rewards
    certain = reward == 0.0 or reward == 1.0  # then y is 1 - q or q
    least, slope = 1.0 - reward, 2.0 * reward - 1.0
    mass, recent, hits = 0.0, 0.0, 0.0
    for k in range(np.uint64(experts.windows.size)):
        visits, sums = experts.tried[p, k], experts.sums[p, k]
        omega = weights.overall[k] * weights.own[p, k]
        mass += omega
        recent += omega * visits
        hits += omega * sums
        y = (sums + 0.5) / (visits + 1.0)
        chances[k] = least + slope * y if certain else likelihood(y, reward)
    return recent / mass, hits / mass


@inlined
def score_past_of_outcome(experts, law, mean, recent, hits, seen):
    """Weigh the forgotten past of a law; `hits` of `recent`, `seen` of all, are alike."""
    i = np.uint64(law)
    ever = experts.visits[i, np.uint64(experts.windows.size - 1)]
    without, counted = estimates(experts.strength, 1.0, mean, recent, hits, ever, seen)
    weigh_past(experts.of_laws, law, without, counted, experts.share)


@inlined
def score_past_of_reward(experts, pair, reward, recent, hits):
    """Weigh the forgotten past of a pair's rewards."""
    p, last = np.uint64(pair), np.uint64(experts.windows.size - 1)
    ever, sums = experts.tried[p, last], experts.sums[p, last]
    without, counted = estimates(experts.strength, 2.0, 0.5, recent, hits, ever, sums)
    without, counted = likelihood(without, reward), likelihood(counted, reward)
    weigh_past(experts.of_rewards, pair, without, counted, experts.share)


@inlined
def score(experts, pair, cell, reward):
    """Weigh the windows, and the past they have forgotten, by what has just happened to a pair.

    `predict_outcome`, `predict_reward` and `reweigh` in one go, where a pair is a law.
    """
    p, c = np.uint64(pair), np.uint64(cell)
    K, laws, rewards = experts.windows.size, experts.of_laws, experts.of_rewards
    even = experts.even[p]
    certain = reward == 0.0 or reward == 1.0
    least, slope = 1.0 - reward, 2.0 * reward - 1.0
    total, total_p, total_r, total_pr = 0.0, 0.0, 0.0, 0.0
    mass, recent, hits = 0.0, 0.0, 0.0
    mass_r, recent_r, hits_r = 0.0, 0.0, 0.0
    for k in range(np.uint64(K)):
        visits, sums, seen = experts.visits[p, k], experts.sums[p, k], experts.cells.counts[c, k]
        omega = laws.overall[k] * laws.own[p, k]
        mass += omega
        recent += omega * visits
        hits += omega * seen
        omega = rewards.overall[k] * rewards.own[p, k]
        mass_r += omega
        recent_r += omega * visits
        hits_r += omega * sums
        n = 1.0 / (visits + 1.0)
        x = (seen + even) * n
        y = (sums + 0.5) * n
        y = least + slope * y if certain else likelihood(y, reward)
        if not experts.apart:
            x = y = x * y
        overall, own = weigh(experts, laws, p, k, x)
        total += overall
        total_p += own
        overall, own = weigh(experts, rewards, p, k, y)
        total_r += overall
        total_pr += own
    rest, even_share = 1.0 - experts.share, experts.share / K
    total, total_r = rest / total, rest / total_r
    total_p, total_pr = rest / total_p, rest / total_pr
    for k in range(np.uint64(K)):
        share_out(experts, laws, p, k, total, total_p, even_share)
        share_out(experts, rewards, p, k, total_r, total_pr, even_share)
    if experts.strength > 0.0:
        seen = np.float64(experts.cells.counts[c, np.uint64(K - 1)])
        score_past_of_outcome(experts, pair, even, recent / mass, hits / mass, seen)
        score_past_of_reward(experts, pair, reward, recent_r / mass_r, hits_r / mass_r)


@inlined
def count(experts, pair, cell, reward):
    """Add a pair's sample to every window, and take from each the one that has become too old."""
    p, c = np.uint64(pair), np.uint64(cell)
    taken = experts.clock[0]["taken"]
    K = experts.windows.size
    mask = np.uint64(experts.ring.size - 1)
    for k in range(np.uint64(K)):
        experts.cells.counts[c, k] += 1
        experts.visits[p, k] += 1.0
        experts.sums[p, k] += reward
    for k in range(np.uint64(K - 1)):
        if taken < experts.windows[k]:
            break
        old = experts.ring[np.uint64(taken - experts.windows[k]) & mask]
        left = np.uint64(old["pair"])
        experts.cells.counts[np.uint64(old["cell"]), k] -= 1
        experts.visits[left, k] -= 1.0
        experts.sums[left, k] -= old["reward"]
    new = experts.ring[np.uint64(taken) & mask]
    new["reward"] = reward
    new["pair"] = pair
    new["cell"] = cell
    experts.clock[0]["taken"] = taken + 1


@inlined
def count_step(experts, cells, pair, reward):
    """`count` for a step with several samples, of the laws of these cells, or none."""
    p, taken, K = np.uint64(pair), experts.clock[0]["taken"], experts.windows.size
    mask, learned = np.uint64(experts.ring.size - 1), experts.tried.shape[0] > 0
    for f in range(cells.size):
        if cells[f] != NONE:
            c = np.uint64(cells[f])
            law = np.uint64(experts.cells.law[c])
            for k in range(np.uint64(K)):
                experts.cells.counts[c, k] += 1
                experts.visits[law, k] += 1.0
    if learned:
        for k in range(np.uint64(K)):
            experts.tried[p, k] += 1.0
            experts.sums[p, k] += reward
    for k in range(np.uint64(K - 1)):
        if taken < experts.windows[k]:
            break
        slot = np.uint64(taken - experts.windows[k]) & mask
        for f in range(cells.size):
            if experts.shown[slot, f] != NONE:
                c = np.uint64(experts.shown[slot, f])
                experts.cells.counts[c, k] -= 1
                experts.visits[np.uint64(experts.cells.law[c]), k] -= 1.0
        if learned:
            left = np.uint64(experts.ring[slot]["pair"])
            experts.tried[left, k] -= 1.0
            experts.sums[left, k] -= experts.ring[slot]["reward"]
    slot = np.uint64(taken) & mask
    experts.ring[slot]["reward"] = reward
    experts.ring[slot]["pair"] = pair
    for f in range(cells.size):
        experts.shown[slot, f] = cells[f]
    experts.clock[0]["taken"] = taken + 1


@inlined
def take(experts, pair, reward, after):
    """Learn from one sample, its reward in [0, 1]: first score the windows, then count it."""
    cell = place_of(experts.cells, pair, after)
    exact = math.floor(reward * GRAIN + 0.5) / GRAIN
    score(experts, pair, cell, exact)
    count(experts, pair, cell, exact)
    experts.clock[0]["state"] = after


@compiled
def take_all(experts, pairs, rewards, afters):
    """`take` many samples."""
    for i in range(pairs.size):
        take(experts, pairs[i], rewards[i], afters[i])
