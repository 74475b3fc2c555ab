"""Who is compared with whom, by hand: what is configured alike first, then namesakes."""

from __future__ import annotations

from windage.study.kinds import Player, World
from windage.study.partners import Difference, Place, _Made, pair

WORLD = World("riverswim-v0", {"horizon": 100})


def made(delta, told=None, digest=""):
    return _Made(WORLD, Player("ucrl2", {"delta": delta}, digest, told))


def study(**agents):
    return {Place("river", 100, name): one for name, one in agents.items()}


def found(first, second):
    return {one.first.agent: one.second.agent for one in pair(first, second)}


def test_of_several_alike_the_namesake_is_taken():
    assert found(study(x=made(0.1)), study(y=made(0.1), x=made(0.1))) == {"x": "x"}


def test_namesakes_choose_before_others_of_the_same_configuration():
    assert found(study(a=made(0.1), x=made(0.1)), study(x=made(0.1))) == {"x": "x"}


def test_nobody_has_two_partners():
    """What a second study calls b is the first one's a; so its b has no partner."""
    assert found(study(a=made(0.1), b=made(0.2)), study(b=made(0.1))) == {"a": "b"}


def test_the_order_is_that_of_the_first_study():
    first = study(a=made(0.1), b=made(0.2), c=made(0.3))
    second = study(c=made(0.3), b=made(0.4), z=made(0.1))
    assert list(found(first, second).items()) == [("a", "z"), ("b", "b"), ("c", "c")]


def test_what_an_agent_is_told_is_part_of_what_it_is():
    first = study(x=made(0.1))
    second = study(y=made(0.1, told=()), x=made(0.2, told=("B_r", "B_p")))
    (one,) = pair(first, second)
    assert (one.first.agent, one.second.agent) == ("x", "x")
    assert one.differences == (
        Difference("delta", "0.1", "0.2"),
        Difference("told", "what its kind is told", "B_r and B_p"),
    )
    (one,) = pair(first, study(x=made(0.1, told=())))
    assert one.differences == (Difference("told", "what its kind is told", "nothing"),)


def test_what_differs_is_told_the_environment_first():
    theirs = _Made(
        World("riverswim-v0", {"horizon": 100, "states": 4}), Player("psrl", {}, digest="ab")
    )
    (one,) = pair(study(x=made(0.1)), study(x=theirs))
    assert one.differences == (
        Difference("environment.states", "-", "4"),
        Difference("id", "ucrl2", "psrl"),
        Difference("delta", "0.1", "-"),
        Difference("source", "-", "ab"),
    )
