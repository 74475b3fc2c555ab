"""The samplers have the laws they promise: chi-square at 1e6 draws, false-alarm rate 1e-6 a test.

Each test names the broken variant it rejects and rejects it.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import windage as wd
from tests.models import Weights

N = 1_000_000
FIRST = np.array([0.5, 0.0, 0.2, 0.3, 0.0])
SECOND = np.array([0.0, 0.6, 0.25, 0.05, 0.1])


def world(weight, noise="bernoulli", reward=(0.2, 0.7), horizon=N):
    """States drawn anew every step: each row is the blend, whatever the state."""
    space = wd.StateActions.uniform(5, 2)
    models = [
        wd.MDP(space, np.full(10, r), np.tile(row, (10, 1)))
        for r, row in zip(reward, (FIRST, SECOND), strict=True)
    ]
    return wd.DriftingMDP.blend(models, Weights(1 - weight, weight), horizon=horizon, noise=noise)


@pytest.fixture(scope="module")
def run():
    model = world(0.37)
    return wd.run(model, wd.agents.make("random", model.space, horizon=N, seed=0), seed=0)


def pvalue(counts, law):
    possible = law > 0
    assert counts[~possible].sum() == 0, "an impossible state was drawn"
    return stats.chisquare(counts[possible], law[possible] * counts.sum()).pvalue


def test_blended_kernels_are_sampled_exactly(run):
    counts = np.bincount(run.states[1:], minlength=5)
    assert pvalue(counts, 0.63 * FIRST + 0.37 * SECOND) > 1e-6
    assert pvalue(counts, 0.635 * FIRST + 0.365 * SECOND) < 1e-6  # a weight off by half a percent


@pytest.mark.parametrize(("weight", "law"), [(0.0, FIRST), (1.0, SECOND)])
def test_a_weight_of_zero_is_never_drawn(weight, law):
    model = world(weight, horizon=200_000)
    run = wd.run(model, wd.agents.make("random", model.space, horizon=200_000))
    assert pvalue(np.bincount(run.states[1:], minlength=5), law) > 1e-6


def test_a_drifting_kernel_has_the_law_of_its_time():
    space = wd.StateActions.uniform(5, 1)
    models = [wd.MDP(space, np.zeros(5), np.tile(row, (5, 1))) for row in (FIRST, SECOND)]
    model = wd.DriftingMDP.blend(models, wd.schedules.Linear(), horizon=N)
    run = wd.run(model, wd.agents.make("random", space, horizon=N))
    for tenth in range(10):
        part = slice(tenth * N // 10, (tenth + 1) * N // 10)
        weight = model.source.kernels.schedule.position(run.times[part], N).mean()
        law = (1 - weight) * FIRST + weight * SECOND
        counts = np.bincount(run.states[1:][part], minlength=5)
        assert pvalue(counts, law) > 1e-6
        late = (0.98 - weight) * FIRST + (weight + 0.02) * SECOND  # two hundredths late
        assert tenth == 9 or pvalue(counts, late) < 1e-6


def test_draws_of_one_step_are_independent(run):
    """One stream for two purposes would show here: agent and world even share their seed."""
    after, before = run.states[1:], run.states[:-1]
    columns = {"reward": run.rewards, "action": run.actions, "state": after, "before": before}
    names = list(columns)
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            table = np.zeros((5, 5))
            np.add.at(table, (columns[one].astype(int), columns[other].astype(int)), 1)
            table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
            assert stats.chi2_contingency(table).pvalue > 1e-6, (one, other)
    linked = np.zeros((2, 5))  # a hundredth of the rewards copied from the state
    copied = np.where(np.arange(N) % 100 == 0, after % 2, run.rewards).astype(int)
    np.add.at(linked, (copied, after), 1)
    assert stats.chi2_contingency(linked).pvalue < 1e-6


def test_rewards_are_drawn_at_the_blended_mean(run):
    mean = 0.63 * 0.2 + 0.37 * 0.7
    assert set(run.rewards) == {0.0, 1.0}
    assert stats.binomtest(int(run.rewards.sum()), N, mean).pvalue > 1e-6
    assert stats.binomtest(int(run.rewards.sum()), N, mean + 0.004).pvalue < 1e-6


@pytest.mark.parametrize(
    ("noise", "law", "wrong"),
    [
        (wd.Noise.gaussian(0.3), stats.norm(0.4, 0.3), stats.norm(0.4, 0.31)),
        (wd.Noise.beta(4.0), stats.beta(1.6, 2.4), stats.beta(1.7, 2.3)),
        (wd.Noise.beta(0.5), stats.beta(0.2, 0.3), stats.beta(0.21, 0.29)),
    ],
    ids=["gaussian", "beta", "peaked beta"],
)
def test_continuous_rewards_have_their_law(noise, law, wrong):
    n = 100_000
    model = world(0.5, noise=noise, reward=(0.4, 0.4), horizon=n)
    rewards = wd.run(model, wd.agents.make("random", model.space, horizon=n), seed=5).rewards
    assert stats.kstest(rewards, law.cdf).pvalue > 1e-6
    assert stats.kstest(rewards, wrong.cdf).pvalue < 1e-6


def test_random_actions_are_uniform_on_ragged_sets():
    space = wd.StateActions([1, 2, 5])
    rows = np.tile(np.full(3, 1 / 3), (8, 1))
    model = wd.DriftingMDP.stationary(wd.MDP(space, np.zeros(8), rows), horizon=N)
    run = wd.run(model, wd.agents.make("random", space, horizon=N))
    for s, actions in enumerate([1, 2, 5]):
        counts = np.bincount(run.actions[run.states[:-1] == s], minlength=actions)
        assert counts.size == actions
        assert actions == 1 or stats.chisquare(counts).pvalue > 1e-6


def test_beta_rewards_of_tiny_concentration_keep_their_variance():
    """Both gammas underflow; what is left is a coin with the right mean."""
    n = 50_000
    model = world(0.5, noise=wd.Noise.beta(1e-4), reward=(0.3, 0.3), horizon=n)
    rewards = wd.run(model, wd.agents.make("random", model.space, horizon=n), seed=5).rewards
    assert abs(rewards.mean() - 0.3) < 0.012
    assert abs(rewards.var() - 0.21) < 0.006
    with pytest.raises(wd.InputError, match="spread"):
        wd.Noise("beta")
