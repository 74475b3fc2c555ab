"""Multi-scale windows, slowly and literally: everything is recounted from the history.

Written from the description of the algorithm (docs/reference/multi-scale.md), with dense arrays and
one Python loop a formula; it shares with the library the addressed random numbers and nothing else.
"""

from __future__ import annotations

import math

import numpy as np

from windage.kernels.random import uniform
from windage.rng import key


class Twin:
    def __init__(self, space, horizon, seed, c=0.65, alpha=2e-3, m=32.0, mu=0.5):
        self.space, self.T, self.c, self.alpha, self.m = space, horizon, c, alpha, m
        self.mu = mu
        self.S, self.n = space.n_states, space.n_pairs
        powers = [2**i for i in range(40)]
        self.windows = [W for W in powers if 2 * self.n <= W < horizon] + [horizon]
        K = len(self.windows)
        self.h = min(8, max(1, math.ceil(self.n / 4)))
        self.prior = np.full(K, 1 / K)
        self.gp, self.gr = self.prior.copy(), self.prior.copy()
        self.wp, self.wr = np.full((self.n, K), 1 / K), np.full((self.n, K), 1 / K)
        # chances that the forgotten past counts: of the world, of each pair
        self.lp, self.lr = 0.5, 0.5
        self.lps, self.lrs = np.full(self.n, 0.5), np.full(self.n, 0.5)
        self.u = np.zeros(self.S)
        self.history = []  # (pair, next state, reward)
        self.past = 0
        self.key = key(seed, "agents.multi-scale")
        self.nu, self.limit, self.zeta = np.zeros(self.n), np.zeros(self.n), np.zeros(self.n)
        self.started = self.planned = None
        self.before = 0
        self.policy = None
        self.allowed = np.ones(self.n, bool)

    @property
    def t(self):
        """Steps taken so far."""
        return len(self.history) - self.past

    def remembered(self, k):
        """The samples of window k."""
        if k == len(self.windows) - 1:
            return self.history
        return self.history[max(0, len(self.history) - self.windows[k]) :]

    def counts(self):
        K = len(self.windows)
        n, N, R = np.zeros((K, self.n, self.S)), np.zeros((K, self.n)), np.zeros((K, self.n))
        for k in range(K):
            for p, z, r in self.remembered(k):
                n[k, p, z] += 1
                N[k, p] += 1
                R[k, p] += r
        return n, N, R

    def new_epoch(self, s):
        if self.started is None:
            return True
        p = self.policy[s]
        return self.nu[p] >= self.limit[p] or self.t - self.started > self.before

    def act(self, s):
        fresh = self.new_epoch(s)
        if fresh or self.is_old(self.policy[s]):
            self.replan(fresh)
        return self.policy[s]

    def is_old(self, p):
        """A plan lasts h steps, or up to 8 for a 32nd of what was known of the pair."""
        return self.t - self.planned >= max(self.h, min(8, self.limit[p] / 32))

    def omegas(self, p):
        op = self.gp * self.wp[p] / (self.gp * self.wp[p]).sum()
        orr = self.gr * self.wr[p] / (self.gr * self.wr[p]).sum()
        return op, orr

    def posterior(self, chance, counted, without):
        """Bayes' rule for one of two, then fixed share."""
        new = chance * counted / (chance * counted + (1 - chance) * without)
        return (1 - self.alpha) * new + self.alpha / 2

    def weigh_past(self, p, reward, z):
        K = len(self.windows)
        op, orr = self.omegas(p)
        seen = [[(z_, r_) for p_, z_, r_ in self.remembered(k) if p_ == p] for k in range(K)]
        N = np.array([len(s) for s in seen])
        n = np.array([sum(z_ == z for z_, _ in s) for s in seen])
        R = np.array([sum(r_ for _, r_ in s) for s in seen])
        recent, hits = op @ N, op @ n
        rest, old = N[-1] - recent, n[-1] - hits
        a = self.m / (self.m + rest)
        without = (1 / self.S + hits) / (1 + recent)
        counted = (1 / self.S + hits + a * old) / (1 + recent + a * rest)
        self.lp = self.posterior(self.lp, counted, without)
        self.lps[p] = self.posterior(self.lps[p], counted, without)
        recent, hits = orr @ N, orr @ R
        rest, old = N[-1] - recent, R[-1] - hits
        a = self.m / (self.m + rest)
        q0, q1 = (1 + hits) / (2 + recent), (1 + hits + a * old) / (2 + recent + a * rest)
        without, counted = (q**reward * (1 - q) ** (1 - reward) for q in (q0, q1))
        self.lr = self.posterior(self.lr, counted, without)
        self.lrs[p] = self.posterior(self.lrs[p], counted, without)

    def past_share(self, world, pair, rest):
        chance = world * pair / (world * pair + (1 - world) * (1 - pair))
        return chance * self.m / (self.m + rest)

    def observe(self, p, reward, z):
        self.weigh_past(p, reward, z)
        for k in range(len(self.windows)):
            seen = [(z_, r_) for p_, z_, r_ in self.remembered(k) if p_ == p]
            N = len(seen)
            x = (sum(z_ == z for z_, _ in seen) + 1 / self.S) / (N + 1)
            q = (sum(r_ for _, r_ in seen) + 0.5) / (N + 1)
            y = q**reward * (1 - q) ** (1 - reward)
            self.gp[k] *= x
            self.wp[p, k] *= x
            self.gr[k] *= y
            self.wr[p, k] *= y
        a, K = self.alpha, len(self.windows)
        self.gp = (1 - a) * self.gp / self.gp.sum() + a * self.prior
        self.gr = (1 - a) * self.gr / self.gr.sum() + a * self.prior
        self.wp[p] = (1 - a) * self.wp[p] / self.wp[p].sum() + a / K
        self.wr[p] = (1 - a) * self.wr[p] / self.wr[p].sum() + a / K
        self.history.append((p, z, reward))
        self.nu[p] += 1

    def replan(self, fresh):
        n, N, R = self.counts()
        K = len(self.windows)
        if fresh:
            self.before = 0 if self.started is None else self.t - self.started
            self.started = self.t
            self.nu[:] = 0
            self.zeta = np.array([0.5 + uniform(self.key, self.t + 1, p) for p in range(self.n)])
        Np, Nr, q = np.full(self.n, self.mu), 2 * np.ones(self.n), np.zeros(self.n)
        P = np.zeros((self.n, self.S))
        for p in range(self.n):
            op, orr = self.omegas(p)
            op = np.where(op < 1e-4, 0.0, op)
            recent, row = op @ N[:, p], op @ n[:, p]
            rest = N[-1, p] - recent
            a = self.past_share(self.lp, self.lps[p], rest)
            Np[p] += recent + a * rest
            P[p] = (self.mu / self.S + row + a * (n[-1, p] - row)) / Np[p]
            recent, total = orr @ N[:, p], orr @ R[:, p]
            rest = N[-1, p] - recent
            a = self.past_share(self.lr, self.lrs[p], rest)
            Nr[p] += recent + a * rest
            q[p] = (1 + total + a * (R[-1, p] - total)) / Nr[p]
        if fresh:
            self.limit = np.maximum(1, np.minimum(Np - self.mu, Nr - 2))
        He = sum((self.gp[k] + self.gr[k]) / 2 * self.windows[k] for k in range(K))
        seen = len(self.history)
        f = min(100, min(self.T - self.t, He) / max(1, min(seen, He)))
        reward = np.zeros(self.n)
        for s in range(self.S):
            mine = np.flatnonzero(self.space.state_of == s)
            for p in mine:
                lp = math.log(1 + f * Np[mine].sum() / (mine.size * Np[p])) * self.zeta[p] ** 2
                lr = math.log(1 + f * Nr[mine].sum() / (mine.size * Nr[p])) * self.zeta[p] ** 2
                v, m = self.c**2 * lr, Nr[p] + 1
                wilson = q[p] + v / (2 * m)
                wilson += math.sqrt(v) * math.sqrt(q[p] * (1 - q[p]) / m + v / (4 * m * m))
                b1 = wilson / (1 + v / m) - q[p]
                mean = P[p] @ self.u
                variance = P[p] @ (self.u - mean) ** 2
                b2 = min(self.c * math.sqrt(lp * variance / (Np[p] + 1)), self.u.max() - mean)
                reward[p] = q[p] + math.hypot(b1, b2)
        self.q, self.P, self.reward = q, P, reward
        self.plan()
        self.planned = self.t

    def plan(self):
        for _ in range(200):
            value = self.reward + self.P @ self.u
            value[~self.allowed] = -np.inf
            self.policy = np.array(
                [
                    max(np.flatnonzero(self.space.state_of == s), key=lambda p: (value[p], -p))
                    for s in range(self.S)
                ]
            )
            rest = value[self.policy] - self.u
            if rest.max() - rest.min() <= 0.01:
                break
            self.u = self.u + 0.95 * rest
            for _ in range(5):
                r, P = self.reward[self.policy], self.P[self.policy]
                self.u = self.u + 0.95 * (r + P @ self.u - self.u)
            self.u = self.u - self.u.min()
        self.value = value
        self.u = self.u - self.u.min()
