from __future__ import annotations

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
        ([True, True], "actions: holds bool"),
        ([[1], [2]], "actions: has 2 dimensions"),
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
    ],
)
def test_impossible_names(names, message):
    with pytest.raises(wd.WindageError, match=message):
        wd.StateActions([1, 2], **names)


@pytest.mark.parametrize("s", [-1, 3, 1.0, True, None, np.float64(1)])
def test_unknown_states(s):
    with pytest.raises(InputError, match="state: "):
        wd.StateActions([2, 3, 1]).pair(s, 0)


@pytest.mark.parametrize("a", [-1, 2, 0.0, False, "0"])
def test_actions_a_state_does_not_offer(a):
    space = wd.StateActions([2, 3], state_names=["low", "high"])
    with pytest.raises(InputError, match=r"action: .*s=0 \('low'\) offers 2 action"):
        space.pair(0, a)


def test_spaces_too_large_for_the_machine_are_refused_before_anything_is_made():
    with pytest.raises(ModelError, match=r"would need about .* memory"):
        wd.StateActions.uniform(states=10**12, actions=10)
