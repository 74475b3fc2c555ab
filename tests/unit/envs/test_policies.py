"""What the applied environments are for: the optimal policy changes, and one step is too short.

Second witnesses: gains by policy iteration written here and by a linear program.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

import windage as wd

SEQUENTIAL = [
    "inventory", "queue", "bidding", "ride", "epidemic", "replacement", "wireless", "assortment",
    "treatment",
]  # fmt: skip


def evaluate(rewards, kernel):
    """Gain and bias of a chain, whatever its classes: g = P g and g + h = r + P h."""
    n = len(rewards)
    move = np.eye(n) - kernel
    equations = np.block([[move, np.zeros((n, n))], [np.eye(n), move]])
    answer = np.linalg.lstsq(equations, np.concatenate([np.zeros(n), rewards]))[0]
    return answer[:n], answer[n:]


def improve(mdp, policy):
    """Policy iteration from `policy`; returns the gain and the optimal pairs."""
    actions = [np.arange(*ends) for ends in itertools.pairwise(mdp.space.offsets)]
    while True:
        gain, bias = evaluate(mdp.rewards[policy], mdp.transitions[policy])
        leads, value = mdp.transitions @ gain, mdp.rewards + mdp.transitions @ bias
        better = policy.copy()
        for s, pairs in enumerate(actions):
            best = pairs[leads[pairs] >= leads[pairs].max() - 1e-9]
            if leads[best[0]] > gain[s] + 1e-9 or value[best].max() > value[policy[s]] + 1e-9:
                better[s] = best[np.argmax(value[best])]
        if np.array_equal(better, policy):
            return gain.max(), policy
        policy = better


def myopic(mdp):
    ends = itertools.pairwise(mdp.space.offsets)
    return np.array([first + np.argmax(mdp.rewards[first:last]) for first, last in ends])


def visited(kernel):
    """The recurrent states of a chain."""
    reach = np.linalg.matrix_power((kernel > 0) + np.eye(len(kernel)), len(kernel)) > 0
    return [s for s in range(len(kernel)) if reach[reach[s], s].all()]


def lp_gain(mdp):
    flow = np.eye(mdp.space.n_states)[mdp.space.state_of] - mdp.transitions
    return -linprog(
        -mdp.rewards,
        A_eq=np.vstack([flow.T, np.ones(mdp.space.n_pairs)]),
        b_eq=np.append(np.zeros(mdp.space.n_states), 1.0),
    ).fun


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_the_optimal_policy_changes_and_the_myopic_one_loses_a_tenth(name):
    model = wd.envs.make(name, horizon=240)
    optimal, oracle, greedy, changes = None, 0.0, 0.0, []
    held = None
    for t in range(1, 241):
        mdp = model.at(t)
        gain, optimal = improve(mdp, mdp.space.offsets[:-1] if optimal is None else optimal)
        if t % 60 == 1:
            assert gain == pytest.approx(lp_gain(mdp), abs=1e-8)
        oracle += gain
        choice = myopic(mdp)
        greedy += evaluate(mdp.rewards[choice], mdp.transitions[choice])[0].max()
        if held is None:
            held = optimal
        if evaluate(mdp.rewards[held], mdp.transitions[held])[0].max() < gain - 1e-3:
            there = visited(mdp.transitions[optimal])
            assert (held[there] != optimal[there]).any()
            changes.append(t)
            held = optimal
    print(
        f"{name}: {len(changes)} changes at {changes}, myopic {greedy / oracle:.3f} of the oracle"
    )
    assert len(changes) >= 2
    assert greedy <= 0.9 * oracle


class Table:
    """Plays `policy(t)`, a pair for each state."""

    def __init__(self, space, policy):
        self.space, self.policy, self.t = space, policy, 1

    def act(self, s):
        return int(self.space.action_of[self.policy(self.t)[s]])

    def observe(self, s, a, reward, s_next):
        self.t += 1


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_the_myopic_policy_loses_when_played(name):
    model = wd.envs.make(name, horizon=4000)
    plans, gains = [], []
    for t in range(20, 4001, 40):
        mdp = model.at(t)
        gain, plan = improve(mdp, plans[-1] if plans else mdp.space.offsets[:-1])
        plans.append(plan)
        gains.append(gain)
    agents = {
        "oracle": Table(model.space, lambda t: plans[(t - 1) // 40]),
        "myopic": Table(model.space, lambda t: myopic(model.at(t))),
    }
    earned = {
        name: wd.run(model, agent, seed=3).mean_rewards.sum() for name, agent in agents.items()
    }
    print(name, earned, 40 * sum(gains))
    assert earned["myopic"] <= 0.9 * earned["oracle"]
    assert earned["oracle"] == pytest.approx(40 * sum(gains), rel=0.05)


def test_the_best_arm_changes():
    model = wd.envs.make("bandit", horizon=240)
    best = np.array([np.argmax(model.at(t).rewards) for t in range(1, 241)])
    assert np.count_nonzero(np.diff(best)) == 5
    breaks = wd.envs.make("bandit", horizon=240, shape="breaks")
    best = np.array([np.argmax(breaks.at(t).rewards) for t in range(1, 241)])
    assert (np.flatnonzero(np.diff(best)) + 2).tolist() == [73, 121]
