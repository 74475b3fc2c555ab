"""MASTER saved, split, cut short, and states of it that cannot be."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd
from tests.unit.agents.master_worlds import FIRING, SPACE, TIGHT, drifting, made
from windage.agents.meta import master
from windage.agents.meta.master import MASTER
from windage.agents.optimistic.ucrl2 import AdaptiveUCRL
from windage.agents.state import Blob, pack, unpack
from windage.errors import HorizonReached, StateError
from windage.testing import check_agent


def test_saved_and_restored_at_every_step_it_is_the_same_agent():
    """Before every decision and with it pending, sleeping copies and restarts included."""
    T = 90
    model = drifting(T)
    whole = made(T, 2, **FIRING)
    run = wd.run(model, whole, seed=4)
    agent, world = made(T, 2, **FIRING), wd.simulate.Simulator(model, 4)
    slept = 0
    for t in range(T):
        agent = MASTER.from_state(agent.state())
        state = agent.state()
        s = world.state
        a = agent.act(s)
        slept += sum(one.acted > 0 for one in agent.copies[1:])
        pending = agent.state()
        agent = MASTER.from_state(pending)
        assert agent.state() == pending != state
        assert agent.act(s) == a == run.actions[t]
        assert agent.episode.start <= t + 1
        agent.observe(s, a, *world.step(a))
    assert agent.state() == whole.state()
    assert agent.restarts == whole.restarts
    assert len(whole.restarts) > 0
    assert slept > 30


@pytest.mark.parametrize("cut", [1, 2, 31, 64, 99])
def test_a_run_may_be_split(cut):
    model = drifting(130)
    whole, agent = (made(130, 2, **FIRING) for _ in range(2))
    run = wd.run(model, whole, seed=4)
    first = wd.run(model, agent, seed=4, steps=cut)
    agent = MASTER.from_state(agent.state())
    rest = wd.run(model, agent, seed=4)
    assert agent.state() == whole.state()
    starts = np.append(first.episodes.start, rest.episodes.start)
    assert starts.tolist() == run.episodes.start.tolist()
    assert np.append(first.episodes.gain, rest.episodes.gain).tolist() == run.episodes.gain.tolist()
    assert run.episodes.length.sum() == 130
    assert set(run.episodes.reason) == {"restart", "visits", "open"}
    assert run.episodes.reason[-1] == "open"


def test_the_contract_with_restarts():
    check_agent(
        lambda space, horizon, seed: MASTER(
            space, horizon=horizon, diameter=5.0, seed=seed, radii=TIGHT, reward_range=(-1, 2),
            **FIRING,
        ),
        horizon=200,
    )  # fmt: skip


class Stop(BaseException):
    pass


@pytest.mark.parametrize("place", ["learned", "kept", "settled"])
def test_an_interrupted_step_is_finished_or_not_begun(place, monkeypatch):
    T = 120
    model = drifting(T)
    whole, agent = (made(T, 2, **FIRING) for _ in range(2))
    wd.run(model, whole, seed=4)
    owner, name = {
        "learned": (AdaptiveUCRL, "observe"),
        "kept": (master, "astuple"),
        "settled": (MASTER, "_settle"),
    }[place]
    real, calls = getattr(owner, name), []

    def interrupted(*given):
        found = real(*given)
        calls.append(1)
        if len(calls) == 3:
            raise Stop
        return found

    monkeypatch.setattr(owner, name, interrupted)
    with pytest.raises(Stop):
        wd.run(model, agent, seed=4)
    monkeypatch.undo()
    agent = MASTER.from_state(agent.state())
    assert 1 < agent.t < T
    wd.run(model, agent, seed=4)
    assert agent.state() == whole.state()


def test_a_step_that_was_not_taken_is_forgotten():
    agent, calm = made(40), made(40)
    world = wd.simulate.Simulator(drifting(40), 1)
    for _ in range(40):
        s = world.state
        agent.act(s)
        agent.withdraw()
        a = agent.act(s)
        assert a == calm.act(s)
        step = world.step(a)
        agent.observe(s, a, *step)
        calm.observe(s, a, *step)
    assert agent.state() == calm.state()
    with pytest.raises(HorizonReached):
        agent.act(0)


def tally(values, **changed):
    return values | {"tally": values["tally"] | changed}


TAMPER = {
    "order": lambda v: tally(v, order=v["tally"]["order"] + 1),
    "start": lambda v: tally(v, start=v["tally"]["start"] + 1),
    "late start": lambda v: tally(v, start=10**6),
    "lowest": lambda v: tally(v, lowest=None),
    "missed": lambda v: tally(v, missed=None),
    "earned": lambda v: tally(v, earned=v["tally"]["earned"][1:]),
    "fired": lambda v: tally(v, fired=[v["tally"]["fired"][0], v["tally"]["fired"][1] + 1]),
    "a copy less": lambda v: v | {"copies": v["copies"][:-1]},
    "a copy twice": lambda v: v | {"copies": [*v["copies"], v["copies"][0]]},
    "a copy of another time": lambda v: v | {"copies": [[m, s + 1] for m, s in v["copies"]]},
    "a copy before the first": lambda v: v | {"copies": [[-1, 1], *v["copies"]]},
    "not scheduled": lambda v: v | {"scheduled": False},
    "no decision": lambda v: v | {"pending": None},
    "episodes": lambda v: v | {"episodes": -1},
    "no episode": lambda v: v | {"episode": []},
    "episode in the future": lambda v: v | {"episode": [[10**6, *v["episode"][0][1:]]]},
    "clock": lambda v: v | {"t": v["t"] + 50},
}


@pytest.fixture(scope="module")
def saved():
    agent = made(300, 2, **FIRING)
    wd.run(drifting(300), agent, seed=4, steps=220)
    while len(agent.copies) < 3:
        s = agent.last_state
        agent.observe(s, agent.act(s), 0.5, s)
    agent.act(agent.last_state)
    return agent.state()


@pytest.mark.parametrize("name", TAMPER)
def test_impossible_states_are_refused(saved, name):
    blob = unpack(saved)
    assert MASTER.from_state(pack(blob)).state() == saved
    wrong = Blob(blob.agent, blob.configuration, TAMPER[name](blob.values), blob.arrays)
    with pytest.raises(StateError):
        MASTER.from_state(pack(wrong))


def test_a_copy_of_another_agent_is_refused(saved):
    blob, other = unpack(saved), unpack(saved)
    name = next(name for name in blob.arrays if name.startswith("copy."))
    stranger = AdaptiveUCRL(SPACE, horizon=300, diameter=4.0, radii=TIGHT, seed=1)
    other.arrays[name] = np.frombuffer(stranger.state(), np.uint8)
    with pytest.raises(StateError):
        MASTER.from_state(pack(other))
    tests = blob.arrays["restarts.test"].copy()
    tests[0] = 3
    blob.arrays["restarts.test"] = tests
    with pytest.raises(StateError):
        MASTER.from_state(pack(blob))
