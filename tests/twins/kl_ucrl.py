"""KL-UCRL (Filippi, Cappe, Garivier 2010): plausible rows are near p_hat in Kullback-Leibler terms.

    H_r = {r : |r - r_hat| <= C_R / sqrt(N)},  C_R = sqrt(ln(4 SA ln T / delta) / 1.99)
    H_p = {q : N KL(p_hat, q) <= C_P},  C_P = S (B + ln(B + 1/ln T) (1 + 1/(B + 1/ln T))),
                                        B = ln(2 e S^2 A ln T / delta)

Episodes and EVI are UCRL2's. Readings: a pair never seen may do anything; with `clip` optimistic
rewards are cut at 1, which the paper does not. The inner maximum is the paper's (Algorithm 2), with
a bisection for its equation f(nu) = C_P / N instead of Newton's method, which leaves its domain.

Under drift (`drift`), with the average rows p_bar of the window for p:

    N KL(p_hat, (1 - 1/T) p_bar + 1/(T S)) <= ln(2 SA T / delta) + S ln G + 3/2,
    G = W^(1/2) ln(8 W T S) + 1,

in all windows at once with probability 1 - delta / 2. For every vector x the product over visits of
exp(x(s')) / sum p_t exp(x) is a martingale, and the sum of ln(sum p_t exp(x)) is at most N ln(sum
p_bar exp(x)), as ln is concave. KL is the largest value of x.p_hat - ln(sum q exp(x)). The mixture
with 1/S keeps the best x below ln(T S), what was never seen may stop at -ln(8 W), and on a grid of
step W^(-1/2), of G^S points, N times the value is less by 3/2 at most (T >= 10), the mixture
included. The T in the logarithm counts where a window may start. So p_bar is within 2/T of a row q
with N KL(p_hat, q) <= C_P, and this much is added to the sets as a widening.
"""

from __future__ import annotations

import numpy as np

from tests.twins.optimistic import AnySets

HALVINGS = 200


def kl_constants(S, SA, T, delta):
    """C_R and C_P."""
    log_t = np.log(max(2, T))
    B = np.log(2 * np.e * S * SA * log_t / delta)
    inside = B + 1 / log_t
    C_P = S * (B + np.log(inside) * (1 + 1 / inside))
    return np.sqrt(np.log(4 * SA * log_t / delta) / 1.99), C_P


def kl_constant_under_drift(S, SA, T, W, delta):
    """What N KL may reach."""
    G = np.sqrt(W) * np.log(8.0 * W * T * S) + 1
    return np.log(2 * SA * T / delta) + S * np.log(G) + 1.5


def kl_maximum(p, radius, u):
    """argmax of q.u over KL(p, q) <= radius for each row of p, by the paper's algorithm.

    On the support of p, q_i is proportional to p_i / (nu - u_i). If the best state is outside and
    f(max u) < radius, nu = max u and it gets r = 1 - exp(f(nu) - radius); else r = 0 and nu solves
    f(nu) = radius, where f(nu) = sum p_i ln(nu - u_i) + ln sum p_i / (nu - u_i) falls in nu.
    """
    best, on = np.flatnonzero(u == u.max())[-1], p > 0
    top = np.where(on, u, -np.inf).max(axis=1)  # of the support
    gaps = np.where(on, top[:, None] - u, 1.0)  # nu - u = gap + x, with x = nu - top > 0

    def f(x):
        apart = gaps + x[:, None]
        return (p * np.log(apart)).sum(axis=1) + np.log((p / apart).sum(axis=1))

    flat = np.where(on, gaps, 0.0).max(axis=1) == 0.0  # f is 0: nothing can be moved inside
    x, kept = u.max() - top, np.ones(len(p))  # kept: 1 - r
    outside = x > 0
    at_best = f(np.where(outside, x, 1.0))
    moved = outside & (at_best < radius)
    kept[moved] = np.exp(at_best - radius)[moved]
    spread = np.where(on, gaps, 0.0).max(axis=1)
    low = np.full(len(p), -700.0)  # of ln x
    high = np.log(np.where(flat, 1.0, spread) / radius)  # f <= spread / x
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        above = f(np.exp(middle)) > radius
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    x = np.where(moved, x, np.exp(high))
    q = p / (gaps + x[:, None])
    q *= (kept / q.sum(axis=1))[:, None]
    q[flat] = kept[flat][:, None] * p[flat]
    q[:, best] += 1 - kept
    return q


class KLUCRL(AnySets):
    def regions(self):
        S, SA, N_plus = self.space.n_states, self.space.n_pairs, np.maximum(1, self.N)
        C_R, C_P = kl_constants(S, SA, self.horizon, self.delta)
        rad_r = C_R / np.sqrt(N_plus)
        if self.drift:
            W = min(self.window, self.horizon)
            C_P = kl_constant_under_drift(S, SA, self.horizon, W, self.delta)
            rad_r = self.laplace_radius()
        self.radius = self.scale * C_P / N_plus
        upper = self.r_hat + self.scale * rad_r
        return np.where(self.N > 0, np.clip(upper, 0, 1), 1.0) if self.clip else upper

    def best_rows(self, u):
        seen = self.N > 0
        rows = np.zeros_like(self.p_hat)
        rows[~seen, np.flatnonzero(u == u.max())[-1]] = 1.0
        if np.ptp(u) == 0:
            rows[seen] = self.p_hat[seen]
        elif seen.any():
            rows[seen] = kl_maximum(self.p_hat[seen], self.radius[seen], u)
        return widened(rows, u, 2 / self.horizon) if self.drift else rows


def widened(rows, u, width):
    """Rows whose q.u is larger by half a width times the span of u, and at most max u.

    No row within an L1 distance of `width` of the set has more.
    """
    best, gap = np.flatnonzero(u == u.max())[-1], u.max() - rows @ u
    share = np.divide(width / 2 * np.ptp(u), gap, out=np.ones_like(gap), where=gap > 0)
    share = np.minimum(1.0, share)[:, None]
    return (1 - share) * rows + share * np.eye(u.size)[best]
