"""Multi-scale windows over laws, slowly and literally: everything is recounted from the history.

Written from the description of the algorithm: plain dictionaries, one Python loop a formula, laws
fitted to intervals by sums over outcomes. It shares with the library the addressed random numbers
and nothing else.

    step    for each law that is shown: x_k = (n_k(o) + 1/O) / (N_k + 1), or the sum of a fit over
            an interval; weights of the world and of the law times x_k, normalised, fixed share
    plan    q(o | law) from the weighted counts, mu/O pseudo-counts and the forgotten past; rows and
            mean rewards from their products; hope only for laws that some action does not show
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from windage.kernels.random import gamma, log_gamma, mix, uniform
from windage.rng import key


class Twin:
    """The learner of a structure given as plain functions.

    `pairs[p]` is (s, a); `laws(s, a)` gives the law of each variable, None where it is not
    involved; `sizes[law]` outcomes; `land(s, a, *o)` and `g(s, a, *o)` as the structure has them.
    """

    def __init__(
        self, pairs, laws, sizes, land, g, horizon, seed, low, high, always=(),
        stream="multi-scale", c=0.65, alpha=2e-3, m=32.0, mu=0.5, h=4,
    ):  # fmt: skip
        self.pairs, self.laws_at, self.sizes, self.land, self.g = pairs, laws, sizes, land, g
        self.T, self.c, self.alpha, self.m, self.mu, self.h = horizon, c, alpha, m, mu, h
        self.low, self.high, self.always = low, high, always
        self.states = sorted({s for s, _ in pairs})
        self.windows = [2**i for i in range(3, 40) if 2**i < horizon] + [horizon]
        K = len(self.windows)
        self.G, self.Gr = np.full(K, 1 / K), np.full(K, 1 / K)
        self.w = {law: np.full(K, 1 / K) for law in sizes}
        self.wr = {p: np.full(K, 1 / K) for p in range(len(pairs))}
        self.v, self.vr = 0.5, 0.5  # chances that the forgotten past counts
        self.vs = dict.fromkeys(sizes, 0.5)
        self.vrs = dict.fromkeys(range(len(pairs)), 0.5)
        self.fits = {law: np.full((K, n), 1 / n) for law, n in sizes.items()}
        self.q = {law: np.full(n, 1 / n) for law, n in sizes.items()}
        self.history = []  # a step: {law: (lowest, highest)}, pair, reward in [0, 1]
        self.past = 0
        self.u = dict.fromkeys(self.states, 0.0)
        self.key = key(seed, f"agents.{stream}")
        self.used = dict.fromkeys(sizes, 0)
        self.limit, self.zeta = {}, {}
        self.started = self.planned = None
        self.before = 0
        self.policy = {}

    @property
    def t(self):
        return len(self.history) - self.past

    def remembered(self, k):
        """The steps of window k; the last one is all history."""
        if k == len(self.windows) - 1:
            return self.history
        return self.history[max(0, len(self.history) - self.windows[k]) :]

    def shown(self, law, k):
        """What window k remembers of a law."""
        return [step[0][law] for step in self.remembered(k) if law in step[0]]

    def involved(self, p):
        return [law for law in self.laws_at(*self.pairs[p]) if law is not None]

    # what a step teaches

    def fit(self, q, samples, prior, rounds):
        """Expectation-maximisation: samples are ((lowest, highest), how often)."""
        for _ in range(rounds):
            expected = np.full(q.size, prior / q.size)
            for (low, high), n in samples:
                inside = np.zeros(q.size)
                inside[low : high + 1] = q[low : high + 1]
                expected += n * inside / inside.sum()
            q = expected / (prior + sum(n for _, n in samples))
        return q

    def posterior(self, chance, counted, without):
        new = chance * counted / (chance * counted + (1 - chance) * without)
        return (1 - self.alpha) * new + self.alpha / 2

    def score(self, law, low, high, censored):
        K, n = len(self.windows), self.sizes[law]
        x, counts, N = np.zeros(K), np.zeros(K), np.zeros(K)
        width = (high - low + 1) / n
        for k in range(K):
            seen = self.shown(law, k)
            N[k] = len(seen)
            if censored:
                each = [(one, 1) for one in seen]
                self.fits[law][k] = self.fit(self.fits[law][k], each, 1.0, 2)
                x[k] = self.fits[law][k][low : high + 1].sum()
                counts[k] = x[k] * (N[k] + 1) - width
            else:
                counts[k] = sum(one == (low, high) for one in seen)
                x[k] = (counts[k] + 1 / n) / (N[k] + 1)
        omega = self.G * self.w[law] / (self.G * self.w[law]).sum()
        recent, hits = omega @ N, omega @ counts
        rest, old = N[-1] - recent, counts[-1] - hits
        a = self.m / (self.m + max(rest, 0))
        without = (width + hits) / (1 + recent)
        counted = (width + hits + a * max(old, 0)) / (1 + recent + a * max(rest, 0))
        self.G, self.w[law] = self.reweighed(self.G, x), self.reweighed(self.w[law], x)
        self.v = self.posterior(self.v, counted, without)
        self.vs[law] = self.posterior(self.vs[law], counted, without)

    def reweighed(self, weights, x):
        new = weights * x / (weights * x).sum()
        return (1 - self.alpha) * new + self.alpha / new.size

    def score_reward(self, p, R):
        K = len(self.windows)
        seen = [[r for _, p_, r in self.remembered(k) if p_ == p] for k in range(K)]
        N, S = np.array([len(s) for s in seen]), np.array([sum(s) for s in seen])
        q = (S + 0.5) / (N + 1)
        y = q**R * (1 - q) ** (1 - R)
        omega = self.Gr * self.wr[p] / (self.Gr * self.wr[p]).sum()
        recent, hits = omega @ N, omega @ S
        rest, old = N[-1] - recent, S[-1] - hits
        a = self.m / (self.m + max(rest, 0))
        q0 = (1 + hits) / (2 + recent)
        q1 = (1 + hits + a * max(old, 0)) / (2 + recent + a * max(rest, 0))
        without, counted = (q**R * (1 - q) ** (1 - R) for q in (q0, q1))
        self.Gr, self.wr[p] = self.reweighed(self.Gr, y), self.reweighed(self.wr[p], y)
        self.vr = self.posterior(self.vr, counted, without)
        self.vrs[p] = self.posterior(self.vrs[p], counted, without)

    def observe(self, p, reward, shown, censored=()):
        """Learn from a step; `shown` has (lowest, highest) of every law that was."""
        for law, (low, high) in shown.items():
            self.score(law, low, high, law in censored)
        R = math.floor((reward - self.low) / (self.high - self.low) * 2**26 + 0.5) / 2**26
        if self.g is None:
            self.score_reward(p, R)
        self.history.append((dict(shown), p, R))
        for law in self.involved(p):
            self.used[law] += 1

    # what is planned

    def hoped(self, p):
        """The laws of a pair that some action of its state does not show."""
        here = [z for z, (s, _) in enumerate(self.pairs) if s == self.pairs[p][0]]
        return [
            law
            for law in self.involved(p)
            if law not in self.always and any(law not in self.involved(z) for z in here)
        ]

    def act(self, s):
        fresh = self.started is None or self.t - self.started > self.before
        if not fresh:
            fresh = any(
                self.used[law] >= self.limit[law] - 1e-9 for law in self.hoped(self.policy[s])
            )
        if fresh or self.t - self.planned >= self.h:
            self.replan(fresh)
        return self.policy[s]

    def past_share(self, world, own, rest):
        chance = world * own / (world * own + (1 - world) * (1 - own))
        return chance * self.m / (self.m + max(rest, 0))

    def law(self, law):
        K = len(self.windows)
        omega = self.G * self.w[law] / (self.G * self.w[law]).sum()
        omega = np.where(omega < 1e-4, 0.0, omega)
        counts = [{} for _ in range(K)]
        for k in range(K):
            for one in self.shown(law, k):
                counts[k][one] = counts[k].get(one, 0) + 1
        N = np.array([sum(c.values()) for c in counts])
        recent = omega @ N
        sigma = self.past_share(self.v, self.vs[law], N[-1] - recent)
        mass = self.mu + recent + sigma * (N[-1] - recent)
        samples = []
        for one, ever in counts[-1].items():
            n = sum(omega[k] * counts[k].get(one, 0) for k in range(K))
            samples.append((one, n + sigma * (ever - n)))
        return mass, samples

    def mean_reward(self, p):
        K = len(self.windows)
        omega = self.Gr * self.wr[p] / (self.Gr * self.wr[p]).sum()
        seen = [[r for _, p_, r in self.remembered(k) if p_ == p] for k in range(K)]
        N, S = np.array([len(s) for s in seen]), np.array([sum(s) for s in seen])
        recent, total = omega @ N, omega @ S
        a = self.past_share(self.vr, self.vrs[p], N[-1] - recent)
        mass = 2 + recent + a * (N[-1] - recent)
        return mass, (1 + total + a * (S[-1] - total)) / mass

    def joint(self, p):
        """Every joint outcome of a pair: outcomes (None where not involved), probability."""
        laws = self.laws_at(*self.pairs[p])
        for outcomes in itertools.product(
            *([None] if law is None else range(self.sizes[law]) for law in laws)
        ):
            probability = 1.0
            for law, o in zip(laws, outcomes, strict=True):
                if law is not None:
                    probability *= self.q[law][o]
            yield outcomes, probability

    def unit(self, reward):
        return (reward - self.low) / (self.high - self.low)

    def replan(self, fresh):
        if fresh:
            self.before = 0 if self.started is None else self.t - self.started
            self.started = self.t
            self.used = dict.fromkeys(self.sizes, 0)
            self.zeta = {p: 0.5 + uniform(self.key, self.t + 1, p) for p in range(len(self.pairs))}
        M = {}
        for law in self.sizes:
            M[law], samples = self.law(law)
            self.q[law] = self.fit(self.q[law], samples, self.mu, 20)
        if fresh:
            self.limit = {law: max(1.0, M[law] - self.mu) for law in self.sizes}
        K = len(self.windows)
        Gr = self.G if self.g is not None else self.Gr
        H = sum((self.G[k] + Gr[k]) / 2 * self.windows[k] for k in range(K))
        n = len(self.history)
        f = min(100, min(self.T - self.t, H) / max(1, min(n, H)))
        self.P, self.r, self.b = [], [], []
        for p, (s, a) in enumerate(self.pairs):
            row, r = dict.fromkeys(self.states, 0.0), 0.0
            for o, probability in self.joint(p):
                row[self.land(s, a, *o)] += probability
                if self.g is not None:
                    r += probability * self.unit(self.g(s, a, *o))
            self.P.append(row)
            here = [z for z, (s_, _) in enumerate(self.pairs) if s_ == s]
            bonuses = []
            if self.g is None:
                m_r, r = self.mean_reward(p)
                mean_m = np.mean([self.mean_reward(z)[0] for z in here])
                v = self.c**2 * self.zeta[p] ** 2 * math.log(1 + f * mean_m / m_r)
                bonuses.append(self.wilson(r, r * (1 - r), v, m_r + 1))
            least = [min(M[law] for law in self.hoped(z)) for z in here if self.hoped(z)]
            laws = self.laws_at(s, a)
            for factor, law in enumerate(laws):
                if law is None or law not in self.hoped(p):
                    continue
                V = np.zeros(self.sizes[law])
                for o, probability in self.joint(p):
                    g = 0.0 if self.g is None else self.unit(self.g(s, a, *o))
                    rest = probability / self.q[law][o[factor]]
                    V[o[factor]] += rest * (g + self.u[self.land(s, a, *o)])
                q, span = self.q[law], V.max() - V.min()
                if span <= 0:
                    continue
                mean = q @ V
                v = self.c**2 * self.zeta[p] ** 2 * math.log(1 + f * np.mean(least) / M[law])
                variance = q @ (V - mean) ** 2 / span**2
                b = span * self.wilson((mean - V.min()) / span, variance, v, M[law] + 1)
                bonuses.append(min(b, V.max() - mean))
            self.r.append(r)
            self.b.append(math.sqrt(sum(b * b for b in bonuses)))
        self.M = M
        self.plan()
        self.planned = self.t

    @staticmethod
    def wilson(mean, variance, v, m):
        root = math.sqrt(variance / m + v / (4 * m * m))
        return (mean + v / (2 * m) + math.sqrt(v) * root) / (1 + v / m) - mean

    def value(self, p):
        ahead = sum(chance * self.u[z] for z, chance in self.P[p].items())
        return self.r[p] + self.b[p] + ahead

    def plan(self):
        for _ in range(200):
            best = {}
            for s in self.states:
                here = [p for p, (s_, _) in enumerate(self.pairs) if s_ == s]
                self.policy[s] = max(here, key=lambda p: (self.value(p), -p))
                best[s] = self.value(self.policy[s])
            off = [best[s] - self.u[s] for s in self.states]
            if max(off) - min(off) <= 0.01:
                break
            self.u = {s: self.u[s] + 0.95 * (best[s] - self.u[s]) for s in self.states}
            for _ in range(5):
                new = {s: self.value(self.policy[s]) for s in self.states}
                self.u = {s: self.u[s] + 0.95 * (new[s] - self.u[s]) for s in self.states}
            least = min(self.u.values())
            self.u = {s: x - least for s, x in self.u.items()}
        least = min(self.u.values())
        self.u = {s: x - least for s, x in self.u.items()}


class Sampler(Twin):
    """Posterior sampling of laws: Dirichlet of the last `window` steps, drawn each episode.

    An episode ends when something of the pair about to be played was used in it as often as it was
    known before, or when it has become one step longer than the one before.
    """

    def __init__(self, *given, window=None, prior=1.0, grows=True, intervals=(), **options):
        super().__init__(*given, **options)
        self.width, self.prior, self.grows, self.censored = window, prior, grows, set(intervals)
        self.known = {}

    def recent(self):
        return self.history[-self.width :] if self.width else self.history

    def score(self, *_):
        pass

    def score_reward(self, *_):
        pass

    def act(self, s):
        fresh = self.started is None or (self.grows and self.t - self.started > self.before)
        if not fresh:
            p = self.policy[s]
            fresh = any(self.used[law] >= max(1, self.known[law]) for law in self.involved(p))
            played = sum(z == p for _, z, _ in self.history[self.past + self.started :])
            fresh |= self.g is None and played >= max(1, self.tried[p])
        if fresh:
            self.draw()
        return self.policy[s]

    def draw(self):
        self.before = 0 if self.started is None else self.t - self.started
        self.started = self.planned = self.t
        self.used = dict.fromkeys(self.sizes, 0)
        for i, law in enumerate(self.sizes):
            seen = [shown[law] for shown, _, _ in self.recent() if law in shown]
            self.known[law] = len(seen)
            for turn in range(20 if law in self.censored else 1):
                self.q[law] = self.dirichlet(self.outcomes(law, seen, i, turn), i, turn)
        self.P, self.r, self.b, self.tried = [], [], [0.0] * len(self.pairs), []
        for p, (s, a) in enumerate(self.pairs):
            row, r = dict.fromkeys(self.states, 0.0), 0.0
            for o, probability in self.joint(p):
                row[self.land(s, a, *o)] += probability
                if self.g is not None:
                    r += probability * self.unit(self.g(s, a, *o))
            rewards = [R for _, z, R in self.recent() if z == p]
            if self.g is None:
                own = self.own(~np.uint64(p))
                wins, place = gamma(own, self.t + 1, 0, 1.0 + sum(rewards))
                losses, _ = gamma(own, self.t + 1, place, 1.0 + len(rewards) - sum(rewards))
                r = wins / (wins + losses)
            self.tried.append(len(rewards))
            self.P.append(row)
            self.r.append(r)
        self.plan()

    def own(self, number):
        with np.errstate(over="ignore"):
            return mix(self.key[0] + mix(np.uint64(number))), self.key[1]

    def outcomes(self, law, seen, i, turn):
        """Say which outcome every sample had: drawn from the last law, where that is open."""
        counts, place = np.zeros(self.sizes[law]), 0
        own = self.own(2 * (20 * i + turn))
        latest = list(dict.fromkeys(s[0][law] for s in self.history if law in s[0]))[::-1]
        for low, high in latest:
            left, inside = seen.count((low, high)), self.q[law][low : high + 1].sum()
            for o in range(low, high):
                chance = self.q[law][o] / self.q[law][o : high + 1].sum()
                n, place = self.binomial(own, place, left, min(chance, 1.0)) if left else (0, place)
                counts[o] += n
                left -= n
            assert inside > 0
            counts[high] += left
        return counts

    def binomial(self, own, place, n, p):
        """How many of n uniform numbers are below p: halved at the middle one while n > 16."""
        if n <= 16:
            return sum(uniform(own, self.t + 1, place + i) < p for i in range(n)), place + n
        i = (n + 1) // 2
        x, place = gamma(own, self.t + 1, place, float(i))
        y, place = gamma(own, self.t + 1, place, float(n + 1 - i))
        middle = x / (x + y)
        if p < middle:
            return self.binomial(own, place, i - 1, p / middle)
        more, place = self.binomial(own, place, n - i, (p - middle) / (1 - middle))
        return i + more, place

    def dirichlet(self, counts, i, turn):
        own, place, logs = self.own(2 * (20 * i + turn) + 1), 0, []
        for n in counts:
            one, place = log_gamma(own, self.t + 1, place, n + self.prior / counts.size)
            logs.append(one)
        shares = np.exp(np.array(logs) - max(logs))
        return 0.999 * shares / shares.sum() + 0.001 / counts.size
