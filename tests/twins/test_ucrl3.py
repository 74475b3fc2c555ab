"""The twin of UCRL3: bounds on a grid, rows by linear programs, and what NOSS leaves out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import windage as wd
from tests.twins.optimistic import UCRL2
from tests.twins.ucrl3 import (
    UCRL3,
    bounds,
    deviation,
    deviation_under_drift,
    filled,
    near_optimistic_row,
    peeling,
    proxy,
)

DELTA = 1e-3


@pytest.mark.parametrize("kind", [deviation, deviation_under_drift])
@pytest.mark.parametrize("n", [1, 2, 7, 60, 2000])
def test_bounds_are_the_ends_of_the_plausible_grid_points(n, kind):
    grid = np.linspace(0, 1, 20_001)
    for hits in {0, 1, n // 3, n // 2, n - 1, n}:
        p = hits / n
        low, high = (x[0] for x in bounds(np.array([p]), np.array([n]), DELTA, kind))
        above = grid[(grid >= p) & (grid - p <= kind(grid, n, DELTA, True))]
        below = grid[(grid <= p) & (p - grid <= kind(grid, n, DELTA, False))]
        assert above.max(initial=p) == pytest.approx(high, abs=1e-4)
        assert below.min(initial=p) == pytest.approx(low, abs=1e-4)
        assert low <= p <= high


def test_the_pieces_by_hand():
    assert peeling(1, 0.5) == pytest.approx(1.12 * np.log(2 / 0.5))  # ln(eta) ln(eta^2) / ln(eta)^2
    assert proxy(np.array([0.0, 0.25, 0.5, 0.75, 1.0])) == pytest.approx(
        [0, 0.25 / np.log(3), 0.25, 0.25 / np.log(3), 0]
    )
    # the proxy of a law is that of its mirror image, and never below its variance
    q = np.linspace(0.001, 0.999, 999)
    assert proxy(q) == pytest.approx(proxy(1 - q))
    assert (proxy(q) >= q * (1 - q) - 1e-15).all()


def streams(rng, drifts):
    """Means and true averages of 1,000 streams of 300 trials; some drifts look at the past."""
    n = np.arange(1, 301)
    for i in range(1000):
        low, high = sorted(rng.random(2) ** 2)
        p, hits = np.full(300, low), np.zeros(300)
        for t in range(300):
            if drifts:
                high_now = (hits[:t].sum() > p[:t].sum(), t % 50 < 25, t % 2 == 0)[i % 3]
                p[t] = high if high_now else low
            hits[t] = rng.random() < p[t]
        yield n, np.cumsum(hits) / n, np.cumsum(p) / n


@pytest.mark.parametrize(("kind", "drifts"), [(deviation, False), (deviation_under_drift, True)])
def test_bounds_fail_no_more_often_than_promised(kind, drifts):
    """At all times at once. 4 % are promised (two sides, two bounds): 80 of 1,000 is 6.4 sigma."""
    failed = 0
    for n, mean, p in streams(np.random.default_rng(2), drifts):
        apart = np.abs(mean - p)
        allowed = np.where(mean < p, kind(p, n, 0.01, True), kind(p, n, 0.01, False))
        failed += (apart > allowed).any()
    assert failed <= 80


def drawn(rng, S):
    counts = rng.multinomial(rng.integers(1, 40), rng.dirichlet(np.full(S, 0.4)))
    n = counts.sum()
    low, high = bounds(counts / n, np.full(S, n), rng.choice([1e-3, 0.1, 0.9]))
    f = rng.random(S).round(int(rng.integers(1, 5)))
    return counts > 0, low, high, f - f.min()


def test_a_full_support_is_the_linear_program():
    rng = np.random.default_rng(3)
    for _ in range(60):
        support, low, high, f = drawn(rng, int(rng.integers(2, 8)))
        q, chosen = near_optimistic_row(f, low, high, support, kappa=0.0)
        best = linprog(-f, A_eq=[np.ones(f.size)], b_eq=[1.0], bounds=list(zip(low, high,
                       strict=True)))  # fmt: skip
        assert best.status == 0
        assert q.sum() == pytest.approx(1.0, abs=1e-12)
        assert ((low - 1e-12 <= q) & (q <= high + 1e-12)).all()
        # what is left out is worth nothing, so it is the optimum
        assert q @ f == pytest.approx(-best.fun, abs=1e-9)
        assert (f[~chosen] * high[~chosen]).sum() <= 1e-12


def test_noss_loses_no_more_than_kappa_and_stops_as_soon_as_it_may():
    rng, smaller = np.random.default_rng(4), 0
    for _ in range(200):
        support, low, high, f = drawn(rng, int(rng.integers(2, 10)))
        kappa = float(rng.choice([0.01, 0.1, 0.5]))
        full, _ = near_optimistic_row(f, low, high, support, 0.0)
        q, chosen = near_optimistic_row(f, low, high, support, kappa)
        assert full @ f - q @ f <= kappa + 1e-12
        assert chosen[support].all()
        assert q[~chosen].sum() == 0.0
        smaller += chosen.sum() < f.size
        order = np.argsort(f, kind="stable")[::-1]
        added = [s for s in order if chosen[s] and not support[s]]
        if len(added) > 1:  # without the last one added it was too much
            fewer = chosen.copy()
            fewer[added[-1]] = False
            rest = filled(f, low, high, order[~fewer[order]]) @ f
            assert rest > min(kappa, filled(f, low, high, order[fewer[order]]) @ f)
    assert smaller > 50


def test_on_riverswim_it_loses_less_than_ucrl2():
    mdp, T = wd.envs.riverswim_mdp(6), 8000
    model = wd.DriftingMDP.stationary(mdp, horizon=T)
    agents = {kind: kind(mdp.space, horizon=T, seed=1) for kind in (UCRL2, UCRL3)}
    earned = {kind: wd.run(model, agent, seed=3).total_reward for kind, agent in agents.items()}
    assert earned[UCRL3] > 4 * earned[UCRL2]
    drifting = wd.envs.make("riverswim", horizon=1500)
    for drift in (False, True):
        agent = UCRL3(drifting.space, horizon=1500, window=200, drift=drift, seed=1)
        wd.run(drifting, agent, seed=1)
        assert agent.N.sum() == 200
