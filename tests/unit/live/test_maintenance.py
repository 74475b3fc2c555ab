"""Another agent for a running journal: rehearsed, recorded, and asked for from then on."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd
from tests.live_loops import SPACE, loop, swucrl
from windage.live import history
from windage.live.config import Units, decode_seen
from windage.live.journal import Journal
from windage.live.maintenance import verify
from windage.live.views import status

UNITS = Units(None, "reward", (0.0, 1.0))


def lived(path, steps=120):
    with wd.live.open(path, swucrl()) as live, live.batch():
        return loop(live, steps)


def carried(done, make, samples):
    agent = make()
    for s, a, reward, after in done[len(done) - samples :]:
        if hasattr(agent, "preload"):
            agent.preload(s, a, reward, after)
        else:
            agent.act(s)
            agent.observe(s, a, reward, after)
    return agent


@pytest.mark.parametrize(
    ("make", "samples"),
    [
        (lambda: swucrl(window=15), 15),
        (lambda: swucrl(window=500), 120),
        (lambda: wd.UCRL2(SPACE, horizon=5000), 120),
        (lambda: wd.DifferentialQ(SPACE, horizon=5000), 120),
        (lambda: wd.MultiScale(SPACE, horizon=5000), 120),
        (lambda: wd.CertaintyEquivalent(SPACE, horizon=5000, window=15), 15),
        (lambda: wd.MultiScaleGuarded(SPACE, horizon=5000), 120),
        (lambda: wd.IMEDRL(SPACE, horizon=5000), 120),
        (lambda: wd.agents.make("sw-ucb", SPACE, horizon=5000, window=20), 120),
        (lambda: wd.BORL(SPACE, horizon=5000), 0),
    ],
)
@pytest.mark.filterwarnings("ignore::windage.GuaranteeWarning")
def test_a_switch_goes_on_with_the_last_samples(path, make, samples):
    done, s = lived(path)
    twin = carried(done, make, samples)
    with wd.live.open(path, swucrl()) as live:
        found = live.switch(make())
        assert (found.steps, found.carried) == (120, samples)
        assert live.agent.state() == twin.state()
        assert status(path).agents[0].t == twin.t
        more, _ = loop(live, 30, start=120, s=s)
    for step in more:
        assert twin.act(step[0]) == step[1]
        twin.observe(*step)
    with wd.live.open(path, make()) as live:
        assert live.agent.state() == twin.state()
    with pytest.raises(wd.JournalError, match=r"it was switched at event 242.*: agent\."):
        wd.live.open(path, swucrl())
    assert verify(path).is_sound
    assert status(path).agents[0].agent == make().id
    assert status(path).agents[0].learned == 150


def test_a_dry_run_changes_nothing_and_says_what_would(path):
    done, _ = lived(path)
    with wd.live.open(path, swucrl()) as live:
        before, n = live.agent.state(), live.journal.n
        found = live.switch(swucrl(window=15), dry_run=True)
        assert (live.agent.state(), live.journal.n) == (before, n)
        assert live.decide(0) is not None
    assert found.changes == ("window: 40 in the journal, 15 now",)
    twin, agreed = swucrl(window=15), []
    for s, a, reward, after in done:
        agreed.append(twin.act(s) == a)
        twin.observe(s, a, reward, after)
    assert found.agreed == np.mean(agreed)
    fresh = carried(done, lambda: swucrl(window=15), 15)
    now = swucrl()
    for step in done:
        now.act(step[0])
        now.observe(*step)
    fresh.act(now.last_state)
    names = [
        tuple(SPACE.action_name(s, one._played(s) - SPACE.offsets[s]) for one in (now, fresh))
        for s in range(3)
    ]
    wanted = tuple((SPACE.state_name(s), *two) for s, two in enumerate(names) if two[0] != two[1])
    assert found.policy == wanted
    assert found.gain == (now.episode.gain, fresh.episode.gain)
    assert found.vacuous[1] == fresh.episode.vacuous
    wd.live.open(path, swucrl()).close()


def test_a_switch_twice_and_late_rewards_from_before(path):
    with wd.live.open(path, swucrl(), missing="skip") as live, live.batch():
        lost = live.decide(0)
        _, s = loop(live, 5)
        live.switch(swucrl(window=30))
        again = live.decide(s)
        live.expire(again.id)
        live.switch(swucrl(window=29))
        for step in (lost, again):
            assert live.observe(step.id, 1.0, 0).how == "unused", "another agent's step"
        loop(live, 10, start=5, s=s)
        live.switch(swucrl(window=20))
        state = live.agent.state()
    with wd.live.open(path, swucrl(window=20), missing="skip") as live:
        assert live.agent.state() == state
    assert verify(path).is_sound


def test_snapshots_from_before_a_switch_are_no_problem(path, monkeypatch):
    monkeypatch.setattr(history, "SNAPSHOT_STEPS", 16)
    lived(path)
    with wd.live.open(path, swucrl()) as live:
        live.switch(swucrl(window=20))
        before = live.journal.n
        with live.batch():
            loop(live, 40, start=120, s=live.agent.last_state or 0)
    with Journal(path) as journal:
        steps = [step for (step,) in journal.all("SELECT step FROM snapshots")]
    assert min(steps) < before < max(steps)
    assert verify(path).problems == []
    assert verify(path).snapshots == sum(step > before for step in steps)


def test_switches_that_are_refused(path):
    lived(path, 5)
    with wd.live.open(path, swucrl()) as live:
        n = live.journal.n
        with pytest.raises(wd.InputError, match="other states or actions"):
            live.switch(wd.UCRL2(wd.StateActions([1, 1]), horizon=10))
        with pytest.raises(wd.InputError, match="Doubling"):
            live.switch(wd.Doubling(lambda T: wd.UCRL2(SPACE, horizon=T)))
        with pytest.raises(wd.InputError, match="is no agent"):
            live.switch("ucrl2")
        d = live.decide(0)
        with pytest.raises(wd.CallOrderError, match=f"decision {d.id} is waiting"):
            live.switch(swucrl(window=20))
        assert live.journal.n == n + 1


def test_a_dry_run_may_be_made_while_a_decision_waits(path):
    lived(path, 60)
    with wd.live.open(path, swucrl()) as live:
        settled = live.switch(swucrl(window=20), dry_run=True)
        d = live.decide(0)
        state, n = live.agent.state(), live.journal.n
        found = live.switch(swucrl(window=20), dry_run=True)
        assert (found.steps, found.agreed, found.carried, found.changes) == (
            settled.steps, settled.agreed, settled.carried, settled.changes,
        )  # fmt: skip
        assert (live.agent.state(), live.journal.n, live.pending) == (state, n, d)


def test_a_horizon_that_has_come_is_moved_by_a_switch(path):
    def make(horizon):
        return wd.UCRL2(SPACE, horizon=horizon)

    with wd.live.open(path, make(20)) as live:
        done, s = loop(live, 20)
        with pytest.raises(wd.HorizonReached, match="switch"):
            live.decide(s)
        assert live.switch(make(500)).carried == 20
        loop(live, 5, start=20, s=s)
    assert verify(path).is_sound
    assert len(done) == 20


@pytest.mark.parametrize(
    ("make", "cure"),
    [
        (lambda T: wd.MultiScale(SPACE, horizon=T), "keeps all that the agent counts"),
        (lambda T: wd.DifferentialQ(SPACE, horizon=T), "with T beyond the 10 steps it has seen"),
        (
            lambda T: wd.BORL(SPACE, horizon=T),
            "--agent multi-scale --set horizon=T --apply` learns",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_end_of_the_horizon_names_a_cure_that_loses_nothing(path, make, cure):
    with wd.live.open(path, make(10), reward_range=(0, 1)) as live:
        _, s = loop(live, 10)
        with pytest.raises(wd.HorizonReached, match=r"Fix: with wd\.Doubling a journal .*") as err:
            live.decide(s)
        assert cure in str(err.value)
        new = wd.MultiScale(SPACE, horizon=20) if "multi-scale" in cure else make(20)
        if "beyond" in cure:
            with pytest.raises(wd.InputError, match=r"horizon: .*larger than 10"):
                live.switch(make(10))
        assert live.switch(new).carried == 10
        loop(live, 10, start=10, s=s)
    assert verify(path).is_sound


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("states", 3, r"state\[5\]: 3 is out of range"),
        ("states", -1, r"state\[5\]: -1 is out of range"),
        ("actions", 10**6, r"pairs\[5\]: .* is out of range"),
        ("actions", -1, r"pairs\[5\]: "),
        ("next_states", 10**9, r"afters\[5\]: 1000000000 is out of range"),
    ],
)
def test_events_of_states_that_are_none_never_reach_a_kernel(tmp_path, column, value, message):
    """Whoever writes a journal can make its chain of sums fit."""
    path = tmp_path / "a.journal"
    lived(path, 20)
    journal = Journal(path)
    past = history.history(journal, 1, 0, journal.n)
    journal.close()
    changed = getattr(past, column).copy()
    assert past.learned[5]
    changed[5] = value
    with pytest.raises(wd.WindageError, match=message):
        swucrl().replay(past._replace(**{column: changed}).steps(SPACE, UNITS))


def test_what_was_seen_and_cannot_be_read():
    assert decode_seen('{"demand": 7}') == {"demand": 7}
    for text in ("[" * 10**5, "{", "7"):
        with pytest.raises(wd.JournalError, match="cannot be read"):
            decode_seen(text)
