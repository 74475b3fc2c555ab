"""IMED-RL (Pesquerel, Maillard 2022): in each step the action of the least index, no sets.

    observe      remember the sample, forget what leaves the window, plan
    plan         phi, the bias of the best policy among the actions of the skeleton     (11)
    act          the action of the least H(a) = N K(a) + ln N, one never tried first    (12)
    divergence   K(a), from the law of R + phi(S') to laws as good as the best action   (19)

Numbers are those of the equations in the paper. Each pair has one sample more than were seen,
reward 1/2 and a uniform next state, so that the empirical model is ergodic. `act` only reads: all
that a step changes is changed by `observe`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.gain import EPS, evaluate
from windage.kernels.jit import compiled, inlined
from windage.kernels.random import uniform
from windage.kernels.rollout import act, memory_counts, observe
from windage.kernels.window import Window, commit, contents, settle, take

BINS = 65  # rewards are counted by the nearest multiple of 1 / 64: 0, 1/2 and 1 are exact
MIDDLE = 32
TIE = 1e-12  # indices this close are equal
EVALUATIONS = 1000  # of policies in one plan; a few are needed
STEPS = 100  # of Newton's method for one divergence; some five are needed
PRECISE = 1e-14  # of an index


class IndexLearner(NamedTuple):
    """Window, reward laws, empirical model and plan; `windage.agents.imed_rl` makes one."""

    offsets: NDArray[np.int64]
    states: NDArray[np.int64]  # [pairs]
    window: Window  # a dense one
    law: NDArray[np.int32]  # [pairs, BINS] how many remembered rewards are in each bin
    rewards: NDArray[np.float64]  # [pairs] empirical means and ...
    transitions: NDArray[np.float64]  # [pairs, S] ... rows, with the sample more
    skeleton: NDArray[np.bool_]  # [pairs] which ones the plan may use
    policy: NDArray[np.int64]  # [S] the best of them, as pairs
    gain: NDArray[np.float64]  # [1]
    bias: NDArray[np.float64]  # [S] phi, its least entry is 0
    indices: NDArray[np.float64]  # [most actions] workspaces, from here on
    values: NDArray[np.float64]  # [most actions]
    ratios: NDArray[np.float64]  # [BINS * S]
    weights: NDArray[np.float64]  # [BINS * S]
    matrix: NDArray[np.float64]  # [S, S]
    work: NDArray[np.float64]  # [4, S]
    order: NDArray[np.int64]  # [S]
    key: NDArray[np.uint64]
    random_ties: bool  # or the lowest action
    low: float  # rewards are taken from [low, low + width] to [0, 1]
    width: float


@inlined
def bin_of(scaled):
    """Return the bin of a reward in [0, 1]."""
    return np.int64(scaled * (BINS - 1) + 0.5)


@observe.register(IndexLearner)
def _observe(learner, t, s, p, reward, after, seen):  # noqa: ARG001 - a pair has its state
    window, clock = learner.window, learner.window.clock[0]
    scaled = min(1.0, max(0.0, (reward - learner.low) / learner.width))
    take(window, p, scaled, after)
    learner.law[p, bin_of(scaled)] += 1
    if clock["window"] > 0:
        for k in range(clock["dropped"], clock["taken"] - clock["window"]):
            oldest = window.ring[k % window.ring.size]
            learner.law[oldest["pair"], bin_of(oldest["reward"])] -= 1
    commit(window)
    for i in range(clock["changed"]):
        _estimate(learner, np.int64(window.changed[i]))
    settle(window)
    _plan(learner)


@compiled
def rebuild(learner):
    """Form the empirical model and the plan anew, from window and policy."""
    for p in range(learner.rewards.size):
        _estimate(learner, p)
    settle(learner.window)
    _plan(learner)


@compiled
def _estimate(learner, p):
    """Renew the empirical law of a pair, with the sample more, and the skeleton of its state."""
    counts, S = learner.window.counts, learner.bias.size
    mass = counts[p]["visits"] + 1.0
    learner.rewards[p] = (counts[p]["sum"] + counts[p]["lost"] + 0.5) / mass
    for j in range(S):
        learner.transitions[p, j] = (learner.window.cells[p * S + j]["count"] + 1.0 / S) / mass
    s, most = learner.states[p], 0
    first, last = learner.offsets[s], learner.offsets[s + 1]
    for q in range(first, last):
        most = max(most, counts[q]["visits"])
    least = math.log(most) ** 2 if most > 0 else 0.0
    for q in range(first, last):
        visits = counts[q]["visits"]
        learner.skeleton[q] = most == 0 or (visits > 0 and visits >= least)


@compiled
def _plan(learner):
    """Improve the policy within the skeleton until none is better; fill gain and bias.

    One step changes little: nearly always the policy stays and is evaluated once. An action
    replaces another only if it is better by more than rounding, as in `gain.policy_iteration`.
    """
    policy, bias = learner.policy, learner.bias
    for s in range(policy.size):
        if not learner.skeleton[policy[s]]:
            policy[s] = learner.offsets[s]
            while not learner.skeleton[policy[s]]:
                policy[s] += 1
    for _ in range(EVALUATIONS):
        for s in range(policy.size):
            for j in range(policy.size):
                learner.matrix[s, j] = learner.transitions[policy[s], j]
            learner.work[0, s] = learner.rewards[policy[s]]
        gain = evaluate(learner.matrix, learner.work, learner.order, bias)
        switched = False
        for s in range(policy.size):
            old, doubt_of_old = _value(learner, s, policy[s])
            pick, best, doubt = policy[s], old, doubt_of_old
            for p in range(learner.offsets[s], learner.offsets[s + 1]):
                if learner.skeleton[p]:
                    value, error = _value(learner, s, p)
                    if value > best:
                        pick, best, doubt = np.int64(p), value, error
            if best > old + 2.0 * (doubt + doubt_of_old) + abs(old - gain):
                policy[s] = pick
                switched = True
        if not switched:
            break
    learner.gain[0] = gain
    least = bias[0]
    for s in range(bias.size):
        least = min(least, bias[s])
    for s in range(bias.size):
        bias[s] -= least


@inlined
def _value(learner, s, p):
    """Return r + sum p (phi - phi_s) of a pair and a bound of its rounding error."""
    bias, row = learner.bias, learner.transitions[p]
    value, size = learner.rewards[p], learner.rewards[p]
    for j in range(bias.size):
        term = row[j] * (bias[j] - bias[s])
        value += term
        size += abs(term)
    return value, (bias.size + 2) * EPS * size


@act.register(IndexLearner)
def _act(learner, t, s):
    first, last = learner.offsets[s], learner.offsets[s + 1]
    bar = fill_index(learner, s, False) + TIE
    n_tied = 0
    for a in range(last - first):
        n_tied += learner.indices[a] <= bar
    skip = np.int64(0)
    if learner.random_ties and n_tied > 1:
        skip = np.int64(uniform(learner.key, t, 0) * n_tied)
    for a in range(last - first):
        if learner.indices[a] <= bar:
            if skip == 0:
                return first + a
            skip -= 1
    return first


@compiled
def fill_index(learner, s, all_of_them):
    """Fill `indices` for the actions of a state; returns the least.

    Those that cannot be the least, since ln N is too large already, are left at infinity unless
    all are wanted. The index of an action never tried is minus infinity.
    """
    first, last, index = learner.offsets[s], learner.offsets[s + 1], learner.indices
    least, target, top = np.inf, -np.inf, 0.0
    for p in range(first, last):
        index[p - first] = np.inf
        if learner.window.counts[p]["visits"] == 0:
            index[p - first] = least = -np.inf
    if least < np.inf and not all_of_them:
        return least
    for j in range(learner.bias.size):
        top = max(top, learner.bias[j])
    for p in range(first, last):
        learner.values[p - first] = _total(learner, p)
        target = max(target, learner.values[p - first])
    for p in range(first, last):  # the best ones first: their divergence is 0
        visits = learner.window.counts[p]["visits"]
        if visits > 0 and learner.values[p - first] == target:
            index[p - first] = math.log(visits)
            least = min(least, index[p - first])
    for p in range(first, last):
        visits = learner.window.counts[p]["visits"]
        if visits > 0 and index[p - first] == np.inf:
            log_visits = math.log(visits)
            if all_of_them or log_visits <= least + TIE:
                far = divergence(learner, p, target, 1.0 + top, PRECISE / visits)
                index[p - first] = visits * far + log_visits
                least = min(least, index[p - first])
    return least


@inlined
def _total(learner, p):
    """Return gamma(a) = r_hat + p_hat.phi."""
    total = 0.0
    for j in range(learner.bias.size):
        total += learner.transitions[p, j] * learner.bias[j]
    return learner.rewards[p] + total


@compiled
def divergence(learner, p, target, omega, precision):
    """Return the least KL divergence from the law of X = R + phi(S') to one on X <= omega.

    The other law's mean is at least the target. By duality it is the maximum over y in [0, 1] of
    E ln(1 - y Z), Z = (X - target) / (omega - target) <= 1 (Honda, Takemura 2015). Newton's method
    in 1 / (1 - y): Z = 1 makes a pole at y = 1, whose slope is linear in that.
    """
    gap = max(omega - target, EPS * (1.0 + omega))  # it is positive but for rounding
    n = _spread_law(learner, p, target, gap)
    slope, _ = _slope(learner, n, 0.0)
    if slope <= 0.0:
        return 0.0
    highest = learner.ratios[0]
    for i in range(n):
        highest = max(highest, learner.ratios[i])
    if highest < 1.0 - EPS:
        slope, _ = _slope(learner, n, 1.0)
        if slope >= 0.0:
            return _height(learner, n, 1.0)
    low, high, y = 0.0, 1.0, 0.0
    for _ in range(STEPS):
        slope, bend = _slope(learner, n, y)
        if slope > 0.0:
            low = y
        else:
            high = y
        if slope * slope <= precision * bend:  # as Newton sees it, so much is missing, twice
            break
        left = 1.0 - y
        y = 1.0 - left / (1.0 + slope / (bend * left))
        if not low < y < high:
            y = 0.5 * (low + high)
    return _height(learner, n, y)


@inlined
def _spread_law(learner, p, target, gap):
    """Fill ratios and weights with the law of Z; returns how many values it has."""
    n, mass = 0, learner.window.counts[p]["visits"] + 1.0
    for k in range(BINS):
        count = learner.law[p, k] + (1 if k == MIDDLE else 0)
        if count > 0:
            above = k / (BINS - 1.0) - target
            for j in range(learner.bias.size):
                learner.ratios[n] = min(1.0, (above + learner.bias[j]) / gap)
                learner.weights[n] = count / mass * learner.transitions[p, j]
                n += 1
    return n


@inlined
def _slope(learner, n, y):
    """Return the first derivative of E ln(1 - y Z) and minus the second."""
    slope = bend = 0.0
    for i in range(n):
        part = learner.ratios[i] / (1.0 - y * learner.ratios[i])
        slope -= learner.weights[i] * part
        bend += learner.weights[i] * part * part
    return slope, bend


@inlined
def _height(learner, n, y):
    """Return E ln(1 - y Z)."""
    total = 0.0
    for i in range(n):
        total += learner.weights[i] * math.log(1.0 - y * learner.ratios[i])
    return total


@memory_counts.register(IndexLearner)
def _memory_counts(learner, counts):
    contents(learner.window, counts)
