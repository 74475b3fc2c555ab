"""Tabular environments as models, and drifting on a schedule with their oracle."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import windage as wd


def lakes(*rates):
    return [gymnasium.make("FrozenLake-v1", success_rate=rate) for rate in rates]


def literal(env, restart):
    """The definition, written out state by state: rewards and rows of a restarted table."""
    base = env.unwrapped
    S, A = base.observation_space.n, base.action_space.n
    r, p = np.zeros((S, A)), np.zeros((S, A, S))
    ended = {s2 for s in base.P for a in base.P[s] for _, s2, _, over in base.P[s][a] if over}
    for s in range(S):
        for a in range(A):
            if restart == "next-step" and s in ended:
                p[s, a] = base.initial_state_distrib
                continue
            for chance, after, reward, over in base.P[s][a]:
                r[s, a] += chance * reward
                if over and restart == "same-step":
                    p[s, a] += chance * np.asarray(base.initial_state_distrib)
                else:
                    p[s, a, after] += chance
    return r, p


@pytest.mark.parametrize("restart", ["same-step", "next-step"])
def test_the_model_of_a_lake_is_its_table_restarted(restart):
    (env,) = lakes(0.6)
    model = wd.gym.tabular(env, restart=restart)
    r, p = literal(env, restart)
    assert np.allclose(model.rewards, r.ravel(), atol=1e-15)
    assert np.allclose(model.transitions, p.reshape(64, 16), atol=1e-15)


@pytest.mark.parametrize("restart", ["same-step", "next-step"])
def test_its_gain_is_that_of_the_best_episode_per_step(restart):
    """Renewal reward: the gain g is where max over policies of E[reward] - g E[length] is zero."""
    (env,) = lakes(0.6)
    episode = env.unwrapped.P
    low, high = 0.0, 1.0
    extra = 1 if restart == "next-step" else 0
    for _ in range(60):
        g, value = (low + high) / 2, np.zeros(16)
        for _ in range(4000):
            q = _bellman(episode, value, g, extra)
            if np.abs(q.max(axis=1) - value).max() < 1e-12:
                break
            value = q.max(axis=1)
        low, high = (g, high) if value[0] > 0 else (low, g)
    assert wd.gym.tabular(env, restart=restart).solve().gain == pytest.approx(low, abs=1e-7)
    assert wd.gain_lp(wd.gym.tabular(env, restart=restart)).primal == pytest.approx(low, abs=1e-7)


def _bellman(episode, value, g, extra):
    q = np.zeros((16, 4))
    for s in range(16):
        for a in range(4):
            for chance, after, reward, over in episode[s][a]:
                q[s, a] += chance * (reward - g - (g * extra if over else -value[after]))
    return q


def test_next_step_makes_a_lake_communicate():
    (env,) = lakes(0.6)
    assert not wd.gym.tabular(env).is_communicating()
    assert wd.gym.tabular(env, restart="next-step").is_communicating()


@pytest.mark.parametrize("restart", ["same-step", "next-step"])
def test_what_is_played_has_the_rows_and_rewards_of_the_model(restart):
    """Both lakes at half weight throughout: 60,000 steps against the rows of the model.

    Each of some 90 (pair, next state) cells with 200 visits and more is tested at 6 standard
    errors: a false alarm has a probability below 1e-6.
    """
    env = wd.gym.drift(lakes(1 / 3, 1.0), Half(), horizon=60_000, restart=restart)
    problem = env.problem()
    run = wd.run(problem, wd.agents.make("random", problem.space, horizon=60_000), seed=0)
    pairs = problem.space.offsets[run.states[:-1]] + run.actions
    model = env.model.at(1)
    cells = 0
    for pair in np.unique(pairs):
        here = pairs == pair
        n = here.sum()
        rows = np.bincount(run.states[1:][here], minlength=16) / n
        expected = np.asarray(model.transitions[pair])
        assert not rows[expected == 0].any()
        if n >= 200:
            error = np.sqrt(expected * (1 - expected) / n) + 1e-9
            assert (np.abs(rows - expected) <= 6 * error).all()
            mean = model.rewards[pair]
            assert abs(run.rewards[here].mean() - mean) <= 6 * np.sqrt(mean * (1 - mean) / n) + 1e-9
            cells += (expected > 0).sum()
    assert cells > 80
    assert np.allclose(run.mean_rewards, model.rewards[pairs], atol=1e-15)


class Half:
    def weights(self, t, T):
        return [0.5, 0.5]


def test_the_regret_of_a_drifting_lake_is_that_of_its_model():
    env = wd.gym.drift(lakes(0.4, 0.9), wd.schedules.Cosine(cycles=2), horizon=3000)
    problem = env.problem()
    run = wd.run(problem, wd.agents.make("random", problem.space, horizon=3000), seed=0)
    assert "reward only" not in repr(run)
    regret = wd.dynamic_regret(run, env.model)
    means = [
        env.model.at(t).rewards[problem.space.pair(int(run.states[t - 1]), int(run.actions[t - 1]))]
        for t in range(1, 3001)
    ]
    gains = env.model.optimal_gains().values
    assert regret.total == pytest.approx(gains.sum() - sum(means), abs=1e-6)
    assert env.model.budgets().transition == pytest.approx(2 * 2 * 1.0, abs=1e-3)


def test_the_slip_changes_with_the_clock_and_not_with_the_episode():
    env = wd.gym.drift(lakes(1.0, 1 / 3), wd.schedules.Steps([1001]), horizon=2000)
    env.reset(seed=0)
    slips = [0, 0]
    for t in range(2000):
        before = env.unwrapped.s
        state, _, terminated, truncated, _ = env.step(1)  # down
        slips[t >= 1000] += before < 12 and state != before + 4
        assert truncated == (t == 1999)
        if terminated:
            env.reset()
    assert slips[0] == 0
    assert slips[1] > 500
    with pytest.raises(wd.HorizonReached):
        env.step(1)
    env.reset(seed=0)
    assert env.t == 1


def test_a_restart_that_takes_a_step_keeps_the_clocks_together():
    lost = wd.gym.drift(
        lakes(1.0, 1 / 3), wd.schedules.Steps([401]), horizon=800, restart="next-step"
    )
    problem = lost.problem()
    run = wd.run(problem, wd.agents.make("random", problem.space, horizon=800), seed=0)
    assert problem.ends > 50
    assert lost.t in (800, 801)  # the last step may be a restart
    pairs = problem.space.offsets[run.states[:-1]] + run.actions
    for t in range(1, 801):  # a wrong clock plays moves that the model of the time does not know
        assert lost.model.at(t).transitions[pairs[t - 1], run.states[t]] > 0


def test_the_environment_is_left_as_it_was():
    envs = lakes(1.0, 1 / 3)
    before = [repr(env.unwrapped.P) for env in envs]
    env = wd.gym.drift(envs, wd.schedules.Linear(), horizon=50)
    wd.run(env.problem(), wd.agents.make("random", env.model.space, horizon=50))
    assert [repr(one.unwrapped.P) for one in envs] == before


class Table(gymnasium.Env):
    """Two states, one action; whatever table it was made with."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(1)

    def __init__(self, table=None, first=(1.0, 0.0)):
        if table is not None:
            self.P = table
        self.initial_state_distrib = first


FINE = {0: {0: [(1.0, 1, 0.0, False)]}, 1: {0: [(1.0, 0, 1.0, False)]}}
BOTH_WAYS = {
    0: {0: [(0.5, 1, 0.0, False), (0.5, 1, 0.0, True)]},
    1: {0: [(1.0, 0, 1.0, False)]},
}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: wd.gym.tabular(Table()), "does not tell its transitions"),
        (lambda: wd.gym.tabular(Table({0: {}})), "is no table of 2 states and 1 actions"),
        (lambda: wd.gym.tabular(Table(FINE | {1: {0: [(0.9, 0, 0.0, False)]}})), "sum to 0.9"),
        (lambda: wd.gym.tabular(Table(FINE | {1: {0: [(1.0, 2, 0.0, False)]}})), r"P\[1\]\[0\]"),
        (lambda: wd.gym.tabular(Table(FINE | {1: {0: [(1.0, 0, 2.0, False)]}})), "pays 2"),
        (lambda: wd.gym.tabular(Table(FINE | {1: {0: [(1.0, 0)]}})), "is no .probability"),
        (lambda: wd.gym.tabular(Table(FINE, first=None)), "initial_state_distrib"),
        (lambda: wd.gym.tabular(Table(FINE, first=(0.5, 0.4))), "no distribution over 2 states"),
        (lambda: wd.gym.tabular(Table(BOTH_WAYS), restart="next-step"), "does not end, another"),
        (lambda: wd.gym.tabular(gymnasium.make("CartPole-v1")), "not Discrete"),
        (lambda: wd.gym.drift([], wd.schedules.Linear(), horizon=9), "not a list of environments"),
        (lambda: wd.gym.drift(["a"], wd.schedules.Linear(), horizon=9), r"envs\[0\]"),
        (
            lambda: wd.gym.drift(
                [*lakes(0.5), gymnasium.make("FrozenLake8x8-v1")],
                wd.schedules.Linear(),
                horizon=9,
            ),
            "space",
        ),
        (lambda: wd.gym.drift(lakes(0.5), wd.schedules.Linear(), horizon=9), "speaks of 2 models"),
    ],
)
def test_tables_that_are_none_are_refused(call, said):
    with pytest.raises(wd.WindageError, match=said):
        call()
