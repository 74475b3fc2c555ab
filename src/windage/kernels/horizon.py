"""Backward steps of the finite-horizon optimum: V_t(s) = max_a r_t(s,a) + sum p_t(.|s,a) V_{t+1}.

Values are kept as a level plus what exceeds the least of them. The level grows with T and is summed
with compensation; the excess stays within the span of the model, and so does its rounding. Rows
are divided by their sums: one that is off by a little would be off by T times as much.
"""

from __future__ import annotations

import numpy as np

from windage.kernels.jit import compiled, inlined


@inlined
def _settle(excess, new, level, summands, size):
    """Move the least new value into the level, and add what rounding may have cost.

    `level` holds the sum, its compensation (after Neumaier) and the bound of the rounding error.
    """
    low = new[0]
    for s in range(1, new.size):
        low = min(low, new[s])
    for s in range(new.size):
        excess[s] = new[s] - low
    total = level[0] + low
    bigger = abs(level[0]) >= abs(low)
    level[1] += (level[0] - total) + low if bigger else (low - total) + level[0]
    level[0] = total
    level[2] += (2 * summands + 5) * np.finfo(np.float64).eps * size


@compiled
def back_dense(offsets, rewards, transitions, repeats, excess, new, level, policy, row):
    """Go back `repeats` steps under one dense model; `policy[row]` is the last of them.

    An empty `policy` is not filled. Ties go to the first action. Returns how many steps were made
    before a value that is no number, or -1 if none came up.
    """
    n = excess.size
    for k in range(repeats):
        size = 0.0
        for s in range(n):
            best, choice = -np.inf, 0
            for pair in range(offsets[s], offsets[s + 1]):
                ahead = total = 0.0
                for j in range(n):
                    ahead += transitions[pair, j] * excess[j]
                    total += transitions[pair, j]
                ahead /= total
                value = rewards[pair] + ahead
                if not abs(value) < np.inf:
                    return k
                size = max(size, abs(rewards[pair]) + abs(ahead))
                if value > best:
                    best, choice = value, pair - offsets[s]
            new[s] = best
            if policy.shape[0] > 0:
                policy[row - k, s] = choice
        _settle(excess, new, level, n, size)
    return -1


@compiled
def back_sparse(
    offsets, rewards, rows, states, probabilities, repeats, excess, new, level, policy, row
):
    """Do as `back_dense` for transitions in CSR."""
    for k in range(repeats):
        size, longest = 0.0, 0
        for s in range(excess.size):
            best, choice = -np.inf, 0
            for pair in range(offsets[s], offsets[s + 1]):
                ahead = total = 0.0
                for cell in range(rows[pair], rows[pair + 1]):
                    ahead += probabilities[cell] * excess[states[cell]]
                    total += probabilities[cell]
                ahead /= total
                longest = max(longest, rows[pair + 1] - rows[pair])
                value = rewards[pair] + ahead
                if not abs(value) < np.inf:
                    return k
                size = max(size, abs(rewards[pair]) + abs(ahead))
                if value > best:
                    best, choice = value, pair - offsets[s]
            new[s] = best
            if policy.shape[0] > 0:
                policy[row - k, s] = choice
        _settle(excess, new, level, longest, size)
    return -1
