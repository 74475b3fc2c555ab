"""Many agents in one journal: errors name theirs, and one bad outcome is one bad outcome."""

from __future__ import annotations

import dataclasses

import pytest

import windage as wd
from tests.live_loops import SPACE, loop, swucrl
from windage.live.maintenance import verify


def shops(count=3):
    return {f"shop {i}": swucrl(seed=i) for i in range(count)}


def test_an_outcome_that_is_refused_keeps_no_others_out(path):
    twins = shops()
    with wd.live.open(path, shops()) as fleet:
        decisions = fleet.decide(dict.fromkeys(fleet, 0))
        outcomes = {name: (d.id, 1.0, 2) for name, d in decisions.items()}
        bad = outcomes | {"shop 1": (decisions["shop 1"].id, 1.0, 77), "nobody": (3, 1.0, 0)}
        with pytest.raises(wd.InputError) as err:
            fleet.observe(bad)
        assert "agent 'shop 1'" in str(err.value)
        assert "77" in str(err.value)
        assert "2 other outcomes of the round were taken, 1 more were refused" in str(err.value)
        assert [fleet[name].agent.t for name in fleet] == [2, 1, 2]
        assert wd.live.status(path, "shop 1").agents[0].rejected == 1
        how = {name: receipt.how for name, receipt in fleet.observe(outcomes).items()}
        assert how == {"shop 0": "again", "shop 1": "learned", "shop 2": "again"}
        for name, twin in twins.items():
            action = twin.act(0)
            assert action == decisions[name].action
            twin.observe(0, action, 1.0, 2)
            assert fleet[name].agent.state() == twin.state()
        with pytest.raises(wd.InputError, match=r"agent 'shop 2': .* is no outcome; 2 other"):
            fleet.observe(outcomes | {"shop 2": 5})
    assert verify(path).is_sound


def test_a_late_outcome_that_cannot_be_placed_leaves_the_round_as_it_was(path):
    """Its event was appended before the replay failed: it must not be written with the others."""
    broken = []

    def make(horizon):
        if broken:
            raise wd.InputError("no more agents", field="make_agent", fix="mend it")
        return wd.UCRL2(SPACE, horizon=horizon)

    with wd.live.open(path, {"a": wd.Doubling(make, first=4), "b": swucrl()}) as fleet:
        _, s = loop(fleet["a"], 1)
        missed = fleet["a"].decide(s)
        fleet["a"].expire(missed.id)
        _, s = loop(fleet["a"], 2, start=1, s=s)
        fleet["a"].decide(s)
        told = fleet["b"].decide(0)
        before, events = fleet["a"].agent.state(), fleet.journal.n
        broken.append(True)
        with pytest.raises(wd.InputError, match="no more agents; 1 other outcomes"):
            fleet.observe({"a": (missed.id, 0.5, s), "b": (told.id, 1.0, 0)})
        broken.clear()
        assert fleet.journal.n == events + 1
        assert fleet["a"].agent.state() == before
        assert fleet["b"].agent.t == 2
        assert fleet["a"].observe(missed.id, 0.5, s).how == "late"
    assert verify(path).problems == []


def test_errors_name_the_agent(path):
    with wd.live.open(path, shops()) as fleet:
        with pytest.raises(wd.InputError, match="state at agent 'shop 2'"):
            fleet.decide({"shop 0": 0, "shop 2": 99})
        d = fleet["shop 0"].decide(0)
        for call in (
            lambda: fleet["shop 0"].decide(1),
            lambda: fleet.decide({"shop 0": 1}),
            lambda: fleet["shop 0"].switch(swucrl(window=9)),
            lambda: fleet["shop 0"].expire(d.id + 1),
        ):
            with pytest.raises(wd.WindageError, match="agent 'shop 0'"):
                call()
    other = shops() | {"shop 1": swucrl(window=9)}
    with pytest.raises(wd.JournalError, match=r"agent 'shop 1': was made with another conf"):
        wd.live.open(path, other)


def test_an_agent_that_is_alone_has_no_name_to_say(path):
    with wd.live.open(path, swucrl()) as live, pytest.raises(wd.InputError, match="^state: "):
        live.decide(99)


def test_one_object_under_two_names_is_refused(path):
    twice = swucrl()
    with pytest.raises(wd.InputError, match="at 'b': is the same object as agent 'a'"):
        wd.live.open(path, {"a": twice, "b": twice})
    assert not path.exists()


def test_a_journal_of_several_agents_asks_for_a_name(path):
    with wd.live.open(path, shops(7)) as fleet:
        fleet.decide(dict.fromkeys(fleet, 0))
    for look in (wd.live.explain, wd.live.views.performance):
        with pytest.raises(wd.InputError, match=r"holds 7 agents.*--name\): 'shop 0', .*'shop 4',"):
            look(path)


def test_the_status_of_a_fleet_is_told_from_its_events(path, monkeypatch):
    """No agent is restored, and an agent costs the same few queries however long its history."""
    from windage.agents import Agent
    from windage.live import views
    from windage.live.journal import Journal

    fleet_of = {name: swucrl(seed=i, window=20) for i, name in enumerate("abc")}
    alone = path.with_name("alone.journal")
    with wd.live.open(path, fleet_of, missing="skip") as fleet:
        for name, steps in zip(fleet, (70, 3, 0), strict=True):
            _, s = loop(fleet[name], steps)
        fleet["b"].decide(s)
        fleet["b"].decide(s)
    with wd.live.open(alone, fleet_of["a"]) as live:
        loop(live, 70)
    singles = [wd.live.status(path, name).agents[0] for name in "abc"]
    assert singles[0].gain == wd.live.status(alone).agents[0].gain
    queries, all_ = [], Journal.all

    def counted(self, query, *values):
        queries.append(query)
        return all_(self, query, *values)

    monkeypatch.setattr(Journal, "all", counted)
    for name in ("remade", "from_state", "replay"):
        monkeypatch.delattr(Agent, name)
    monkeypatch.delattr(views, "agent_at")
    found = wd.live.status(path).agents
    assert len(queries) <= 3 + 5 * len(found)
    for one, single in zip(found, singles, strict=True):
        assert one == dataclasses.replace(single, gain=None, vacuous=None)
    assert [one.t for one in found] == [71, 4, 1]
    assert [one.given_up for one in found] == [0, 1, 0]
    assert found[0].settings == {
        "window": 20, "widening": 0.05, "radii": "laplace", "ties": "random", "horizon": 100_000,
    }  # fmt: skip
