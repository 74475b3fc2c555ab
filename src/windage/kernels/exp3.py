"""Adversarial bandits: probabilities from scores, and what a reward does to the scores.

Several bandits stand side by side in one `Bank`, their arms one after another, each with constants
of its own: a master is a bank of one, an agent has one bandit for every state. Rewards are in
[0, 1]. Scores are compensated sums, and only their differences are ever exponentiated, so that
nothing overflows and nothing drifts.

    GAINS    p = (1 - gamma) softmax(alpha q) + gamma / K,  q_k += (beta + 1{k played} x) / p_k
             EXP3.P (spec 1.10); EXP3 with beta = 0
    SHARED   p = (1 - gamma) w / sum w + gamma / K,  w_k <- w_k exp(alpha 1{k played} x / p_k)
             + share sum w: EXP3.S
    LOSSES   p = softmax(alpha q),  q_k -= 1{k played} (1 - x) / (p_k + beta): EXP3-IX
    TSALLIS  p_k = 4 / (alpha_t (y - q_k))^2,  q_k -= 1{k played} (1 - x) / p_k,
             alpha_t = alpha / sqrt(t): Tsallis-INF
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.jit import compiled, inlined

GAINS, SHARED, LOSSES, TSALLIS = 0, 1, 2, 3
STEPS = 100  # of Newton's method; ten are many


class Bank(NamedTuple):
    """Bandits side by side: bandit i has the arms offsets[i] up to before offsets[i + 1]."""

    form: int
    offsets: NDArray[np.int64]  # [bandits + 1]
    alpha: NDArray[np.float64]  # [bandits] rate
    beta: NDArray[np.float64]  # bonus of every arm, or what is added to probabilities
    gamma: NDArray[np.float64]  # part of the probability that is shared by all arms
    share: NDArray[np.float64]  # part of all weights that every arm is given
    rounds: NDArray[np.int64]  # how often each has learned
    scores: NDArray[np.float64]  # [arms] q, or the weights if they are shared
    lost: NDArray[np.float64]  # what rounding took from q
    probabilities: NDArray[np.float64]


@inlined
def _add(bank, k, x):
    """Add to a score, with the compensation of Neumaier."""
    old = bank.scores[k]
    new = old + x
    bank.lost[k] += (old - new) + x if abs(old) >= abs(x) else (x - new) + old
    bank.scores[k] = new


@inlined
def _behind(bank, k, best):
    """Return how far a score is behind another."""
    return (bank.scores[best] - bank.scores[k]) + (bank.lost[best] - bank.lost[k])


@inlined
def _leader(bank, i):
    """Return the first arm with the largest score."""
    best = bank.offsets[i]
    for k in range(bank.offsets[i] + 1, bank.offsets[i + 1]):
        if _behind(bank, k, best) < 0.0:
            best = k
    return best


@compiled
def normaliser(bank, i, rate, best, steps):
    """Solve sum over k of 4 / (d_k + y)^2 = 1 for y, with d_k = rate (q_best - q_k) >= 0.

    Newton's method on g(y) = f(y)^(-1/2) = 1, f the sum. g is a power mean of the d_k + y, so it
    rises and is concave, and f(2) >= 1: from y = 2 on no step passes the solution, and each one
    comes closer. It is found when a step does not move y any more. Returns y and f(y); y is
    negative if `steps` were not enough.
    """
    y, total = 2.0, 0.0
    for _ in range(steps):
        total = slope = 0.0
        for k in range(bank.offsets[i], bank.offsets[i + 1]):
            inverse = 2.0 / (rate * _behind(bank, k, best) + y)
            total += inverse * inverse
            slope += inverse * inverse * inverse
        after = y + 2.0 * total * (math.sqrt(total) - 1.0) / slope
        if after <= y:
            return y, total
        y = after
    return -y, total


@compiled
def refresh(bank, i):
    """Find the probabilities of a bandit from its scores; False if Newton's method fails."""
    first, last = bank.offsets[i], bank.offsets[i + 1]
    p, solved = bank.probabilities, True
    if bank.form == SHARED:
        for k in range(first, last):
            p[k] = bank.scores[k]
    elif bank.form == TSALLIS:
        best = _leader(bank, i)
        rate = bank.alpha[i] / math.sqrt(bank.rounds[i] + 1)
        y, _ = normaliser(bank, i, rate, best, STEPS)
        solved = y > 0.0
        for k in range(first, last):
            inverse = 2.0 / (rate * _behind(bank, k, best) + abs(y))
            p[k] = inverse * inverse
    else:
        best = _leader(bank, i)
        for k in range(first, last):
            p[k] = math.exp(-bank.alpha[i] * _behind(bank, k, best))
    total = lost = 0.0
    for k in range(first, last):
        new = total + p[k]
        lost += (total - new) + p[k] if total >= p[k] else (p[k] - new) + total
        total = new
    total += lost
    for k in range(first, last):
        p[k] = (1.0 - bank.gamma[i]) * (p[k] / total) + bank.gamma[i] / (last - first)
    return solved


@compiled
def pick(bank, i, u):
    """Return the arm, counted from 0, whose part of [0, 1) holds u."""
    first, last = bank.offsets[i], bank.offsets[i + 1]
    arm, below = 0, 0.0
    for k in range(first, last):
        if bank.probabilities[k] > 0.0:
            arm = k - first
            below += bank.probabilities[k]
            if u < below:
                break
    return arm  # where rounding leaves a gap below 1, the last arm that can be drawn


@compiled
def update(bank, i, arm, x):
    """Learn that an arm gave x in [0, 1]; False if the new probabilities were not found."""
    first, last = bank.offsets[i], bank.offsets[i + 1]
    p, played = bank.probabilities, bank.offsets[i] + arm
    if bank.form == GAINS:
        if bank.beta[i] > 0.0:  # for all arms, played or not
            for k in range(first, last):
                _add(bank, k, (bank.beta[i] + (x if k == played else 0.0)) / p[k])
        else:
            _add(bank, played, x / p[played])
    elif bank.form == SHARED:
        total = 0.0
        for k in range(first, last):
            total += bank.scores[k]
        bank.scores[played] *= math.exp(bank.alpha[i] * x / p[played])
        after = 0.0
        for k in range(first, last):
            bank.scores[k] += bank.share[i] * total
            after += bank.scores[k]
        for k in range(first, last):
            bank.scores[k] /= after
    else:
        _add(bank, played, -(1.0 - x) / (p[played] + bank.beta[i]))
    bank.rounds[i] += 1
    return refresh(bank, i)


@compiled
def reset(bank, i):
    """Forget everything; returns what `refresh` returns."""
    arms = bank.offsets[i + 1] - bank.offsets[i]
    for k in range(bank.offsets[i], bank.offsets[i + 1]):
        bank.scores[k] = 1.0 / arms if bank.form == SHARED else 0.0
        bank.lost[k] = 0.0
    bank.rounds[i] = 0
    return refresh(bank, i)
