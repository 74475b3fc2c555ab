"""Schedules of the user's own: what they may return, how they are asked, how a mistake is named."""

from __future__ import annotations

import math

import numpy as np
import pytest

import windage as wd
from tests.models import Weights, literal_budgets, random_mdp
from windage.errors import ModelError
from windage.schedules import Cosine, Custom, as_schedule, to_spec


class Own:
    """Answers with `answer(t, T)` and counts how often it was asked."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    def weights(self, t, horizon):
        self.asked.append(t)
        return self.answer(t, horizon)


class Many:
    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    def weights_many(self, times, horizon):
        self.asked.append(times.tolist())
        return self.answer(times, horizon)


def test_own_schedules_work():
    schedule = as_schedule(Weights(0.2, 0.5, 0.3), 10)
    assert schedule.weights(4, 10).tolist() == [0.2, 0.5, 0.3]
    assert schedule.weights([4, 5], 10).tolist() == [[0.2, 0.5, 0.3]] * 2
    assert schedule.stops(10) is None
    assert schedule.variation(10) == 0
    assert as_schedule(schedule, 10) is schedule
    with pytest.raises(ModelError, match="cannot be written to a file"):
        to_spec(schedule)


@pytest.mark.parametrize("excess", [9e-10, -9e-10])
def test_rounding_is_forgiven_and_scaled_away(excess):
    weights = as_schedule(Weights(0.25, 0.75 + excess), 10).weights(3, 10)
    assert weights.sum() == pytest.approx(1, abs=1e-15)
    assert weights[0] == pytest.approx(0.25 / (1 + excess), abs=1e-15)


@pytest.mark.parametrize("excess", [1.1e-9, -1.1e-9, 1e-3])
def test_more_than_rounding_is_not(excess):
    with pytest.raises(
        ModelError, match=r"schedule\.weights at t=1: .* not a point of the simplex"
    ):
        as_schedule(Weights(0.25, 0.75 + excess), 10)


BAD = {
    "sum": [0.5, 0.4],
    "negative": [1.5, -0.5],
    "a little negative": [1 + 1e-12, -1e-12],
    "nan": [math.nan, 1.0],
    "infinite": [math.inf, 0.0],
    "both infinities": [math.inf, -math.inf],
    "longer": [0.5, 0.25, 0.25],
    "shorter": [1.0],
    "empty": [],
    "nested": [[0.5, 0.5]],
    "ragged": [[0.5], 0.5],
    "scalar": 1.0,
    "nothing": None,
    "strings": ["0.5", "0.5"],
    "a string": "ab",
    "complex": [0.5 + 0j, 0.5],
    "huge": [10**400, 0],
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_the_time_of_a_bad_answer_is_named(bad):
    own = Own(lambda t, T: bad if t == 7 else [0.5, 0.5])
    schedule = as_schedule(own, 10)
    for ask in (lambda: schedule.weights(7, 10), lambda: schedule.variation(10)):
        with pytest.raises(ModelError, match=r"^schedule\.weights at t=7: ") as error:
            ask()
        assert "sum to 1" in error.value.fix
    assert schedule.weights([6, 8], 10).tolist() == [[0.5, 0.5]] * 2


@pytest.mark.parametrize("bad", [b for n, b in BAD.items() if n not in ("longer", "shorter")])
def test_the_first_answer_is_checked_at_once(bad):
    with pytest.raises(ModelError, match=r"^schedule\.weights at t=1: "):
        as_schedule(Own(lambda t, T: bad), 10)


@pytest.mark.parametrize("models", [2, 3, 9, 20])
def test_the_heaviest_model_is_last(models):
    """A draw falls back on the last model in play, which must not have weight zero."""
    rng = np.random.default_rng(models)
    rows = rng.dirichlet(np.full(models, 0.3), size=50)
    rows[3] = np.eye(models)[0]
    schedule = as_schedule(Own(lambda t, T: rows[t - 1]), 50)
    order, weight = schedule.active(np.arange(1, 51), 50)
    for t in range(50):
        row = rows[t] / rows[t].sum()
        assert sorted(order[t]) == list(range(models))
        assert weight[t].tolist() == [row[k] for k in order[t]]
        assert weight[t].tolist() == sorted(row)
        assert weight[t, -1] > 0
    tie = as_schedule(Weights(0.25, 0.5, 0.25), 5).active(np.array([2]), 5)[0]
    assert tie.tolist() == [[0, 2, 1]]


def test_an_array_that_is_handed_out_again_and_again():
    buffer = np.zeros(2)

    def answer(t, T):
        buffer[:] = [1 - t / T, t / T]
        return buffer

    found = as_schedule(Own(answer), 8).weights(range(1, 9), 8)
    assert found[:, 1].tolist() == [t / 8 for t in range(1, 9)]


@pytest.mark.parametrize("models", [2, 3, 9, 20])
def test_many_times_at_once_are_the_same_as_one_by_one(models):
    rng = np.random.default_rng(models)
    rows = rng.dirichlet(np.ones(models), size=100) * (1 + 1e-10)
    one, many = (
        as_schedule(Own(lambda t, T: rows[t - 1].tolist()), 100),
        as_schedule(Many(lambda t, T: rows[t - 1]), 100),
    )
    times = np.arange(1, 101)
    for mine, theirs in zip(one.active(times, 100), many.active(times, 100), strict=True):
        assert mine.tobytes() == theirs.tobytes()
    for t in (1, 50, 100):
        assert one.weights(t, 100).tobytes() == many.weights([t, 3], 100)[0].tobytes()


def test_who_can_answer_for_many_times_is_asked_once():
    class Both(Many):
        def weights(self, t, horizon):
            raise AssertionError("asked for a single time")

    own = Both(lambda t, T: np.stack([1 - t / T, t / T], axis=1))
    schedule = as_schedule(own, 1000)
    own.asked.clear()
    schedule.weights(range(1, 1001), 1000)
    assert own.asked == [list(range(1, 1001))]


def test_times_handed_out_are_the_users_to_change():
    def answer(times, T):
        times *= 0
        return np.tile([0.5, 0.5], (times.size, 1))

    times = np.arange(1, 6)
    as_schedule(Many(answer), 5).active(times, 5)
    assert times.tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda t, T: np.ones((2, t.size)) / 2, r"returned shape \(2, 3\) for 3 times, 2 models"),
        (lambda t, T: [0.5, 0.5], "returned no table of numbers"),
        (lambda t, T: np.full((t.size, 4), 0.25), r"returned shape \(3, 4\)"),
        (lambda t, T: None, "returned no table"),
        (lambda t, T: [["a", "b"]] * t.size, "returned no table"),
        (lambda t, T: [[0.5, 0.5], [1.0]], "returned no table"),
        (lambda t, T: np.tile([0.5, 0.5], (t.size + 1, 1)), r"returned shape \(4, 2\) for 3 times"),
    ],
)
def test_tables_that_do_not_fit(answer, message):
    own = Many(lambda t, T: np.tile([0.5, 0.5], (t.size, 1)))
    schedule = as_schedule(own, 10)
    own.answer = answer
    with pytest.raises(ModelError, match=rf"^schedule\.weights_many at t=5: {message}") as error:
        schedule.weights([5, 6, 7], 10)
    assert error.value.fix


def test_the_time_of_a_bad_row_is_named():
    rows = np.tile([0.5, 0.5], (10, 1))
    rows[6] = [1.5, -0.5]
    with pytest.raises(ModelError, match=r"^schedule\.weights at t=7: \[1\.5, -0\.5\]"):
        as_schedule(Many(lambda t, T: rows[t - 1]), 10).variation(10)


class NoMethod:
    weights = 3


@pytest.mark.parametrize("wrong", [7, None, NoMethod(), [0.5, 0.5], "cosine"])
def test_what_is_no_schedule(wrong):
    with pytest.raises(ModelError, match=r"^drift: .* has no method weights\(t, T\)") as error:
        as_schedule(wrong, 10, "drift")
    assert error.value.fix


@pytest.mark.parametrize("wrong", [Cosine, Weights])
def test_a_class_is_no_schedule(wrong):
    with pytest.raises(
        ModelError, match=f"{wrong.__name__} is a class.*Fix: pass {wrong.__name__}"
    ):
        as_schedule(wrong, 10)


@pytest.mark.parametrize("kind", [Own, Many])
def test_budgets_of_own_schedules_are_those_of_the_definition(kind):
    space = wd.StateActions([2, 1])

    def answer(t, T):
        x = np.abs(np.sin(np.atleast_1d(t)))
        rows = np.stack([0.5 * x, 0.5 * x, 1 - x], axis=1)
        return rows[0] if np.ndim(t) == 0 else rows

    model = wd.DriftingMDP.blend(
        [random_mdp(space, seed) for seed in range(3)], kind(answer), horizon=40
    )
    r, p = literal_budgets(model, 1, 40)
    assert model.budgets().reward == pytest.approx(sum(r), abs=1e-12)
    assert model.budgets().transition == pytest.approx(sum(p), abs=1e-12)
    weights = answer(7, 40)
    expected = sum(w * random_mdp(space, k).rewards for k, w in enumerate(weights))
    assert model.at(7).rewards == pytest.approx(expected, abs=1e-15)
    assert isinstance(model.source.kernels.schedule, Custom)
