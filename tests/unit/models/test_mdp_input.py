"""What is no model: every message says where, and what to do about it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

import windage as wd
from windage.errors import ModelError
from windage.models.mdp import check_transitions

SPACE = wd.StateActions([2, 1])
REWARDS = [0.1, 0.2, 0.3]
ROWS = [[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]]


@pytest.mark.parametrize("space", [[2, 1], 3, None, "space", np.array([2, 1]), wd.StateActions])
def test_spaces_of_a_wrong_type(space):
    with pytest.raises(ModelError, match="^space: is of type .*, not StateActions") as error:
        wd.MDP(space, REWARDS, ROWS)
    assert error.value.fix
    if space is not None:
        with pytest.raises(ModelError, match="^space: "):
            wd.MDP.from_arrays([[0.5]], [[[1.0]]], space)


NO_NUMBERS = [
    [0.1, 0.2, 0.3j],
    ["0.1", "0.2", "0.3"],
    [0.1, 0.2, None],
    [0.1, [0.2], 0.3],
    np.array(REWARDS, dtype=object),
    "rewards",
    None,
    {"r": 1},
]


@pytest.mark.parametrize("rewards", NO_NUMBERS, ids=repr)
def test_rewards_that_are_no_numbers(rewards):
    with pytest.raises(ModelError, match="^rewards: is not an array of numbers") as error:
        wd.MDP(SPACE, rewards, ROWS)
    assert error.value.fix


@pytest.mark.parametrize(
    "rows",
    [
        np.array(ROWS) + 0j,
        np.array(ROWS).astype(str),
        np.array(ROWS, dtype=object),
        [[1.0, 0.0], [0.5, 0.5], [1.0]],
        [[1.0, 0.0], [0.5, 0.5], [None, 1.0]],
        coo_array(np.array(ROWS) + 0j),
        "rows",
        None,
    ],
    ids=lambda rows: type(rows).__name__,
)
def test_rows_that_are_no_numbers(rows):
    with pytest.raises(ModelError, match="^transitions: ") as error:
        wd.MDP(SPACE, REWARDS, rows)
    assert error.value.fix


@pytest.mark.parametrize("shape", [(3, 3), (2, 2), (6,), (3, 2, 1), ()])
def test_rows_of_a_wrong_shape(shape):
    with pytest.raises(ModelError, match=r"^transitions: has shape .* needs \(3, 2\)"):
        wd.MDP(SPACE, REWARDS, np.ones(shape))
    if len(shape) == 2:
        with pytest.raises(ModelError, match=r"^transitions: has shape .* needs \(3, 2\)"):
            wd.MDP(SPACE, REWARDS, csr_array(np.ones(shape)))


@pytest.mark.parametrize("sparse", [False, True])
def test_advice_is_given_to_those_who_can_follow_it(sparse):
    rows = np.array(ROWS)
    rows[1] = [0.5, 0.48]
    given = csr_array(rows) if sparse else rows

    def fix(call):
        with pytest.raises(ModelError, match="row sums to 0.98, not 1") as error:
            call()
        return error.value.fix

    assert "normalize=True" in fix(lambda: wd.MDP(SPACE, REWARDS, given))
    assert "normalize" not in fix(lambda: check_transitions(SPACE, given))
    assert "divide it by its sum" in fix(lambda: check_transitions(SPACE, given))
    assert fix(lambda: check_transitions(SPACE, given, fix="ask Ada")) == "ask Ada"
    assert "normalize=True" in fix(lambda: check_transitions(SPACE, given, normalize=False))
    divided = check_transitions(SPACE, given / rows.sum(axis=1)[:, None])  # what the fix says
    assert np.asarray(divided.sum(axis=1)).ravel() == pytest.approx(1.0, abs=1e-15)


def test_models_of_knots_and_functions_are_not_told_to_normalize():
    rows = [[1.0, 0.0], [0.5, 0.48], [0.25, 0.75]]
    for call in (
        lambda: wd.DriftingMDP(SPACE, [1], [REWARDS], [rows], horizon=3),
        lambda: wd.DriftingMDP.from_function(lambda t: (REWARDS, rows), space=SPACE, horizon=3),
    ):
        with pytest.raises(ModelError, match="row sums to 0.98") as error:
            call()
        assert "normalize" not in error.value.fix


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1.5, -0.5], "probability -0.5 of going to s=1"),
        ([1 + 1e-8, -1e-8], "probability -1e-08 of going to s=1"),
        ([np.nan, 1.0], "probability nan"),
        ([0.5, 0.4999], "row sums to 0.9999"),
        ([1e308, 1e308], "row sums to inf"),
    ],
)
@pytest.mark.parametrize("t", [1, 40, 97])
def test_one_bad_row_among_many_times_is_found(row, message, t):
    """A row that sums to one may still be impossible: every entry of every time is looked at."""
    r, p = np.full((97, 2, 1), 0.5), np.full((97, 2, 1, 2), 0.5)
    p[t - 1, 1, 0] = row
    with (
        np.errstate(over="ignore"),
        pytest.raises(ModelError, match=f"^p at t={t}, s=1, a=0: {message}"),
    ):
        wd.DriftingMDP.from_arrays(r, p)


@pytest.mark.parametrize("reward", [-1e-8, 1 + 1e-8, np.nan, np.inf])
def test_one_bad_reward_among_many_times_is_found(reward):
    r, p = np.full((97, 2, 1), 0.5), np.full((97, 2, 1, 2), 0.5)
    r[40, 1, 0] = reward
    with pytest.raises(ModelError, match=r"^r at t=41, s=1, a=0: mean reward .* not in \[0, 1\]"):
        wd.DriftingMDP.from_arrays(r, p)


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_that_overflow_are_refused(sparse):
    rows = np.array([[1e308, 1e308], [1.0, 0.0], [1.0, 0.0]])
    with pytest.raises(ModelError, match="s=0, a=0: row sums to"):
        wd.MDP(SPACE, REWARDS, csr_array(rows) if sparse else rows, normalize=True)


@pytest.mark.parametrize("wrong", ["no", 1, None])
def test_whether_to_normalize_is_a_yes_or_no(wrong):
    r, p = np.zeros((1, 2, 2)), np.full((1, 2, 2, 2), 0.4)
    for make in (
        lambda: wd.MDP.from_arrays(r[0], p[0], normalize=wrong),
        lambda: wd.DriftingMDP.from_arrays(r, p, normalize=wrong),
    ):
        with pytest.raises(
            wd.InputError, match="^normalize: .* is no yes or no. Fix: pass True or"
        ):
            make()
