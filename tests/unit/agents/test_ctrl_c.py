"""Ctrl-C at any line of any agent: it goes on as if nothing had been.

A tracer raises in one line after another, of windage and of `contextlib`, instead of a signal that
comes when it likes; each line at one of the times it is run, drawn at random. `make test` tries
some lines of every agent, `make reliability` all of them. Kernels are compiled or interpreted
throughout: left to the clock, a line would come at another time when it is run again.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import numpy as np
import pytest

import windage as wd
from tests.conftest import RELIABILITY
from windage.agents.base import quietly
from windage.errors import heard_here
from windage.kernels import jit
from windage.simulate import Simulator

pytestmark = [
    pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning"),
    pytest.mark.filterwarnings("ignore::windage.errors.ParameterWarning"),
    pytest.mark.filterwarnings("ignore:.*proc/meminfo"),  # a file that nobody was left to close
]

T = 24
LINES = 10**9 if RELIABILITY else 8  # of each agent and way to run it
OURS = (str(Path(wd.__file__).parent), contextlib.__file__)
SPACE = wd.StateActions([2, 3, 1])


def model():
    rng = np.random.default_rng(3)
    ends = [wd.MDP(SPACE, rng.uniform(size=6), rng.dirichlet(np.ones(3), size=6)) for _ in range(2)]
    return wd.DriftingMDP.blend(ends, wd.schedules.Linear(), horizon=T)


MODEL = model()
FIRING = {"test_1": 0.01, "test_2": 0.02, "regret_constant": 0.05, "log_factor": 1.0}
OPTIONS = {
    "borl": {"arms": [(3, 0.1), (9, 0.5)], "block_length": 5},
    "borl, carried": {"arms": [(3, 0.1), (9, 0.5)], "block_length": 5, "carry_window": True},
    "ucrl2-restarts": {"restarts": [7, 15]},
    "restarted-psrl": {"restarts": [7, 15]},
    "master, firing": {"diameter": 5.0, **FIRING},
}
NAMES = [*wd.agents.names(), "borl, carried", "master, firing", "doubling", "doubling borl"]


def make(name):
    if name == "doubling":
        return wd.Doubling(lambda T: wd.SWUCRL2CW.oblivious(SPACE, horizon=T, seed=T), first=3)
    if name == "doubling borl":
        few = {"arms": [(3, 0.1), (9, 0.5)], "block_length": 2}
        return wd.Doubling(lambda T: wd.BORL(SPACE, horizon=T, seed=T, **few), first=5)
    id_ = name.partition(",")[0]
    options = OPTIONS.get(name, {})
    return wd.agents.make(
        id_, SPACE, horizon=T, seed=2, **wd.agents.facts(id_, MODEL, **options) | options
    )


def restored(agent):
    given = {"problem": MODEL} if hasattr(agent, "problem") else {}
    if agent.id == "doubling":
        given = {"make_agent": agent._make}
    return wd.agents.restore(agent.state(), **given)


def in_loops(agent):
    wd.run(MODEL, agent, seed=1, steps=min(11, T - agent.t + 1))
    if agent.t <= T:
        wd.run(MODEL, agent, seed=1)


def by_hand(agent):
    """As a service would: what was not learned is told again. Every fifth advice is overridden."""
    while agent.t <= T:
        t, s = agent.t, agent.last_state or 0
        world = Simulator(MODEL, 1, state=s, t=t)
        a = (agent.act(s) + (t % 5 == 0)) % int(SPACE.counts[s])
        agent.observe(s, a, *world.step(a))


class Stop(BaseException):
    pass


def interrupted(play, agent, line):
    """Stop at the given line of Python, counted from 0 as they are run; returns all that were."""
    places = []

    def trace(frame, event, _):
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        if event == "line":
            places.append((frame.f_code.co_filename, frame.f_lineno))
            if len(places) == line + 1:
                sys.settrace(None)
                raise Stop
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        play(agent)
    finally:
        sys.settrace(before)
    return places


def chosen_lines(places, rng):
    """Return when some of the lines are run, each at one of its times."""
    times = {}
    for i, place in enumerate(places):
        times.setdefault(place, []).append(i)
    some = rng.permutation(len(times))[:LINES]
    return [int(rng.choice(list(times.values())[k])) for k in some]


@pytest.fixture(params=["compiled", "interpreted"])
def kernels(request, monkeypatch):
    compiled = request.param == "compiled"
    monkeypatch.setattr(jit, "PATIENCE", -1.0 if compiled else np.inf)
    monkeypatch.setattr(jit.Tier, "_spent", {})
    if not compiled:
        monkeypatch.setattr(jit.Tier, "_is_compiled", lambda *_: False)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("play", [in_loops, by_hand])
@pytest.mark.parametrize("name", NAMES)
def test_ctrl_c_in_any_line(name, play):
    whole = make(name)
    play(whole)
    end = whole.state()
    places = interrupted(play, make(name), -1)
    for line in chosen_lines(places, np.random.default_rng(len(name))):
        agent = make(name)
        with pytest.raises(Stop):
            interrupted(play, agent, line)
        assert heard_here.get() is None, places[line]  # or nobody would be warned any more
        twin = restored(agent)
        for one in (agent, twin):
            play(one) if one.t <= T else None
            assert one.state() == end, places[line]


def test_ctrl_c_while_an_agent_is_made_quietly_leaves_nobody_deaf():
    """In every line, and with the traceback still held, as a notebook does."""

    def play(_):
        quietly(wd.SWUCRL2CW, SPACE, {"horizon": T, "window": 99, "widening": 0.1})

    play(None)  # the first time takes other lines
    places = interrupted(play, None, -1)
    for line in range(len(places)):
        with pytest.raises(Stop) as stop:
            interrupted(play, None, line)
        assert stop.tb is not None
        assert heard_here.get() is None, places[line]
