"""A simulator that is a Python function."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd

SPACE = wd.StateActions([2, 1, 3])


def walk(t, s, a, rng):
    return float(rng.random() < 0.1 * (a + 1)), int((s + 1 + (rng.random() < t / 400)) % 3)


def world(function=walk, **options):
    return wd.simulate.FunctionWorld(function, space=SPACE, horizon=200, **options)


def test_a_run_is_what_the_function_says_with_the_streams_of_its_seed():
    run = wd.run(world(), wd.agents.make("random", SPACE, horizon=200), seed=5)
    for t in range(1, 201):
        rng = wd.rng.stream(5, "world.function", t)
        reward, after = walk(t, int(run.states[t - 1]), int(run.actions[t - 1]), rng)
        assert (run.rewards[t - 1], run.states[t]) == (reward, after)
    assert "reward only" in repr(run)


def test_a_run_can_be_split_and_agents_meet_the_same_noise():
    whole = wd.run(world(), wd.agents.make("random", SPACE, horizon=200), seed=5)
    again, agent = world(), wd.agents.make("random", SPACE, horizon=200)
    parts = [wd.run(again, agent, seed=5, steps=n) for n in (70, 130)]
    assert np.array_equal(whole.rewards, np.concatenate([part.rewards for part in parts]))


def test_the_first_state_is_given_or_drawn():
    assert world(start=2).reset(0) == 2
    drawn = [world(start=lambda rng: int(rng.integers(3))).reset(seed) for seed in range(40)]
    assert set(drawn) == {0, 1, 2}
    assert drawn[7] == world(start=lambda rng: int(rng.integers(3))).reset(7)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: world(3), "3 cannot be called"),
        (lambda: world(start=3), "start: 3 is not an integer from 0 to 2"),
        (lambda: world(start=lambda rng: 0.5).reset(0), "start"),
        (lambda: world().step(0), "call reset"),
        (lambda: _stepped(lambda t, s, a, rng: 0.5), "function at t=1, s=0, a=0: returned 0.5"),
        (
            lambda: _stepped(lambda t, s, a, rng: (0.5, 3)),
            "function at t=1, s=0, a=0: next state: 3 is not",
        ),
        (
            lambda: _stepped(lambda t, s, a, rng: (np.nan, 1)),
            "function at t=1, s=0, a=0: reward: nan",
        ),
        (lambda: _stepped(walk, 5), "offers 2 action"),
    ],
)
def test_functions_that_are_no_simulators_are_refused(call, said):
    with pytest.raises(wd.WindageError, match=said):
        call()


def test_what_the_function_raises_is_told_with_its_place_and_its_cause():
    with pytest.raises(wd.InputError, match="t=1, s=0, a=1: raised KeyError: 'price'") as told:
        _stepped(lambda t, s, a, rng: {}["price"], 1)
    assert isinstance(told.value.__cause__, KeyError)


def _stepped(function, action=0):
    one = world(function)
    one.reset(0)
    try:
        one.step(action)
    finally:
        assert (one.t, one.state) == (1, 0)
