"""Structures: tabulation against the functions, what is refused, and round trips."""

from __future__ import annotations

import itertools
import json
import pickle

import numpy as np
import pytest

import windage as wd
from tests.unit.structure.problems import counter, shelf

SPACE = wd.StateActions([2, 1])
COIN = wd.Exogenous("coin", [0, 1])


def made(next_state=lambda s, a, x: x, reward=lambda s, a, x: float(a + x), **options):
    return wd.Structure(SPACE, [COIN], next_state=next_state, reward=reward, **options)


def refused(words, *parts, error=wd.ModelError, **options):
    with pytest.raises(error) as caught:
        made(**options)
    for part in (words, *parts):
        assert part in str(caught.value)


def test_the_tables_are_the_functions_over_joint_outcomes_in_row_major_order():
    known = counter()
    space = known.space
    for pair in range(space.n_pairs):
        s, a = int(space.state_of[pair]), int(space.action_of[pair])
        services = ("no", "yes") if s else (None,)
        joint = list(itertools.product([0, 1, 2], services))
        assert list(known.joint_outcomes(pair)) == joint
        here = slice(known.first[pair], known.first[pair + 1])
        after = [min(s - (served == "yes") + x, 3) for x, served in joint]
        assert known.next_state[here].tolist() == after
        assert known.reward[here].tolist() == [-s - 2 * a] * len(joint)
    assert known.first[-1] == 2 * 3 + 6 * 6
    assert known.laws == ((0, None), (1, 0), (1, 1))
    assert known.law_sizes.tolist() == [3, 2, 2]
    assert known.law_of.tolist() == [[0, -1], [0, -1]] + [[0, 1], [0, 2]] * 3
    assert known.reward_range == (-5.0, 0.0)
    assert known.seen.tolist() == [0, 1]
    for name in ("law_sizes", "law_of", "first", "next_state", "reward", "seen"):
        assert not getattr(known, name).flags.writeable
    with pytest.raises(AttributeError, match="cannot be changed"):
        known.space = None
    with pytest.raises(AttributeError, match="cannot be changed"):
        known.variables[0].name = "other"


def test_rounding_does_not_leave_a_stated_range():
    known = made(reward=lambda s, a, x: 1 - 0.8 - 0.2 if x else 1.0, reward_range=(0, 1))
    assert 1 - 0.8 - 0.2 < 0 == known.reward.min()
    assert wd.Structure.from_dict(known.to_dict()).same(known)
    refused("the reward -1e-11 is not in", reward=lambda s, a, x: -1e-11 * x, reward_range=(0, 1))


def test_functions_of_arrays_are_asked_once_a_pair_and_give_the_same_tables():
    asked = []

    def after(s, a, d):
        asked.append(d)
        return np.maximum(s + a - d, 0)

    def reward(s, a, d):
        return 5.0 * np.minimum(s + a, d) - 2.0 * a - 0.5 * np.maximum(s + a - d, 0)

    plain = shelf()
    many = wd.Structure(
        plain.space, [wd.Exogenous("demand", range(5))], next_state=after, reward=reward
    )
    assert many.same(plain)
    assert sum(isinstance(d, np.ndarray) for d in asked) == plain.space.n_pairs


def test_a_function_that_means_something_else_on_arrays_is_asked_with_plain_outcomes():
    known = made(next_state=lambda s, a, x: 1 if isinstance(x, int) and x == 1 else 0)
    assert known.next_state.tolist() == [0, 1] * 3
    large = wd.Structure(  # too many outcomes to compare them all
        wd.StateActions([300]),
        [wd.Exogenous("x", range(100))],
        next_state=lambda s, a, x: 0,
        reward=lambda s, a, x: float(x) if np.ndim(x) == 0 else 0.0 * x,
    )
    assert large.reward.tolist() == [float(x) for x in range(100)] * 300


@pytest.mark.parametrize("known", [shelf(), counter(), made(reward=None)])
def test_round_trips_are_exact_through_json_and_pickle(known):
    data = json.loads(json.dumps(known.to_dict()))
    assert wd.Structure.from_dict(data).same(known)
    assert wd.Structure.from_dict(data).to_dict() == known.to_dict()
    assert pickle.loads(pickle.dumps(known)).same(known)
    assert known.same(known)
    assert not known.same(made(reward=lambda s, a, x: a + 2.0 * x))
    assert not known.same("something else")


def test_labels_of_all_kinds_come_back():
    labels = [("week", 1), 2.5, None]
    known = wd.Structure(
        SPACE,
        [wd.Exogenous("coin", [0, 1], lambda s, a: labels[SPACE.pair(s, a)], "involved")],
        next_state=lambda s, a, x: 0 if x is None else x,
    )
    back = wd.Structure.from_dict(json.loads(json.dumps(known.to_dict())))
    assert back.laws == known.laws == ((0, ("week", 1)), (0, 2.5))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("windage_structure", 9, "format 9"),
        ("next_state", [0, 1, 0, 1, 0, 2], "off the space"),
        ("next_state", [0, 1, 0, 1], "4 entries for 6"),
        ("next_state", [0, 1, 0, 1, 0, 0.5], "no state"),
        ("reward", [0.0, 1.0, 2.0, float("nan"), 0.0, 1.0], "not finite"),
        ("reward_range", [0.0, 1.0], "reward_range"),
        ("law_of", [[0], [0], [1]], "laws of coin"),
        ("law_of", [[0], [-2], [0]], "laws of coin"),
        ("law_of", [[0], [0]], "shape"),
        ("laws", [[0, None], [0, None]], "each once"),
        ("variables", [{"name": "coin"}], "outcomes"),
        ("actions", [2, 2], "shape"),
    ],
)
def test_damaged_data_is_refused(name, value, said):
    data = made().to_dict() | {name: value}
    with pytest.raises(wd.StateError, match=said):
        wd.Structure.from_dict(data)


def test_data_that_is_no_structure_is_refused():
    for data in ({}, None, [1]):
        with pytest.raises(wd.StateError, match="no structure"):
            wd.Structure.from_dict(data)


def test_mistakes_of_functions_are_named_with_state_action_and_outcome():
    place = "s=0, a=1, coin=1"
    refused("2 is off the space", place, next_state=lambda s, a, x: a + x if s == 0 else 0)
    refused("1.0 (float) is no state", "coin=1", next_state=lambda s, a, x: x if x < 1 else 1.0)
    refused("True (bool) is no state", next_state=lambda s, a, x: x == 0)
    refused("nan is not finite", place, reward=lambda s, a, x: np.nan if a * x else 1.0)
    refused("inf is not finite", place, reward=lambda s, a, x: np.inf * (a * x) if a * x else x)
    refused("'ten' (str) is no reward", reward=lambda s, a, x: "ten")
    refused("raised ZeroDivisionError", "coin=0", reward=lambda s, a, x: 1 / int(x))
    refused("cannot be called", next_state=3)
    refused("no pair uses its outcomes", "coin", next_state=lambda s, a, x: 1, reward=None)


def test_a_function_that_meets_a_variable_its_pair_lacks_is_told_so():
    part = wd.Exogenous("coin", [0, 1], lambda s, a: "heads" if s == 0 else None, "involved")
    with pytest.raises(wd.ModelError, match=r"s=1, a=0 \(coin: None, not involved\)"):
        wd.Structure(SPACE, [part], next_state=lambda s, a, x: x + 0)


@pytest.mark.parametrize("as_array", [True, False])
def test_functions_that_are_not_pure_are_refused(as_array):
    calls = itertools.count()

    def reward(s, a, x):
        return (x if as_array else float(x)) + next(calls) % 7

    refused("asked again", "depend on state, action and outcomes alone", reward=reward)


def test_groups_are_checked():
    def grouped(group, words, **options):
        variable = wd.Exogenous("coin", [0, 1], group, **options)
        with pytest.raises(wd.ModelError) as caught:
            wd.Structure(SPACE, [variable], next_state=lambda s, a, x: x or 0)
        assert words in str(caught.value)

    turns = itertools.cycle([0, 1, 1])
    grouped(lambda s, a: None, "None at every state-action pair")
    grouped(lambda s, a: [s], "[0] (list) is no label")
    grouped(lambda s, a: float("nan"), "is no label")
    grouped(lambda s, a: 1 / (1 - s), "raised ZeroDivisionError")
    grouped(lambda s, a: next(turns), "asked again")
    two = "is seen at every step and has several laws"
    grouped(lambda s, a: a if s == 0 else None, two)


def test_a_range_that_is_stated_must_hold_the_rewards():
    assert made().reward_range == (0.0, 2.0)
    assert made(reward_range=(-1, 3)).reward_range == (-1.0, 3.0)
    refused("the reward 2 is not in [0, 1]", "s=0, a=1, coin=1", reward_range=(0, 1))
    assert made(reward=None).reward_range == (0.0, 1.0)
    assert made(reward=None, reward_range=(2, 5)).reward_range == (2.0, 5.0)
    assert made(reward=lambda s, a, x: 4).reward_range == (4.0, 8.0)  # never empty
    refused("is empty", error=wd.InputError, reward_range=(1, 1))


def test_outcomes_are_numbers_or_words_each_once():
    def no(outcomes, words, **options):
        with pytest.raises(wd.WindageError) as caught:
            wd.Exogenous("x", outcomes, **options)
        assert words in str(caught.value)

    no([1, 2, 1], "twice")
    no([1, 1.0], "twice")
    no([1], "nothing to learn")
    no([], "nothing to learn")
    no("wet", "not a list")
    no([True, False], "neither a number nor a word")
    no([1, "one"], "numbers and words")
    no([0.0, float("inf")], "not finite")
    no([0, [1]], "neither")
    no([2, 1], "rising", seen="interval")
    no([0, 1], "no such choice", seen="sometimes")
    no([0, 1], "cannot be called", group=3)
    with pytest.raises(wd.InputError, match="not a name"):
        wd.Exogenous("", [0, 1])
    assert wd.Exogenous("x", np.arange(3)).outcomes == (0, 1, 2)
    assert wd.Exogenous("x", [2, 1]).index(np.int64(1)) == 1
    for wrong in (3, True, "2", [2], None):
        with pytest.raises(wd.InputError, match="no outcome of 'x'"):
            wd.Exogenous("x", [2, 1]).index(wrong)


def test_variables_are_exogenous_and_have_names_of_their_own():
    for variables, words in (
        ([], "list of variables"),
        (COIN, "list of variables"),
        (["coin"], "not an Exogenous"),
        ([COIN, COIN], "another variable"),
    ):
        with pytest.raises(wd.ModelError, match=words):
            wd.Structure(SPACE, variables, next_state=lambda s, a, x, y=0: x)


def test_tables_that_do_not_fit_into_memory_are_refused_before_they_are_made():
    variables = [wd.Exogenous(f"x{i}", range(1000)) for i in range(5)]
    with pytest.raises(wd.ModelError, match="would need about"):
        wd.Structure(SPACE, variables, next_state=lambda *_: 0)


def test_what_is_inferred_must_be_unambiguous():
    known = made(next_state=lambda s, a, x: x, reward=None)
    assert known.same(known)
    inferred = wd.Exogenous("demand", range(3), seen="inferred")
    space = wd.StateActions([2, 1])
    with pytest.raises(wd.ModelError) as caught:
        wd.Structure(space, [inferred], next_state=lambda s, a, d: max(s + a - d, 0))
    text = str(caught.value)
    assert "s=0, a=0, demand=0 and s=0, a=0, demand=2: 0 and 2 lead to the same" in text
    told = wd.Structure(  # the reward tells the demand
        space,
        [inferred],
        next_state=lambda s, a, d: max(s + a - d, 0),
        reward=lambda s, a, d: -abs(s + a - d - 0.25),
    )
    assert told.seen.tolist() == [3]


def test_what_is_left_open_of_an_interval_must_be_one():
    assert shelf(seen="interval").seen.tolist() == [2]
    hole = wd.Exogenous("x", [0, 1, 2], seen="interval")
    with pytest.raises(wd.ModelError, match=r"no interval of it.*order its outcomes"):
        wd.Structure(SPACE, [hole], next_state=lambda s, a, x: x % 2)
    pair = [wd.Exogenous(name, [0, 1], seen="interval") for name in "xy"]
    with pytest.raises(wd.ModelError, match="no interval of it"):  # their sum: 0 + 1 or 1 + 0
        wd.Structure(wd.StateActions([1, 1, 1]), pair, next_state=lambda s, a, x, y: x + y)
    known = wd.Structure(  # x is inferred, y an interval given x
        wd.StateActions([1, 1, 1]),
        [wd.Exogenous("x", [0, 1], seen="inferred"), wd.Exogenous("y", range(3), seen="interval")],
        next_state=lambda s, a, x, y: (1 + (y > 0)) * x,
    )
    assert known.seen.tolist() == [3, 2]


def test_the_description_says_what_is_known_and_how_much_is_learned():
    text = counter().describe()
    assert text == (
        "4 states, 8 state-action pairs.\n"
        "Known: the next state and the reward, from -5 to 0, of every state, action and outcome.\n"
        "Learned: 3 laws.\n"
        "  arrivals: 3 outcomes 0..2, one law for all pairs; seen at every step.\n"
        "  service: 2 outcomes ('no', 'yes'), 2 laws (0, 1) for 6 pairs of 8; seen where it is "
        "involved.\n"
        "That is 4 free numbers, where a learner of every transition row has 4 x 2 x 4 = 32."
    )
    assert "and 3 mean rewards" in made(reward=None).describe()
    assert repr(counter()) == (
        "Structure(StateActions.uniform(states=4, actions=2), ['arrivals', 'service'], 3 laws)"
    )
