"""Agents that see the model: what they play, against literal computations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import windage as wd
from tests.unit.test_drift import BUILDERS, SPACE, T
from tests.unit.test_simulate import Slow, same
from windage.errors import InputError, StateError

IDS = ["oracle", "finite-horizon", "myopic"]


def make(id, model, **options):
    return wd.agents.make(id, model.space, horizon=model.horizon, problem=model, **options)


@pytest.fixture(params=BUILDERS, ids=str)
def model(request):
    return BUILDERS[request.param]()


@pytest.mark.parametrize("id", IDS)
def test_compiled_and_step_by_step_runs_are_one(model, id):
    fast = wd.run(model, make(id, model), seed=3)
    slow = wd.run(model, Slow(make(id, model)), seed=3)
    assert same(fast, slow)


@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize("cut", [1, 30])
def test_runs_can_be_split_and_agents_saved(model, id, cut):
    whole = wd.run(model, make(id, model), seed=5)
    agent = make(id, model)
    head = wd.run(model, agent, seed=5, steps=cut)
    tail = wd.run(model, wd.agents.restore(agent.state(), problem=model), seed=5)
    assert [*head.actions, *tail.actions] == whole.actions.tolist()
    assert tail.states.tolist() == whole.states[cut:].tolist()


def test_the_oracle_plays_optimal_policies(model):
    """Its policy at t has the gain of the linear program, from its own stationary law."""
    agent = make("oracle", model)
    table = agent._policies(1, T)
    for t in (1, 2, 20, 21, 45, T):
        mdp = model.at(t)
        pairs = table[t - 1]
        assert (SPACE.state_of[pairs] == np.arange(3)).all()
        rows = (
            mdp.transitions
            if isinstance(mdp.transitions, np.ndarray)
            else mdp.transitions.toarray()
        )
        system = np.vstack([rows[pairs].T - np.eye(3), np.ones(3)])
        law = np.linalg.lstsq(system, np.array([0, 0, 0, 1.0]), rcond=None)[0]
        assert law @ mdp.rewards[pairs] == pytest.approx(wd.gain_lp(mdp).primal, abs=1e-8)


def test_the_myopic_agent_takes_the_best_reward_now(model):
    run = wd.run(model, make("myopic", model), seed=2)
    for i in range(T):
        s = int(run.states[i])
        rewards = model.at(i + 1).rewards[SPACE.offsets[s] : SPACE.offsets[s + 1]]
        assert run.actions[i] == int(np.argmax(rewards))


def test_the_finite_horizon_agent_earns_the_most_there_is():
    """Against every deterministic policy of a model small enough to try them all."""
    space = wd.StateActions([2, 2])
    rng = np.random.default_rng(1)
    r, p = rng.random((3, 2, 2)), rng.dirichlet(np.ones(2), size=(3, 2, 2))
    model = wd.DriftingMDP.from_arrays(r, p, space)
    best = -1.0
    for actions in itertools.product(range(2), repeat=6):
        plan = np.reshape(actions, (3, 2))
        law, total = np.array([1.0, 0.0]), 0.0
        for t in range(3):
            total += sum(law[s] * r[t, s, plan[t, s]] for s in range(2))
            law = sum(law[s] * p[t, s, plan[t, s]] for s in range(2))
        best = max(best, total)
    agent = make("finite-horizon", model)
    assert agent._optimum.values[0] == pytest.approx(best, abs=1e-12)
    law, total = np.array([1.0, 0.0]), 0.0
    for t in range(1, 4):
        pairs = agent._policies(t, t)[0]
        mdp = model.at(t)
        total += law @ mdp.rewards[pairs]
        law = law @ mdp.transitions[pairs]
    assert total == pytest.approx(best, abs=1e-12)


def test_who_sees_more_earns_more():
    """Exact expectations: random < myopic < oracle <= finite-horizon on the river."""
    model = wd.envs.make("riverswim", horizon=4000)

    def value(id):
        table = make(id, model)._policies(1, 4000)
        law, total = np.eye(6)[0], 0.0
        for t in range(1, 4001):
            mdp, pairs = model.at(t), table[t - 1]
            total += law @ mdp.rewards[pairs]
            law = law @ mdp.transitions[pairs]
        return total

    myopic, oracle, optimum = (value(id) for id in ("myopic", "oracle", "finite-horizon"))
    assert myopic < 0.9 * oracle < oracle <= optimum
    assert optimum == pytest.approx(make("finite-horizon", model)._optimum.values[0], rel=1e-12)


@pytest.mark.parametrize("id", IDS)
def test_the_model_must_fit(id):
    model = BUILDERS["knots"]()
    with pytest.raises(InputError, match="problem: 3 is not a DriftingMDP"):
        wd.agents.make(id, model.space, horizon=T, problem=3)
    with pytest.raises(InputError, match="does not cover"):
        wd.agents.make(id, model.space, horizon=T + 1, problem=model)
    with pytest.raises(InputError, match="does not cover"):
        wd.agents.make(id, wd.StateActions([2, 2]), horizon=T, problem=model)


def test_a_saved_agent_knows_its_model():
    model, other = BUILDERS["knots"](), BUILDERS["cosine"]()
    blob = make("oracle", model).state()
    with pytest.raises(StateError, match="the model is missing"):
        wd.agents.restore(blob)
    with pytest.raises(StateError, match="this is not the model it saw"):
        wd.agents.restore(blob, problem=other)
