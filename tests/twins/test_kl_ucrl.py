"""The twin of KL-UCRL: its inner maximum by other solvers, and that it explores less than UCRL2."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import rel_entr

import windage as wd
from tests.twins.kl_ucrl import (
    KLUCRL,
    kl_constant_under_drift,
    kl_constants,
    kl_maximum,
    widened,
)
from tests.twins.optimistic import UCRL2


def divergence(p, q):
    return rel_entr(p, q).sum()


def drawn(rng, S):
    counts = rng.multinomial(rng.integers(1, 30), rng.dirichlet(np.full(S, 0.5)))
    return counts / counts.sum(), rng.choice([1e-3, 0.05, 0.5, 3.0, 40.0])


def least_bound(p, radius, u):
    """Weak duality: q.u <= nu - exp(sum p ln(nu - u) - radius) for every nu >= max u; the least."""
    on, top = p > 0, u.max()

    def bound(x):  # nu = top + exp(x)
        nu = top + np.exp(x)
        return nu - np.exp(p[on] @ np.log(nu - u[on]) - radius)

    coarse = np.linspace(-30, np.log(10 / radius + 10), 2000)
    middle = coarse[np.argmin([bound(x) for x in coarse])]
    found = minimize_scalar(bound, bounds=(middle - 0.1, middle + 0.1), method="bounded",
                            options={"xatol": 1e-12})  # fmt: skip
    return min(found.fun, bound(-30.0))


def test_no_row_of_a_grid_has_more_and_the_dual_is_attained():
    rng = np.random.default_rng(0)
    side = np.linspace(0, 1, 121)
    grid = np.array([(a, b, 1 - a - b) for a in side for b in side if a + b <= 1 + 1e-12])
    for _ in range(80):
        S = 3
        (p, radius), u = drawn(rng, S), rng.random(S).round(2)
        (q,) = kl_maximum(p[None], np.array([radius]), u)
        assert q.min() >= 0
        assert q.sum() == pytest.approx(1.0, abs=1e-12)
        assert divergence(p, q) <= radius * (1 + 1e-9) + 1e-12
        plausible = rel_entr(p, np.maximum(grid, 0)).sum(axis=1) <= radius
        assert (grid[plausible] @ u).max(initial=-1.0) <= q @ u + 1e-9
        assert q @ u == pytest.approx(least_bound(p, radius, u), abs=1e-7)


def test_the_optimum_is_on_the_edge_unless_all_mass_is_where_it_should_be():
    """Larger models, rows side by side: KL = radius where u is not flat on the support."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        S = int(rng.integers(2, 12))
        rows, radii = zip(*(drawn(rng, S) for _ in range(7)), strict=True)
        p, radius, u = np.array(rows), np.array(radii), rng.random(S)
        for row, edge, q in zip(p, radius, kl_maximum(p, radius, u), strict=True):
            assert q.sum() == pytest.approx(1.0, abs=1e-12)
            alone = row[u.argmax()] == 1.0
            assert q @ u == pytest.approx(least_bound(row, edge, u), abs=1e-7)
            if not alone:
                assert divergence(row, q) == pytest.approx(edge, rel=1e-6)


def test_hand_made_cases():
    # all mass on the worst state: the best one gets 1 - exp(-radius)
    (q,) = kl_maximum(np.array([[1.0, 0.0]]), np.array([0.5]), np.array([0.0, 1.0]))
    assert q == pytest.approx([np.exp(-0.5), 1 - np.exp(-0.5)])
    # two states seen equally often: KL((1/2, 1/2), q) = -ln(4 q (1 - q)) / 2
    (q,) = kl_maximum(np.array([[0.5, 0.5]]), np.array([0.2]), np.array([0.0, 1.0]))
    assert q[1] == pytest.approx((1 + np.sqrt(1 - np.exp(-0.4))) / 2)
    # u is flat on the support and highest there: nothing to gain
    (q,) = kl_maximum(np.array([[0.3, 0.7, 0.0]]), np.array([0.2]), np.array([1.0, 1.0, 0.0]))
    assert q == pytest.approx([0.3, 0.7, 0.0])


def test_constants():
    C_R, C_P = kl_constants(6, 12, 10_000, 0.05)
    B = np.log(2 * np.e * 36 * 2 * np.log(10_000) / 0.05)
    assert pytest.approx(6 * (B + np.log(B + 0.10857) * (1 + 1 / (B + 0.10857))), rel=1e-4) == C_P
    assert pytest.approx(np.sqrt(np.log(4 * 12 * 9.2103 / 0.05) / 1.99), rel=1e-4) == C_R


def test_windows_of_drifting_rows_stay_inside():
    """240 streams of 500 visits whose rows alternate, jump or answer the past; all times at once.

    With delta = 0.05 for a single pair and a single start the promise is 2.5 %: 6 streams; it is
    kept with much room, and 30 would be rejected with certainty.
    """
    rng, S, T, failed = np.random.default_rng(0), 4, 500, 0
    # one pair, and no union over where a window starts
    most = kl_constant_under_drift(S, 1, T, T, 0.05) - np.log(T)
    for i in range(240):
        ends = rng.dirichlet(np.full(S, 0.3), size=2)
        counts, sums, outside = np.zeros(S), np.zeros(S), False
        for t in range(1, T + 1):
            p = ends[int((t % 2, t > T / 2, counts[0] > sums[0])[i % 3])]
            sums += p
            counts[rng.choice(S, p=p)] += 1
            q = (1 - 1 / T) * sums / t + 1 / (T * S)
            outside |= t * divergence(counts / t, q) > most
        failed += outside
    assert failed <= 30


def test_a_widened_row_is_worth_half_the_width_of_the_span_more():
    rows, u = np.array([[0.5, 0.5, 0.0], [0.0, 0.05, 0.95]]), np.array([0.0, 1.0, 3.0])
    after = widened(rows, u, 0.2)
    assert after.sum(axis=1) == pytest.approx([1.0, 1.0])
    assert after @ u == pytest.approx([0.5 + 0.3, 3.0])


def test_on_riverswim_it_loses_less_than_ucrl2():
    mdp, T = wd.envs.riverswim_mdp(6), 8000
    model = wd.DriftingMDP.stationary(mdp, horizon=T)
    agents = [kind(mdp.space, horizon=T, clip=True, seed=1) for kind in (UCRL2, KLUCRL)]
    slow, quick = (wd.run(model, agent, seed=3).total_reward for agent in agents)
    assert quick > 3 * slow
    drifting = wd.envs.make("riverswim", horizon=1500)
    for drift in (False, True):
        agent = KLUCRL(drifting.space, horizon=1500, window=200, drift=drift, seed=1)
        wd.run(drifting, agent, seed=1)
        assert agent.N.sum() == 200
