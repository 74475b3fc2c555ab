"""Records of a run: every column against the full record, and how long a run may be."""

from __future__ import annotations

import math

import numpy as np
import pytest

import windage as wd
from tests.runs import Slow


@pytest.fixture(scope="module")
def model() -> wd.DriftingMDP:
    return wd.envs.make("two-state-cosine", horizon=400)


def _agent(model: wd.DriftingMDP, horizon: int = 400) -> wd.agents.Agent:
    return wd.agents.make("random", model.space, horizon=horizon, seed=3)


@pytest.mark.parametrize("every", [1, 7, 399, 400])
def test_running_sums_are_those_of_all_steps(model, every):
    full = wd.run(model, _agent(model), seed=1)
    some = wd.run(model, _agent(model), seed=1, record=every)
    times = np.arange(every, 401, every)
    assert some.times.tolist() == times.tolist()
    for name in ("rewards", "mean_rewards"):
        column = getattr(full, name)
        assert getattr(some, name).tolist() == column[times - 1].tolist()
        sums = [math.fsum(column[:t]) for t in times]
        running = getattr(some, f"cumulative_{name[:-1]}")
        assert running.tolist() == pytest.approx(sums, rel=1e-14)
    assert full.mean_rewards.tolist() != full.rewards.tolist()  # else the columns could be swapped
    assert some.total_mean_reward == pytest.approx(math.fsum(full.mean_rewards), rel=1e-14)
    assert some.total_reward == full.rewards.sum()


def test_mean_rewards_are_those_of_the_model(model):
    run = wd.run(model, _agent(model), seed=1)
    for t in (1, 57, 400):
        pair = model.space.pair(int(run.states[t - 1]), int(run.actions[t - 1]))
        assert run.mean_rewards[t - 1] == pytest.approx(model.at(t).rewards[pair], abs=1e-15)


def test_an_agent_with_a_shorter_horizon_is_not_cut_short_in_silence(model):
    """Its regret would be that of another problem; steps= says that this is meant."""
    agent = _agent(model, horizon=123)
    message = "agent.horizon at t=123: the agent's horizon is 123, the problem's 400"
    with pytest.raises(wd.InputError, match=message + ".*horizon=400, or pass steps=123 to stop"):
        wd.run(model, agent, seed=1)
    assert agent.t == 1
    assert wd.run(model, agent, seed=1, steps=23).last == 23
    with pytest.raises(wd.InputError, match="would end after 100 steps"):
        wd.run(model, agent, seed=1)
    assert wd.run(model, agent, seed=1, steps=100).last == 123
    with pytest.raises(wd.HorizonReached, match="123"):
        wd.run(model, agent, seed=1)
    with pytest.raises(wd.InputError, match="pass the horizon"):
        wd.run(model, _agent(model, horizon=123), seed=1, steps=124)


def test_a_class_of_ones_own_may_call_something_else_its_horizon(model):
    class Looking(Slow):
        horizon = None

    assert wd.run(model, Looking(_agent(model)), seed=1).last == 400
    Looking.horizon = 10
    with pytest.raises(wd.InputError, match="after 10 steps. Fix: .*rename the attribute"):
        wd.run(model, Looking(_agent(model)), seed=1)


def test_a_run_ends_with_the_problem(model):
    assert wd.run(model, _agent(model, horizon=1000), seed=1).last == 400


def test_an_agent_without_episodes_has_none(model):
    run = wd.run(model, _agent(model), seed=1)
    assert len(run.episodes) == run.episodes.total == 0
    assert run.episodes.reason.tolist() == []


def test_a_world_that_fails_leaves_the_agent_free_to_decide_again(model):
    class Broken:
        space, horizon, state = model.space, 10, 0

        def reset(self, seed: int) -> int:
            return 0

        def step(self, action: int) -> tuple[float, int]:
            raise OSError("the line is down")

    agent = _agent(model)
    with pytest.raises(OSError, match="the line is down"):
        wd.run(Broken(), agent, seed=1)
    assert agent.t == 1
    assert agent.act(1) in (0, 1)  # another state: no decision is waiting
