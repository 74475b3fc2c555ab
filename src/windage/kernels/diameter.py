"""Hitting times of one policy and cheapest roads between all states, without a subtraction.

Sums, products and quotients of non-negative numbers lose no digits, so the hitting times are right
to nearly full relative precision however slow the chain is (the elimination of Grassmann, Taksar
and Heyman). A factorisation with subtractions is not: it loses as many digits as the times have.
"""

from __future__ import annotations

import numpy as np

from windage.kernels.jit import compiled


@compiled
def hitting_times(moves, policy, target, work, goal, times):
    """Fill `times` with the expected times to `target` under `policy`.

    `moves[pair, s']` are the probabilities of moving; staying put is not read. States are
    eliminated one after another: whoever moved to an eliminated state moves where that state would
    have gone, and takes its time along. Returns the state that is never left for the target, or -1.
    """
    n = times.size
    for s in range(n):
        row = policy[s]
        times[s] = 1.0
        goal[s] = moves[row, target]
        for j in range(n):
            work[s, j] = moves[row, j]
        work[s, target] = 0.0
    times[target] = 0.0
    for k in range(n - 1, -1, -1):
        if k == target:
            continue
        rate = goal[k]
        for j in range(k):
            rate += work[k, j]
        if not rate > 0.0:
            return k
        times[k] /= rate
        goal[k] /= rate
        for j in range(k):
            work[k, j] /= rate
        for i in range(k):
            share = work[i, k]
            if share > 0.0 and i != target:
                times[i] += share * times[k]
                goal[i] += share * goal[k]
                for j in range(k):
                    work[i, j] += share * work[k, j]
    for k in range(n):
        if k != target:
            later = times[k]
            for j in range(k):
                later += work[k, j] * times[j]
            times[k] = later
    return -1


@compiled
def all_roads(costs):
    """Replace the costs of direct moves (inf: impossible) by those of the cheapest roads."""
    n = costs.shape[0]
    for k in range(n):
        for i in range(n):
            to_k = costs[i, k]
            if to_k < np.inf:
                for j in range(n):
                    by_k = to_k + costs[k, j]
                    costs[i, j] = by_k if by_k < costs[i, j] else costs[i, j]


@compiled
def drops(rows, states, probabilities, state_of, h, values, sizes):
    """Fill h(s) - sum p h for every pair and every column of h, and the sizes of what is summed.

    Formed from differences, so that rounding is relative to those and not to h.
    """
    for pair in range(state_of.size):
        s = state_of[pair]
        for c in range(h.shape[1]):
            values[pair, c] = sizes[pair, c] = 0.0
        for cell in range(rows[pair], rows[pair + 1]):
            p, j = probabilities[cell], states[cell]
            for c in range(h.shape[1]):
                step = p * (h[s, c] - h[j, c])
                values[pair, c] += step
                sizes[pair, c] += abs(step)
