"""Gymnasium's environments as problems for our agents."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiBinary

import windage as wd

TOYS = [("FrozenLake-v1", (0, 1)), ("CliffWalking-v1", (-100, -1)), ("Taxi-v4", (-10, 20))]


class Corridor(gymnasium.Env):
    """Cells 5, 6, 7; action 3 goes right, 2 stays; the episode ends beyond the last cell."""

    observation_space = Discrete(4, start=5)
    action_space = Discrete(2, start=2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = 5
        return self.cell, {}

    def step(self, action):
        assert action in (2, 3)
        self.cell += action - 2
        return self.cell, -2.0 * (action == 3), self.cell == 8, False, {}


class Odd(Corridor):
    """Answers a step, or a reset, with whatever it was made with."""

    def __init__(self, answer=None, first=(5, {}), spaces=None):
        self.answer, self.first = answer, first
        for name, space in (spaces or {}).items():
            setattr(self, name, space)

    def reset(self, *, seed=None, options=None):
        return self.first

    def step(self, action):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(("name", "span"), TOYS)
def test_the_toy_environments_run_and_say_reward_only(name, span):
    lake = wd.gym.wrap(gymnasium.make(name), horizon=400, reward_range=span)
    run = wd.run(lake, wd.agents.make("random", lake.space, horizon=400), seed=0)
    assert run.rewards.min() >= 0
    assert run.rewards.max() <= 1
    assert "reward only" in repr(run)
    assert "reward only" in repr(lake)
    with pytest.raises(wd.InputError, match="mean rewards are not known"):
        wd.dynamic_regret(run, wd.envs.make("riverswim", horizon=400))


def test_every_step_is_the_environments_own():
    """A second witness: the environment stepped by hand, seeds and restarts included."""
    lake = wd.gym.wrap(gymnasium.make("FrozenLake-v1"), horizon=600)
    run = wd.run(lake, wd.agents.make("random", lake.space, horizon=600, seed=1), seed=9)
    env = gymnasium.make("FrozenLake-v1").unwrapped
    state, ends = env.reset(seed=9)[0], 0
    for t in range(600):
        assert run.states[t] == state
        state, reward, terminated, _, _ = env.step(int(run.actions[t]))
        assert run.rewards[t] == reward
        if terminated:
            ends += 1
            state = env.reset()[0]
    assert lake.ends == ends > 20
    assert run.final_state == state


def test_a_step_that_ends_the_episode_leads_back_to_a_first_state():
    hall = wd.gym.wrap(Corridor(), horizon=20, reward_range=(-2, 0))
    assert hall.reset(0) == 0
    assert [hall.step(1) for _ in range(4)] == [(0.0, 1), (0.0, 2), (0.0, 0), (0.0, 1)]
    assert hall.step(0) == (1.0, 1)
    assert hall.ends == 1


def test_with_next_step_the_last_state_is_visited():
    hall = wd.gym.wrap(Corridor(), horizon=20, reward_range=(-2, 2), restart="next-step")
    hall.reset(0)
    steps = [hall.step(1) for _ in range(5)]
    assert steps == [(0.0, 1), (0.0, 2), (0.0, 3), (0.5, 0), (0.0, 1)]


def test_a_time_limit_gives_way_to_the_horizon():
    lake = wd.gym.wrap(gymnasium.make("FrozenLake-v1", max_episode_steps=3), horizon=50)
    lake.reset(0)
    for _ in range(50):
        lake.step(0)  # against the wall on the left: nothing ends
    assert lake.ends <= 10
    with pytest.raises(wd.HorizonReached):
        lake.step(0)


def test_ragged_sets_survive_the_way_out_and_back_in():
    model = wd.envs.make("inventory", horizon=200)
    agents = [wd.agents.make("ucrl2", model.space, horizon=200) for _ in range(2)]
    there = wd.run(model, agents[0], seed=3)
    back = wd.run(wd.gym.wrap(wd.gym.make_env(model), horizon=200), agents[1], seed=3)
    assert np.array_equal(there.states, back.states)
    assert np.array_equal(there.rewards, back.rewards)


def test_a_run_is_continued_where_the_environment_stands():
    whole = wd.gym.wrap(gymnasium.make("FrozenLake-v1"), horizon=100)
    run = wd.run(whole, wd.agents.make("random", whole.space, horizon=100), seed=2)
    cut = wd.gym.wrap(gymnasium.make("FrozenLake-v1"), horizon=100)
    agent = wd.agents.make("random", cut.space, horizon=100)
    first, rest = (wd.run(cut, agent, seed=2, steps=n) for n in (30, 70))
    assert np.array_equal(run.states, np.concatenate([first.states[:-1], rest.states]))


def test_a_box_says_to_bin_it_and_runs_when_it_is_binned():
    with pytest.raises(wd.InputError, match="not Discrete. Fix: bin it: .*Binner"):
        wd.gym.wrap(gymnasium.make("CartPole-v1"), horizon=10)
    binner = wd.Binner.uniform([-2, -2, -0.2, -2], [2, 2, 0.2, 2], bins=[1, 3, 6, 3])
    pole = wd.gym.wrap(gymnasium.make("CartPole-v1"), horizon=300, binner=binner)
    assert pole.space.n_states == 54
    run = wd.run(pole, wd.agents.make("ucrl2", pole.space, horizon=300), seed=0)
    assert pole.ends > 2
    assert run.total_reward == 300


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((5, 0.0, False, {}), r"env.step at t=1: step\(2\) returned a tuple of 4"),
        (None, r"env.step at t=1: step\(2\) returned None"),
        ((5, 0.0, 0, False, {}), "returned terminated = 0, which is no bool"),
        ((5, 0.0, False, None, {}), "returned truncated = None, which is no bool"),
        (
            (5, float("nan"), False, False, {}),
            r"reward at t=1: step\(2\) paid nan, which is not a number",
        ),
        ((5, None, False, False, {}), "paid None, which is not a number"),
        ((5, 1.5, False, False, {}), r"paid 1.5, the declared range is \[0, 1\]"),
        ((5, np.array([0.0]), False, False, {}), "paid array"),
        ((5, "1", False, False, {}), "paid '1'"),
        ((9, 0.0, False, False, {}), r"observation at t=1: step\(2\) led to 9"),
        ((5.0, 0.0, False, False, {}), "led to 5.0"),
        ((np.array([5]), 0.0, False, False, {}), "led to array"),
        (RuntimeError("the sensor is off"), "raised RuntimeError: the sensor is off"),
    ],
)
def test_a_step_that_breaks_the_api_is_named(answer, said):
    odd = wd.gym.wrap(Odd(answer), horizon=9)
    odd.reset(0)
    with pytest.raises(wd.InputError, match=said):
        odd.step(0)
    assert (odd.t, odd.state) == (1, 0)


@pytest.mark.parametrize(
    ("first", "said"),
    [(5, r"reset\(seed=4\) returned 5"), ((4, {}), "led to 4"), (("5", {}), "led to '5'")],
)
def test_a_reset_that_breaks_the_api_is_named(first, said):
    with pytest.raises(wd.InputError, match=said):
        wd.gym.wrap(Odd(first=first), horizon=9).reset(4)


def test_numbers_in_arrays_without_dimensions_pass_as_numbers():
    odd = wd.gym.wrap(Odd((np.array(6), np.array(1.0), np.bool_(False), False, {})), horizon=9)
    odd.reset(0)
    assert odd.step(1) == (1.0, 1)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: wd.gym.wrap("FrozenLake-v1", horizon=9), "not a Gymnasium environment"),
        (lambda: wd.gym.wrap(Corridor(), horizon=0), "horizon"),
        (lambda: wd.gym.wrap(Corridor(), horizon=9, reward_range=(1, 1)), "is empty"),
        (lambda: wd.gym.wrap(Corridor(), horizon=9, reward_range=5), "not a range"),
        (lambda: wd.gym.wrap(Corridor(), horizon=9, restart="later"), "no such choice"),
        (lambda: wd.gym.wrap(Corridor(), horizon=9, binner=3), "not a Binner"),
        (lambda: wd.gym.wrap(Corridor(), horizon=9).step(0), "call reset"),
        (
            lambda: wd.gym.wrap(Odd(spaces={"action_space": Box(0, 1, (1,))}), horizon=9),
            "action_space: .* is not Discrete. Fix: choose finitely many",
        ),
        (
            lambda: wd.gym.wrap(Odd(spaces={"observation_space": MultiBinary(3)}), horizon=9),
            "observation_space: .* is not Discrete",
        ),
    ],
)
def test_what_cannot_be_wrapped_is_refused(call, said):
    with pytest.raises(wd.WindageError, match=said):
        call()
