"""Section 2 of the paper: the protocol, the budgets, and the peril of Proposition 3."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd


def test_budgets_have_one_term_less_than_the_horizon():
    """Eq. (1)-(2): B_r and B_p sum t = 1..T-1; a change after T does not exist."""
    space = wd.StateActions([1])
    rewards = np.linspace(0, 1, 11)[:, None, None]
    model = wd.DriftingMDP.from_arrays(rewards, np.ones((11, 1, 1, 1)), space)
    assert model.budgets().reward == pytest.approx(1.0)
    assert model.budgets().reward_steps.size == 10


def test_budgets_take_the_worst_pair_not_the_sum():
    space = wd.StateActions([2])
    model = wd.DriftingMDP(space, [1, 2], [[0.0, 0.5], [0.3, 0.9]], np.ones((2, 2, 1)), horizon=2)
    assert model.budgets().reward == pytest.approx(0.4)


def test_budgets_lie_in_their_ranges():
    """0 <= B_r <= T - 1 and 0 <= B_p <= 2 (T - 1), both attained by swapping every step."""
    model = wd.envs.make("peril", tau=1, repeats=25)
    assert model.budgets().transition == 2 * (model.horizon - 1)
    assert model.budgets().reward <= model.horizon - 1


def test_the_mean_number_of_actions_is_what_the_paper_calls_a():
    """E32."""
    space = wd.StateActions([1, 2, 3, 4])
    assert space.mean_actions * space.n_states == space.n_pairs == 10


@pytest.mark.parametrize("tau", [2, 10, 100, 1000, 10_000])
def test_proposition_3_replay_is_as_constructed(tau):
    """Spec 1.12: visits, the empirical kernel, and the state after W = 4 tau steps."""
    replay = wd.envs.peril_replay(tau)
    assert replay.counts.tolist() == [tau + 1, tau - 1, tau + 1, tau - 1]
    assert replay.p_hat[0, 1] == replay.p_hat[2, 0] == 1 / (tau + 1)
    assert replay.p_hat[1].tolist() == [1, 0]  # a2 looks like a self-loop
    assert replay.p_hat[3].tolist() == [0, 1]  # and so does b2
    assert replay.states[-1] == 0
    assert replay.states.size == 4 * tau + 1


@pytest.mark.parametrize("tau", [2, 10, 50])
def test_proposition_3_replay_follows_the_drifting_model(tau):
    """The forced trajectory is possible in the environment: every move has probability one."""
    replay = wd.envs.peril_replay(tau)
    model = wd.envs.make("peril", tau=tau, repeats=1)
    assert model.horizon == 4 * tau
    for t in range(1, 4 * tau + 1):
        pair = model.space.pair(int(replay.states[t - 1]), int(replay.actions[t - 1]))
        assert model.at(t).transitions[pair, replay.states[t]] == 1.0
    assert model.budgets().transition == 6.0
    assert model.budgets().changes == 3


def test_proposition_3_rewards_follow_the_half_cycles():
    """Spec 4.2.2: state 2 pays in the first 2 tau steps of a cycle, state 1 in the last."""
    model = wd.envs.make("peril", tau=5, repeats=2)
    for t in range(1, 41):
        pays = 1 if (t - 1) % 20 < 10 else 0
        assert model.at(t).rewards.reshape(2, 2).sum(axis=1).tolist() == [2 * (1 - pays), 2 * pays]
    assert model.budgets().reward == 3


def test_the_kernels_of_proposition_3_swap_their_actions():
    model = wd.envs.make("peril", tau=3, repeats=1)
    first, second = (model.at(t).transitions.reshape(2, 2, 2) for t in (1, 4))
    assert np.array_equal(first[:, ::-1], second)
    assert model.at(1).is_communicating()
