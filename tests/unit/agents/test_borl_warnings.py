"""What BORL warns of: once, with the numbers, and nothing where the theorem speaks."""

from __future__ import annotations

import math
import warnings

import pytest

import windage as wd
from tests.unit.agents.borl_worlds import SPACE, T, make
from windage.agents.meta.borl import BORL

pytestmark = [
    pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning"),
    pytest.mark.filterwarnings("ignore::windage.errors.ParameterWarning"),
]


@pytest.mark.parametrize("options", [
    {"block_length": 200}, {"block_length": T}, {"arms": None, "block_length": None},
    {"block_length": 100, "master": "exp3-s"},
])  # fmt: skip
def test_warnings_are_given(options):
    with pytest.warns(wd.GuaranteeWarning, match="gamma = .*1|one block"):
        make(**options)


def test_warnings_are_not_given_again_when_restored():
    agent = make(block_length=200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert BORL.from_state(agent.state()).state() == agent.state()


def said(**options):
    with pytest.warns(wd.GuaranteeWarning) as caught:
        make(**options)
    (message,) = (str(w.message) for w in caught if w.category is wd.GuaranteeWarning)
    return message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "arms of one's own, blocks of 40 steps"),
        ({"arms": None, "block_length": None, "master": "exp3"}, "the master 'exp3'"),
        ({"arms": None, "horizon": 10**4, "block_length": 10}, "blocks of 10 steps"),
        (
            {"arms": None, "block_length": None, "carry_window": True},
            "windows carried from block to block",
        ),
    ],
)
def test_what_theorem_2_does_not_speak_of_is_said(options, words):
    parts = said(horizon=5000, **options) if "horizon" not in options else said(**options)
    assert [part for part in parts.split("; ") if "Theorem 2" in part] == [
        f"Theorem 2 does not speak of {words}"
    ]


@pytest.mark.parametrize("kind", [wd.BORL, wd.MultiScaleGuarded])
def test_one_arm_in_one_block_is_theorem_1s(kind):
    """Nothing is left to compare: what the budgets would have chosen is played throughout."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind(SPACE, horizon=1000, arms=[(100, 0.1)], block_length=1000)
    with pytest.warns(wd.GuaranteeWarning, match="needs a positive widening"):
        kind(SPACE, horizon=1000, arms=[(100, 0.0)], block_length=1000)
    with pytest.warns(wd.GuaranteeWarning, match="Theorem 2 does not speak of arms"):
        kind(SPACE, horizon=1000, arms=[(100, 0.1)], block_length=500)


def test_arms_that_are_hardly_meant_are_said():
    with pytest.warns(wd.ParameterWarning) as caught:
        make(arms=[(15, 0.1), (T, 2.0), (T + 1, 0.5)])
    texts = [str(w.message) for w in caught if w.category is wd.ParameterWarning]
    assert texts == [
        f"arms[2]: a window of {T + 1} samples is longer than the horizon {T}; "
        "arms[1]: a widening of 2 makes every kernel plausible (E7)"
    ]


def test_when_it_would_learn_is_said_as_it_is():
    """The paper's grid grows with T: what fixed arms would need says nothing. Own arms stay."""
    plan = wd.plan(SPACE, horizon=T, reward_budget=1, transition_budget=1)
    text = said(arms=None, block_length=None, horizon=5000)
    assert f"gamma is at most 1 from T = {plan.borl.adapts_from} on" in text
    enough = math.ceil(1.05**2 * 3 * math.log(3))
    assert f"with these 3 arms it takes {enough} blocks" in said(block_length=100)
    assert "its bound says that" in said()
    assert "it takes" not in said(master="tsallis-inf")


def test_no_warning_where_the_theorem_speaks():
    """With so many steps gamma is small, and the bound of EXP3.P below what there is to lose."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BORL(wd.StateActions([2, 2]), horizon=10**11)


@pytest.mark.parametrize("noisy", [False, True])
def test_rewards_of_blocks_that_are_cut_are_said_once(noisy):
    """Without a range the master may hear of less than there was; within [0, 1] nothing is cut."""
    agent = make(reward_range=None, radii={"kind": "paper", "scale": 1.0})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(T):
            agent.observe(0, agent.act(0), 1.3 if noisy else 0.9, 0)
        again = BORL.from_state(agent.state())
    cut = [w for w in caught if "is cut to [0, 1] before the master" in str(w.message)]
    assert len(cut) == noisy
    assert again.blocks.reward[:-1].tolist() == pytest.approx([1.0 if noisy else 0.9] * 7)


@pytest.mark.parametrize("options", [{"radii": {"kind": "paper", "scale": 0.1}},
                                     {"arms": [(10, 0.0), (20, 0.0)]}])  # fmt: skip
def test_what_the_theorem_does_not_cover_is_said(options):
    with pytest.warns(wd.GuaranteeWarning, match="radii do not cover|positive widening"):
        make(**options)


def test_rewards_outside_the_unit_interval_are_noticed_once():
    agent = make(reward_range=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(T):
            agent.observe(0, agent.act(0), 7.0, 0)
    assert len([w for w in caught if "outside [0, 1]" in str(w.message)]) == 1
    assert set(agent.blocks.reward[:-1].tolist()) == {1.0}
