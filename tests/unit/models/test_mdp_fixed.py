"""A model is a value: equal by content, the same after a trip, and not to be changed."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array, lil_array

import windage as wd
from tests.models import random_mdp
from windage.models.drifting import DriftingMDP

SPACE = wd.StateActions([2, 1], state_names=["low", "high"])
REWARDS = [0.1, 0.2, 0.3]
ROWS = [[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]]
FORMATS = [np.array, csr_array, coo_array, csc_array, lil_array]


def with_duplicates_and_zeros():
    """The same rows as ROWS: an entry in two halves, a zero that is stored, states out of order."""
    values, states = [1.0, 0.0, 0.5, 0.25, 0.25, 0.75, 0.25], [0, 1, 1, 0, 0, 1, 0]
    return csr_array((np.array(values), np.array(states), np.array([0, 2, 5, 7])), shape=(3, 2))


@pytest.mark.parametrize("one", FORMATS)
@pytest.mark.parametrize("other", FORMATS)
def test_models_of_equal_content_are_equal(one, other):
    a = wd.MDP(SPACE, REWARDS, one(np.array(ROWS)))
    b = wd.MDP(SPACE, REWARDS, other(np.array(ROWS)))
    assert a == b
    assert a != "a model"


@pytest.mark.parametrize("sparse", [False, True])
def test_models_of_other_content_are_not(sparse):
    kind = csr_array if sparse else np.array
    model = wd.MDP(SPACE, REWARDS, ROWS)
    other = np.array(ROWS)
    other[2] = [0.75, 0.25]
    nearly = np.array(ROWS)
    nearly[2] += [2.0**-53, -(2.0**-53)]
    moved = [[0.0, 1.0], *ROWS[1:]]
    for rows in (other, nearly, moved):
        assert model != wd.MDP(SPACE, REWARDS, kind(rows))
    assert model != wd.MDP(SPACE, [0.1, 0.2, 0.4], kind(ROWS))
    assert model != wd.MDP(wd.StateActions([2, 1]), REWARDS, kind(ROWS))
    assert model != wd.MDP(wd.StateActions([1, 2], state_names=["low", "high"]), REWARDS, ROWS)


def test_duplicates_and_zeros_of_sparse_rows_make_no_difference():
    given = with_duplicates_and_zeros()
    before = [given.data.tolist(), given.indices.tolist(), given.indptr.tolist()]
    model = wd.MDP(SPACE, REWARDS, given)
    assert model == wd.MDP(SPACE, REWARDS, ROWS)
    assert model.transitions.nnz == 5
    assert model.cells.probabilities.tolist() == [1.0, 0.5, 0.5, 0.25, 0.75]
    assert model.cells.states.tolist() == [0, 0, 1, 0, 1]
    assert [given.data.tolist(), given.indices.tolist(), given.indptr.tolist()] == before
    assert given.data.flags.writeable
    trusted = wd.MDP.trusted(SPACE, np.array(REWARDS), with_duplicates_and_zeros())
    assert trusted == model


def test_a_stored_zero_is_no_move():
    rows = csr_array(
        (np.array([1.0, 0.0, 1.0, 1.0]), np.array([0, 1, 0, 1]), np.array([0, 2, 3, 4])),
        shape=(3, 2),
    )
    for model in (
        wd.MDP(SPACE, REWARDS, rows),
        wd.MDP.trusted(SPACE, np.array(REWARDS), rows.copy()),
    ):
        assert not model.is_communicating()
        assert model.unreachable() == (0, 1)
    rows.data[1] = 1e-300  # and what is ever so small is one
    assert wd.MDP(SPACE, REWARDS, rows).unreachable() == (1, 0)


MODELS = {
    "dense": wd.MDP(SPACE, REWARDS, ROWS),
    "sparse": wd.MDP(SPACE, REWARDS, csr_array(np.array(ROWS))),
    "trusted": wd.MDP.trusted(SPACE, np.array(REWARDS), np.array(ROWS)),
    "trusted sparse": wd.MDP.trusted(SPACE, np.array(REWARDS), csr_array(np.array(ROWS))),
    "at a time": DriftingMDP.blend(
        [random_mdp(SPACE, 0), random_mdp(SPACE, 1)], wd.schedules.Linear(), horizon=9
    ).at(4),
    "sparse at a time": DriftingMDP.blend(
        [wd.envs.riverswim_mdp(600), wd.envs.riverswim_mdp(600, up=0.5)],
        wd.schedules.Linear(),
        horizon=9,
    ).at(4),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_models_survive_a_trip(name, how):
    model = MODELS[name]
    again = how(model)
    assert again == model
    assert type(again.transitions) is type(model.transitions)
    assert not any(part.flags.writeable for part in arrays_of(again))


def arrays_of(model):
    dense = isinstance(model.transitions, np.ndarray)
    p = model.transitions
    return [model.rewards, *([p] if dense else [p.data, p.indices, p.indptr]), *model.cells]


def test_arrays_are_read_only_from_the_start():
    """Looked at before anything that may freeze them on the way."""
    for rows in (np.array(ROWS), csr_array(np.array(ROWS))):
        for model in (wd.MDP(SPACE, REWARDS, rows), wd.MDP.from_arrays([[0.5]], [[[1.0]]])):
            p = model.transitions
            parts = [p] if isinstance(p, np.ndarray) else [p.data, p.indices, p.indptr]
            assert not any(part.flags.writeable for part in [model.rewards, *parts])


@pytest.mark.parametrize("name", MODELS)
def test_no_part_of_a_model_can_be_changed(name):
    model = MODELS[name]
    for part in ("space", "rewards", "transitions", "cells", "new"):
        with pytest.raises(AttributeError, match="cannot be changed"):
            setattr(model, part, 7)
        with pytest.raises(AttributeError, match="cannot be changed"):
            delattr(model, part)
    for array in arrays_of(model):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    if not isinstance(model.transitions, np.ndarray):
        with pytest.raises(AttributeError, match="is fixed"):
            model.transitions.data = model.transitions.data * 0


def test_a_model_that_was_refused_leaves_no_trace():
    rows = np.array(ROWS)
    rows[1] = [0.5, 0.48]
    sparse = csr_array(rows)
    for given in (rows, sparse):
        with pytest.raises(wd.ModelError):
            wd.MDP(SPACE, REWARDS, given)
    assert rows[1].tolist() == [0.5, 0.48]
    assert rows.flags.writeable
    assert sparse.data.flags.writeable
