from __future__ import annotations

import math

import numpy as np
import pytest

import windage as wd
from tests.drifting import BUILDERS, MODELS, SPACE, T
from tests.runs import Slow, same
from windage import simulate
from windage.errors import CallOrderError, HorizonReached, InputError, ModelError
from windage.simulate import Simulator


class Clock(Slow):
    """One that counts its time, so that a run can go on."""

    @property
    def t(self):
        return self.inner.t

    @property
    def last_state(self):
        return self.inner.last_state


def random_agent(model, seed=0):
    return wd.agents.make("random", model.space, horizon=model.horizon, seed=seed)


@pytest.fixture(params=BUILDERS, ids=str)
def model(request):
    return BUILDERS[request.param]()


def test_a_full_record_has_the_promised_shapes(model):
    run = wd.run(model, random_agent(model), seed=3)
    assert run.states.shape == (T + 1,)
    assert run.actions.shape == run.rewards.shape == run.mean_rewards.shape == (T,)
    assert run.rewards.dtype == np.float64
    assert run.times.tolist() == list(range(1, T + 1))
    assert run.final_state == run.states[-1]
    assert (run.first, run.last, run.steps) == (1, T, T)


def test_compiled_and_step_by_step_runs_are_one(model):
    fast = wd.run(model, random_agent(model), seed=3)
    slow = wd.run(model, Slow(random_agent(model)), seed=3)
    assert same(fast, slow)


def test_means_are_those_of_the_model_that_acts_at_t(model):
    run = wd.run(model, random_agent(model), seed=4)
    for i in range(T):
        pair = SPACE.pair(int(run.states[i]), int(run.actions[i]))
        assert run.mean_rewards[i] == pytest.approx(model.at(i + 1).rewards[pair], abs=1e-15)


@pytest.mark.parametrize("wrap", [lambda a: a, Clock])
@pytest.mark.parametrize("cut", [1, 7, 30, T - 1])
def test_a_run_split_anywhere_gives_the_same_bytes(model, wrap, cut):
    whole = wd.run(model, wrap(random_agent(model)), seed=5)
    agent = wrap(random_agent(model))
    head = wd.run(model, agent, seed=5, steps=cut)
    tail = wd.run(model, agent, seed=5)
    assert tail.first == cut + 1
    assert np.concatenate([head.states[:-1], tail.states]).tolist() == whole.states.tolist()
    for name in ("times", "actions", "rewards", "mean_rewards"):
        joined = np.concatenate([getattr(head, name), getattr(tail, name)])
        assert joined.tobytes() == getattr(whole, name).tobytes()


def test_a_run_goes_on_after_the_agent_was_saved(model):
    whole = wd.run(model, random_agent(model), seed=5)
    agent = random_agent(model)
    wd.run(model, agent, seed=5, steps=23)
    again = wd.agents.restore(agent.state())
    tail = wd.run(model, again, seed=5)
    assert tail.states.tolist() == whole.states[23:].tolist()


def test_the_same_seed_is_the_same_noise_for_every_agent():
    model = wd.DriftingMDP.stationary(
        wd.MDP(wd.StateActions.uniform(3, 2), [0.5] * 6, [[1 / 3] * 3] * 6), horizon=500
    )
    a, b = (
        wd.run(model, random_agent(model, 1), seed=9),
        wd.run(model, random_agent(model, 2), seed=9),
    )
    assert a.actions.tolist() != b.actions.tolist()
    assert a.rewards.tolist() == b.rewards.tolist()
    assert a.states.tolist() == b.states.tolist()
    c = wd.run(model, random_agent(model, 1), seed=10)
    assert c.actions.tolist() == a.actions.tolist()
    assert c.rewards.tolist() != a.rewards.tolist()


@pytest.mark.parametrize("every", [1, 7, 60, 61])
def test_sparser_records_are_the_full_one_thinned(model, every):
    full = wd.run(model, random_agent(model), seed=6)
    thin = wd.run(model, random_agent(model), seed=6, record=every)
    kept = np.arange(every, T + 1, every)
    assert thin.times.tolist() == kept.tolist()
    for name in ("actions", "rewards", "mean_rewards", "cumulative_reward"):
        assert getattr(thin, name).tolist() == getattr(full, name)[kept - 1].tolist()
    assert thin.states.tolist() == full.states[:-1][kept - 1].tolist()
    assert thin.cumulative_reward == pytest.approx(np.cumsum(full.rewards)[kept - 1])
    assert (thin.total_reward, thin.final_state) == (full.total_reward, full.final_state)


def test_thinned_records_of_split_runs_join(model):
    agent = random_agent(model)
    whole = wd.run(model, random_agent(model), seed=6, record=7)
    head, tail = (wd.run(model, agent, seed=6, record=7, steps=n) for n in (25, T - 25))
    for name in ("times", "states", "actions", "rewards"):
        joined = np.concatenate([getattr(head, name), getattr(tail, name)])
        assert joined.tolist() == getattr(whole, name).tolist()


def test_totals_are_the_sums(model):
    full = wd.run(model, random_agent(model), seed=6)
    totals = wd.run(model, random_agent(model), seed=6, record="totals")
    assert totals.total_reward == math.fsum(full.rewards)
    assert totals.total_mean_reward == math.fsum(full.mean_rewards)
    assert totals.states.size == totals.rewards.size == totals.times.size == 0
    assert "total_reward" in repr(totals)


def test_long_runs_cross_blocks_without_a_seam():
    model = wd.envs.make("two-state-cosine", horizon=100_000)
    whole = wd.run(model, random_agent(model), seed=2)
    agent = random_agent(model)
    parts = [wd.run(model, agent, seed=2, steps=n) for n in (16_384, 1, 50_000, 33_615)]
    assert np.concatenate([p.rewards for p in parts]).tobytes() == whole.rewards.tobytes()


def test_start_states():
    model = BUILDERS["knots"]()
    assert wd.run(model, random_agent(model), start_state=2).states[0] == 2
    assert wd.run(model, random_agent(model)).states[0] == 0
    for wrong in (3, -1, 1.0, True):
        with pytest.raises(InputError, match="start_state"):
            wd.run(model, random_agent(model), start_state=wrong)


def test_runs_end_at_the_horizon(model):
    agent = random_agent(model)
    wd.run(model, agent)
    with pytest.raises(HorizonReached, match=f"t = {T + 1}, the horizon is {T}"):
        wd.run(model, agent)
    with pytest.raises(InputError, match="steps: 61 steps from t = 1 on pass the horizon by 1"):
        wd.run(model, random_agent(model), steps=61)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps"),
        ({"steps": 1.5}, "steps"),
        ({"record": "some"}, "record: 'some' is no way to record"),
        ({"record": 0}, "record"),
        ({"record": True}, "record"),
        ({"seed": -1}, "seed"),
        ({"seed": None}, "seed"),
    ],
)
def test_impossible_runs(options, message):
    model = BUILDERS["knots"]()
    agent = random_agent(model)
    with pytest.raises(InputError, match=message):
        wd.run(model, agent, **options)
    assert agent.t == 1


def test_agents_for_another_space_are_refused():
    model = BUILDERS["knots"]()
    agent = wd.agents.make("random", wd.StateActions([1, 1, 1]), horizon=T)
    with pytest.raises(InputError, match="agent.space: the agent is made for"):
        wd.run(model, agent)
    with pytest.raises(InputError, match="agent: int has no method 'act'"):
        wd.run(model, 3)
    with pytest.raises(InputError, match="problem: int has no 'space'"):
        wd.run(3, agent)


def test_an_agent_that_waits_for_an_outcome_cannot_be_run():
    model = BUILDERS["knots"]()
    agent = random_agent(model)
    agent.act(0)
    with pytest.raises(CallOrderError, match="waits for the outcome"):
        wd.run(model, agent)


def test_actions_that_do_not_exist_are_caught():
    class Wrong(Slow):
        def act(self, s):
            return 7

    model = BUILDERS["knots"]()
    with pytest.raises(InputError, match="action: 7 is not .*s=0 offers 2 action"):
        wd.run(model, Wrong(random_agent(model)))


def test_records_too_large_for_the_machine_are_refused_first():
    model = wd.envs.make("riverswim", horizon=2**39)
    with pytest.raises(ModelError, match="record: would need about .* Fix: record every k-th"):
        wd.run(model, random_agent(model))


def test_progress_is_told(model):
    told = []
    wd.run(model, random_agent(model), progress=lambda done, steps: told.append((done, steps)))
    assert told[-1] == (T, T)


def test_progress_of_a_slow_agent_is_told_though_steps_are_few(model, monkeypatch):
    quick = wd.run(model, Slow(random_agent(model)), census=7)
    told = []
    monkeypatch.setattr(simulate, "_PATIENCE", -1.0)  # every step takes too long
    slow = wd.run(
        model, Slow(random_agent(model)), census=7, progress=lambda done, _: told.append(done)
    )
    assert told == list(range(1, T + 1))
    np.testing.assert_array_equal(slow.rewards, quick.rewards)
    np.testing.assert_array_equal(slow.states, quick.states)


class Coin:
    """A world of the user's own."""

    space = wd.StateActions([2, 2])
    horizon = 10

    def __init__(self):
        self.state = None

    def reset(self, seed):
        self.state = seed % 2
        return self.state

    def step(self, action):
        self.state = (self.state + action) % 2
        return 0.25, self.state


def test_worlds_of_the_users_own():
    run = wd.run(Coin(), wd.agents.make("random", Coin.space, horizon=10), seed=3)
    assert run.states[0] == 1
    assert run.total_reward == 2.5
    assert math.isnan(run.total_mean_reward)
    moves = (run.states[:-1] + run.actions) % 2
    assert moves.tolist() == run.states[1:].tolist()


def test_worlds_of_the_users_own_go_on():
    world, agent = Coin(), wd.agents.make("random", Coin.space, horizon=10)
    head, tail = wd.run(world, agent, steps=4), wd.run(world, agent)
    assert head.states[-1] == tail.states[0]
    whole = wd.run(Coin(), wd.agents.make("random", Coin.space, horizon=10))
    assert tail.states.tolist() == whole.states[4:].tolist()


@pytest.mark.parametrize("answer", [None, (0.5,), (math.nan, 0), (0.5, 9), ("x", 0)])
def test_worlds_that_break_their_promise(answer):
    class Broken(Coin):
        def step(self, action):
            return answer

    with pytest.raises(InputError, match="problem.step"):
        wd.run(Broken(), wd.agents.make("random", Coin.space, horizon=10))


def test_simulators_step_like_runs(model):
    run = wd.run(model, random_agent(model), seed=8)
    simulator = Simulator(model, seed=8)
    for i in range(T):
        reward, state = simulator.step(int(run.actions[i]))
        assert (reward, state) == (run.rewards[i], run.states[i + 1])
        assert simulator.mean_reward == run.mean_rewards[i]
    with pytest.raises(HorizonReached):
        simulator.step(0)
    assert simulator.reset(8) == 0
    assert simulator.step(int(run.actions[0])) == (run.rewards[0], run.states[1])


def test_the_kernel_that_acts_at_t_is_p_t():
    """Two deterministic kernels that swap at t = 4: the move from t = 4 on is the new one's."""
    space = wd.StateActions.uniform(2, 1)
    stay, move = ([[1, 0], [0, 1]], [[0, 1], [1, 0]])
    model = wd.DriftingMDP(
        space, [1, 4], [[0, 0]] * 2, [stay, move], horizon=6, interpolation="step"
    )
    run = wd.run(model, random_agent(model))
    assert run.states.tolist() == [0, 0, 0, 0, 1, 0, 1]


def test_declared_ranges_hold_in_compiled_runs_too():
    model = wd.DriftingMDP.stationary(MODELS[0], horizon=500, noise=wd.Noise.gaussian(1.0))
    agent = wd.agents.make("random", SPACE, horizon=500, reward_range=(0, 1))
    with pytest.raises(InputError, match=r"reward at t=\d+: .* is not in the declared range"):
        wd.run(model, agent)
    assert agent.t == 1


def test_a_subclass_with_rules_of_its_own_is_asked():
    class First(wd.agents.RandomAgent):
        def _choose(self, state):
            return 0

    model = BUILDERS["knots"]()
    assert wd.run(model, First(SPACE, horizon=T)).actions.max() == 0


def test_worlds_of_the_users_own_are_reset_and_start_where_they_start():
    agent = wd.agents.make("random", Coin.space, horizon=10)
    with pytest.raises(InputError, match="start_state: the problem starts in s=1, not in 0"):
        wd.run(Coin(), agent, seed=3, start_state=0)
    assert wd.run(Coin(), agent, seed=3, start_state=1).states[0] == 1


REMEMBERING = {
    "swucrl2-cw": {"window": 70, "widening": 0.1},
    "ucrl2": {},
    "ucrl2-restarts": {"restarts": [100, 101, 333]},
    "borl": {"block_length": 130},
    "sw-psrl": {"window": 70},
    "multi-scale": {"reward_range": (0, 1)},
    "multi-scale-guarded": {"reward_range": (0, 1)},
}


@pytest.mark.parametrize("id", REMEMBERING)
@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_census_counts_what_an_agent_played_by_hand_remembers(id, by_hand):
    model = wd.envs.make("riverswim", horizon=500)

    def made():
        return wd.agents.make(id, model.space, horizon=500, **REMEMBERING[id])

    agent, twin = made(), made()
    if by_hand:
        agent.has_loop = lambda: False
    parts = [wd.run(model, agent, seed=3, steps=n, census=40) for n in (90, 410)]
    assert [part.census.times.tolist() for part in parts] == [
        [40, 80, 90],
        [*range(120, 500, 40), 500],
    ]
    simulator, state, remembered = Simulator(model, seed=3), 0, {}
    for t in range(1, 501):
        action = twin.act(state)
        reward, after = simulator.step(action)
        twin.observe(state, action, reward, after)
        state, remembered[t] = after, twin.in_memory.tolist()
    for part in parts:
        counts = part.census.counts.tolist()
        assert counts == [remembered[t] for t in part.census.times.tolist()]
    assert sum(remembered[40]) > 0


def test_a_census_is_taken_of_those_who_can_tell():
    model = wd.envs.make("riverswim", horizon=100)
    assert wd.run(model, random_agent(model), census=10).census is None
    learner = wd.agents.make("ucrl2", model.space, horizon=100)
    assert wd.run(model, learner, steps=50).census is None
    with pytest.raises(InputError, match="census: 0 is not"):
        wd.run(model, learner, census=0)

    class Odd(wd.agents.RandomAgent):
        in_memory = (1, 2)

    with pytest.raises(InputError, match=r"Odd.in_memory at t=11: .* each of the 12 pairs"):
        wd.run(model, Odd(model.space, horizon=100), census=10)


def test_a_class_is_no_agent():
    model = wd.envs.make("riverswim", horizon=100)
    with pytest.raises(wd.InputError, match="agent: SWUCRL2CW is a class, not an agent"):
        wd.run(model, wd.SWUCRL2CW)
