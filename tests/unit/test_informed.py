"""Agents that see the model: what they play, against literal computations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import windage as wd
from tests.drifting import BUILDERS, SPACE, T
from tests.runs import Slow, same
from windage.agents import baselines
from windage.errors import InputError, StateError
from windage.oracle import gain

IDS = ["oracle", "finite-horizon", "myopic"]


def make(id, model, **options):
    return wd.agents.make(id, model.space, horizon=model.horizon, problem=model, **options)


def whole_table(agent):
    """What the agent plays at every t, one row a time."""
    segments = [agent._segment(t) for t in range(1, agent.horizon + 1)]
    return np.stack([table[t - first] for t, (first, table) in enumerate(segments, 1)])


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


def tied_bandit(horizon, change):
    """Arm 1 pays more, then both pay the same: what is played then is up to the agent."""
    return wd.DriftingMDP(
        wd.StateActions([2]), [1, change], [[0.3, 0.7], [0.5, 0.5]], np.ones((2, 2, 1)),
        horizon=horizon, interpolation="step",
    )  # fmt: skip


@pytest.mark.parametrize("cut", [1, 100, 101, 255, 256, 257, 400])
def test_ties_are_broken_by_the_time_alone(cut):
    """Where a run was split must not show, nor that it was taken up again."""
    model = tied_bandit(600, 101)
    whole = wd.run(model, make("oracle", model), seed=5)
    agent = make("oracle", model)
    head = wd.run(model, agent, seed=5, steps=cut)
    tail = wd.run(model, wd.agents.restore(agent.state(), problem=model), seed=5)
    assert [*head.actions, *tail.actions] == whole.actions.tolist()
    assert whole.actions[:100].tolist() == [1] * 100


def test_long_runs_with_ties_are_one_compiled_or_not():
    model = tied_bandit(20_000, 5001)
    fast = wd.run(model, make("oracle", model), seed=3)
    assert same(fast, wd.run(model, Slow(make("oracle", model)), seed=3))


def test_the_policy_of_the_time_before_is_the_start_of_the_next(monkeypatch):
    """Of equal policies the one in use is kept, so that nothing changes without need."""
    model = tied_bandit(200, 101)
    assert whole_table(make("oracle", model)).ravel().tolist() == [1] * 200
    monkeypatch.setattr(baselines, "_CELLS", 1)  # one model a piece
    assert whole_table(make("oracle", model)).ravel().tolist() == [1] * 200


@pytest.mark.parametrize("id", ["oracle", "myopic"])
def test_rewards_alone_may_drift(id):
    """A bandit: the kernel never changes, the best arm does, at every crossing of the means."""
    means = np.array([0.2, 0.8, 0.3]), np.array([0.9, 0.1, 0.4])
    ends = [wd.MDP(wd.StateActions([3]), r, np.ones((3, 1))) for r in means]
    model = wd.DriftingMDP.blend(ends, wd.schedules.Linear(), horizon=1000)
    best = [int(np.argmax(model.at(t).rewards)) for t in range(1, 1001)]
    assert sorted(set(best)) == [0, 1]
    assert whole_table(make(id, model)).ravel().tolist() == best


def test_kernels_are_held_a_few_at_a_time(monkeypatch):
    """A stretch of large models does not fit; its pieces go on from one another."""
    model = BUILDERS["knots"]()
    expected = whole_table(make("oracle", model))
    solve_many, held = gain.solve_many, []

    def counted(space, rewards, transitions, **options):
        held.append(len(transitions))
        return solve_many(space, rewards, transitions, **options)

    monkeypatch.setattr(gain, "solve_many", counted)
    monkeypatch.setattr(baselines, "_CELLS", 5 * SPACE.n_pairs * SPACE.n_states)
    assert whole_table(make("oracle", model)).tolist() == expected.tolist()
    assert max(held) == 5
    assert len(held) > 2


def test_a_table_of_many_states_is_short(monkeypatch):
    model = BUILDERS["knots"]()
    monkeypatch.setattr(baselines, "_TABLE", 7 * SPACE.n_states)
    agent = make("oracle", model)
    whole_table(agent)
    assert len(agent._table) <= 7
    assert same(wd.run(model, make("oracle", model)), wd.run(model, Slow(make("oracle", model))))


def test_the_myopic_agent_asks_for_rewards_only(monkeypatch):
    model = BUILDERS["cosine"]()

    def never(t):
        raise AssertionError("a kernel was built")

    monkeypatch.setattr(model.source.kernels, "at", never)
    assert len(whole_table(make("myopic", model))) == T


def test_the_oracle_plays_optimal_policies(model):
    """Its policy at t has the gain of the linear program, from its own stationary law."""
    agent = make("oracle", model)
    table = agent._policies(1, T)  # T is shorter than a stretch
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
        table = whole_table(make(id, model))
        law, total = np.eye(6)[0], 0.0
        for t in range(1, 4001):
            mdp, pairs = model.at(t), table[t - 1]
            total += law @ mdp.rewards[pairs]
            law = law @ mdp.transitions[pairs]
        return total

    myopic, oracle, optimum = (value(id) for id in ("myopic", "oracle", "finite-horizon"))
    assert myopic < 0.9 * oracle < oracle <= optimum
    assert optimum == pytest.approx(make("finite-horizon", model)._optimum.values[0], rel=1e-12)


@pytest.mark.parametrize("name", [name for name in wd.envs.names() if name != "bandit"])
def test_random_play_loses_a_tenth(name):
    """Else there is nothing to learn: uniform play in expectation, against the sum of rho*."""
    model = wd.envs.make(name, **({} if name == "peril" else {"horizon": 800}))
    space = model.space
    mean = np.zeros((space.n_states, space.n_pairs))
    mean[space.state_of, np.arange(space.n_pairs)] = 1 / space.counts[space.state_of]
    law, total = np.eye(space.n_states)[0], 0.0
    for t in range(1, model.horizon + 1):
        mdp = model.at(t)
        total += law @ mean @ mdp.rewards
        law = law @ mean @ mdp.transitions
    assert total <= 0.9 * model.optimal_gains(1e-4).sum()


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
