"""Algorithm 2 in NumPy, against linear programs, models inside the sets, and the compiled EVI."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import windage as wd
from windage.reference import evi
from windage.reference.evi import inner_maximum


def best_of_program(p_hat, width, u):
    """max q.u over q in the simplex, q = p_hat + up - down, sum(up + down) <= width."""
    S = u.size
    found = linprog(
        np.concatenate([-u, u]),
        A_ub=np.vstack([np.ones(2 * S), np.hstack([-np.eye(S), np.eye(S)])]),
        b_ub=np.concatenate([[width], p_hat]),
        A_eq=[np.concatenate([np.ones(S), -np.ones(S)])],
        b_eq=[0.0],
        bounds=(0, None),
    )
    assert found.status == 0
    return p_hat @ u - found.fun


def drawn_rows(rng, n, S):
    rows = rng.dirichlet(np.full(S, 0.5), size=n) * (rng.random((n, S)) < 0.7)
    rows[np.arange(n), rng.integers(S, size=n)] += 0.1
    return rows / rows.sum(axis=1, keepdims=True)


def test_the_inner_maximum_is_that_of_a_linear_program():
    rng = np.random.default_rng(0)
    for _ in range(60):
        S = int(rng.integers(1, 6))
        p_hat, u = drawn_rows(rng, 8, S), rng.random(S).round(int(rng.integers(1, 9)))
        width = rng.choice([0.0, 0.05, 0.4, 1.1, 2.0, 3.0], size=8)
        q = inner_maximum(p_hat, width, u)
        assert q.min() >= 0.0
        assert q.sum(axis=1) == pytest.approx(np.ones(8), abs=1e-12)
        assert (np.abs(q - p_hat).sum(axis=1) <= width + 1e-12).all()
        best = [best_of_program(p, d, u) for p, d in zip(p_hat, width, strict=True)]
        assert q @ u == pytest.approx(best, abs=1e-8)


def test_a_pair_never_seen_may_lead_anywhere():
    """E8: its p_hat is the zero vector, and with width 2 all mass is on the best state."""
    assert inner_maximum(np.zeros((1, 3)), np.array([2.0]), np.array([0.1, 0.7, 0.3])).tolist() == [
        [0.0, 1.0, 0.0]
    ]


def drawn_sets(rng):
    space = wd.StateActions(rng.integers(1, 4, size=rng.integers(2, 5)).tolist())
    width = rng.choice([0.05, 0.3, 0.8, 2.0], size=space.n_pairs)
    return space, rng.random(space.n_pairs), drawn_rows(rng, space.n_pairs, space.n_states), width


def within(rng, p_hat, width):
    """Random rows of the sets, most of them on the boundary."""
    toward = drawn_rows(rng, *p_hat.shape)
    apart = np.abs(toward - p_hat).sum(axis=1)
    share = np.minimum(1.0, width / np.maximum(apart, 1e-12)) * rng.choice([0.5, 1.0])
    return p_hat + share[:, None] * (toward - p_hat)


def test_the_gain_is_the_largest_of_all_models_in_the_sets():
    """The optimistic model attains it but for epsilon, and no other model has more (both by LP)."""
    rng, near = np.random.default_rng(1), 0
    for _ in range(40):
        space, upper, p_hat, width = drawn_sets(rng)
        plan = evi(space, upper, p_hat, width, epsilon=1e-3)
        own = wd.gain_lp(wd.MDP(space, upper, plan.transitions)).primal
        assert plan.gain - 1e-3 - 1e-7 <= own <= plan.gain + 1e-7
        for _ in range(10):
            other = wd.gain_lp(wd.MDP(space, upper, within(rng, p_hat, width))).primal
            assert other <= plan.gain + 1e-7
            near += other > plan.gain - 0.1
    assert near > 10  # some come close


def test_the_compiled_one_agrees():
    rng = np.random.default_rng(2)
    for _ in range(60):
        space, upper, p_hat, width = drawn_sets(rng)
        seen = rng.random(space.n_pairs) < 0.8
        region = wd.ConfidenceRegion(space, upper, p_hat, width, seen)
        mine = evi(space, upper, p_hat, np.where(seen, width, 2.0), epsilon=1e-4)
        theirs = wd.evi(region, epsilon=1e-4, method="plain")
        assert mine.sweeps == theirs.sweeps
        assert mine.gain == pytest.approx(theirs.gain, abs=1e-12)
        assert mine.bias == pytest.approx(theirs.bias, abs=1e-11)
        assert mine.values == pytest.approx(theirs.action_values, abs=1e-11)
        assert mine.policy.tolist() == theirs.policy.tolist()
        assert mine.transitions[space.offsets[:-1] + mine.policy] == pytest.approx(
            theirs.transitions, abs=1e-12
        )


def test_sets_that_hold_nothing_communicating_raise():
    """E39: two closed states that pay 0 and 1, and no width."""
    space = wd.StateActions([1, 1])
    with pytest.raises(wd.NotConverged, match=r"after 50 sweeps span\(u' - u\) is 1, wanted 0.01"):
        evi(space, np.array([0.0, 1.0]), np.eye(2), np.zeros(2), 0.01, max_sweeps=50)
