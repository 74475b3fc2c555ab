"""What builders refuse: field, place, value and fix, and nothing but typed errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import windage as wd
from tests.drifting import MODELS, SPACE, T, as_arrays, knots
from windage.errors import InputError, ModelError, WindageError

R, P = MODELS[0].rewards, MODELS[0].transitions
COSINE = wd.schedules.Cosine()


def made(space=SPACE, times=(1, 5), rewards=(R, R), transitions=(P, P), horizon=9, **options):
    return wd.DriftingMDP(space, times, rewards, transitions, horizon=horizon, **options)


def blend(models=MODELS[:2], schedule=COSINE, rewards=None, horizon=9, **options):
    return wd.DriftingMDP.blend(models, schedule, rewards, horizon=horizon, **options)


def function(answer, space=SPACE, horizon=9, **options):
    return wd.DriftingMDP.from_function(answer, space=space, horizon=horizon, **options)


def arrays(r=None, p=None, space=SPACE, **options):
    whole = as_arrays(knots([1]))
    return wd.DriftingMDP.from_arrays(
        whole[0] if r is None else r, whole[1] if p is None else p, space, **options
    )


def text(values):
    return np.array(values).astype(str)


SPACES = ["x", None, [2, 1, 3], 3, wd.StateActions]
CASES = [
    *((lambda space=space: made(space), ModelError, "space: ") for space in SPACES),
    *((lambda space=space: function(lambda t: (R, P), space), ModelError, "space: ")
      for space in SPACES),
    *((lambda space=space: arrays(space=space), ModelError, "space: ")
      for space in SPACES if space is not None),
    (lambda: made(times="ab"), ModelError, "knots: "),
    (lambda: made(times=[1, [2]]), ModelError, "knots: "),
    (lambda: made(times=[1, True]), ModelError, r"knots"),
    (lambda: made(times=None), ModelError, "knots: "),
    (lambda: made(rewards=[R, R[:3]]), ModelError, "rewards: is not an array of numbers"),
    (lambda: made(rewards=[R + 1j, R]), ModelError, "rewards: .*complex128"),
    (lambda: made(rewards=text([R, R])), ModelError, "rewards: is not an array of numbers"),
    (lambda: made(rewards=None), ModelError, "rewards: "),
    (lambda: made(rewards=object()), ModelError, "rewards: "),
    (lambda: made(rewards=[R]), ModelError, "rewards: 1 entries for 2 knots"),
    (lambda: made(rewards=[R[:3]] * 2), ModelError, r"rewards at knot 0 \(t=1\): has shape \(3,\)"),
    (lambda: made(rewards=[R, R + 1]), ModelError, r"rewards at knot 1 \(t=5\), s=0, a=0"),
    (lambda: made(transitions=[P, P[:3]]), ModelError, "transitions: is not an array of numbers"),
    (lambda: made(transitions=[P + 0j, P]), ModelError, "transitions: .*complex128"),
    (lambda: made(transitions=text([P, P])), ModelError, "transitions: is not an array of numbers"),
    (lambda: made(transitions=csr_array(P)), ModelError, "transitions: is a single sparse matrix"),
    (lambda: made(transitions=[csr_array(P)]), ModelError, "transitions: 1 entries for 2 knots"),
    (lambda: made(transitions=[csr_array(P), None]), ModelError, "transitions"),
    (lambda: made(transitions=[csr_array(P), csr_array(P * 1j)]), ModelError, "transitions: "),
    (lambda: made(transitions=[csr_array(P), csr_array(0.9 * P)]), ModelError,
     r"transitions at knot 1 \(t=5\), s=0, a=0: row sums to 0\.9"),
    (lambda: made(interpolation=None), InputError, "interpolation: no such choice: None"),
    (lambda: made(interpolation=["linear"]), InputError, "interpolation: no such choice"),
    (lambda: made(noise=wd.Noise), InputError, "noise: .* is not a noise"),
    (lambda: made(noise=0.1), InputError, "noise: 0.1 is not a noise"),
    (lambda: made(noise=None), InputError, "noise: None is not a noise"),
    (lambda: made(horizon="9"), ModelError, "horizon: '9'"),
    (lambda: made(horizon=2**40), ModelError, "horizon: "),
    (lambda: blend(MODELS[0]), ModelError, r"models: MDP\(.* is not a list of models"),
    (lambda: blend(5), ModelError, "models: 5 is not a list of models"),
    (lambda: blend("ab"), ModelError, "models: 'ab' is not a list of models"),
    (lambda: blend(None), ModelError, "models: None is not a list of models"),
    (lambda: blend({0: MODELS[0]}), ModelError, "models: .* is not a list of models"),
    (lambda: blend([MODELS[0], P]), ModelError,
     r"models\[1\]: a value of type ndarray is not an MDP. Fix: pass a wd.MDP"),
    (lambda: blend([MODELS[0], wd.MDP]), ModelError, r"models\[1\]: the class MDP is not an MDP"),
    (lambda: blend(schedule=wd.schedules.Cosine), ModelError, r"schedule: Cosine is a class"),
    (lambda: blend(rewards=wd.schedules.Linear), ModelError, "reward_schedule: Linear is a class"),
    (lambda: blend(schedule=None), ModelError, "schedule: None has no method weights"),
    (lambda: blend(rewards="cosine"), ModelError, "reward_schedule: 'cosine' has no method"),
    (lambda: blend(rewards=0.5), ModelError, "reward_schedule: 0.5 has no method"),
    (lambda: wd.DriftingMDP.stationary(P, horizon=9), ModelError, "model: .* is not an MDP"),
    (lambda: wd.DriftingMDP.stationary(None, horizon=9), ModelError, "model: None is not an MDP"),
    (lambda: function(None), ModelError, "function: None cannot be called"),
    (lambda: function((R, P)), ModelError, "function: a value of type tuple cannot be called"),
    (lambda: function(lambda t: [R, P]), ModelError, "function at t=1: returned list"),
    (lambda: function(lambda t: (R, P, 1)), ModelError, "function at t=1: returned tuple"),
    (lambda: function(lambda t: (R + 1j, P)), ModelError, "rewards: .*complex128"),
    (lambda: function(lambda t: (R, "p")), ModelError, "transitions: "),
    (lambda: function(lambda t: (R, [[1], [0, 1]])), ModelError, "transitions: "),
    (lambda: function(lambda t: (R, 0.9 * P)), ModelError,
     r"transitions at t=1, s=0, a=0: row sums to 0\.9"),
    (lambda: arrays(r=[[0.5]]), ModelError, r"r and p: shapes"),
    (lambda: arrays(r=[[[0.5], [0.5, 1]]]), ModelError, "r: is not an array of numbers"),
    (lambda: arrays(p=as_arrays(knots([1]))[1] * 1j), ModelError, "p: .*complex128"),
    (lambda: arrays(r=text(as_arrays(knots([1]))[0])), ModelError, "r: is not an array of numbers"),
    (lambda: arrays(np.zeros((0, 3, 3)), np.zeros((0, 3, 3, 3))), ModelError, "r: there are no t"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "kind", "message"), CASES)
def test_builders_refuse(make, kind, message):
    with pytest.raises(kind, match=message) as caught:
        make()
    assert caught.value.field
    assert caught.value.fix


@pytest.mark.parametrize(
    "make",
    [
        lambda: made(transitions=[P, 0.9 * P]),
        lambda: made(transitions=[csr_array(P), csr_array(0.9 * P)]),
        lambda: function(lambda t: (R, 0.9 * P)),
        lambda: function(lambda t: (R, csr_array(0.9 * P))),
    ],
)
def test_nobody_is_told_to_pass_what_the_call_does_not_take(make):
    with pytest.raises(ModelError, match="row sums to 0.9") as caught:
        make()
    assert "normalize" not in str(caught.value)


def test_who_can_rescale_rows_is_told_so():
    r, p = as_arrays(knots([1]))
    with pytest.raises(ModelError, match="normalize=True"):
        wd.DriftingMDP.from_arrays(r, 0.9 * p, SPACE)
    model = wd.DriftingMDP.from_arrays(r, 0.9 * p, SPACE, normalize=True)
    assert model.at(9).transitions == pytest.approx(P, abs=1e-15)


def test_spaces_that_differ_in_names_only_are_told_apart():
    named = wd.StateActions(SPACE.counts, state_names=["a", "b", "c"])
    with pytest.raises(ModelError, match=r"models\[1\].space: .* other names .* models\[0\]"):
        blend([MODELS[0], wd.MDP(named, R, P)])


@pytest.mark.parametrize(
    ("t", "problem"),
    [
        (0, "0 is not an integer from 1 to 60"),
        (T + 1, "61 is not an integer from 1 to 60"),
        (-1, "-1 is not an integer from 1 to 60"),
        (1.5, "1.5 (float) is not an integer"),
        (1.0, "1.0 (float) is not an integer"),
        (True, "True is a boolean"),
        (np.True_, "np.True_ is a boolean"),
        (None, "None (NoneType) is not an integer"),
        ("1", "'1' (str) is not an integer"),
        ([1], "[1] (list) is not an integer"),
        (10**30, f"{10**30} is not an integer from 1 to 60"),
    ],
)
def test_times_that_are_none(t, problem):
    model = knots([1, 5])
    for field, ask in (
        ("t", model.at),
        ("first", model.budgets),
        ("first", model.disconnections),
        ("last", lambda t: model.budgets(1, t)),
        ("last", lambda t: model.disconnections(1, t)),
    ):
        if t is None and field == "last":
            continue  # the end of the horizon
        with pytest.raises(InputError) as caught:
            ask(t)
        assert (caught.value.field, caught.value.problem[: len(problem)]) == (field, problem)
        assert caught.value.fix


def test_integers_of_numpy_are_times():
    model = knots([1, 5])
    assert model.at(np.int32(4)) == model.at(4)
    assert model.budgets(np.int64(2), np.uint8(5)).reward == model.budgets(2, 5).reward


def test_an_interval_that_ends_before_it_starts():
    with pytest.raises(InputError, match=r"last: 4 is before first = 5. Fix: pass a later time"):
        knots([1]).budgets(5, 4)


def test_a_refusal_changes_nothing():
    model = knots([1, 5])
    before = repr(model.budgets())
    for ask in (
        lambda: model.at(0),
        lambda: model.budgets(9, 2),
        lambda: setattr(model, "name", 3),
    ):
        with pytest.raises(WindageError):
            ask()
    assert repr(model.budgets()) == before
    assert model.name is None


def test_what_a_function_raises_is_told_with_its_time_and_its_cause():
    def answer(t):
        return ([0.5], [[1.0]]) if t < 3 else {}["price"]

    model = wd.DriftingMDP.from_function(answer, space=wd.StateActions([1]), horizon=5)
    with pytest.raises(ModelError, match="function at t=3: raised KeyError: 'price'") as caught:
        model.budgets()
    assert isinstance(caught.value.__cause__, KeyError)
