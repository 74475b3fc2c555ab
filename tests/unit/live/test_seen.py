"""Structures in journals: what a step shows survives whatever the agent survives."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import windage as wd
from windage.cli import main
from windage.live import history
from windage.live.maintenance import verify

STOCK = 5
SPACE = wd.StateActions([STOCK - s for s in range(STOCK)])


def known(price=5, seen="interval"):
    """Stock and orders; sales say only that demand was at least as large as what was there."""
    demand = wd.Exogenous("demand", range(6), seen=seen)
    cost = wd.Exogenous("cost", [1, 2], group=lambda s, a: "buys" if a else None, seen="involved")
    return wd.Structure(
        SPACE,
        [demand, cost],
        next_state=lambda s, a, d, c: max(s + a - d, 0),
        reward=lambda s, a, d, c: price * min(s + a, d) - a * (c or 0),
    )


KNOWN = known()
LEARNERS = {
    "multi-scale": lambda T=400: wd.MultiScale(SPACE, horizon=T, structure=KNOWN),
    "certainty-equivalent": lambda T=400: wd.CertaintyEquivalent(
        SPACE, horizon=T, structure=KNOWN, window=20
    ),
    "sw-psrl": lambda T=400: wd.SWPSRL(SPACE, horizon=T, structure=KNOWN, window=30),
    "doubling": lambda: wd.Doubling(
        lambda T: wd.MultiScale(SPACE, horizon=T, structure=KNOWN, seed=T), first=16
    ),
}


def outcome(s, a, i):
    """Reward, next state and what is seen at step i: the same whenever it is asked for."""
    demand, cost = (3 * i + i // 7) % 6, 1 + i % 2
    stock = s + a
    seen = {"demand": demand if demand < stock else (stock, 5)}
    if a:
        seen["cost"] = cost
    return 5.0 * min(stock, demand) - a * cost, max(stock - demand, 0), seen


def loop(live, steps, start=0, s=0):
    done = []
    for i in range(start, start + steps):
        d = live.decide(s)
        reward, after, seen = outcome(s, d.action, i)
        assert live.observe(d.id, reward, after, seen=seen).how == "learned"
        done.append((s, d.action, reward, after, seen))
        s = after
    return done, s


def twin_of(make, done):
    twin = make()
    for s, a, reward, after, seen in done:
        twin.act(s)
        twin.observe(s, a, reward, after, seen)
    return twin


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("snapshots", [8, 10**9])
def test_a_loop_that_is_cut_anywhere_is_the_loop_by_hand(path, name, snapshots, monkeypatch):
    monkeypatch.setattr(history, "SNAPSHOT_STEPS", snapshots)
    monkeypatch.setattr(history, "SNAPSHOT_BYTES", 10**9)
    make, done, s = LEARNERS[name], [], 0
    for steps in (1, 17, 2, 30):
        with wd.live.open(path, make()) as live, live.batch():
            part, s = loop(live, steps, start=len(done), s=s)
            done += part
    twin = make()
    for step, (state, action, *rest) in enumerate(done):
        assert twin.act(state) == action, step
        twin.observe(state, action, *rest)
    with wd.live.open(path, make()) as live:
        assert live.agent.state() == twin.state()
        d = live.decide(s)
        assert d.action == twin.act(s)
        assert d.action_name in str(wd.live.explain(path))
    assert verify(path).problems == []
    assert verify(path).decisions == 51


@pytest.mark.parametrize("name", ["multi-scale", "certainty-equivalent"])
def test_late_outcomes_are_learned_in_their_place_with_what_was_seen(path, name):
    make = LEARNERS[name]
    with wd.live.open(path, make(), missing="skip") as live, live.batch():
        done, s = loop(live, 12)
        missed, other = live.decide(3), live.decide(2)
        more, s = loop(live, 6, start=12, s=s)
        for d, i in ((other, 51), (missed, 50)):
            reward, after, seen = outcome(d.state, d.action, i)
            with pytest.raises(wd.InputError, match="demand"):
                live.observe(d.id, reward, after, seen={"demand": 77})
            assert live.observe(d.id, reward, after, seen=seen).how == "late"
            assert live.observe(d.id, reward, after, seen=seen).how == "again"
        late = [(d.state, d.action, *outcome(d.state, d.action, i))
                for d, i in ((missed, 50), (other, 51))]  # fmt: skip
        assert live.agent.state() == twin_of(make, [*done, *late, *more]).state()
    assert verify(path).problems == []


def test_a_round_of_a_fleet_says_what_each_step_showed(path):
    def fleet_of():
        return {name: wd.MultiScale(SPACE, horizon=400, structure=KNOWN, seed=i)
                for i, name in enumerate("ab")}  # fmt: skip

    with wd.live.open(path, fleet_of()) as fleet:
        twins, s = fleet_of(), dict.fromkeys("ab", 0)
        for i in range(20):
            ds, outcomes = fleet.decide(s), {}
            for name, d in ds.items():
                reward, after, seen = outcome(s[name], d.action, i)
                outcomes[name] = (d.id, reward, after, None, seen)
                assert twins[name].act(s[name]) == d.action
                twins[name].observe(s[name], d.action, reward, after, seen)
                s[name] = after
            assert {one.how for one in fleet.observe(outcomes).values()} == {"learned"}
    with wd.live.open(path, fleet_of()) as fleet:
        assert all(fleet[name].agent.state() == twins[name].state() for name in "ab")
    assert verify(path).is_sound


@pytest.mark.parametrize(
    ("seen", "problem"),
    [
        (None, "cost"),
        ({"cost": 1, "demnd": 3}, "did you mean 'demand'"),
        ({"cost": 1, "demand": 9}, "9 is no outcome of 'demand'"),
        ({"cost": 1, "demand": (3, 1)}, "demand"),
        ({"cost": 1, "demand": 0}, "seen"),
        ({"cost": 1, "demand": [1, 2, 3]}, "seen"),
        ({"cost": True}, "True is no outcome"),
        ({"cost": float("nan")}, "seen"),
        ({"cost": 10**30}, "seen"),
        ({"cost": "\ud800"}, "seen"),
        ({3: 1}, "seen"),
        (7, "seen"),
    ],
)
def test_what_cannot_have_been_seen_is_refused_and_nothing_changes(path, seen, problem):
    with wd.live.open(path, LEARNERS["multi-scale"]()) as live:
        loop(live, 5)
        d = live.decide(2)
        before, events = live.agent.state(), live.journal.n
        with pytest.raises(wd.InputError) as err:
            live.observe(d.id, 10.0 - 1, 0, action=1, seen=seen)
        assert problem in str(err.value)
        assert (live.agent.state(), live.journal.n) == (before, events)
        told = {"cost": np.int64(1), "demand": (np.int64(3), 5)}
        assert live.observe(d.id, 15.0 - 1, 0, action=1, seen=told).how == "learned"
        with pytest.raises(wd.InputError, match=r"known already: .*'demand': \[3, 5\].*; now .*"):
            live.observe(d.id, 15.0 - 1, 0, action=1, seen=told | {"demand": (4, 5)})
        assert live.observe(d.id, 15.0 - 1, 0, action=1, seen=told).how == "again"
    assert wd.live.status(path).agents[0].rejected == 2
    assert verify(path).is_sound


def test_another_structure_than_the_journals_is_refused_in_a_few_words(path):
    with wd.live.open(path, LEARNERS["multi-scale"]()) as live:
        loop(live, 3)
    for structure, words in [
        (known(price=6), r"agent\.structure: another one than in the journal \(differs in reward"),
        (known(seen="always"), r"agent\.structure: another .*\(differs in variables\)"),
        (None, r"agent\.structure: one in the journal, none now"),
    ]:
        other = wd.MultiScale(SPACE, horizon=400, structure=structure)
        with pytest.raises(wd.JournalError, match=words) as err:
            wd.live.open(path, other)
        assert len(str(err.value)) < 700


def test_an_agent_without_a_structure_keeps_what_was_seen_for_the_next(path):
    """A journal may begin before the structure is known: a switch learns from what was seen."""
    with wd.live.open(path, wd.MultiScale(SPACE, horizon=50, reward_range=(-10, 25))) as live:
        done, s = loop(live, 25)
        assert live.switch(LEARNERS["multi-scale"]()).carried == 25
        agent = LEARNERS["multi-scale"]()
        for step in done:
            agent.preload(*step)
        assert live.agent.state() == agent.state()
        more, s = loop(live, 10, start=25, s=s)
        assert live.switch(LEARNERS["certainty-equivalent"](900)).carried == 20
    with wd.live.open(path, LEARNERS["certainty-equivalent"](900)) as live:
        assert live.agent.horizon == 900
        loop(live, 3, start=35, s=s)
    assert verify(path).is_sound
    frame = wd.live.to_frame(path)
    shown = [json.loads(text) for text in frame["seen"].to_list()]
    assert shown[:35] == [json.loads(json.dumps(step[4])) for step in [*done, *more]]


def test_rewards_of_a_known_structure_have_its_units(path):
    agent = LEARNERS["multi-scale"]()
    low, high = agent.reward_range
    with pytest.raises(wd.InputError, match=rf"reward_range: .* pass \({-high:g}, {-low:g}\)"):
        wd.live.open(path, agent, reward_range=(0, 50), direction="cost")
    assert not path.exists()
    with wd.live.open(path, agent, reward_range=(-high, -low), direction="cost") as live:
        d = live.decide(0)
        reward, after, seen = outcome(0, d.action, 4)
        live.observe(d.id, -reward, after, seen=seen)
        twin = twin_of(LEARNERS["multi-scale"], [(0, d.action, reward, after, seen)])
        assert live.agent.act(after) == twin.act(after)


def test_a_killed_program_goes_on_with_the_same_action(path):
    script = f"""
        import os, signal
        import windage as wd
        from tests.unit.live.test_seen import LEARNERS, loop
        live = wd.live.open({str(path)!r}, LEARNERS["multi-scale"]())
        loop(live, 23)
        live.decide(2)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    env = os.environ | {"PYTHONPATH": os.pathsep.join([p for p in sys.path if p])}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], env=env, check=False)
    assert done.returncode == -signal.SIGKILL
    other = path.with_name("whole.journal")
    make = LEARNERS["multi-scale"]
    with wd.live.open(path, make()) as cut, wd.live.open(other, make()) as whole:
        loop(whole, 23)
        assert cut.pending == whole.decide(2)
        assert cut.agent.state() == whole.agent.state()
        for live in (cut, whole):
            d = live.pending
            reward, after, seen = outcome(2, d.action, 23)
            live.observe(d.id, reward, after, seen=seen)
        assert loop(cut, 5, start=24, s=after) == loop(whole, 5, start=24, s=after)
    copy = path.with_name("copy.journal")
    assert wd.live.recover(path, copy).missing == 0
    with wd.live.open(copy, make()) as live, wd.live.open(other, make()) as whole:
        assert live.agent.state() == whole.agent.state()


def test_a_longer_horizon_from_the_command_line_keeps_the_structure(path, capsys):
    with wd.live.open(path, LEARNERS["multi-scale"]()) as live:
        loop(live, 12)
    for options in (["--set", "horizon=900"], ["--agent", "certainty-equivalent"]):
        assert main(["live", "switch", str(path), *options, "--apply"]) == 0
        assert "with the last 12 samples" in " ".join(capsys.readouterr().out.split())
    with wd.live.open(path, wd.CertaintyEquivalent(SPACE, horizon=900, structure=KNOWN)) as live:
        loop(live, 2)
