from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

import windage as wd
from tests.models import random_mdp
from windage.errors import ModelError

SPACE = wd.StateActions([2, 1], state_names=["low", "high"])
REWARDS = [0.1, 0.2, 0.3]
ROWS = [[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]]


def test_a_model_keeps_what_it_was_given():
    mdp = wd.MDP(SPACE, REWARDS, ROWS)
    assert mdp.rewards.tolist() == REWARDS
    assert mdp.transitions.tolist() == ROWS
    assert mdp.space is SPACE


def test_models_copy_and_freeze():
    rewards, rows = np.array(REWARDS), np.array(ROWS)
    mdp = wd.MDP(SPACE, rewards, rows)
    rewards[0], rows[0] = 0.9, [0, 1]
    assert mdp.rewards[0] == 0.1
    assert mdp.transitions[0, 0] == 1.0
    for array in (mdp.rewards, mdp.transitions, *mdp.cells):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_sparse_models_are_the_same_models():
    dense, sparse = wd.MDP(SPACE, REWARDS, ROWS), wd.MDP(SPACE, REWARDS, coo_array(np.array(ROWS)))
    assert dense == sparse
    assert not isinstance(sparse.transitions, np.ndarray)
    with pytest.raises(ValueError, match="read-only"):
        sparse.transitions.data[0] = 0.5


def test_duplicate_sparse_entries_are_added_up():
    rows = coo_array(([0.5, 0.5, 1.0, 1.0], ([0, 0, 1, 2], [1, 1, 0, 0])), shape=(3, 2))
    assert wd.MDP(SPACE, REWARDS, rows).transitions.toarray()[0].tolist() == [0.0, 1.0]


def test_from_arrays_ignores_cells_outside_the_action_sets():
    r = [[0.1, 0.2], [0.3, np.nan]]
    p = [[[1, 0], [0.5, 0.5]], [[0.25, 0.75], [-9, np.inf]]]
    assert wd.MDP.from_arrays(r, p, SPACE) == wd.MDP(SPACE, REWARDS, ROWS)


def test_from_arrays_without_a_space_is_rectangular():
    mdp = wd.MDP.from_arrays([[0.5, 0.5]], [[[1.0], [1.0]]])
    assert mdp.space == wd.StateActions.uniform(1, 2)


def test_rounding_is_forgiven_and_mended():
    mdp = wd.MDP(SPACE, [0.1, 1 + 1e-12, -1e-12], [[1 + 5e-10, -5e-10], [0.3, 0.7], [0.2, 0.8]])
    assert (mdp.rewards.max(), mdp.rewards.min()) == (1.0, 0.0)
    assert mdp.transitions.min() == 0.0


def test_a_thousand_states_with_rounded_rows_are_accepted():
    space = wd.StateActions.uniform(1000, 1)
    rows = np.random.default_rng(0).random((1000, 1000))
    wd.MDP(space, np.zeros(1000), rows / rows.sum(axis=1, keepdims=True))


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        ([0.1, np.nan, 0.3], r"rewards at s=0 \('low'\), a=1: mean reward nan is not in \[0, 1\]"),
        ([0.1, 0.2, np.inf], r"s=1 \('high'\), a=0: mean reward inf"),
        ([0.1, 0.2, 1.5], r"1\.5 is not in \[0, 1\]. Fix: rescale"),
        ([-0.1, 0.2, 0.5], r"s=0 \('low'\), a=0: mean reward -0\.1"),
        ([0.1, 0.2], r"has shape \(2,\), the space has 3 pairs"),
        ([[0.1, 0.2], [0.3]], "not an array of numbers"),
        (["a", "b", "c"], "not an array of numbers"),
    ],
)
def test_impossible_rewards(rewards, message):
    with pytest.raises(ModelError, match=message):
        wd.MDP(SPACE, rewards, ROWS)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            [0.5, 0.48],
            r"transitions at s=0 \('low'\), a=1: row sums to 0\.98, not 1. Fix: .*normalize",
        ),
        ([0.5, 0.5 + 2e-9], "row sums to 1.000000002"),
        ([-0.1, 1.1], r"probability -0\.1 of going to s=0 \('low'\)"),
        ([np.nan, 1.0], "probability nan"),
        ([np.inf, 0.0], "probability inf"),
    ],
)
def test_impossible_rows(row, message, sparse):
    rows = np.array(ROWS)
    rows[1] = row
    with pytest.raises(ModelError, match=message):
        wd.MDP(SPACE, REWARDS, csr_array(rows) if sparse else rows)


def test_rows_can_be_rescaled_on_request():
    rows = [[2, 0], [1, 1], [1, 3]]
    assert wd.MDP(SPACE, REWARDS, rows, normalize=True) == wd.MDP(SPACE, REWARDS, ROWS)
    assert wd.MDP(SPACE, REWARDS, csr_array(rows), normalize=True) == wd.MDP(SPACE, REWARDS, ROWS)
    with pytest.raises(ModelError, match="row sums to 0, not 1. Fix: mend the row"):
        wd.MDP(SPACE, REWARDS, [[0, 0], [1, 1], [1, 3]], normalize=True)


@pytest.mark.parametrize(
    ("r", "p", "message"),
    [
        (np.zeros((2, 2)), np.zeros((2, 2)), "do not fit"),
        (np.zeros((2, 2)), np.zeros((2, 2, 3)), "3 next states for 2 states"),
        (np.zeros((2, 1)), np.zeros((2, 1, 2)), "do not hold"),
        (np.zeros((3, 2)), np.zeros((3, 2, 3)), "do not hold"),
    ],
)
def test_arrays_that_do_not_fit(r, p, message):
    with pytest.raises(ModelError, match=message):
        wd.MDP.from_arrays(r, p, SPACE)


def literal_reach(mdp: wd.MDP) -> np.ndarray:
    """Who reaches whom, by multiplying the graph with itself."""
    n = mdp.space.n_states
    rows = mdp.transitions if isinstance(mdp.transitions, np.ndarray) else mdp.transitions.toarray()
    reach = np.eye(n, dtype=bool)
    for pair in range(mdp.space.n_pairs):
        reach[mdp.space.state_of[pair]] |= rows[pair] > 0
    for _ in range(n):
        reach = (reach.astype(int) @ reach.astype(int)) > 0
    return reach


@pytest.mark.parametrize("seed", range(40))
def test_communication_against_a_literal_closure(seed):
    rng = np.random.default_rng(seed)
    space = wd.StateActions(rng.integers(1, 3, size=5))
    mdp = random_mdp(space, seed, density=0.12)
    reach = literal_reach(mdp)
    assert mdp.is_communicating() == reach.all()
    hole = mdp.unreachable()
    assert (hole is None) == reach.all()
    assert hole is None or not reach[hole]


def test_both_answers_occur_in_the_test_above():
    answers = set()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        space = wd.StateActions(rng.integers(1, 3, size=5))
        answers.add(random_mdp(space, seed, density=0.12).is_communicating())
    assert answers == {True, False}


def test_one_state_communicates():
    assert wd.MDP.from_arrays([[0.5]], [[[1.0]]]).is_communicating()
