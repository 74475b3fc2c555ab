"""Windows as experts: which of them has predicted best lately, for rewards and for transitions.

Each window k predicts what the next sample of a pair will be from what it remembers of that pair:

    x_k = (n_k(s, a, s') + 1/S) / (N_k(s, a) + 1)                        the next state
    y_k = q^R (1 - q)^(1 - R),   q = (S_k(s, a) + 1/2) / (N_k(s, a) + 1)  the reward

All windows are scored by every sample, so nothing need be played to compare them. A window has four
weights: overall and of the pair, for rewards and for transitions. Each is multiplied by
the score, normalised, and a small share is handed out again (fixed share, Herbster and Warmuth
1998), so that a window that was wrong for long can come back soon.

What the windows in favour have forgotten of a pair may still say where it usually is. Let E samples
of a pair be remembered (the windows' counts, averaged by their weights) and R forgotten. The
forgotten ones count as a prior of m R / (m + R) samples: as many as there are while they are few, m
at most. Whether they should count at all, two more experts find out by prediction, m = 0 and m =
`strength`, weighed like windows (`Discarded`).

All windows share one ring of samples: window k is the last W_k of it. A step adds the new sample to
every window and takes from each the one that is too old for it. Which state followed which pair is
counted in cells (`Cells`), one count for each window; the longest window is all history, so a cell
never goes away: cells are numbered as they are met, and those of a pair form a chain from the last
met to the first. A cell is found through a table, one place for every (pair, state) of a small
model, a hash table for a large one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.jit import compiled, inlined
from windage.kernels.random import mix

TRANSITIONS, REWARDS = 0, 1  # what weights are for

SAMPLE = np.dtype([("reward", np.float64), ("pair", np.int32), ("cell", np.int32)], align=True)
CLOCK = np.dtype(
    [
        ("taken", np.int64),  # samples so far
        ("ahead", np.int64),  # those of the time before t = 1
        ("state", np.int64),  # the last one led to
    ],
    align=True,
)
GRAIN = 2.0**26  # rewards are kept in multiples of 1 / GRAIN: sums over a window are exact
NONE = -1  # no cell


class Cells(NamedTuple):
    """All transitions ever seen; `windage.agents.multiscale.windows` makes them and gives room."""

    n_states: int
    hashed: bool
    met: NDArray[np.int64]  # [1] how many cells there are
    table: NDArray[np.int32]  # [pairs * S], or a power of two: 1 + cell, 0 if there is none
    pair: NDArray[np.int32]  # [room]
    state: NDArray[np.int32]
    older: NDArray[np.int32]  # the cell of the same pair that was met before, or NONE
    newest: NDArray[np.int32]  # [pairs] where a pair's chain starts, or NONE
    counts: NDArray[np.int32]  # [room, windows]


@inlined
def place_of(cells, pair, state):
    """Return the cell of (pair, state); one that is new gets the next number."""
    slot = np.uint64(pair * cells.n_states + state)
    if cells.hashed:
        mask = np.uint64(cells.table.size - 1)
        slot = mix(slot) & mask
        while cells.table[slot] != 0:
            cell = np.uint64(cells.table[slot] - 1)
            if cells.pair[cell] == pair and cells.state[cell] == state:
                break
            slot = (slot + np.uint64(1)) & mask
    if cells.table[slot] == 0:
        _meet(cells, slot, pair, state)
    return np.int64(cells.table[slot]) - 1


@compiled
def _meet(cells, slot, pair, state):
    cell = cells.met[0]
    cells.met[0] = cell + 1
    cells.table[slot] = cell + 1
    cells.pair[cell] = pair
    cells.state[cell] = state
    cells.older[cell] = cells.newest[pair]
    cells.newest[pair] = cell


@compiled
def enter(cells, pairs, states):
    """Meet many cells, in this order, none of them twice."""
    for i in range(pairs.size):
        place_of(cells, np.int64(pairs[i]), np.int64(states[i]))


class Discarded(NamedTuple):
    """The weight of counting the forgotten past, rather than not."""

    strength: float  # m; 0: it never counts
    overall: NDArray[np.float64]  # [2] transitions, rewards
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
def kept(discarded, kind, pair, forgotten):
    """Return which share of a forgotten past of so many samples counts for a pair."""
    if discarded.strength == 0.0:
        return 0.0
    mine, overall = discarded.pairs[kind, np.uint64(pair)], discarded.overall[kind]
    both = mine * overall
    chance = both / (both + (1.0 - mine) * (1.0 - overall))
    return chance * discarded.strength / (discarded.strength + forgotten)


@inlined
def estimates(discarded, prior, mean, recent, hits, visits, seen):
    """Return a mean without the forgotten past, and with it counted in full.

    `prior` samples at `mean` come first; `recent` are remembered and sum to `hits`, `visits` and
    `seen` are those of all history.
    """
    forgotten = visits - recent if visits > recent else 0.0
    share = discarded.strength / (discarded.strength + forgotten)
    total, mass = prior * mean + hits, prior + recent
    more = seen - hits if seen > hits else 0.0
    counted = (total + share * more) / (mass + share * forgotten)
    return total / mass, counted


@inlined
def weigh(discarded, kind, pair, without, counted, share):
    """Weigh anew, by how likely what came was without the past and with it counted."""
    overall = discarded.overall[kind] * counted
    overall /= overall + (1.0 - discarded.overall[kind]) * without
    discarded.overall[kind] = (1.0 - share) * overall + 0.5 * share
    p = np.uint64(pair)
    mine = discarded.pairs[kind, p] * counted
    mine /= mine + (1.0 - discarded.pairs[kind, p]) * without
    discarded.pairs[kind, p] = (1.0 - share) * mine + 0.5 * share


class Experts(NamedTuple):
    """Samples, counts and weights of all windows; `agents.multiscale.windows` makes them."""

    windows: NDArray[np.int64]  # [K] rising; the last one is all history
    prior: NDArray[np.float64]  # [K] where the shares of the overall weights go
    share: float  # how much of the weights is handed out again each step
    by_overall: bool  # whether the overall weights learn at all
    by_pair: bool  # ... and those of the pairs
    apart: bool  # whether rewards and transitions have weights of their own
    clock: NDArray[np.void]  # [1] CLOCK
    ring: NDArray[np.void]  # as many samples as the longest window but one remembers
    cells: Cells
    visits: NDArray[np.float64]  # [pairs, K] N
    sums: NDArray[np.float64]  # [pairs, K] of rewards
    overall: NDArray[np.float64]  # [2, K] weights: of transitions, of rewards
    pairs: NDArray[np.float64]  # [2, pairs, K]
    discarded: Discarded


@inlined
def score(experts, pair, cell, reward):
    """Weigh the windows, and the past they have forgotten, by what has just happened."""
    p, c = np.uint64(pair), np.uint64(cell)
    K = experts.windows.size
    overall, pairs = experts.overall, experts.pairs
    even = 1.0 / experts.cells.n_states
    certain = reward == 0.0 or reward == 1.0  # then y is 1 - q or q
    least, slope = 1.0 - reward, 2.0 * reward - 1.0
    total, total_p, total_r, total_pr = 0.0, 0.0, 0.0, 0.0
    mass, recent, hits = 0.0, 0.0, 0.0  # what was remembered: all of it, and of what came now
    mass_r, recent_r, hits_r = 0.0, 0.0, 0.0
    for k in range(np.uint64(K)):
        visits, sums, seen = experts.visits[p, k], experts.sums[p, k], experts.cells.counts[c, k]
        omega = overall[0, k] * pairs[0, p, k]
        mass += omega
        recent += omega * visits
        hits += omega * seen
        omega = overall[1, k] * pairs[1, p, k]
        mass_r += omega
        recent_r += omega * visits
        hits_r += omega * sums
        n = 1.0 / (visits + 1.0)
        x = (seen + even) * n
        y = (sums + 0.5) * n
        y = least + slope * y if certain else likelihood(y, reward)
        if not experts.apart:
            x = y = x * y
        if experts.by_overall:
            overall[0, k] *= x
            overall[1, k] *= y
        if experts.by_pair:
            pairs[0, p, k] *= x
            pairs[1, p, k] *= y
        total += overall[0, k]
        total_r += overall[1, k]
        total_p += pairs[0, p, k]
        total_pr += pairs[1, p, k]
    kept, even_share = 1.0 - experts.share, experts.share / K
    total, total_r = kept / total, kept / total_r
    total_p, total_pr = kept / total_p, kept / total_pr
    for k in range(np.uint64(K)):
        overall[0, k] = overall[0, k] * total + experts.share * experts.prior[k]
        overall[1, k] = overall[1, k] * total_r + experts.share * experts.prior[k]
        pairs[0, p, k] = pairs[0, p, k] * total_p + even_share
        pairs[1, p, k] = pairs[1, p, k] * total_pr + even_share
    if experts.discarded.strength > 0.0:
        last = np.uint64(K - 1)
        ever, seen = experts.visits[p, last], np.float64(experts.cells.counts[c, last])
        without, counted = estimates(
            experts.discarded, 1.0, even, recent / mass, hits / mass, ever, seen
        )
        weigh(experts.discarded, TRANSITIONS, pair, without, counted, experts.share)
        sums = experts.sums[p, last]
        without, counted = estimates(
            experts.discarded, 2.0, 0.5, recent_r / mass_r, hits_r / mass_r, ever, sums
        )
        without, counted = likelihood(without, reward), likelihood(counted, reward)
        weigh(experts.discarded, REWARDS, pair, without, counted, experts.share)


@inlined
def count(experts, pair, cell, reward):
    """Add a sample to every window, and take from each the one that has become too old."""
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
