"""Gymnasium's environments as problems for our agents."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

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


BOX = Box(0.0, 1.0, ())


class Notified(Corridor):
    """Observes as the environments of ns_gym do, and announces a change every third step."""

    observation_space = Dict(
        state=Discrete(4, start=5),
        env_change=Dict(P=Discrete(2)),
        delta_change=Dict(P=BOX),
        relative_time=BOX,
    )

    def observation(self, cell, changed):
        notices = {"env_change": {"P": changed}, "delta_change": {"P": 0.5 * changed}}
        return {"state": cell, "relative_time": np.float32(self.steps), **notices}

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return self.observation(super().reset(seed=seed)[0], 0), {"prob": 1}

    def step(self, action):
        cell, *rest, _ = super().step(action)
        self.steps += 1
        return self.observation(cell, int(self.steps % 3 == 2)), *rest, {"prob": 0.5}


def test_notices_of_a_change_are_information_and_no_state():
    """The run is that in the plain environment, which says nothing of changes."""
    runs = []
    for env in (Corridor(), Notified()):
        hall = wd.gym.wrap(env, horizon=20, reward_range=(-2, 0))
        agent = wd.agents.make("random", hall.space, horizon=20)
        runs.append(wd.run(hall, agent, seed=4))
    assert hall.space.n_states == 4
    assert runs[0].states.tolist() == runs[1].states.tolist()
    steps, since = [], 0  # a restart begins to count anew
    for t, (s, a) in enumerate(zip(runs[1].states, runs[1].actions, strict=False), 1):
        since += 1
        steps += [t] if since % 3 == 2 else []
        since = 0 if s + a == 3 else since
    assert hall.changes == steps
    assert len(steps) > 3
    hall.reset(0)
    assert hall.changes == []
    assert hall.info == {"prob": 1, "env_change": {"P": 0}, "delta_change": {"P": 0}} | {
        "relative_time": 0
    }
    hall.step(0)
    hall.step(0)
    assert (hall.info["prob"], hall.info["env_change"]) == (0.5, {"P": 1})


PARTS = Dict(
    key=Discrete(2),
    cell=MultiDiscrete([[2, 3]], start=[[0, 1]]),
    both=Tuple([Discrete(3, start=-1), MultiBinary(2)]),
)


class Parts(gymnasium.Env):
    """Shows all observations of `PARTS` one after another."""

    observation_space, action_space = PARTS, Discrete(1)

    def reset(self, *, seed=None, options=None):
        self.all = [
            {"key": key, "cell": np.array([[x, y]]), "both": (sign, np.array([b, c], np.int8))}
            for sign in (-1, 0, 1)
            for b in (0, 1)
            for c in (0, 1)
            for x in (0, 1)
            for y in (1, 2, 3)
            for key in (0, 1)
        ]
        assert all(one in PARTS for one in self.all)
        return self.all[0], {}

    def step(self, action):
        self.all.append(self.all.pop(0))
        return self.all[0], 0.0, False, False, {}


def test_every_combination_of_discrete_parts_is_a_state():
    """Each has one number of its own, in the order in which the last part changes fastest."""
    env = wd.gym.wrap(Parts(), horizon=200)
    assert env.space.n_states == 2 * 2 * 3 * 3 * 2 * 2 == 144
    seen = [env.reset(0), *(env.step(0)[1] for _ in range(143))]
    assert seen == list(range(144))
    assert env.step(0)[1] == 0
    names = env.space.state_names
    assert names[1] == "both[0] -1, both[1][0] 0, both[1][1] 0, cell[0][0] 0, cell[0][1] 1, key 1"
    part = wd.gym.wrap(Parts(), horizon=200, state="cell")
    assert [part.reset(0), *(part.step(0)[1] for _ in range(12))] == [
        0,
        0,
        1,
        1,
        2,
        2,
        3,
        3,
        4,
        4,
        5,
        5,
        0,
    ]
    assert set(part.info) == {"both", "key"}


def test_a_card_game_is_played():
    table = wd.gym.wrap(gymnasium.make("Blackjack-v1"), horizon=200, reward_range=(-1, 1))
    assert table.space.n_states == 32 * 11 * 2
    wd.run(table, wd.agents.make("random", table.space, horizon=200), seed=0)
    assert table.ends > 50


def test_a_part_is_binned():
    load = wd.gym.wrap(Notified(), horizon=9, state="relative_time", binner=wd.Binner([1.5, 3.5]))
    assert load.reset(0) == 0
    assert [load.step(0)[1] for _ in range(5)] == [0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ({"state": 9}, "led to .*state"),
        ({}, "it has no part 'state'"),
        (5, "it has no part 'state'"),
        ({"state": True}, "bool"),
    ],
)
def test_a_part_that_is_none_is_named(cell, said):
    odd = Odd(first=(cell, {}), spaces={"observation_space": Notified.observation_space})
    with pytest.raises(wd.InputError, match=said):
        wd.gym.wrap(odd, horizon=9).reset(0)


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
            lambda: wd.gym.wrap(Odd(spaces={"observation_space": Tuple([BOX])}), horizon=9),
            r"observation_space: the part \[0\], Box.*, is not Discrete. Fix: bin it",
        ),
        (
            lambda: wd.gym.wrap(Odd(spaces={"observation_space": MultiBinary(60)}), horizon=9),
            "states",
        ),
        (lambda: wd.gym.wrap(Corridor(), horizon=9, state="cell"), "has no named parts"),
        (lambda: wd.gym.wrap(Notified(), horizon=9, state=[]), "names no part"),
        (lambda: wd.gym.wrap(Notified(), horizon=9, state="stat"), r"did you mean 'state'\?"),
        (
            lambda: wd.gym.wrap(Notified(), horizon=9, state=["state", "relative_time"]),
            'the part relative_time, .* wrap.env, ..., state="relative_time", binner=',
        ),
        (
            lambda: wd.gym.wrap(
                Notified(), horizon=9, state=["state", "env_change"], binner=wd.Binner([1.0])
            ),
            "it bins one part, and 2 are the state",
        ),
    ],
)
def test_what_cannot_be_wrapped_is_refused(call, said):
    with pytest.raises(wd.WindageError, match=said):
        call()
