from __future__ import annotations

import numpy as np
import pytest

import windage as wd
from tests.drifting import BUILDERS, MODELS, SPACE, T, as_arrays, knots
from tests.models import Weights, literal_budgets, random_mdp
from windage.errors import InputError, ModelError


@pytest.fixture(params=BUILDERS, ids=str)
def model(request):
    return BUILDERS[request.param]()


def test_every_builder_keeps_the_promises(model):
    wd.testing.check_drifting_mdp(model)


def test_budgets_against_the_definition(model):
    for first, last in ((1, T), (1, 1), (5, 6), (19, 22), (30, T), (T, T)):
        r, p = literal_budgets(model, first, last)
        budgets = model.budgets(first, last)
        assert budgets.reward == pytest.approx(sum(r), abs=1e-12)
        assert budgets.transition == pytest.approx(sum(p), abs=1e-12)
        assert budgets.reward_steps == pytest.approx(np.array(r), abs=1e-14)
        assert budgets.transition_steps == pytest.approx(np.array(p), abs=1e-14)
        assert budgets.largest_steps == pytest.approx((max(r, default=0), max(p, default=0)))


def test_a_whole_horizon_has_one_step_less_than_it_has_times(model):
    budgets = model.budgets()
    assert budgets.reward_steps.size == budgets.transition_steps.size == T - 1


def test_changes_are_counted(model):
    literal = sum(model.at(t) != model.at(t + 1) for t in range(1, T))
    assert model.budgets().changes == literal


def test_budgets_of_windows(model):
    budgets = model.budgets()
    r, p = budgets.windows(10)
    assert r.size == T - 10
    for i in (0, 13, T - 11):
        inside = model.budgets(i + 1, i + 11)
        assert r[i] == pytest.approx(inside.reward, abs=1e-12)
        assert p[i] == pytest.approx(inside.transition, abs=1e-12)
    for wrong in (0, T, 1.5):
        with pytest.raises(InputError, match="length"):
            budgets.windows(wrong)


def test_linear_knots_interpolate():
    model = knots([1, 11])
    mixed = 0.7 * MODELS[0].rewards + 0.3 * MODELS[1].rewards
    assert model.at(4).rewards == pytest.approx(mixed, abs=1e-15)
    rows = 0.7 * MODELS[0].transitions + 0.3 * MODELS[1].transitions
    assert model.at(4).transitions == pytest.approx(rows, abs=1e-15)
    assert model.at(11) == MODELS[1]
    assert model.at(T) == MODELS[1]


def test_step_knots_hold_until_the_next():
    model = knots([1, 11], "step")
    assert model.at(10) == MODELS[0]
    assert model.at(11) == MODELS[1]


def test_rewards_may_follow_a_schedule_of_their_own():
    model = BUILDERS["two schedules"]()
    assert np.array_equal(model.at(7).rewards, MODELS[1].rewards)
    weight = 6 / 59
    rows = (1 - weight) * MODELS[0].transitions + weight * MODELS[1].transitions
    assert model.at(7).transitions == pytest.approx(rows, abs=1e-15)


def test_stationary_models_do_not_drift():
    budgets = BUILDERS["stationary"]().budgets()
    assert (budgets.reward, budgets.transition, budgets.changes) == (0, 0, 0)


def test_functions_are_asked_once_a_step_and_never_held():
    asked = []

    def function(t):
        asked.append(t)
        return MODELS[t % 2].rewards, MODELS[t % 2].transitions

    model = wd.DriftingMDP.from_function(function, space=SPACE, horizon=1000)
    asked.clear()
    budgets = model.budgets()
    assert budgets.reward_steps.sum() == pytest.approx(budgets.reward)
    assert asked == list(range(1, 1001))


def test_arrays_are_copied():
    r, p = as_arrays(knots([1]))
    model = wd.DriftingMDP.from_arrays(r, p, SPACE)
    r[:] = 0.5
    assert model.at(3) == MODELS[0]


def test_arrays_can_be_rescaled_on_request():
    r, p = as_arrays(knots([1]))
    model = wd.DriftingMDP.from_arrays(r, 2 * p, SPACE, normalize=True)
    assert model.at(3).transitions == pytest.approx(MODELS[0].transitions, abs=1e-15)


def broken(where, value):
    r, p = as_arrays(knots([1]))
    (r if len(where) == 3 else p)[where] = value
    return lambda: wd.DriftingMDP.from_arrays(r, p, SPACE)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (broken((39, 2, 1, 0), 0.98), r"p at t=40, s=2, a=1: row sums to .*normalize=True"),
        (broken((6, 0, 1), 1.5), r"r at t=7, s=0, a=1: mean reward 1\.5 is not in \[0, 1\]"),
        (broken((6, 0, 1), np.nan), "r at t=7, s=0, a=1: mean reward nan"),
        (broken((0, 1, 0, 2), -0.5), r"p at t=1, s=1, a=0: probability -0\.5 of going to s=2"),
        (lambda: knots([1, 20, 20]), r"knots\[2\]: 20 does not rise above 20"),
        (lambda: knots([2, 20]), r"knots\[0\]: the first knot is 2. Fix: start at time 1"),
        (lambda: knots([]), r"knots\[0\]: the first knot is missing"),
        (lambda: knots([1, 61]), r"knots\[1\]: 61 is out of range"),
        (lambda: knots([1.0, 2.0]), "knots: holds float64"),
        (lambda: knots([1, 5], "cubic"), "interpolation: no such choice: 'cubic'"),
        (
            lambda: wd.DriftingMDP(SPACE, [1, 5], [MODELS[0].rewards], [0], horizon=9),
            "transitions: 1 entries for 2 knots|rewards: 1 entries for 2 knots",
        ),
        (lambda: wd.DriftingMDP(SPACE, [1], 3.0, 4.0, horizon=9), "rewards: is a single number"),
        (lambda: wd.DriftingMDP.blend([], wd.schedules.Cosine(), horizon=9), "no base models"),
        (
            lambda: wd.DriftingMDP.blend(MODELS[:1], wd.schedules.Cosine(), horizon=9),
            "schedule: speaks of 2 models, there are 1",
        ),
        (
            lambda: wd.DriftingMDP.blend(
                MODELS[:2], wd.schedules.Cosine(), Weights(0.2, 0.3, 0.5), horizon=9
            ),
            "reward_schedule: speaks of 3 models",
        ),
        (lambda: wd.DriftingMDP.blend(MODELS, "cosine", horizon=9), "no method weights"),
        (
            lambda: wd.DriftingMDP.blend(
                [MODELS[0], wd.envs.riverswim_mdp(4)], wd.schedules.Cosine(), horizon=9
            ),
            r"models\[1\].space",
        ),
        (lambda: wd.DriftingMDP.stationary(MODELS[0], horizon=0), "horizon: 0 is not"),
        (lambda: wd.DriftingMDP.stationary(MODELS[0], horizon=True), "horizon: True is a boolean"),
        (lambda: wd.DriftingMDP.stationary(MODELS[0], horizon=9, noise="loud"), "noise: no such"),
        (
            lambda: wd.DriftingMDP.stationary(MODELS[0], horizon=9, noise=3),
            "noise: 3 is not a noise",
        ),
        (
            lambda: wd.DriftingMDP.from_function(lambda t: None, space=SPACE, horizon=9),
            r"function at t=1: returned NoneType. Fix: return the tuple",
        ),
        (lambda: wd.Noise.gaussian(-1), "sigma"),
        (lambda: wd.Noise.beta(0), "concentration"),
    ],
)
def test_impossible_models(make, message):
    with pytest.raises(wd.WindageError, match=message):
        make()


def test_a_function_that_breaks_later_says_when():
    def function(t):
        return MODELS[0].rewards, MODELS[0].transitions * (1 if t < 30 else 0.98)

    model = wd.DriftingMDP.from_function(function, space=SPACE, horizon=T)
    with pytest.raises(ModelError, match=r"transitions at t=30, s=0, a=0: row sums to 0\.98"):
        model.budgets()


@pytest.mark.parametrize("t", [0, T + 1, 1.0, True])
def test_times_outside_the_horizon(model, t):
    with pytest.raises(InputError, match="t: "):
        model.at(t)


@pytest.mark.parametrize(("first", "last"), [(0, 5), (5, 4), (1, T + 1), (1.0, 3)])
def test_intervals_outside_the_horizon(model, first, last):
    with pytest.raises(InputError, match="first|last"):
        model.budgets(first, last)


def with_a_trap(times, builder):
    """State 2 keeps whoever enters it at the given times; elsewhere the model communicates."""
    open_rows, trap = MODELS[0].transitions, np.array(MODELS[0].transitions)
    trap[SPACE.state_of == 2] = [0, 0, 1]
    trapped = wd.MDP(SPACE, MODELS[0].rewards, trap)
    if builder == "steps":
        jumps = sorted({times[0], times[1] + 1})
        return wd.DriftingMDP.blend([MODELS[0], trapped], wd.schedules.Steps(jumps), horizon=T)
    return wd.DriftingMDP.from_function(
        lambda t: (MODELS[0].rewards, trap if times[0] <= t <= times[1] else open_rows),
        space=SPACE,
        horizon=T,
    )


@pytest.mark.parametrize("builder", ["steps", "function"])
def test_where_a_model_does_not_communicate(builder):
    model = with_a_trap((40, 52), builder)
    (hole,) = model.disconnections()
    assert (hole.first, hole.last, hole.origin) == (40, 52, 2)
    assert hole.target in (0, 1)
    assert model.disconnections(1, 39) == []
    assert model.disconnections(45, 47)[0][:2] == (45, 47)
    with pytest.raises(AssertionError, match="does not communicate"):
        wd.testing.check_drifting_mdp(model)
    wd.testing.check_drifting_mdp(model, communicating=False)


def test_a_blend_on_its_way_through_communicates_more_than_its_ends():
    """Two models that only go round in opposite halves: each alone is not communicating."""
    space = wd.StateActions.uniform(2, 1)
    left = wd.MDP(space, [0, 0], [[1, 0], [1, 0]])
    right = wd.MDP(space, [0, 0], [[0, 1], [0, 1]])
    model = wd.DriftingMDP.blend([left, right], wd.schedules.Linear(), horizon=11)
    assert [tuple(hole[:2]) for hole in model.disconnections()] == [(1, 1), (11, 11)]


@pytest.mark.parametrize("name", BUILDERS)
def test_disconnections_against_a_look_at_every_time(name):
    """Sparse versions of the builders' models fall apart now and then; every time is tried."""
    bases = [random_mdp(SPACE, seed, density=0.15) for seed in (3, 4, 5)]
    schedules = [
        wd.schedules.Cosine(2), wd.schedules.Linear(3), wd.schedules.Burst(0.3, 0.5, 1),
        wd.schedules.Steps([7, 30, 31], order=[0, 2, 1, 0]), wd.schedules.Knots((1, 20, 50)),
    ]  # fmt: skip
    seen = set()
    for schedule in schedules:
        model = wd.DriftingMDP.blend(bases, schedule, horizon=T)
        literal = {t for t in range(1, T + 1) if not model.at(t).is_communicating()}
        found = {t for h in model.disconnections() for t in range(h.first, h.last + 1)}
        assert found == literal
        seen |= {t in literal for t in range(1, T + 1)}
    assert seen == {True, False}
    own = BUILDERS[name]()
    assert not own.disconnections()


def test_a_billion_steps_are_looked_at_in_no_time():
    model = wd.envs.make("riverswim", horizon=10**9)
    assert model.disconnections() == []


class Logistic:
    """Weights so small that their partner rounds to one."""

    def weights(self, t, horizon):
        w = 1 / (1 + np.exp(0.2 * (horizon / 2 - t)))
        return [1 - w, w]


def test_a_weight_that_rounds_away_is_not_there():
    stuck = wd.MDP(SPACE, MODELS[0].rewards, np.eye(3)[SPACE.state_of])
    model = wd.DriftingMDP.blend([stuck, MODELS[0]], Logistic(), horizon=600)
    literal = {t for t in range(1, 601) if not model.at(t).is_communicating()}
    found = {t for h in model.disconnections() for t in range(h.first, h.last + 1)}
    assert found == literal
    assert 0 < len(literal) < 600


def test_what_a_blend_keeps_does_not_grow_with_the_runs():
    model = wd.DriftingMDP.blend(MODELS[:2], wd.schedules.Cosine(1), horizon=100_000)
    for first in range(1, 50_000, 7_777):
        model.source.tables(first, first + 9_999)
    assert len(model.source._stretches) <= 1
