"""Streams: one pass for all that is asked, nothing shared, nothing stale."""

from __future__ import annotations

import threading
from collections import Counter

import numpy as np
import pytest

import windage as wd
from tests.drifting import MODELS, SPACE
from windage.models import drifting, source

T = 50


def counted(horizon=T, period=2):
    asked = Counter()

    def function(t):
        asked[t] += 1
        return MODELS[t % period].rewards, MODELS[t % period].transitions

    model = wd.DriftingMDP.from_function(function, space=SPACE, horizon=horizon)
    asked.clear()
    return model, asked


QUESTIONS = {
    "budgets": lambda model: model.budgets(),
    "series": lambda model: model.budgets().reward_steps,
    "changes": lambda model: model.budgets().changes,
    "largest": lambda model: model.budgets().largest_steps,
    "windows": lambda model: model.budgets().windows(5),
    "some": lambda model: model.budgets(5, 30).changes,
}


@pytest.mark.parametrize("first", QUESTIONS)
def test_one_pass_answers_all_questions(first):
    model, asked = counted()
    QUESTIONS[first](model)
    model.budgets()
    seen = asked.total()
    for ask in QUESTIONS.values():
        ask(model)
    assert asked.total() == seen <= 2 * T  # "some" alone walks a part, once


def test_holes_come_with_the_same_pass():
    """Each distinct set of possible moves is asked for once more: here there is one."""
    model, asked = counted()
    assert model.disconnections() == []
    assert asked.total() == T + 1
    for ask in QUESTIONS.values():
        ask(model)
    model.disconnections(3, 9)
    assert asked.total() == T + 2


def test_a_walk_that_is_too_long_is_not_kept(monkeypatch):
    monkeypatch.setattr(source, "KEPT_STEPS", 20)
    monkeypatch.setattr(drifting, "KEPT_STEPS", 20)
    model, asked = counted()
    whole = model.budgets()
    assert model.source._scan.last - model.source._scan.first < 20
    assert asked.total() <= T + 3
    kept = counted()[0].budgets()
    assert (whole.reward, whole.changes) == (pytest.approx(kept.reward, abs=1e-12), kept.changes)
    assert np.array_equal(whole.transition_steps, kept.transition_steps)


def test_the_longest_walk_stays():
    model, asked = counted()
    for first, last in ((1, 10), (5, 40), (20, 30), (6, 39), (2, 3)):
        model.budgets(first, last)
    walk = model.source._scan
    assert (walk.first, walk.last) == (5, 40)
    assert asked.total() == 10 + 36 + 2


def test_what_is_kept_cannot_be_written_to():
    model, _ = counted()
    model.budgets()
    for series in (*model.source.variations(1, T), model.source._scan.moves):
        assert not series.flags.writeable


def test_threads_do_not_mix_up_their_answers():
    """Two threads take turns inside the function, so that each is asked while the other waits."""
    turns = threading.Barrier(2, timeout=20)

    def function(t):
        if threading.current_thread() is not threading.main_thread():
            turns.wait()
        return np.full(6, t / 100), MODELS[0].transitions

    model = wd.DriftingMDP.from_function(function, space=SPACE, horizon=T)
    wrong = []

    def ask(times):
        wrong.extend(t for t in times if model.at(t).rewards[0] != t / 100)

    threads = [threading.Thread(target=ask, args=(times,)) for times in ([1] * 200, [2] * 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("density", [0.15, 1.0])
def test_arrays_and_functions_find_the_same(density):
    """The vectorised pass of arrays beside the literal one of functions."""
    rng = np.random.default_rng(3)
    r, p = rng.random((T, 2, 2)), rng.dirichlet(np.ones(2), (T, 2, 2))
    p = np.where(rng.random(p.shape) < density, p, 0.0) + 1e-3 * np.eye(2)[:, None]
    p /= p.sum(axis=-1, keepdims=True)
    p[20:30], r[25:40] = p[20], r[25]
    arrays = wd.DriftingMDP.from_arrays(r, p)
    function = wd.DriftingMDP.from_function(
        lambda t: (arrays.at(t).rewards, arrays.at(t).transitions), space=arrays.space, horizon=T
    )
    one, other = arrays.budgets(), function.budgets()
    assert np.array_equal(one.reward_steps, other.reward_steps)
    assert np.array_equal(one.transition_steps, other.transition_steps)
    literal = sum(arrays.at(t) != arrays.at(t + 1) for t in range(1, T))
    assert one.changes == other.changes == literal < T - 1
    assert arrays.disconnections() == function.disconnections()
    assert (arrays.disconnections() == []) == (density == 1.0)
    times = np.arange(1, T + 1)
    assert np.array_equal(arrays.source.supports(times), function.source.supports(times))
    some = np.array([3, 8, 21, 40])
    assert len(set(arrays.source.supports(some))) == len(set(function.source.supports(some)))
