"""Agents of the user's own in a journal: alone, and made by a `Doubling`."""

from __future__ import annotations

import pytest

import windage as wd
from tests.live_loops import SPACE, loop, twin_loop
from windage.live import history
from windage.live.maintenance import verify
from windage.live.views import status


class Counter(wd.agents.Agent):
    """Plays what it has played least; an agent with a state and a parameter of its own."""

    id = "counter"

    def __init__(self, space, *, horizon, first=0, seed=0, reward_range=None):
        super().__init__(space, horizon=horizon, seed=seed, reward_range=reward_range)
        self.first = first
        self.played = [[0] * int(count) for count in space.counts]

    def _choose(self, state):
        here = self.played[state]
        return (here.index(min(here)) + self.first) % len(here)

    def _learn(self, state, action, reward, s_next):
        self.played[state][action] += 1

    def _saved(self):
        return {"played": self.played}, {}

    def _restored(self, values, arrays):
        self.played = [list(here) for here in values["played"]]


class Stubborn(wd.UCRL2):
    """Bears the id of the library's, and is not it."""

    def _choose(self, state):
        super()._choose(state)
        return 0


class Forgetful(Counter):
    """Has an argument that cannot be written down."""

    id = "forgetful"

    def __init__(self, space, *, horizon, secret):
        super().__init__(space, horizon=horizon)
        self.secret = secret


MAKERS = {
    "own": lambda T: Counter(SPACE, horizon=T, first=1, seed=T),
    "own, by a library's id": lambda T: Stubborn(SPACE, horizon=T, seed=T),
}
ALONE = {
    "own": lambda: Counter(SPACE, horizon=1000, first=1),
    "own, by a library's id": lambda: Stubborn(SPACE, horizon=1000),
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("way", ["alone", "doubling"])
@pytest.mark.parametrize("every", [6, 1000])
def test_a_loop_cut_anywhere_is_the_loop_that_was_never_cut(path, kind, way, every, monkeypatch):
    monkeypatch.setattr(history, "SNAPSHOT_STEPS", every)

    def make():
        return ALONE[kind]() if way == "alone" else wd.Doubling(MAKERS[kind], first=8)

    twin = make()
    wanted, _ = twin_loop(twin, 60)
    done, s = [], 0
    for steps in (1, 6, 20, 33):
        with wd.live.open(path, make()) as live:
            part, s = loop(live, steps, start=len(done), s=s)
            done += part
    assert done == wanted
    with wd.live.open(path, make()) as live:
        assert live.agent.state() == twin.state()


@pytest.mark.parametrize("way", ["alone", "doubling"])
def test_who_only_looks_is_told_that_the_class_is_not_known_here(path, way):
    agent = ALONE["own"]() if way == "alone" else wd.Doubling(MAKERS["own"], first=8)
    with wd.live.open(path, agent) as live:
        loop(live, 12)
    found = verify(path)
    assert found.is_sound, "nothing is wrong with the journal"
    (remark,) = found.remarks
    assert "its agent 'counter' is of a class that is not known here" in remark
    assert "were not replayed" in remark
    assert (found.agents, found.decisions, found.events) == (0, 0, 25 + (way == "doubling") * 2)
    (one,) = status(path).agents
    assert "'counter' is of a class that is not known here" in one.trouble
    assert (one.decisions, one.learned) == (12, 12)


def test_an_agent_that_cannot_be_made_again_is_refused_before_anything_is_written(path):
    for agent in (
        Forgetful(SPACE, horizon=9, secret=print),
        wd.Doubling(lambda T: Forgetful(SPACE, horizon=T, secret=print)),
    ):
        with pytest.raises(wd.InputError, match=r"'forgetful' cannot be made again from its"):
            wd.live.open(path, agent)
    assert not path.exists()
