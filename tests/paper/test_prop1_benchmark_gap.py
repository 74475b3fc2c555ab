"""Proposition 1: sum rho*_t is close to the best expected reward of T steps (spec 1.11, E10)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

import windage as wd
from tests.models import random_mdp
from windage.oracle.diameter import diameter
from windage.oracle.finite_horizon import benchmark_gap, finite_horizon, printed_benchmark_gap


def lp_gain(mdp: wd.MDP) -> float:
    """P(r, p): max sum r x over stationary state-action frequencies x."""
    space = mdp.space
    flow = np.eye(space.n_states)[space.state_of].T - np.asarray(mdp.transitions).T
    found = linprog(
        -mdp.rewards,
        A_eq=np.vstack([flow, np.ones(space.n_pairs)]),
        b_eq=np.append(np.zeros(space.n_states), 1.0),
    )
    assert found.status == 0
    return float(-found.fun)


def both_sides(model: wd.DriftingMDP) -> tuple[float, float, float]:
    """The excess of the best reward over sum rho*_t, and what ours and the printed one allow."""
    T = model.horizon
    mdps = [model.at(t) for t in range(1, T + 1)]
    best = finite_horizon(model.space, model.source.at, T).values.max()
    excess = best - math.fsum(lp_gain(mdp) for mdp in mdps)
    D = max(diameter(model.space, mdp.transitions) for mdp in mdps)
    facts = T, D, model.budgets().reward, model.budgets().transition
    return float(excess), benchmark_gap(*facts), printed_benchmark_gap(*facts)


def test_e10_the_printed_gap_is_violated_and_the_corrected_one_holds():
    # state 0 pays 1 and moves on; state 1 pays nothing and returns with probability 1/20
    space = wd.StateActions([1, 1])
    p = [[0.0, 1.0], [0.05, 0.95]]
    model = wd.DriftingMDP(space, [1, 2], [[1.0, 0.0], [1.0, 1e-8]], [p, p], horizon=2)
    budgets = model.budgets()
    assert (budgets.reward, budgets.transition) == (pytest.approx(1e-8), 0.0)
    assert diameter(space, np.array(p)) == pytest.approx(20.0, rel=1e-14)
    excess, ours, printed = both_sides(model)
    print(f"excess {excess:.4f}, corrected gap {ours:.4f}, printed gap {printed:.4f}")
    assert excess == pytest.approx(1.0 - 2 / 21, abs=1e-7)
    assert printed == pytest.approx(84 * math.sqrt(2e-8), rel=1e-6)
    assert printed < excess  # E10
    assert excess <= ours


SCHEDULES = {
    "cosine": wd.schedules.Cosine(cycles=3),
    "linear": wd.schedules.Linear(),
    "walk": wd.schedules.RandomWalk(seed=4),
    "burst": wd.schedules.Burst(),
}


@pytest.mark.parametrize("shape", SCHEDULES)
def test_random_drifting_models_stay_within_the_corrected_gap(shape):
    positive = 0
    for seed in range(3):
        space = wd.StateActions([2, 1, 3][: 2 + seed % 2])
        bases = [random_mdp(space, seed=10 * seed + i) for i in range(2)]
        model = wd.DriftingMDP.blend(bases, SCHEDULES[shape], horizon=40)
        excess, ours, _ = both_sides(model)
        print(f"{shape} {seed}: excess {excess:.4f}, corrected gap {ours:.4f}")
        assert excess <= ours
        positive += excess > 0
    assert positive > 0


def test_a_good_start_uses_up_a_quarter_of_the_diameter_term():
    # a stationary model, so that the only term is D: n paying states, then a wait of n steps
    n = 20
    space = wd.StateActions([1] * (n + 1))
    p = np.roll(np.eye(n + 1), 1, axis=1)
    p[n] = 0.0
    p[n, [0, n]] = 1 / n, 1 - 1 / n
    mdp = wd.MDP(space, np.append(np.ones(n), 0.0), p)
    model = wd.DriftingMDP.blend([mdp, mdp], wd.schedules.Linear(), horizon=n)
    excess, ours, _ = both_sides(model)
    assert ours == pytest.approx(2 * n - 1, rel=1e-12)  # wait, then walk to the last paying state
    assert excess == pytest.approx(n - n / 2, rel=1e-9)
    assert ours / 4 < excess <= ours


def test_the_drift_of_rewards_is_needed():
    # rewards that follow the only cycle of two states: every step pays 1, each frozen model 1/2
    T = 30
    r = np.array([[[t % 2], [1 - t % 2]] for t in range(T)], dtype=float)
    swap = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    model = wd.DriftingMDP.from_arrays(r, np.stack([swap] * T))
    excess, ours, _ = both_sides(model)
    assert excess == pytest.approx(T / 2, rel=1e-9)
    assert model.budgets().reward == T - 1
    assert benchmark_gap(T, 1.0, 0.0, 0.0) < excess <= ours


def test_the_drift_of_transitions_is_needed():
    # a cycle of three states and its reverse in turn: state 0 is seen every other step
    T = 30
    r = np.broadcast_to(np.array([[1.0], [0.0], [0.0]]), (T, 3, 1))
    cycle = np.roll(np.eye(3), 1, axis=1)
    p = np.stack([(cycle if t % 2 else cycle.T)[:, None, :] for t in range(T)])
    model = wd.DriftingMDP.from_arrays(r, p)
    excess, ours, _ = both_sides(model)
    assert excess == pytest.approx(T / 2 - T / 3, rel=1e-9)
    assert model.budgets().transition == 2 * (T - 1)
    assert benchmark_gap(T, 2.0, 0.0, 0.0) < excess <= ours
