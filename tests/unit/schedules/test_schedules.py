from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import windage as wd
from windage.errors import InputError, ModelError
from windage.schedules import (
    Burst,
    Cosine,
    Knots,
    Linear,
    RandomWalk,
    Steps,
    from_spec,
    to_spec,
)

SCHEDULES = [
    Cosine(),
    Cosine(2.7),
    Cosine(0),
    Linear(),
    Linear(3.4),
    Burst(0.2, 0.7, 2),
    Burst(0.0, 1.0, 1),
    RandomWalk(3, moves=17, size=0.4),
    RandomWalk(0, moves=500, size=0.05),
    Steps(),
    Steps([2, 5, 6]),
    Steps([4, 9], order=[2, 0, 1]),
    Knots((1, 4, 5, 30)),
    Knots((1, 4, 5, 30), "step"),
    Knots((1,)),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
@pytest.mark.parametrize("horizon", [30, 31, 200])
def test_weights_are_points_of_the_simplex_and_agree_in_all_forms(schedule, horizon):
    times = np.arange(1, horizon + 1)
    weights = schedule.weights(times, horizon)
    assert weights.shape == (horizon, schedule.n_models)
    assert (weights >= 0).all()
    assert np.abs(weights.sum(axis=1) - 1).max() <= 1e-15 * schedule.n_models
    for t in (1, 7, horizon):
        assert schedule.weights(t, horizon).tolist() == weights[t - 1].tolist()
    models, active = schedule.active(times, horizon)
    dense = np.zeros_like(weights)
    for i in range(horizon):
        for k, w in zip(models[i], active[i], strict=True):
            dense[i, k] += w
    assert dense.tolist() == weights.tolist()


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
@pytest.mark.parametrize("horizon", [1, 2, 3, 30, 31, 200, 1000])
def test_variation_telescopes_to_the_sum_of_all_steps(schedule, horizon):
    if isinstance(schedule, Knots) and horizon < 30:
        horizon += 30
    weights = schedule.weights(np.arange(1, horizon + 1), horizon)
    literal = math.fsum(0.5 * np.abs(np.diff(weights, axis=0)).sum(axis=1))
    assert schedule.variation(horizon) == pytest.approx(literal, abs=1e-11)
    stops = schedule.stops(horizon)
    assert stops[0] == 1
    assert stops[-1] == horizon
    assert (np.diff(stops) > 0).all()


def test_cosine_is_the_printed_formula():
    for t in range(1, 50):
        expected = (1 + math.cos(2 * math.pi * 3 * t / 49)) / 2
        assert Cosine(cycles=3).weights(t, 49)[0] == pytest.approx(expected, abs=1e-15)


def test_linear_there_and_back():
    assert Linear().weights([1, 6, 11], 11)[:, 1].tolist() == [0, 0.5, 1]
    assert Linear(legs=2).weights([1, 6, 11], 11)[:, 1] == pytest.approx([0, 1, 0])
    assert Linear().weights(1, 1).tolist() == [1.0, 0.0]


def test_bursts_are_quiet_outside():
    weight = Burst(0.4, 0.6, cycles=2).weights(np.arange(1, 1001), 1000)[:, 1]
    assert weight[:400].max() == 0
    assert weight[600:].max() == 0
    assert weight.max() == pytest.approx(1, abs=1e-3)
    assert Burst(0.4, 0.6, cycles=2).variation(1000) == pytest.approx(4, abs=0.01)


def test_walks_are_seeded_reflected_and_move_often():
    times = np.arange(1, 2001)
    a = RandomWalk(seed=1, moves=500, size=0.3).position(times, 2000)
    assert a.tolist() == RandomWalk(seed=1, moves=500, size=0.3).position(times, 2000).tolist()
    assert a.tolist() != RandomWalk(seed=2, moves=500, size=0.3).position(times, 2000).tolist()
    assert a[0] == 0.5
    assert 0 <= a.min() < 0.05
    assert 0.95 < a.max() <= 1


def test_steps_jump_at_their_times():
    assert Steps([3]).weights([2, 3], 5).tolist() == [[1, 0], [0, 1]]
    order = Steps([3, 4], order=[2, 0, 2])
    assert order.n_models == 3
    assert np.argmax(order.weights([2, 3, 4, 5], 5), axis=1).tolist() == [2, 0, 2, 2]


def test_knots_hold_after_the_last():
    assert Knots((1, 5)).weights([1, 2, 5, 9], 9)[:, 1].tolist() == [0, 0.25, 1, 1]
    assert Knots((1, 5), "step").weights([1, 4, 5, 9], 9)[:, 1].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    "schedule",
    [s for s in SCHEDULES if s.n_models == 2 and not isinstance(s, (Steps, Knots))],
    ids=repr,
)
def test_positions_are_monotone_between_stops(schedule):
    horizon = 997
    stops = schedule.stops(horizon)
    for first, last in zip(stops[:-1], stops[1:], strict=True):
        steps = np.diff(schedule.position(np.arange(first, last + 1), horizon))
        assert (steps >= -1e-12).all() or (steps <= 1e-12).all()


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_schedules_survive_as_plain_data(schedule):
    assert from_spec(to_spec(schedule)) == schedule


@pytest.mark.parametrize(
    "spec", [{}, {"kind": "Nope"}, {"kind": "Cosine"}, {"kind": "Cosine", "cycles": 1, "x": 2}]
)
def test_specs_of_unknown_schedules(spec):
    with pytest.raises(ModelError, match="no known schedule"):
        from_spec(spec)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Cosine(-1), "cycles"),
        (lambda: Cosine(math.nan), "cycles"),
        (lambda: Linear(math.inf), "legs"),
        (lambda: Burst(0.6, 0.4), "end"),
        (lambda: Burst(-0.1, 0.4), "start"),
        (lambda: Burst(cycles=0), "cycles"),
        (lambda: RandomWalk(seed=-1), "seed"),
        (lambda: RandomWalk(moves=0), "moves"),
        (lambda: RandomWalk(size=0), "size"),
        (lambda: Steps([3, 3]), r"times\[1\]: 3 does not rise above 3"),
        (lambda: Steps([0]), r"times\[0\]: 0"),
        (lambda: Steps([1.5]), "times: holds float64"),
        (lambda: Steps([2], order=[0]), "1 models for 1 jumps"),
        (lambda: Steps([2], order=[0, -1]), r"order\[1\]"),
    ],
)
def test_impossible_schedules(make, message):
    with pytest.raises(wd.WindageError, match=message):
        make()


@pytest.mark.parametrize("times", [(3, 9), (1, 5, 5), (1, 2.5), ()])
def test_knots_are_checked_wherever_they_are_made(times):
    with pytest.raises(ModelError, match="knots"):
        Knots(times)
    with pytest.raises(wd.WindageError, match="interpolation"):
        Knots((1, 9), "stepp")


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
@pytest.mark.parametrize("t", [0, 51, -1, 1.0, True, "1", None, [0], [51], [1.0], [True, 2], [[1]]])
def test_weights_are_asked_for_at_times_of_the_horizon(schedule, t):
    with pytest.raises(InputError, match="^t") as error:
        schedule.weights(t, 50)
    assert error.value.fix


@pytest.mark.parametrize("horizon", [0, -1, 2.5, True, None, 2**40])
@pytest.mark.parametrize("schedule", [Cosine(), Steps([2]), Knots((1, 3)), RandomWalk()], ids=repr)
def test_horizons_are_checked(schedule, horizon):
    for ask in (lambda T: schedule.weights(1, T), schedule.variation, schedule.stops):
        with pytest.raises(ModelError, match="^horizon: ") as error:
            ask(horizon)
        assert error.value.fix


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Cosine("1"), "cycles"),
        (lambda: Cosine(10**400), "cycles"),
        (lambda: Cosine(1e300), "cycles"),
        (lambda: Linear(1e300), "legs"),
        (lambda: Burst(cycles=10**20), "cycles"),
        (lambda: RandomWalk(moves=10**15), "moves"),
        (lambda: RandomWalk(size=1j), "size"),
        (lambda: Steps(5), "times"),
        (lambda: Steps([True, 2]), "times[0]"),
        (lambda: Steps([[1], [2, 3]]), "times"),
        (lambda: Steps([2], order=[0, True]), "order[1]"),
        (lambda: Steps([2], order=3), "order"),
        (lambda: Knots(None), "knots"),
        (lambda: Knots((1, True)), "knots[1]"),
        (lambda: Knots(([1], [2, 3])), "knots"),
        (lambda: from_spec([1]), "schedule"),
        (lambda: from_spec({"kind": ["Cosine"]}), "schedule"),
        (lambda: from_spec({"kind": "Steps", "times": 5, "order": None}), "times"),
    ],
)
def test_what_is_no_parameter(make, field):
    with pytest.raises(wd.WindageError) as error:
        make()
    assert error.value.field == field
    assert error.value.fix


def test_parameters_are_kept_as_plain_numbers():
    wave = Cosine(np.float32(2.5))
    assert (wave.cycles, type(wave.cycles)) == (2.5, float)
    walk = RandomWalk(np.int64(3), np.uint8(4), Fraction(1, 2))
    assert [type(value) for value in (walk.seed, walk.moves, walk.size)] == [int, int, float]
    assert walk == RandomWalk(3, 4, 0.5)
    assert hash(walk) == hash(RandomWalk(3, 4, 0.5))


def test_the_old_name_of_the_random_walk_warns_and_its_files_stay():
    with pytest.warns(DeprecationWarning, match=r"Walk is now windage\.schedules\.RandomWalk"):
        assert wd.schedules.Walk is RandomWalk
    saved = {"kind": "Walk", "seed": 3, "moves": 17, "size": 0.4}
    assert to_spec(RandomWalk(3, moves=17, size=0.4)) == saved
    assert from_spec(saved) == RandomWalk(3, moves=17, size=0.4)
