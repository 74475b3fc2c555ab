"""Policy iteration for small dense models, and the Bellman residuals that certify any gain.

A policy is evaluated by taking states out of its chain one by one (Grassmann, Taksar and Heyman
1985, extended to rewards): a visit to the state taken out is replaced by the reward, the time and
the next state among the others that it leads to. Only sums, products and quotients of non-negative
numbers occur, so the gain keeps its digits even where an elimination with subtractions loses them:
chains that all but fall apart, and periodic ones. Taking the quickest state to leave first keeps
the expected times small.

Residuals are formed from differences, r + sum_j p_j (h_j - h_s): a row that sums to one only up to
rounding then counts as the row rescaled, and the rounding error is relative to the differences of
the bias, not to its size.
"""

from __future__ import annotations

import numpy as np

from windage.kernels.jit import compiled, inlined

SETTLED, SEVERAL_CLASSES, UNSETTLED, REFUSED = 0, 1, 2, 3
"""How `policy_iteration` ended: no switch left; a chain with several closed classes; overflow or
too many switches; rows that are no distributions."""

EPS = 2.0**-52
TIE = 16.0 * EPS
"""What rounding may add to a difference of action values, times the size of rewards and bias."""

ROW_SUM = 1e-9


@inlined
def _away(matrix, i, last):
    """Return the chance to go from i to another of the states 0..last."""
    mass = 0.0
    for j in range(last + 1):
        if j != i:
            mass += matrix[i, j]
    return mass


@inlined
def _quickest(matrix, last):
    """Return the one of the states 0..last that is the likeliest to leave."""
    pick = 0
    for i in range(1, last + 1):
        if matrix[i, i] < matrix[pick, pick]:
            pick = i
    if matrix[pick, pick] > 0.99:  # 1 - p_ii has lost its digits: compare what leaves
        most = -1.0
        for i in range(last + 1):
            mass = _away(matrix, i, last)
            if mass > most:
                pick, most = i, mass
    return pick


@inlined
def _swap(matrix, work, order, i, k):
    """Rename state i to k and k to i."""
    if i == k:
        return
    order[i], order[k] = order[k], order[i]
    for row in range(2):
        work[row, i], work[row, k] = work[row, k], work[row, i]
    for j in range(order.size):
        matrix[i, j], matrix[k, j] = matrix[k, j], matrix[i, j]
    for j in range(order.size):
        matrix[j, i], matrix[j, k] = matrix[j, k], matrix[j, i]


@compiled
def evaluate(matrix, work, order, bias):
    """Return the gain of a chain with one closed class and fill its bias; NaN if it has more.

    matrix[i, j] are the transition probabilities and work[0] the rewards; both are overwritten.
    order[0] is left at a state of the closed class, whose bias is 0.
    """
    n = order.size
    rewards, times, leave = work[0], work[1], work[2]
    for i in range(n):
        order[i] = i
        times[i] = 1.0
    for k in range(n - 1, 0, -1):
        _swap(matrix, work, order, _quickest(matrix, k), k)
        out = matrix[k]
        mass = _away(matrix, k, k)
        if not mass > 0.0:
            return np.nan  # nobody leaves: k + 1 closed classes
        leave[k] = mass
        for i in range(k):
            into = matrix[i]
            if into[k] != 0.0:
                share = into[k] / mass
                for j in range(k):
                    into[j] += share * out[j]
                rewards[i] += share * rewards[k]
                times[i] += share * times[k]
    gain = rewards[0] / times[0]
    value = work[3]
    value[0] = 0.0
    for k in range(1, n):
        total = rewards[k] - gain * times[k]
        for j in range(k):
            total += matrix[k, j] * value[j]
        value[k] = total / leave[k]
    for i in range(n):
        bias[order[i]] = value[i]
    return gain


@inlined
def _residual(row, bias, s, reward):
    """Return r + sum p (h - h_s), a bound of its rounding error, and whether the row will do."""
    up = size = total = 0.0
    sound = True
    for j in range(bias.size):
        p = row[j]
        term = p * (bias[j] - bias[s])
        up += term
        size += abs(term)
        total += p
        sound &= p >= 0.0
    sound &= abs(total - 1.0) <= ROW_SUM and abs(reward) < np.inf
    noise = (bias.size + 2) * EPS * (abs(reward) + size / total)
    return reward + up / total, noise, sound


@inlined
def _lowest_on_closed_class(transitions, policy, root, floor, stack, seen):
    """Return the least `floor` over the states that the policy can reach from `root`."""
    n = policy.size
    for s in range(n):
        seen[s] = 0
    stack[0], seen[root] = root, 1
    waiting, lowest = 1, np.inf
    while waiting > 0:
        waiting -= 1
        s = stack[waiting]
        lowest = min(lowest, floor[s])
        row = transitions[policy[s]]
        for j in range(n):
            if row[j] > 0.0 and seen[j] == 0:
                seen[j] = 1
                stack[waiting] = j
                waiting += 1
    return lowest


@compiled
def policy_iteration(offsets, rewards, transitions, limit, policy, bias, matrix, work, marks):
    """Improve `policy` (pairs) until no action is better; fill `bias`.

    Returns how it ended, the number of evaluations, the gain, and the bracket of the gain: the
    largest residual over all pairs, and the least of the policy's over its closed class, each
    moved outwards by its rounding error.
    """
    n = policy.size
    order, floor = marks[0], work[2]
    gain = np.nan
    for count in range(1, limit + 1):
        for s in range(n):
            row = transitions[policy[s]]
            total = 0.0
            for j in range(n):
                total += row[j]
            for j in range(n):
                matrix[s, j] = row[j] / total
            work[0, s] = rewards[policy[s]]
        gain = evaluate(matrix, work, order, bias)
        if np.isnan(gain):
            return SEVERAL_CLASSES, count, gain, -np.inf, np.inf
        low = high = bias[0]
        for s in range(n):
            low, high = min(low, bias[s]), max(high, bias[s])
        if not high - low < np.inf:
            return UNSETTLED, count, gain, -np.inf, np.inf
        upper = -np.inf
        switches = 0
        for s in range(n):
            kept, pick, best, doubt, doubt_of_best = 0.0, policy[s], -np.inf, 0.0, 0.0
            for pair in range(offsets[s], offsets[s + 1]):
                value, noise, sound = _residual(transitions[pair], bias, s, rewards[pair])
                if not sound:
                    return REFUSED, count, gain, -np.inf, np.inf
                upper = max(upper, value + noise)
                if pair == policy[s]:
                    kept, doubt, floor[s] = value, noise, value - noise
                if value > best:
                    pick, best, doubt_of_best = pair, value, noise
            # better by more than rounding, and than the policy's own equation is off by
            if best > kept + 2.0 * (doubt + doubt_of_best) + abs(kept - gain):
                policy[s] = pick
                switches += 1
        if switches == 0:
            lower = _lowest_on_closed_class(
                transitions, policy, order[0], floor, marks[1], marks[2]
            )
            return SETTLED, count, gain, lower, upper
    return UNSETTLED, limit, gain, -np.inf, np.inf


@compiled
def policy_iterations(
    offsets, rewards, transitions, limit, policies, biases, ends, numbers, matrix, work, marks
):
    """Solve one model after another, each from the policy of the one before.

    policies[0] is the first start. ends[i] holds how it ended and the number of evaluations,
    numbers[i] the gain, the lower and the upper end of its bracket.
    """
    for i in range(rewards.shape[0]):
        if i > 0:
            for s in range(policies.shape[1]):
                policies[i, s] = policies[i - 1, s]
        end, count, gain, lower, upper = policy_iteration(
            offsets, rewards[i], transitions[i], limit, policies[i], biases[i], matrix, work, marks
        )
        ends[i, 0], ends[i, 1] = end, count
        numbers[i, 0], numbers[i, 1], numbers[i, 2] = gain, lower, upper


@compiled
def residuals(offsets, starts, states, probabilities, rewards, bias, values, noise):
    """Fill r + P h - h and a bound of its rounding error, for every pair of a sparse model."""
    for s in range(offsets.size - 1):
        for pair in range(offsets[s], offsets[s + 1]):
            up = size = total = 0.0
            for cell in range(starts[pair], starts[pair + 1]):
                term = probabilities[cell] * (bias[states[cell]] - bias[s])
                up += term
                size += abs(term)
                total += probabilities[cell]
            values[pair] = rewards[pair] + up / total
            length = starts[pair + 1] - starts[pair]
            noise[pair] = (length + 2) * EPS * (abs(rewards[pair]) + size / total)


@compiled
def sweep(offsets, starts, states, probabilities, rewards, gain, keep, fixed, order, bias):
    """Raise the bias in place, state after state in `order`, where an action promises more.

    A step costs `gain`, goes on with probability `keep` and ends otherwise, at the state `fixed`,
    whose bias stays 0. Waiting in a self-loop is summed up, not swept again and again.
    """
    for place in range(order.size):
        s = order[place]
        if s == fixed:
            continue
        for pair in range(offsets[s], offsets[s + 1]):
            value, stay = rewards[pair] - gain, 0.0
            for cell in range(starts[pair], starts[pair + 1]):
                if states[cell] == s:
                    stay += probabilities[cell]
                else:
                    value += keep * probabilities[cell] * bias[states[cell]]
            bias[s] = max(bias[s], value / (1.0 - keep * stay))
