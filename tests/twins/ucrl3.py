"""UCRL3 (Bourel, Maillard, Talebi 2020): bounds for each next state, and reduced supports in EVI.

With n = N(s, a), delta' = delta / (3 SA (1 + S)), eta = 1.12 and

    l_n = eta ln(ln(eta n) ln(eta^2 n) / (ln(eta)^2 delta')),
    L_n(c) = (1 + 1/n) ln(c sqrt(n + 1) / delta'),

q(s') is plausible if p_hat - q and q - p_hat are each at most

    min( sqrt(2 q (1 - q) l_n / n) + l_n / (3 n),  sqrt(2 g(q) L_n(2) / n) ),
    g(q) = (1/2 - q) / ln(1/q - 1), and q (1 - q) for q - p_hat where q >= 1/2;

the largest plausible reward is r_hat plus the least of sqrt(L_n(1) / (2 n)) and
sqrt(2 V l_n / n) + 7 l_n / (3 n), V the empirical variance, cut at 1.

EVI looks at a support that grows from that of p_hat and the best state until what is left outside
is worth at most min(kappa, what is inside), kappa = 10 span(u) |supp p_hat| / max N^(2/3) (NOSS).
Episodes are UCRL2's. Readings: eta n and eta^2 n in l_n as in the authors' code, so that n = 1 has
a value; the paper's n and eta n have none. Supports only grow while one EVI lasts: chosen anew
in each sweep they may go round in circles, and EVI with them. What is outside in the last sweep is
worth no more than the rule allows either way.

Under drift (`drift`), with the averages q of a window: delta' = delta / (2 SA T (4 S)), T for where
the window may start, and

    sqrt(2 max(q (1 - q), 1/n) l_n / n) + l_n / (3 n),  sqrt(2 max(g(q), 1/n) l_n / n)

with l_n = eta ln(k (k + 1) / delta'), k = 1 + max(0, ceil(ln(n / 4) / ln eta)). That is Freedman's
inequality, peeled over the sum of the variances (or proxies) of the visits: the exponent has to be
chosen for it, and unlike n times a fixed variance it is not known. It is at most n times the
variance (proxy) of the average, as both are concave in q.
"""

from __future__ import annotations

import numpy as np

from tests.twins.optimistic import AnySets

ETA = 1.12
HALVINGS = 60


def peeling(n, delta):
    """l_n / n."""
    slices = np.log(ETA * n) * np.log(ETA**2 * n) / np.log(ETA) ** 2
    return ETA * np.log(slices / delta) / n


def proxy(q):
    """The sub-Gaussian variance proxy of a Bernoulli law; 0 at 0 and 1, 1/4 at 1/2."""
    inside = (q > 0) & (q < 1) & (q != 0.5)
    safe = np.where(inside, q, 0.25)
    return np.where(inside, (0.5 - safe) / np.log(1 / safe - 1), np.where(q == 0.5, 0.25, 0.0))


def deviation(q, n, delta, below):
    """How far p_hat may be from q: `below` it, or above it."""
    rate = peeling(n, delta)
    bernstein = np.sqrt(2 * q * (1 - q) * rate) + rate / 3
    variance = np.where((q >= 0.5) & below, q * (1 - q), proxy(q))
    laplace = np.sqrt(2 * variance * (1 + 1 / n) * np.log(2 * np.sqrt(n + 1) / delta) / n)
    return np.minimum(bernstein, laplace)


def deviation_under_drift(q, n, delta, below):
    slices = 1 + np.maximum(0, np.ceil(np.log(n / 4) / np.log(ETA)))
    rate = ETA * np.log(slices * (slices + 1) / delta) / n
    bernstein = np.sqrt(2 * np.maximum(q * (1 - q), 1 / n) * rate) + rate / 3
    variance = np.where((q >= 0.5) & below, q * (1 - q), proxy(q))
    return np.minimum(bernstein, np.sqrt(2 * np.maximum(variance, 1 / n) * rate))


def bounds(p_hat, n, delta, deviation=deviation):
    """The least and the largest plausible q, by bisection; the plausible ones are an interval."""
    found = []
    for end, below in ((0.0, False), (1.0, True)):
        inside, outside = p_hat.copy(), np.full_like(p_hat, end)
        for _ in range(HALVINGS):
            middle = (inside + outside) / 2
            plausible = np.abs(middle - p_hat) <= deviation(middle, n, delta, below)
            inside = np.where(plausible, middle, inside)
            outside = np.where(plausible, outside, middle)
        at_end = np.abs(end - p_hat) <= deviation(np.full_like(p_hat, end), n, delta, below)
        found.append(np.where(at_end, end, inside))
    return found


def reward_deviation(n, variance, delta):
    rate = peeling(n, delta)
    hoeffding = np.sqrt((1 + 1 / n) * np.log(np.sqrt(n + 1) / delta) / (2 * n))
    return np.minimum(hoeffding, np.sqrt(2 * variance * rate) + 7 * rate / 3)


def filled(f, lower, upper, order):
    """argmax of q.f over lower <= q <= upper on the states in `order`, the best first, sum <= 1."""
    q = np.zeros_like(f)
    q[order] = lower[order]
    left = 1.0 - q.sum()
    for s in order:
        more = max(0.0, min(left, upper[s] - q[s]))
        q[s] += more
        left -= more
    return q


def near_optimistic_row(f, lower, upper, support, kappa):
    """NOSS from a support (a mask), and the inner maximum; the least value of f is 0."""
    order = np.argsort(f, kind="stable")[::-1]  # the best first
    chosen = support.copy()
    chosen[order[0]] = True
    while True:
        inside, outside = order[chosen[order]], order[~chosen[order]]
        q = filled(f, lower, upper, inside)
        rest = filled(f, lower, upper, outside)
        if rest @ f <= min(kappa, q @ f):
            return q, chosen
        chosen[outside[0]] = True


class UCRL3(AnySets):
    def regions(self):
        S, SA, n = self.space.n_states, self.space.n_pairs, np.maximum(1, self.N)
        level = self.delta / (3 * SA * (1 + S))
        recent = slice(max(self.tau - self.window, 1) - 1, self.tau - 1)
        squares = np.bincount(self.pairs[recent], self.rewards[recent] ** 2, minlength=SA) / n
        variance = np.maximum(0.0, squares - self.r_hat**2)
        self.supports = self.p_hat > 0
        unseen, each = self.N == 0, np.repeat(n[:, None], S, axis=1)
        if self.drift:
            level = self.delta / (2 * SA * self.horizon * 4 * S)
        kind = deviation_under_drift if self.drift else deviation
        self.lower, self.upper = bounds(self.p_hat, each, level, kind)
        self.lower[unseen], self.upper[unseen] = 0.0, 1.0
        rad_r = self.laplace_radius() if self.drift else reward_deviation(n, variance, level)
        upper = np.minimum(1.0, self.r_hat + rad_r)
        return np.where(unseen, 1.0, upper)

    def best_rows(self, u):
        f, most = u - u.min(), self.N.max()
        kappa = 10 * np.ptp(u) * (self.p_hat > 0).sum(axis=1) / max(1, most) ** (2 / 3)
        if most == 0:
            kappa[:] = np.inf
        sets = zip(self.lower, self.upper, self.supports, kappa, strict=True)
        rows, supports = zip(*(near_optimistic_row(f, *each) for each in sets), strict=True)
        self.supports = np.array(supports)
        return np.array(rows)
