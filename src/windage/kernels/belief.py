"""What a multi-scale learner believes of each pair, and how much more it hopes for.

The model is the average of the windows' counts, each window weighted as it has earned for that pair
(omega, its weight for the world times that for the pair), with mu = 1/2 pseudo-counts spread over
the next states and two over the rewards:

    N_p = mu + sum_k omega_k N_k,      p(s') = (mu/S + sum_k omega_k n_k(s')) / N_p
    N_r = 2 + sum_k omega'_k N_k,      q = (1 + sum_k omega'_k S_k) / N_r

To both come the samples that were forgotten, as far as they count (`kernels.legacy`).

The hope is what a sample of r + p.u from the posterior would add by chance, as large as is worth
paying for (`_hope`): Wilson's bound for the reward, the standard deviation of p.u for the
transitions, both growing with the logarithm of how rarely the action was tried among those of its
state, times a payback factor: how many steps are left to profit, over how many the world remembers.
A random factor of each pair, drawn anew each epoch, keeps two hopes from standing in a draw.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.cells import NONE
from windage.kernels.jit import compiled, inlined
from windage.kernels.legacy import kept
from windage.kernels.scales import AHEAD, REWARDS, TAKEN, TRANSITIONS, Scales

NEGLIGIBLE = 1e-4  # windows with less weight for a pair are left out of its transitions

PAIR = np.dtype(
    [
        ("p_mass", np.float64),  # N_p
        ("r_mass", np.float64),  # N_r
        ("mean", np.float64),  # q
        ("hope", np.float64),  # what is added to it
        ("reward", np.float64),  # q + hope
        ("factor", np.float64),  # zeta
        ("limit", np.float64),  # as many plays end the epoch
        ("plays", np.float64),  # nu, in this epoch
        ("row", np.int64),  # where its entries start
        ("entries", np.int64),
        ("allowed", np.int64),
    ],
    align=True,
)


class Belief(NamedTuple):
    """The averaged model, and the bias it was last planned with."""

    scales: Scales
    horizon: int
    unseen: float  # mu: pseudo-counts spread over the next states
    exploration: float  # c
    payback: float  # the largest payback factor; 0: always 1
    gaussian: bool  # hope for rewards by standard deviations instead of Wilson's bound
    offsets: NDArray[np.int64]  # [S + 1]
    pairs: NDArray[np.void]  # [pairs] PAIR
    rows: NDArray[np.void]  # plan.ENTRY: next states and their probabilities, but for mu / (S N_p)
    u: NDArray[np.float64]  # [S]
    omega: NDArray[np.float64]  # [K] workspace


@compiled
def form(belief):
    """Average the counts and add the hopes, under the bias of the last plan."""
    scales = belief.scales
    n = np.int64(0)
    for p in range(belief.pairs.size):
        belief.pairs[p]["row"] = n
        n = _average(scales, belief, p, n)
    payback = _payback(belief)
    even, even_square, top = _moments(belief.u)
    even, even_square = belief.unseen * even, belief.unseen * even_square
    for s in range(belief.u.size):
        first, last = belief.offsets[s], belief.offsets[s + 1]
        p_mass, r_mass = 0.0, 0.0
        for p in range(first, last):
            p_mass += belief.pairs[p]["p_mass"]
            r_mass += belief.pairs[p]["r_mass"]
        p_mass *= payback / (last - first)
        r_mass *= payback / (last - first)
        for p in range(first, last):
            _hope(belief, p, p_mass, r_mass, even, even_square, top)


@inlined
def _average(scales, belief, p, n):
    """Average the counts of one pair; its row starts at entry n, the next one at the result."""
    pair, at = belief.pairs[p], np.uint64(p)
    pair["entries"] = 0
    pair["p_mass"], pair["r_mass"], pair["mean"] = belief.unseen, 2.0, 0.5
    K, last = scales.windows.size, np.uint64(scales.windows.size - 1)
    visits, sums = scales.visits[at, last], scales.sums[at, last]
    if visits == 0.0:
        return n
    omega, all_p, all_r, recent_r, total = belief.omega, 0.0, 0.0, 0.0, 0.0
    for k in range(np.uint64(K)):
        omega[k] = scales.world[TRANSITIONS, k] * scales.pairs[TRANSITIONS, at, k]
        all_p += omega[k]
        of_rewards = scales.world[REWARDS, k] * scales.pairs[REWARDS, at, k]
        all_r += of_rewards
        recent_r += of_rewards * scales.visits[at, k]
        total += of_rewards * scales.sums[at, k]
    recent_r /= all_r
    total /= all_r
    forgotten = max(0.0, visits - recent_r)
    share = kept(scales.legacy, REWARDS, p, forgotten)
    r_mass = 2.0 + recent_r + share * forgotten
    pair["r_mass"] = r_mass
    pair["mean"] = (1.0 + total + share * max(0.0, sums - total)) / r_mass
    recent, first = 0.0, K - 1  # the shortest window that counts
    for k in range(K - 1, -1, -1):
        if omega[np.uint64(k)] < NEGLIGIBLE * all_p:
            omega[np.uint64(k)] = 0.0
        else:
            recent += omega[np.uint64(k)] * scales.visits[at, np.uint64(k)]
            first = k
    recent /= all_p
    forgotten = max(0.0, visits - recent)
    share = kept(scales.legacy, TRANSITIONS, p, forgotten)
    p_mass = belief.unseen + recent + share * forgotten
    pair["p_mass"] = p_mass
    scale = (1.0 - share) / (all_p * p_mass)
    for k in range(np.uint64(first), np.uint64(K)):
        omega[k] *= scale
    omega[last] += share / p_mass  # all history, less what is remembered of it
    cell = np.int64(scales.cells.newest[at])
    start = n
    while cell != NONE:
        c = np.uint64(cell)
        share = 0.0
        for k in range(np.uint64(first), np.uint64(K)):
            share += omega[k] * scales.cells.counts[c, k]
        if share > 0.0:
            belief.rows[n]["index"] = scales.cells.state[c]
            belief.rows[n]["probability"] = share
            n += 1
        cell = np.int64(scales.cells.older[c])
    pair["entries"] = n - start
    return n


@inlined
def _payback(belief):
    """Return how many steps are left to profit over how many the world remembers, within limits."""
    if belief.payback == 0.0:
        return 1.0
    scales = belief.scales
    memory = 0.0
    for k in range(scales.windows.size):
        memory += 0.5 * (scales.world[0, k] + scales.world[1, k]) * scales.windows[k]
    taken = scales.clock[TAKEN]
    left = belief.horizon - (taken - scales.clock[AHEAD])
    return min(belief.payback, min(left, memory) / max(1.0, min(np.float64(taken), memory)))


@inlined
def _moments(u):
    """Return the mean of u, of its squares, and its maximum."""
    even, square, top = 0.0, 0.0, u[0]
    for s in range(u.size):
        even += u[s]
        square += u[s] * u[s]
        top = max(top, u[s])
    return even / u.size, square / u.size, top


@inlined
def _hope(belief, p, p_mass, r_mass, even, even_square, top):
    """Say how much more than is known a pair may be worth; `even` and its like are times mu."""
    pair = belief.pairs[p]
    q, m = pair["mean"], pair["r_mass"] + 1.0
    c = belief.exploration * pair["factor"]
    v = c * c * math.log(1.0 + r_mass / pair["r_mass"])
    spread = math.sqrt(v)
    if belief.gaussian:
        of_reward = spread * math.sqrt(q * (1.0 - q) / m)
    else:
        root = math.sqrt(q * (1.0 - q) / m + v / (4.0 * m * m))
        of_reward = (q + v / (2.0 * m) + spread * root) / (1.0 + v / m) - q
    mean, square = even, even_square
    for i in range(pair["row"], pair["row"] + pair["entries"]):
        entry = belief.rows[np.uint64(i)]
        ahead = belief.u[np.uint64(entry["index"])]
        mean += pair["p_mass"] * entry["probability"] * ahead
        square += pair["p_mass"] * entry["probability"] * ahead * ahead
    mean /= pair["p_mass"]
    variance = max(0.0, square / pair["p_mass"] - mean * mean)
    of_next = c * math.sqrt(
        math.log(1.0 + p_mass / pair["p_mass"]) * variance / (pair["p_mass"] + 1.0)
    )
    of_next = min(of_next, max(0.0, top - mean))  # no next state is better than the best
    pair["hope"] = math.sqrt(of_reward * of_reward + of_next * of_next)
    pair["reward"] = q + pair["hope"]
