"""Columns of steps that kernels would follow out of their arrays: refused, and nothing changed."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd
from windage.agents.base import Steps
from windage.errors import HorizonReached, InputError, WindageError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of horizons this short

SPACE = wd.StateActions([2, 1, 3])
LIVED = {
    "states": np.array([0, 1, 2, 0]),
    "learned": np.array([True, True, False, True]),
    "pairs": np.array([1, 2, 4, 0]),
    "rewards": np.array([0.5, 0.0, 0.0, 1.0]),
    "afters": np.array([1, 2, 0, 0]),
}
IDS = ("ucrl2", "swucrl2-cw", "psrl", "multi-scale", "diff-q", "borl")


def fresh(id_, horizon=50):
    budgets = wd.envs.make("riverswim", horizon=horizon).budgets()
    return wd.agents.make(id_, SPACE, horizon=horizon, budgets=budgets)


@pytest.mark.parametrize("id_", IDS)
def test_what_was_not_learned_is_not_looked_at(id_):
    one, other = fresh(id_), fresh(id_)
    odd = {name: LIVED[name].copy() for name in ("pairs", "rewards", "afters")}
    odd["pairs"][2], odd["rewards"][2], odd["afters"][2] = 10**9, np.nan, -7
    one.replay(Steps(**LIVED))
    other.replay(Steps(**LIVED | odd))
    assert one.state() == other.state()
    assert one.t == 4


WRONG = [
    ("states", [0, 1, 3, 0], r"states\[2\]: 3 is out of range"),
    ("states", [0, -1, 2, 0], r"states\[1\]: -1 is out of range"),
    ("states", [0, 1, 2], "learned: has type bool and shape"),
    ("states", [0.0, 1.0, 2.0, 0.0], "states: holds float64 values"),
    ("learned", [1, 1, 0, 1], "learned: has type int64"),
    ("pairs", [1, 10**9, 4, 0], r"pairs\[1\]: 1000000000 is out of range"),
    ("pairs", [1, -1, 4, 0], r"pairs\[1\]: -1 is out of range"),
    ("pairs", [1, 3, 4, 0], r"pairs\[1\]: s=2, a=0 is no pair of state 1"),
    ("pairs", [1, 2, 4], r"pairs: has shape \(3,\)"),
    ("afters", [1, 3, 0, 0], r"afters\[1\]: 3 is out of range"),
    ("afters", [[1], [2], [0], [0]], r"afters: has shape \(4, 1\)"),
    ("rewards", [0.5, np.nan, 0.0, 1.0], "rewards at step 2: nan is not allowed"),
    ("rewards", [0.5, 0.0], r"rewards: has shape \(2,\)"),
]


@pytest.mark.parametrize(("field", "column", "message"), WRONG)
@pytest.mark.parametrize("id_", IDS)
def test_columns_that_cannot_be(id_, field, column, message):
    agent = fresh(id_)
    before = agent.state()
    with pytest.raises(InputError, match=message):
        agent.replay(Steps(**LIVED | {field: np.array(column)}))
    assert agent.state() == before


@pytest.mark.parametrize("id_", IDS)
def test_more_steps_than_the_horizon_has(id_):
    agent = fresh(id_, horizon=2)
    with pytest.raises(HorizonReached, match="3 steps from t = 1 on do not end by T = 2"):
        agent.replay(Steps(**LIVED))


@pytest.mark.parametrize("id_", ["ucrl2", "swucrl2-cw", "psrl"])
def test_samples_of_the_past_that_cannot_be(id_):
    past = {name: LIVED[name] for name in ("pairs", "rewards", "afters")}
    for name, value in (("pairs", 6), ("pairs", -1), ("afters", 3), ("rewards", np.inf)):
        column = past[name].copy()
        column[1] = value
        agent = fresh(id_)
        before = agent.state()
        with pytest.raises(WindageError, match=name):
            agent.preload_all(**past | {name: column})
        with pytest.raises(WindageError, match="afters|rewards"):
            agent.preload_all(past["pairs"], past["rewards"], past["afters"][:2])
        assert agent.state() == before
