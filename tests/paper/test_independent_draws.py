"""Section 2: the world's noise does not know the agent's draws, though both have the same seed."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd
from tests.models import Weights

SPACE = wd.StateActions([2, 2])
T = 4_000
ALARM = 23.93  # chi-square with one degree of freedom exceeds it with probability 1e-6


def even(kind):
    """States and rewards like fair coins, whatever is played."""
    if kind == "one kernel":
        return wd.DriftingMDP.stationary(wd.MDP(SPACE, [0.5] * 4, [[0.5, 0.5]] * 4), horizon=T)
    ends = [wd.MDP(SPACE, [0.5] * 4, [row] * 4) for row in ([1, 0], [0, 1])]
    return wd.DriftingMDP.blend(ends, Weights(0.5, 0.5), horizon=T)


def dependence(x, y):
    """Chi-square of a table of two by two."""
    table = np.zeros((2, 2))
    np.add.at(table, (x, y), 1)
    wanted = table.sum(1, keepdims=True) * table.sum(0, keepdims=True) / table.sum()
    return float(((table - wanted) ** 2 / wanted).sum())


def agents(seed):
    """Ties in every state, drawn anew at every step; and an agent that only draws."""
    yield wd.SWUCRL2CW(SPACE, horizon=T, window=1, widening=0.1, ties="random", seed=seed)
    yield wd.agents.make("random", SPACE, horizon=T, seed=seed)


@pytest.mark.parametrize("kind", ["one kernel", "two kernels"])
def test_actions_tell_nothing_of_states_and_rewards(kind):
    """Draws with one key would make one of the tables diagonal: a chi-square of the order of T."""
    for seed in range(3):
        for agent in agents(seed):
            run = wd.run(even(kind), agent, seed=seed)
            for state in (0, 1):
                here = run.states[:-1] == state
                actions = run.actions[here]
                assert 0.3 < actions.mean() < 0.7
                for other in (run.states[1:][here], run.rewards[here].astype(int)):
                    assert dependence(actions, other) < ALARM
    assert dependence(actions, actions) > T / 4  # what shared draws look like
