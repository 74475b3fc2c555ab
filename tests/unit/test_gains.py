"""rho*_t of drifting models: every bracket against a linear program at that time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import windage as wd
from tests.models import random_mdp
from tests.unit.test_drift import BUILDERS, MODELS, SPACE
from windage.drift import walks
from windage.errors import InputError, ModelError, NotConverged
from windage.oracle.lp import gain_lp


def lp(model, t):
    mdp = model.at(t)
    return gain_lp(model.space, mdp.rewards, mdp.transitions).dual


def check(model, curve, times):
    for t in times:
        low, high = curve.bracket(int(t))
        assert low - 1e-8 <= lp(model, int(t)) <= high + 1e-8, t
        exact = model.at(int(t)).solve(tol=1e-9, method="policy-iteration").gain
        assert low - 1e-14 <= exact <= high + 1e-14, t
        assert low <= curve.at(int(t)) <= high
        assert high - low <= 2 * curve.error + 1e-15


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_every_builder_every_time(name, tol):
    model = BUILDERS[name]()
    curve = model.optimal_gains(tol)
    assert curve.error <= tol
    check(model, curve, range(1, model.horizon + 1, 3))
    assert curve.values == pytest.approx([curve.at(t) for t in range(1, model.horizon + 1)])
    assert curve.sum() == pytest.approx(curve.values.sum())
    assert curve.sum(5, 9) == pytest.approx(curve.values[4:9].sum())
    assert curve.sum(5, 4) == 0


@pytest.mark.parametrize("name", wd.envs.names())
def test_every_environment(name):
    model = wd.envs.make(name)
    curve = model.optimal_gains(1e-5)
    times = np.random.default_rng(0).integers(1, model.horizon + 1, size=15)
    check(model, curve, [1, model.horizon, *times])


SHAPES = {
    "cosine": wd.schedules.Cosine(3.3),
    "linear": wd.schedules.Linear(2.5),
    "walk": wd.schedules.Walk(1, moves=40, size=0.3),
    "burst": wd.schedules.Burst(0.2, 0.6, 2),
    "steps": wd.schedules.Steps([100, 900, 901]),
    "knots": wd.schedules.Knots((1, 300, 301, 1500)),
}


@pytest.mark.parametrize("rewards", SHAPES)
@pytest.mark.parametrize("kernels", SHAPES)
def test_all_pairs_of_schedules(kernels, rewards):
    models = [random_mdp(SPACE, seed) for seed in range(4)]
    model = wd.DriftingMDP.blend(models, SHAPES[kernels], SHAPES[rewards], horizon=2000)
    curve = model.optimal_gains(1e-4)
    assert curve.error <= 1e-4
    times = np.random.default_rng(1).integers(1, 2001, size=10)
    check(model, curve, [1, 2, 99, 100, 101, 299, 300, 301, 302, 899, 1999, 2000, *times])


def test_the_cost_does_not_grow_with_the_horizon():
    short = wd.envs.make("riverswim", horizon=10**4).optimal_gains()
    long = wd.envs.make("riverswim", horizon=10**10).optimal_gains()
    assert long.solves <= 1.1 * short.solves
    assert long.at(10**10 // 3) == pytest.approx(short.at(10**4 // 3), abs=1e-3)
    with pytest.raises(ModelError, match="values: would need about 149"):
        _ = long.values


def test_many_cycles_share_one_line():
    slow = wd.DriftingMDP.blend(MODELS[:2], wd.schedules.Cosine(1), horizon=10**6)
    fast = wd.DriftingMDP.blend(MODELS[:2], wd.schedules.Cosine(1000), horizon=10**6)
    assert fast.optimal_gains().solves <= slow.optimal_gains().solves + 8


def test_periodic_models_are_solved():
    model = wd.envs.make("peril", tau=7, repeats=3)
    curve = model.optimal_gains()
    assert curve.values == pytest.approx(np.ones(model.horizon), abs=1e-9)


def test_models_with_several_classes():
    """Two islands that a bridge joins for a while; the optimal gain is the best island's."""
    space = wd.StateActions([1, 2])
    island = wd.MDP(space, [0.3, 0.8, 0.1], [[1, 0], [0, 1], [0, 1]])
    joined = wd.MDP(space, [0.9, 0.2, 0.1], [[0.5, 0.5], [0, 1], [1, 0]])
    for schedule in (wd.schedules.Linear(), wd.schedules.Steps([10]), wd.schedules.Cosine(1)):
        model = wd.DriftingMDP.blend([island, joined], schedule, horizon=60)
        check(model, model.optimal_gains(1e-4), range(1, 61))


def test_sparse_models_are_certified_too():
    dense = wd.DriftingMDP.blend(MODELS[:2], wd.schedules.Linear(), horizon=500)
    sparse = wd.DriftingMDP.blend(
        [wd.MDP(SPACE, m.rewards, csr_array(m.transitions)) for m in MODELS[:2]],
        wd.schedules.Linear(),
        horizon=500,
    )
    assert sparse.optimal_gains(1e-5).values == pytest.approx(
        dense.optimal_gains(1e-5).values, abs=2e-5
    )


def test_long_chains_are_certified_with_sparse_matrices():
    model = wd.DriftingMDP.blend(
        [wd.envs.riverswim_mdp(600, up=0.6), wd.envs.riverswim_mdp(600)],
        wd.schedules.Linear(),
        horizon=40,
    )
    curve = model.optimal_gains(1e-4)
    check(model, curve, (1, 17, 40))
    assert curve.at(40) == pytest.approx(3 / 7, abs=1e-4)


def test_stationary_models_have_flat_curves():
    curve = wd.DriftingMDP.stationary(MODELS[0], horizon=10**9).optimal_gains()
    assert curve.at(1) == curve.at(10**9)
    assert curve.solves <= 2
    assert "GainCurve" in repr(curve)


@pytest.mark.parametrize("tol", [0, -1e-3, float("nan"), "x"])
def test_tolerances(tol):
    with pytest.raises(InputError, match="tol"):
        BUILDERS["knots"]().optimal_gains(tol)


def test_times_outside_the_horizon():
    curve = BUILDERS["knots"]().optimal_gains()
    for call in (lambda: curve.at(0), lambda: curve.bracket(61), lambda: curve.sum(1, 61)):
        with pytest.raises(InputError):
            call()


def test_streams_too_long_to_solve_are_refused_at_once(monkeypatch):
    monkeypatch.setattr(walks, "MOST_SOLVES", 10)
    with pytest.raises(NotConverged, match="no blend: all 60 models would have to be solved"):
        BUILDERS["function"]().optimal_gains()
    both = wd.DriftingMDP.blend(
        MODELS[:2], wd.schedules.Linear(), wd.schedules.Cosine(2), horizon=500
    )
    with pytest.raises(NotConverged, match="10 models were solved"):
        both.optimal_gains(1e-9)


def test_a_burst_of_noise_keeps_its_bracket():
    """Policies change many times along a wild walk; none of the brackets may lie."""
    models = [random_mdp(wd.StateActions([3, 3, 3]), seed, 0.6) for seed in (7, 8)]
    model = wd.DriftingMDP.blend(
        models, wd.schedules.Walk(4, moves=300, size=0.5), wd.schedules.Cosine(9), horizon=5000
    )
    curve = model.optimal_gains(1e-4)
    check(model, curve, np.random.default_rng(2).integers(1, 5001, size=40))
