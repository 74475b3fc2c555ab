from __future__ import annotations

import copy
import itertools
import pickle
import subprocess
import sys

import numpy as np
import pytest

import windage as wd
from windage.errors import InputError, ModelError


def test_pairs_are_laid_out_state_by_state():
    space = wd.StateActions([2, 3, 1])
    assert [space.pair(s, a) for s, n in enumerate([2, 3, 1]) for a in range(n)] == list(range(6))
    assert space.state_of.tolist() == [0, 0, 1, 1, 1, 2]
    assert space.action_of.tolist() == [0, 1, 0, 1, 2, 0]
    assert space.offsets.tolist() == [0, 2, 5, 6]
    assert (space.n_states, space.n_pairs) == (3, 6)


def test_the_mean_number_of_actions_may_be_fractional():
    """E32: A is SA / S, never the largest A_s."""
    assert wd.StateActions([1, 4]).mean_actions == 2.5


def test_uniform_spaces():
    space = wd.StateActions.uniform(states=6, actions=2)
    assert space == wd.StateActions([2] * 6)
    assert hash(space) == hash(wd.StateActions(np.full(6, 2)))
    assert repr(space) == "StateActions.uniform(states=6, actions=2)"
    assert repr(wd.StateActions([1, 2])) == "StateActions([1, 2])"


def test_names_are_part_of_a_space():
    named = wd.StateActions([1, 2], state_names=["a", "b"], action_names=[["x"], ["y", "z"]])
    assert named != wd.StateActions([1, 2])
    assert named.describe(2) == "s=1 ('b'), a=1 ('z')"
    assert (named.state_name(0), named.action_name(1, 0)) == ("a", "y")
    plain = wd.StateActions([1, 2])
    assert (plain.state_name(1), plain.action_name(1, 1), plain.describe(2)) == (
        "1",
        "1",
        "s=1, a=1",
    )
    shared = wd.StateActions.uniform(2, 2, action_names=["l", "r"])
    assert shared.action_names == (("l", "r"), ("l", "r"))


def test_spaces_cannot_be_changed():
    space = wd.StateActions([2, 1])
    for array in (space.offsets, space.counts, space.state_of, space.action_of):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([], "there are no states"),
        ([2, 0, 1], r"actions\[1\]: 0 is out of range"),
        ([2, -1], r"actions\[1\]: -1"),
        ([2.0, 1.0], "actions: holds float64"),
        ([True, True], r"actions\[0\]: True is a boolean"),
        ([[1], [2]], "actions: has 2 dimensions"),
        ([True, 2], r"actions\[0\]: True is a boolean"),
        ([2, [1]], "actions: .* has uneven rows"),
        (7, "actions: 7 is not a list"),
        ("21", "actions: '21' is not a list"),
        ({0: 2}, "is not a list"),
        ([10**12], r"actions: would need about .* memory"),
        ([2**62, 2**62, 2**62], r"actions: would need about .* memory"),
        ([10**30], "actions: holds object"),
    ],
)
def test_impossible_action_sets(actions, message):
    with pytest.raises(ModelError, match=message):
        wd.StateActions(actions)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"state_names": ["a"]}, "1 names for 2 states"),
        ({"state_names": ["a", ""]}, r"state_names\[1\]"),
        ({"action_names": [["x"]]}, "1 lists for 2 states"),
        ({"action_names": [["x"], ["y"]]}, r"action_names\[1\]: 1 names for 2 actions"),
        ({"action_names": ["x", "y"]}, r"action_names\[0\]: 2 names for 1 actions"),
        ({"state_names": 5}, "state_names: 5 is not a list of names"),
        ({"state_names": "ab"}, "state_names: 'ab' is not a list of names"),
        ({"state_names": ["a", 7]}, r"state_names\[1\]: 7 is not a name"),
        ({"action_names": 5}, "action_names: 5 is not a list of names"),
        ({"action_names": "xy"}, "action_names: 'xy' is not a list of names"),
        ({"action_names": ["x", ["y", "z"]]}, r"action_names\[0\]: 'x' is not a list of names"),
        ({"action_names": [["x"], 5]}, r"action_names\[1\]: 5 is not a list of names"),
        ({"action_names": [["x"], ["y", None]]}, r"action_names\[1\]\[1\]: None is not a name"),
        ({"action_names": []}, "action_names: 0 lists for 2 states"),
        (
            {"state_names": ["a", "a"]},
            r"^state_names\[1\]: 'a' is the name of state_names\[0\]",
        ),
        (
            {"action_names": [["x"], ["y", "y"]]},
            r"^action_names\[1\]\[1\]: 'y' is the name of action_names\[1\]\[0\] too",
        ),
    ],
)
def test_impossible_names(names, message):
    with pytest.raises(wd.WindageError, match=message) as error:
        wd.StateActions([1, 2], **names)
    assert error.value.fix


@pytest.mark.parametrize("s", [-1, 3, 1.0, True, None, np.float64(1)])
def test_unknown_states(s):
    with pytest.raises(InputError, match="state: "):
        wd.StateActions([2, 3, 1]).pair(s, 0)


@pytest.mark.parametrize("s", [-1, 3, True, 0.0, None, "0"])
def test_nothing_is_said_of_unknown_states_and_pairs(s):
    space = wd.StateActions([1, 2, 1], state_names=["a", "b", "c"])
    for ask in (
        space.state_name,
        space.describe_state,
        lambda s: space.action_name(s, 0),
        lambda s: space.check_action(s, 0),
        lambda s: space.pair(s, 0),
    ):
        with pytest.raises(InputError, match="^state: "):
            ask(s)
    for ask in (space.state_name, wd.StateActions([1, 2, 1]).state_name):
        assert ask(np.int32(1)) in {"b", "1"}
    pair = 4 if s == 3 else s
    with pytest.raises(InputError, match="^pair: .*integer from 0 to 3"):
        space.describe(pair)
    with pytest.raises(InputError, match=r"^action: .*s=1 \('b'\) offers 2"):
        space.action_name(1, s)


@pytest.mark.parametrize("a", [-1, 2, 0.0, False, "0"])
def test_actions_a_state_does_not_offer(a):
    space = wd.StateActions([2, 3], state_names=["low", "high"])
    with pytest.raises(InputError, match=r"action: .*s=0 \('low'\) offers 2 action"):
        space.pair(0, a)


def test_spaces_too_large_for_the_machine_are_refused_before_anything_is_made():
    with pytest.raises(ModelError, match=r"would need about .* memory"):
        wd.StateActions.uniform(states=10**12, actions=10)


SPACES = [
    wd.StateActions([2, 3, 1]),
    wd.StateActions([2, 3]),
    wd.StateActions([3, 2, 1]),
    wd.StateActions([2, 3, 1], state_names=["a", "b", "c"]),
    wd.StateActions([2, 3, 1], state_names=["a", "b", "d"]),
    wd.StateActions([2, 3, 1], action_names=[["x", "y"], ["x", "y", "z"], ["x"]]),
    wd.StateActions([2, 3, 1], action_names=[["x", "y"], ["x", "y", "w"], ["x"]]),
]


def test_spaces_are_equal_if_all_their_parts_are():
    for i, one in enumerate(SPACES):
        for j, other in enumerate(SPACES):
            assert (one == other) == (i == j)
            assert (hash(one) == hash(other)) == (i == j)
    assert SPACES[0] != [2, 3, 1]


@pytest.mark.parametrize("space", SPACES, ids=repr)
@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_spaces_travel_by_value(space, how):
    again = how(space)
    assert again == space
    assert hash(again) == hash(space)
    assert again.state_names == space.state_names
    assert again.action_names == space.action_names
    for name in ("counts", "offsets", "state_of", "action_of"):
        assert getattr(again, name).tolist() == getattr(space, name).tolist()
        assert not getattr(again, name).flags.writeable


def test_hashes_are_the_same_in_every_process():
    code = (
        "import windage as wd;print(hash(wd.StateActions([2, 3, 1], state_names=['a', 'b', 'c'])))"
    )
    for salt in ("1", "2"):
        command = [sys.executable, "-c", code]
        out = subprocess.run(
            command, env={"PYTHONHASHSEED": salt}, capture_output=True, text=True, check=True
        )
        assert int(out.stdout) == hash(SPACES[3])


@pytest.mark.parametrize(
    "name",
    ["counts", "offsets", "state_of", "action_of", "n_states", "state_names", "_hash", "new"],
)
def test_no_part_of_a_space_can_be_replaced(name):
    space = wd.StateActions([2, 1])
    with pytest.raises(AttributeError, match="cannot be changed"):
        setattr(space, name, 7)
    with pytest.raises(AttributeError, match="cannot be changed"):
        delattr(space, name)
    assert space.counts.tolist() == [2, 1]


# Factors

WEEK = ["Mon", "Tue", "Wed"]


def test_factors_number_every_combination_once():
    states = wd.Factors(stock=range(2, 6), day=WEEK, open=[0, 1])
    assert len(states) == 24
    for number, (stock, day, is_open) in enumerate(itertools.product(range(2, 6), WEEK, [0, 1])):
        assert states[number] == (stock, day, is_open)
        assert (states[number].stock, states[number].day) == (stock, day)
        assert states.index(*states[number]) == number
        assert states.index(open=is_open, stock=np.int64(stock), day=day) == number
        assert states.index(stock, day, open=is_open) == number
    assert states.state_names[:3] == ["stock 2, Mon, open 0", "stock 2, Mon, open 1",
                                      "stock 2, Tue, open 0"]  # fmt: skip
    assert len(set(states.state_names)) == 24


def test_factors_make_a_space():
    states = wd.Factors(stock=range(3), day=WEEK)
    space = states.space(lambda stock, day: 3 - stock + (day == "Tue"))
    assert space.counts.tolist() == [3, 4, 3, 2, 3, 2, 1, 2, 1]
    assert list(space.state_names) == states.state_names
    named = states.space(lambda stock, day: [f"order {k}" for k in range(3 - stock)])
    assert named.describe(named.pair(4, 1)) == "s=4 ('stock 1, Tue'), a=1 ('order 1')"
    with pytest.raises(ModelError, match=r"actions\[2\]: 0 is out of range"):
        states.space(lambda stock, day: 0 if day == "Wed" else 1)
    with pytest.raises(ModelError, match=r"actions: 2 in State\(stock=0, day='Tue'\), names"):
        states.space(lambda stock, day: ["stay"] if day == "Mon" else 2)
    with pytest.raises(ModelError, match="actions: 3 cannot be called"):
        states.space(3)


def test_factors_travel_and_compare_by_value():
    states = wd.Factors(stock=range(3), day=WEEK)
    again = pickle.loads(pickle.dumps(states))
    assert again == states == wd.Factors(stock=np.arange(3), day=tuple(WEEK))
    assert hash(again) == hash(states)
    assert again[4] == states[4]
    assert states != wd.Factors(day=WEEK, stock=range(3))
    assert repr(states) == "Factors(stock 3 x day 3)"


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ({}, "there are no factors"),
        ({"stock": 3}, "stock: 3 is not a list of values"),
        ({"stock": []}, "is not a list of values"),
        ({"day": "Mon"}, "'Mon' is not a list"),
        ({"day": ["Mon", "Mon"]}, "day: 'Mon' is there twice"),
        ({"open": [0, False]}, r"open\[1\]: False is neither"),
        ({"x": [1.0, float("nan")]}, r"x\[1\]: nan is neither"),
        ({"a day": [1, 2]}, "'a day' cannot name a field"),
        ({"class": [1, 2]}, "'class' cannot name a field"),
        ({"x": range(10**6), "y": range(10**6)}, "factors: would need about"),
        ({"x": range(10**15)}, "would need about"),
    ],
)
def test_what_is_no_factor(factors, message):
    with pytest.raises(wd.WindageError, match=message):
        wd.Factors(**factors)


@pytest.mark.parametrize(
    ("values", "named", "message"),
    [
        ((3, "Mon"), {}, "stock: 3 is no value of this factor. Fix: pass one of 0, 1, 2"),
        ((1,), {"day": "Sun"}, "day: 'Sun' is no value"),
        ((True, "Mon"), {}, "stock: True is no value"),
        ((np.arange(2), "Mon"), {}, "stock: .* is no value"),
        ((1,), {}, "not one for each factor. Fix: pass stock, day"),
        ((1, "Mon", 3), {}, "not one for each factor"),
        ((1, "Mon"), {"day": "Mon"}, "not one for each factor"),
        ((1,), {"dya": "Mon"}, "not one for each factor"),
    ],
)
def test_what_is_no_state_of_factors(values, named, message):
    states = wd.Factors(stock=range(3), day=WEEK)
    with pytest.raises(InputError, match=message):
        states.index(*values, **named)
    for s in (-1, 9, 1.5):
        with pytest.raises(InputError, match="state"):
            states[s]
