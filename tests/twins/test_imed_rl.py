"""The twin of IMED-RL: divergences by closed forms and by descent, plans by a linear program."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import rel_entr

import windage as wd
from tests.models import random_mdp
from tests.twins.imed_rl import IMEDRL, divergence, optimal_bias, skeleton
from tests.twins.optimistic import UCRL2


def test_of_bernoulli_rewards_it_is_the_binary_divergence():
    """Values 0 and 1, omega = 1: the nearest law with mean m is Bernoulli(m)."""
    for p in (0.0, 0.1, 0.5, 0.8):
        for m in (0.15, 0.6, 0.9):
            if m > p:
                exact = rel_entr(p, m) + rel_entr(1 - p, 1 - m)
                found = divergence(np.array([0.0, 1.0]), np.array([1 - p, p]), m, 1.0)
                assert found == pytest.approx(exact, abs=1e-8)
    assert divergence(np.array([0.0, 1.0]), np.array([0.2, 0.8]), 0.7, 1.0) == 0.0


def test_the_dual_is_the_primal():
    """min KL(weights, q) over laws q on the values and omega with mean >= target, by SLSQP."""
    rng, solved = np.random.default_rng(0), 0
    for _ in range(30):
        n = int(rng.integers(2, 6))
        values, weights = rng.random(n) * 2, rng.dirichlet(np.ones(n))
        omega = 2.0 + rng.random()
        target = weights @ values + rng.uniform(0.05, 0.9) * (omega - weights @ values)
        points, p = np.append(values, omega), np.append(weights, 0.0)
        start = 0.9 * p + 0.1 / p.size
        found = minimize(
            lambda q, p=p: rel_entr(p, np.maximum(q, 1e-300)).sum(),
            start,
            bounds=[(1e-12, 1)] * p.size,
            constraints=[
                {"type": "eq", "fun": lambda q: q.sum() - 1},
                {"type": "ineq", "fun": lambda q, x=points, t=target: q @ x - t},
            ],
            method="SLSQP",
            options={"maxiter": 1000, "ftol": 1e-14},
        )
        if found.success and found.x @ points >= target - 1e-9:
            solved += 1
            assert divergence(values, weights, target, omega) == pytest.approx(found.fun, abs=1e-4)
    assert solved > 20


def test_skeletons():
    offsets = np.array([0, 3, 5, 6, 8])
    N = np.array([100, 22, 21, 1, 0, 7, 0, 0])
    # ln(100)^2 = 21.2; a state with one visit: only what was tried; an unseen state: everything
    assert skeleton(N, offsets).tolist() == [True, True, False, True, False, True, True, True]


def test_biases_are_those_of_an_optimal_policy_and_of_the_linear_program():
    rng = np.random.default_rng(1)
    for seed in range(25):
        space = wd.StateActions(rng.integers(1, 4, size=rng.integers(1, 6)).tolist())
        mdp = random_mdp(space, seed)
        p, r = np.asarray(mdp.transitions), np.asarray(mdp.rewards)
        gain, phi = optimal_bias(r, p, space.offsets, np.ones(space.n_pairs, bool))
        assert gain == pytest.approx(wd.gain_lp(mdp).primal, abs=1e-8)
        best = np.maximum.reduceat(r + p @ phi, space.offsets[:-1])
        assert best - phi == pytest.approx(np.full(space.n_states, gain), abs=1e-8)
        assert phi.min() == 0.0


def test_actions_never_tried_come_first_and_then_the_least_index():
    space = wd.StateActions([3])
    agent = IMEDRL(space, horizon=600, seed=2)
    means, tried = [0.2, 0.5, 0.8], []
    rng = np.random.default_rng(3)
    for t in range(600):
        a = agent.act(0)
        if t >= 3:
            assert agent.indices(0)[a] <= agent.indices(0).min() + 1e-12
        tried.append(a)
        agent.observe(0, a, float(rng.random() < means[a]), 0)
    assert sorted(tried[:3]) == [0, 1, 2]
    assert tried.count(2) > 450
    assert min(tried.count(0), tried.count(1)) > 2
    with pytest.raises(wd.HorizonReached):
        agent.act(0)


def test_a_window_forgets():
    model = wd.envs.make("riverswim", horizon=300)
    agent = IMEDRL(model.space, horizon=300, window=50)
    wd.run(model, agent, seed=0)
    recent = agent.history[-50:]
    assert agent.N.tolist() == np.bincount([p for p, _, _ in recent], minlength=12).tolist()
    assert agent.moves.sum() == 50
    assert sum(sum(paid.values()) for paid in agent.paid) == 50


def test_on_riverswim_it_loses_far_less_than_ucrl2():
    mdp, T = wd.envs.riverswim_mdp(6), 3000
    model = wd.DriftingMDP.stationary(mdp, horizon=T)
    best = mdp.solve().gain * T
    slow, quick = UCRL2(mdp.space, horizon=T, clip=True), IMEDRL(mdp.space, horizon=T, seed=1)
    lost = [best - wd.run(model, agent, seed=3).total_reward for agent in (slow, quick)]
    assert lost[1] < 0.3 * lost[0]
