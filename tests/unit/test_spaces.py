from __future__ import annotations

import copy
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
