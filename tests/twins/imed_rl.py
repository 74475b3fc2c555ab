"""IMED-RL (Pesquerel, Maillard 2022): in each step the action of the least index, no sets.

    skeleton    A(s) = {a : N(s, a) >= ln(max_b N(s, b))^2}
    potential   phi, the bias of the optimal policy of the empirical model with the actions A(s)
    values      gamma(a) = r_hat(s, a) + p_hat(s, a).phi, for all actions; gamma* = max gamma
    index       H(a) = N(s, a) K(a) + ln N(s, a), where K(a) is the least KL divergence from the
                empirical law of X = R + phi(S') to a law on X <= omega with mean >= gamma*,
                omega = m + max phi, m the largest possible reward;
                K(a) = max over 0 <= x <= 1 / (omega - gamma*) of E ln(1 - x (X - gamma*))

An action never tried in the present state comes first. As in the authors' code, each pair has one
sample more, reward 1/2 and a uniform next state, so that the empirical model is ergodic; R and S'
are taken as independent. Readings: their code writes ln(omega - x (X - gamma*)), which adds ln
omega to each K; and actions never tried are in a skeleton only where none was tried.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from windage.errors import HorizonReached


def divergence(values, weights, target, omega):
    """K, for a law of values with mean below the target < omega."""
    apart = values - target
    if weights @ apart >= 0:
        return 0.0
    most = 1 / (omega - target)

    def negative(x):
        return -(weights @ np.log(np.maximum(1e-300, 1 - x * apart)))

    found = minimize_scalar(negative, bounds=(0, most), method="bounded", options={"xatol": 1e-10})
    return max(0.0, -found.fun, -negative(most))


def skeleton(N, offsets):
    """The mask of the pairs that plans may use."""
    kept = np.zeros(N.size, bool)
    for first, last in zip(offsets[:-1], offsets[1:], strict=True):
        most = N[first:last].max()
        tried = N[first:last] > 0
        kept[first:last] = tried & (N[first:last] >= np.log(most) ** 2) if most else True
    return kept


def optimal_bias(r, p, offsets, kept):
    """Gain and bias of an optimal policy by policy iteration; every policy must be unichain."""
    S = offsets.size - 1
    policy = np.array([first + np.argmax(kept[first:]) for first in offsets[:-1]])
    while True:
        # h + g = r + P h with h[0] = 0: the column of h[0] is that of g
        A = np.eye(S) - p[policy]
        A[:, 0] = 1.0
        h = np.linalg.solve(A, r[policy])
        gain, h[0] = h[0], 0.0
        values = np.where(kept, r + p @ h, -np.inf)
        better = [first + np.argmax(values[first:last]) for first, last in
                  zip(offsets[:-1], offsets[1:], strict=True)]  # fmt: skip
        better = np.where(values[better] > values[policy] + 1e-10, better, policy)
        if (better == policy).all():
            return gain, h - h.min()
        policy = better


class IMEDRL:
    def __init__(self, space, *, horizon, window=None, largest=1.0, ties="random", seed=0):
        self.space, self.horizon, self.window = space, horizon, window or horizon
        self.largest, self.ties, self.rng = largest, ties, np.random.default_rng(seed)
        self.t, self.history = 1, []
        self.N = np.zeros(space.n_pairs, np.int64)
        self.moves = np.zeros((space.n_pairs, space.n_states))
        self.paid = [{} for _ in range(space.n_pairs)]  # reward -> how often

    def act(self, s):
        if self.t > self.horizon:
            raise HorizonReached("all steps are over")
        first, last = self.space.offsets[s], self.space.offsets[s + 1]
        N = self.N[first:last]
        if (N == 0).any():
            return self.one_of(np.flatnonzero(N == 0))
        index = self.indices(s)
        return self.one_of(np.flatnonzero(index <= index.min() + 1e-12))

    def one_of(self, actions):
        return int(actions[0] if self.ties == "lowest" else self.rng.choice(actions))

    def estimates(self):
        """r_hat and p_hat, with one sample more of each pair."""
        sums = np.array([sum(x * n for x, n in paid.items()) for paid in self.paid])
        r = (sums + 0.5) / (self.N + 1)
        return r, (self.moves + 1 / self.space.n_states) / (self.N + 1)[:, None]

    def indices(self, s):
        r, p = self.estimates()
        _, phi = optimal_bias(r, p, self.space.offsets, skeleton(self.N, self.space.offsets))
        first, last = self.space.offsets[s], self.space.offsets[s + 1]
        gamma = r[first:last] + p[first:last] @ phi
        target, omega = gamma.max(), self.largest + phi.max()
        index = np.log(self.N[first:last])
        for a in np.flatnonzero(gamma < target):
            pair = first + a
            paid = {**self.paid[pair]}
            paid[0.5] = paid.get(0.5, 0) + 1
            rewards, counts = np.array(list(paid)), np.array(list(paid.values()), float)
            values = (rewards[:, None] + phi).ravel()
            weights = np.outer(counts / counts.sum(), p[pair]).ravel()
            index[a] += self.N[pair] * divergence(values, weights, target, omega)
        return index

    def observe(self, s, a, reward, s_next):
        self.count(self.space.pair(s, a), reward, s_next, 1)
        self.history.append((self.space.pair(s, a), reward, s_next))
        if len(self.history) > self.window:
            self.count(*self.history[-self.window - 1], -1)
        self.t += 1

    def count(self, pair, reward, after, n):
        self.N[pair] += n
        self.moves[pair, after] += n
        paid = self.paid[pair]
        paid[reward] = paid.get(reward, 0) + n
        if not paid[reward]:
            del paid[reward]
