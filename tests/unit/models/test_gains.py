"""rho*_t of drifting models: every bracket against a linear program at that time."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.sparse import csr_array

import windage as wd
from tests.drifting import BUILDERS, MODELS, SPACE
from tests.models import random_mdp
from windage.errors import InputError, ModelError, NotConverged
from windage.models import gains
from windage.models.gains import corner
from windage.oracle import gain
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
    "walk": wd.schedules.RandomWalk(1, moves=40, size=0.3),
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
    monkeypatch.setattr(gains, "MOST_SOLVES", 10)
    with pytest.raises(NotConverged, match="no blend: all 60 models would have to be solved"):
        BUILDERS["function"]().optimal_gains()
    both = wd.DriftingMDP.blend(
        MODELS[:2], wd.schedules.Linear(), wd.schedules.Cosine(2), horizon=500
    )
    with pytest.raises(NotConverged, match="10 models were solved"):
        both.optimal_gains(1e-9)


def test_short_horizons_cost_no_more_than_their_times():
    """In the weight alone this line would take some ten thousand models at 1e-10."""
    space = wd.StateActions.uniform(20, 2)
    ends = [random_mdp(space, seed) for seed in (1, 2)]
    model = wd.DriftingMDP.blend(ends, wd.schedules.Linear(), horizon=1000)
    curve = model.optimal_gains(1e-10)
    assert curve.solves <= 500 + 1000  # the line that was given up, and then all times
    assert curve.error <= 1e-10
    for t in (1, 2, 333, 999, 1000):
        low, high = curve.bracket(t)
        found = model.at(t).solve(tol=1e-11, method="policy-iteration")
        assert found.lower <= high
        assert low <= found.upper
        assert lp(model, t) == pytest.approx(curve.at(t), abs=1e-8)


@pytest.mark.parametrize("horizon", [7, 40, 200, 1000, 5000])
@pytest.mark.parametrize("kind", ["line", "box"])
def test_no_more_models_are_solved_than_there_are_times(kind, horizon):
    """Weights of their own for rewards and transitions: the cost grows with T, up to T."""
    space = wd.StateActions.uniform(12, 2)
    ends = [random_mdp(space, seed) for seed in (1, 2)]
    own = wd.schedules.Cosine(3) if kind == "box" else None
    model = wd.DriftingMDP.blend(ends, wd.schedules.Cosine(2), own, horizon=horizon)
    curve = model.optimal_gains()
    assert curve.solves <= horizon
    assert curve.error <= 1e-6
    for t in np.unique(np.linspace(1, horizon, 5).astype(int)):
        low, high = curve.bracket(t)
        assert low - 1e-9 <= lp(model, t) <= high + 1e-9


def test_lines_count_against_the_most_solves(monkeypatch):
    """All families together: none of them would exceed it alone."""
    models = [random_mdp(SPACE, seed) for seed in range(4)]
    model = wd.DriftingMDP.blend(models, wd.schedules.Knots((1, 300, 600, 900)), horizon=900)
    solves = model.optimal_gains(1e-4).solves
    monkeypatch.setattr(gains, "MOST_SOLVES", solves)
    assert model.optimal_gains(1e-4).solves == solves
    monkeypatch.setattr(gains, "MOST_SOLVES", solves - 1)
    with pytest.raises(NotConverged, match=f"{solves - 1} models were solved"):
        model.optimal_gains(1e-4)


def test_what_corners_may_be_off_by_is_part_of_a_box():
    models = [random_mdp(SPACE, seed) for seed in range(2)]
    source = wd.DriftingMDP.blend(
        models, wd.schedules.Linear(), wd.schedules.Cosine(1), horizon=1000
    ).source
    path = gains.PathCertifier(source, np.array([1, 1000]), 0.1, (0, 1, 0, 1), shared=False)
    ends = np.array([0.5, 0.52]), np.array([0.3, 0.31])
    *_, error = path._box(100, 120, *ends)
    for at, one in path.solved.items():
        path.solved[at] = one._replace(error=one.error + (0.01 if at == (0.52, 0.31) else 0.0))
    *_, wider = path._box(100, 120, *ends)
    assert wider == pytest.approx(error + 0.01, abs=1e-6)


def test_errors_reach_to_the_farther_end_of_a_bracket(monkeypatch):
    """A gain need not be in the middle of its bracket; here it is at its lower end."""
    solve = gain.solve

    def off_centre(*arguments, **options):
        found = solve(*arguments, **options)
        return dataclasses.replace(found, lower=found.gain, upper=found.gain + 0.01)

    solve_many = gain.solve_many

    def many_off_centre(*arguments, **options):
        return [
            dataclasses.replace(one, lower=one.gain - 0.02, upper=one.gain)
            for one in solve_many(*arguments, **options)
        ]

    short = wd.DriftingMDP.blend(
        MODELS[:2], wd.schedules.Linear(), wd.schedules.Cosine(1), horizon=20
    )
    monkeypatch.setattr(gain, "solve_many", many_off_centre)
    assert short.optimal_gains().error == pytest.approx(0.02)
    monkeypatch.setattr(gain, "solve", off_centre)
    curve = BUILDERS["function"]().optimal_gains()
    assert curve.error == pytest.approx(0.01)
    assert curve.bracket(7) == pytest.approx((curve.at(7) - 0.01, curve.at(7) + 0.01))
    space, mdp = SPACE, MODELS[0]
    found = gain.solve(space, mdp.rewards, mdp.transitions)
    change = np.zeros_like(mdp.transitions)
    one = corner(space, found, mdp.rewards, 0.0, mdp.transitions, change)
    assert one.error == pytest.approx(0.01)


@pytest.mark.parametrize("rewards", SHAPES)
@pytest.mark.parametrize("kernels", SHAPES)
def test_families_show_at_the_stops(kernels, rewards):
    """Every family that occurs at any time, and the ends of its weights, all times looked at."""
    models = [random_mdp(SPACE, seed) for seed in range(4)]
    model = wd.DriftingMDP.blend(models, SHAPES[kernels], SHAPES[rewards], horizon=2000)
    families = gains._Families(model.source, 2000, 1e-2)

    def ranges(times):
        v, w = families._places(times)
        found = {}
        for key, x, y in zip(zip(v.i, v.j, w.i, w.j, strict=True), v.x, w.x, strict=True):
            found.setdefault(tuple(map(int, key)), []).append((x, y))
        return {key: (np.min(xs, axis=0), np.max(xs, axis=0)) for key, xs in found.items()}

    every, shown = ranges(np.arange(1, 2001)), ranges(families.stops)
    assert every.keys() == shown.keys()
    for key, (low, high) in every.items():
        assert (low == shown[key][0]).all()
        assert (high == shown[key][1]).all()


def test_a_line_that_did_not_close_is_walked(monkeypatch):
    certify_line = gains.certify_line

    def open_somewhere(*arguments, **options):
        line = certify_line(*arguments, **options)
        return dataclasses.replace(line, error=np.where(line.x > 0.5, np.inf, line.error))

    model = wd.DriftingMDP.blend(MODELS[:2], wd.schedules.Linear(), horizon=300)
    expected = model.optimal_gains(1e-4).values
    monkeypatch.setattr(gains, "certify_line", open_somewhere)
    curve = model.optimal_gains(1e-4)
    assert curve.error <= 1e-4
    assert curve.values == pytest.approx(expected, abs=2e-4)


def test_many_knots_and_many_times_are_grouped_by_family():
    """Two families that take turns at every step, and one family for each of many knots."""
    turns = wd.schedules.Steps(list(range(2, 401)))
    model = wd.DriftingMDP.blend(MODELS[:2], turns, horizon=400)
    ends = [mdp.solve().gain for mdp in MODELS[:2]]
    found = model.optimal_gains().values
    assert found == pytest.approx(np.resize(ends, 400), abs=1e-6)
    knots = list(range(1, 402, 4))
    models = [MODELS[k % 2] for k in range(len(knots))]
    zigzag = wd.DriftingMDP(
        SPACE, knots, [m.rewards for m in models], [m.transitions for m in models], horizon=401
    )
    curve = zigzag.optimal_gains(1e-3)
    check(zigzag, curve, range(1, 402, 13))


def test_a_burst_of_noise_keeps_its_bracket():
    """Policies change many times along a wild walk; none of the brackets may lie."""
    models = [random_mdp(wd.StateActions([3, 3, 3]), seed, 0.6) for seed in (7, 8)]
    model = wd.DriftingMDP.blend(
        models,
        wd.schedules.RandomWalk(4, moves=300, size=0.5),
        wd.schedules.Cosine(9),
        horizon=5000,
    )
    curve = model.optimal_gains(1e-4)
    check(model, curve, np.random.default_rng(2).integers(1, 5001, size=40))
