"""The log of a master's choices: calls that may come twice, and states that come from elsewhere."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from windage import adversarial
from windage.agents.meta.delegating import Choices
from windage.errors import ModelError, ParameterWarning
from windage.rng import stream


def draw(block):
    return float(stream(3, "choices", block).random())


def log(rounds=40, id="exp3p", draw=draw):
    return Choices(adversarial.make(id, 3, rounds, quiet=True), draw)


def filled(n, told, id="exp3p", often=1):
    """Arms that pay 0.2, 0.5, 0.8; every call is made so often."""
    choices = log(id=id)
    for i in range(n):
        for _ in range(often):
            arm = choices.choose()
        for _ in range(often if i < told else 0):
            choices.tell(i, 0.2 + 0.3 * arm)
    return choices


@pytest.mark.parametrize("id", adversarial.names())
def test_calls_that_come_again_change_nothing(id):
    once, thrice = filled(30, 29, id), filled(30, 29, id, often=3)
    assert thrice.told == once.told == 29
    assert thrice.master.probabilities.tobytes() == once.master.probabilities.tobytes()
    for mine, theirs in zip(thrice.columns(30), once.columns(30), strict=True):
        assert mine.tobytes() == theirs.tobytes()


def test_columns_are_what_a_master_alone_would_have():
    arms, rewards, likely = filled(30, 29).columns(30)
    alone = adversarial.make("exp3p", 3, 40, quiet=True)
    for i in range(29):
        assert likely[i].tolist() == alone.probabilities.tolist()
        assert arms[i] == alone.choose(draw(i))
        assert rewards[i] == 0.2 + 0.3 * arms[i]
        alone.update(int(arms[i]), float(rewards[i]))
    assert math.isnan(rewards[29])


def test_a_reward_that_was_noted_and_not_told_is_not_shown(monkeypatch):
    """Cut short between the two, the master has not heard of it: that counts."""
    choices = filled(5, 4)

    def cut_short(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(choices.master), "update", cut_short)
        with pytest.raises(KeyboardInterrupt):
            choices.tell(4, 0.9)
    assert math.isnan(choices.saved(5)["blocks.reward"][4])
    choices.tell(4, 0.9)
    assert choices.saved(5)["blocks.reward"][4] == 0.9


@pytest.mark.parametrize("id", adversarial.names())
@pytest.mark.parametrize(("n", "told"), [(0, 0), (1, 0), (1, 1), (30, 29), (30, 30)])
def test_restored_it_is_the_same_log(id, n, told):
    choices, again = filled(n, told, id), log(id=id)
    again.restore(choices.saved(n), n, told)
    assert again.told == told
    assert again.master.probabilities.tobytes() == choices.master.probabilities.tobytes()
    for mine, theirs in zip(again.columns(n), choices.columns(n), strict=True):
        assert mine.tobytes() == theirs.tobytes()
    assert again.choose() == choices.choose()


def test_arms_of_a_machine_that_rounds_otherwise_are_taken():
    """A draw on the border of two arms falls on one of them here, and on the other there."""
    border = 1.0 / 3.0
    for arm in (0, 1):
        again = log(draw=lambda _: border)
        again.restore({"blocks.arm": np.array([arm]), "blocks.reward": np.array([0.5])}, 1, 1)
        assert again.arm(0) == arm


@pytest.mark.parametrize(
    ("name", "place", "wrong"),
    [
        ("blocks.arm", 3, "other"), ("blocks.arm", 0, -1), ("blocks.arm", 0, 3),
        ("blocks.reward", 2, math.nan), ("blocks.reward", 0, 1.5), ("blocks.reward", 0, -0.5),
        ("blocks.reward", 0, math.inf), ("blocks.reward", 29, 0.5),
    ],
)  # fmt: skip
def test_what_cannot_have_been_chosen_is_refused(name, place, wrong):
    saved = filled(30, 29).saved(30)
    saved[name][place] = (saved[name][place] + 1) % 3 if wrong == "other" else wrong
    with pytest.raises(ValueError, match=r"block"):
        log().restore(saved, 30, 29)


def test_rewards_are_cut_and_that_is_said_once():
    choices = log()
    choices.choose()
    with pytest.warns(ParameterWarning, match=r"a block, 1\.7 in units of the range, is cut to"):
        choices.tell(0, 1.7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        choices.choose()
        choices.tell(1, -3.0)
        choices.choose()
        choices.tell(2, 1.0 + 1e-12)  # rounding is no news
        again = log()
        again.restore(choices.saved(3), 3, 3)
        again.choose()
        again.tell(3, 2.0)
    assert choices.columns(3)[1].tolist() == [1.0, 0.0, 1.0]


def test_more_blocks_than_fit():
    with pytest.raises(ModelError, match="Fix: pass fewer arms or longer blocks"):
        log(rounds=2**39)
