"""Confidence regions: what they accept, what they refuse and how, and the best row of a set."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, csr_matrix

import windage as wd
from windage.confidence.confidence import ConfidenceRegion
from windage.errors import InputError

SPACE = wd.StateActions([2, 1], state_names=["low", "high"], action_names=[["wait", "go"], ["go"]])
GOOD = {
    "reward_upper": [0.5, 1.0, 0.25],
    "p_hat": [[0.5, 0.5], [0.0, 1.0], [0.25, 0.75]],
    "radius": [0.5, 0.25, 0.0],
    "visited": [True, True, True],
    "widening": 0.1,
}


def region(**changed):
    return ConfidenceRegion(SPACE, **(GOOD | changed))


def test_a_region_keeps_what_it_was_given():
    found = region()
    assert found.space is SPACE
    assert found.reward_upper.tolist() == [0.5, 1.0, 0.25]
    assert found.p_hat.toarray().tolist() == GOOD["p_hat"]
    assert found.radius.tolist() == [0.5, 0.25, 0.0]
    assert found.visited.tolist() == [True, True, True]
    assert found.widening.tolist() == [0.1, 0.1, 0.1]
    assert found.width.tolist() == [0.6, 0.35, 0.1]
    with pytest.raises(ValueError, match="read-only"):
        found.radius[0] = 9.0
    with pytest.raises(AttributeError):
        found.radius = found.widening


def test_the_caller_keeps_his_arrays():
    given = {name: np.array(value) for name, value in GOOD.items()}
    before = {name: value.copy() for name, value in given.items()}
    found = region(**given)
    for name, value in given.items():
        assert value.flags.writeable
        assert (value == before[name]).all()
    given["radius"][0] = 9.0
    given["p_hat"][0] = 9.0
    assert found.radius[0] == 0.5
    assert found.p_hat[0, 0] == 0.5


def test_widening_is_a_number_or_one_for_each_pair():
    assert region(widening=0).width.tolist() == [0.5, 0.25, 0.0]
    assert region(widening=np.float64(0.5)).widening.tolist() == [0.5, 0.5, 0.5]
    assert region(widening=[0.0, 0.5, 1.0]).width.tolist() == [0.5, 0.75, 1.0]
    assert region(widening=7.5).width.tolist() == [2.0, 2.0, 2.0]
    default = ConfidenceRegion(SPACE, *(GOOD[name] for name in list(GOOD)[:4]))
    assert default.widening.tolist() == [0.0, 0.0, 0.0]


def test_a_pair_never_visited_has_the_whole_simplex():
    """E8: neither its row nor its radius is looked at."""
    rows = [[0.0, 0.0], [np.nan, -3.0], [0.25, 0.75]]
    found = region(p_hat=rows, visited=[False, False, True], radius=[0.0, 0.1, 0.0])
    assert found.width.tolist() == [2.0, 2.0, 0.1]
    assert found.p_hat.toarray().tolist() == [[0, 0], [0, 0], [0.25, 0.75]]
    assert found.best_row(0, np.array([0.0, 1.0])).tolist() == [0.0, 1.0]
    assert found.best_row(1, np.array([1.0, 0.0])).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("kind", [csr_array, csr_matrix, coo_array, np.array, list])
def test_rows_of_every_kind(kind):
    assert region(p_hat=kind(GOOD["p_hat"])).p_hat.toarray().tolist() == GOOD["p_hat"]


def test_entries_given_twice_and_zeros():
    rows = csr_array(
        (np.array([0.25, 0.25, 0.5, 1.0, 0.0, 0.75, 0.25]), np.array([0, 0, 1, 1, 0, 1, 0]),
         np.array([0, 3, 5, 7])), shape=(3, 2),
    )  # fmt: skip
    found = region(p_hat=rows)
    assert found.p_hat.toarray().tolist() == GOOD["p_hat"]
    assert found.p_hat.nnz == 5
    assert rows.nnz == 7


def test_rows_of_counts_over_visits_pass_at_any_size():
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 10**6, (3, 1000))
    space = wd.StateActions([1, 2] + [1] * 998)
    rows = np.zeros((space.n_pairs, 1000))
    rows[:3] = counts / counts.sum(axis=1, keepdims=True)
    visited = np.arange(space.n_pairs) < 3
    ConfidenceRegion(space, np.ones(1001), rows, np.zeros(1001), visited)


ROW_OFF = [[0.5, 0.5], [0.0, 1.0], [0.25, 0.73]]
BAD = [
    # field, value, place named, what the message says
    ("reward_upper", [0.5, 1.0], "", "shape (2,)"),
    ("reward_upper", 1.0, "", "shape ()"),
    ("reward_upper", [[0.5, 1.0, 0.5]], "", "shape (1, 3)"),
    ("reward_upper", [0.5, np.nan, 0.5], "s=0 ('low'), a=1 ('go')", "nan"),
    ("reward_upper", [0.5, 0.5, np.inf], "s=1 ('high'), a=0 ('go')", "inf"),
    ("reward_upper", ["a", "b", "c"], "", "not an array of numbers"),
    ("reward_upper", ["0.5", "0.5", "0.5"], "", "not an array of numbers"),
    ("reward_upper", [0.5, None, 0.5], "", "not an array of numbers"),
    ("reward_upper", [0.5, [0.5], 0.5], "", "not an array of numbers"),
    ("radius", [0.1, -0.1, 0.1], "s=0 ('low'), a=1 ('go')", "-0.1"),
    ("radius", [0.1, 0.1, np.nan], "s=1 ('high'), a=0 ('go')", "nan"),
    ("radius", [np.inf, 0.1, 0.1], "s=0 ('low'), a=0 ('wait')", "inf"),
    ("radius", 0.1, "", "shape ()"),
    ("radius", [0.1 + 0j] * 3, "", "not an array of numbers"),
    ("widening", -0.5, "s=0 ('low'), a=0 ('wait')", "-0.5"),
    ("widening", np.nan, "s=0 ('low'), a=0 ('wait')", "nan"),
    ("widening", [0.0, 0.0, -1e-9], "s=1 ('high'), a=0 ('go')", "-1e-09"),
    ("widening", [0.0, 0.0], "", "shape (2,)"),
    ("widening", "wide", "", "not an array of numbers"),
    ("widening", None, "", "not an array of numbers"),
    ("widening", True, "", "True holds booleans"),
    ("widening", np.False_, "", "booleans"),
    ("widening", [0.5, True, 0.5], "", "booleans"),
    ("widening", np.array([True, False, True]), "", "booleans"),
    ("radius", (False, False, False), "", "booleans"),
    ("reward_upper", [1.0, np.True_, 1.0], "", "booleans"),
    ("visited", [True, True], "", "shape (2,)"),
    ("visited", [1, 1, 0], "", "int64"),
    ("visited", [1.0, 1.0, 0.0], "", "float64"),
    ("visited", True, "", "shape ()"),
    ("visited", [[True], [True, False]], "", "object"),
    ("p_hat", [[0.5, 0.5], [0.0, 1.0]], "", "shape (2, 2)"),
    ("p_hat", [0.5, 0.5], "", "shape (2,)"),
    ("p_hat", 0.5, "", "shape ()"),
    ("p_hat", np.zeros((3, 2, 1)), "", "shape (3, 2, 1)"),
    ("p_hat", [["a", "b"]] * 3, "", "not an array of numbers"),
    ("p_hat", csr_array(np.eye(3)), "", "shape (3, 3)"),
    ("p_hat", csr_array([[0.5, 0.5], [1j, 1.0], [0.5, 0.5]]), "", "complex"),
    ("p_hat", ROW_OFF, "s=1 ('high'), a=0 ('go')", "0.98"),
    ("p_hat", csr_array(ROW_OFF), "s=1 ('high'), a=0 ('go')", "0.98"),
    ("p_hat", [[0.5, 0.5], [0.0, 0.0], [0.25, 0.75]], "s=0 ('low'), a=1 ('go')", "0.0"),
    ("p_hat", [[0.5, 0.5], [-0.5, 1.5], [1.0, 0.0]], "a=1 ('go'), next state 0", "-0.5"),
    ("p_hat", [[0.5, np.nan], [0.0, 1.0], [1.0, 0.0]], "a=0 ('wait'), next state 1", "nan"),
    ("p_hat", [[0.5, 0.5], [0.0, np.inf], [1.0, 0.0]], "a=1 ('go'), next state 1", "inf"),
]


@pytest.mark.parametrize(("field", "value", "where", "says"), BAD)
def test_bad_input_names_field_place_and_value(field, value, where, says):
    with pytest.raises(InputError) as caught:
        region(**{field: value})
    assert caught.value.field == field
    assert where in caught.value.where
    assert bool(where) == bool(caught.value.where)
    assert says in caught.value.problem
    assert caught.value.fix


def test_a_sum_is_printed_as_a_number():
    with pytest.raises(InputError) as caught:
        region(p_hat=[[1.0, 2.0], [0.0, 1.0], [0.25, 0.75]])
    assert caught.value.problem == "the row sums to 3.0"


def test_a_space_that_is_none():
    with pytest.raises(wd.ModelError, match="space"):
        ConfidenceRegion([2, 1], *(GOOD[name] for name in list(GOOD)[:4]))


def grid(states, parts):
    """All distributions in multiples of 1 / parts."""
    for cut in itertools.combinations(range(parts + states - 1), states - 1):
        ends = (-1, *cut, parts + states - 1)
        yield np.array([b - a - 1 for a, b in itertools.pairwise(ends)]) / parts


@pytest.mark.parametrize("u", [[0.0, 1.0, 2.0], [2.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
@pytest.mark.parametrize("width", [0.0, 0.25, 0.5, 1.0, 1.75, 2.0, 5.0])
def test_the_best_row_is_in_the_set_and_none_is_better(width, u):
    """Against every distribution of a grid; the set's corners are on it."""
    u = np.array(u)
    space = wd.StateActions([1, 1, 1])
    for p in ([0.25, 0.25, 0.5], [0.0, 0.125, 0.875], [1.0, 0.0, 0.0]):
        found = ConfidenceRegion(space, np.zeros(3), [p] * 3, [width] * 3, [True] * 3)
        row = found.best_row(1, u)
        assert row.min() >= 0.0
        assert row.sum() == 1.0
        assert np.abs(row - p).sum() <= width
        best = max(q @ u for q in grid(3, 8) if np.abs(q - p).sum() <= width)
        assert row @ u == best


def test_equal_values_break_ties_by_index():
    """Mass goes to the last of the best states and comes from the first of the worst."""
    space = wd.StateActions([1, 1, 1, 1])
    found = ConfidenceRegion(space, np.zeros(4), np.full((4, 4), 0.25), [0.25] * 4, [True] * 4)
    assert found.best_row(0, np.array([1.0, 0.0, 1.0, 0.0])).tolist() == [0.25, 0.125, 0.375, 0.25]
    assert found.best_row(0, np.zeros(4)).tolist() == [0.125, 0.25, 0.25, 0.375]


@pytest.mark.parametrize("box", [False, True])
@pytest.mark.parametrize(
    ("pair", "u", "message"),
    [
        (3, [0.0, 1.0], "pair: 3 is not an integer from 0 to 2"),
        (-1, [0.0, 1.0], "pair: -1 is not an integer from 0 to 2"),
        (True, [0.0, 1.0], "pair: True is a boolean"),
        (0, [0.0], r"u: has shape \(1,\)"),
        (0, [0.0, 1.0, 2.0], r"u: has shape \(3,\)"),
        (0, [0.0, np.nan], "u at state 2: nan is not allowed"),
        (0, 1.0, r"u: has shape \(\)"),
    ],
)
def test_best_rows_of_what_is_no_pair_or_no_vector(box, pair, u, message):
    made = ConfidenceRegion.box if box else ConfidenceRegion
    radius = np.full((3, 2), 0.1) if box else np.full(3, 0.1)
    found = made(SPACE, np.ones(3), np.full((3, 2), 0.5), radius, [True] * 3)
    with pytest.raises(InputError, match=message):
        found.best_row(pair, u)
    if pair == 0:
        with pytest.raises(InputError, match=message):
            found.as_plan(u)
