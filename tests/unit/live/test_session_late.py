"""Outcomes that come late where there is no room for them: kept, and never in anybody's way."""

from __future__ import annotations

import pytest

import windage as wd
from tests.live_loops import SPACE, loop, outcome, swucrl
from windage.live import history
from windage.live.maintenance import verify

HORIZON = 10


def ucrl2():
    return wd.UCRL2(SPACE, horizon=HORIZON)


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize(
    ("learned", "last", "how"),
    [
        (10, "learned", "unused"),
        (9, "learned", "late"),
        (9, "pending", "unused"),
        (9, "expired", "unused"),
        (8, "pending", "late"),
        (8, "expired", "late"),
    ],
)
def test_a_late_reward_never_pushes_a_decision_beyond_the_horizon(
    path, learned, last, how, batched
):
    with wd.live.open(path, ucrl2()) as live:
        _, s = loop(live, 4)
        missed = live.decide(s)
        live.expire(missed.id)
        _, s = loop(live, learned - 4, s=s, start=4)
        waiting = live.decide(s) if last != "learned" else None
        if last == "expired":
            live.expire(waiting.id)
        if batched:
            with live.batch():
                assert live.observe(missed.id, 0.5, s).how == how
        else:
            assert live.observe(missed.id, 0.5, s).how == how
        assert live.agent.t == learned + 1 + (how == "late")
        if last == "pending":
            assert live.observe(waiting.id, 0.5, 0).how == "learned"
        state, left = live.agent.state(), HORIZON + 1 - live.agent.t
    assert verify(path).is_sound
    with wd.live.open(path, ucrl2()) as live:
        assert live.agent.state() == state
        loop(live, left)
        with pytest.raises(wd.HorizonReached):
            live.decide(0)
        assert live.switch(wd.UCRL2(SPACE, horizon=50)).carried == HORIZON
    assert verify(path).is_sound


def test_the_last_of_all_may_come_late_at_the_horizon(path):
    with wd.live.open(path, ucrl2()) as live:
        _, s = loop(live, HORIZON - 1)
        missed = live.decide(s)
        live.expire(missed.id)
        assert live.observe(missed.id, 0.5, s).how == "late"
        assert live.agent.t == HORIZON + 1
    assert verify(path).is_sound


def doubling():
    return wd.Doubling(lambda T: wd.UCRL2(SPACE, horizon=T), first=4)


def test_a_late_reward_that_ends_a_runner_says_who_runs_next(path):
    with wd.live.open(path, doubling()) as live:
        _, s = loop(live, 1)
        missed = live.decide(s)
        live.expire(missed.id)
        _, s = loop(live, 2, start=1, s=s)
        waiting = live.decide(s)
        assert live.agent.runner.horizon == 4
        assert live.observe(missed.id, 0.5, s).how == "late"
        assert live.agent.runner.horizon == 8
        assert verify(path).problems == []  # nobody but the program has the function
        assert wd.live.status(path).agents[0].trouble == ""
        live.observe(waiting.id, 0.5, 0)
    assert verify(path).problems == []


def test_a_late_reward_that_cannot_be_replayed_is_not_acknowledged(path):
    broken = []

    def make(horizon):
        if broken:
            raise wd.InputError("no more agents", field="make_agent", fix="mend it")
        return wd.UCRL2(SPACE, horizon=horizon)

    with wd.live.open(path, wd.Doubling(make, first=4)) as live:
        _, s = loop(live, 1)
        missed = live.decide(s)
        live.expire(missed.id)
        _, s = loop(live, 2, start=1, s=s)
        waiting = live.decide(s)
        before, events = live.agent.state(), live.journal.n
        broken.append(True)
        with pytest.raises(wd.InputError, match="no more agents"):
            live.observe(missed.id, 0.5, s)
        assert live.journal.n == events
        assert live.agent.state() == before
        assert live.observe(waiting.id, 0.5, 0).how == "learned"
    assert verify(path).problems == []


@pytest.mark.parametrize("look", ["status", "verify", "export", "explain"])
def test_a_look_sees_one_moment_while_the_program_goes_on(path, look, monkeypatch, tmp_path):
    """The program decides between any two queries of the look."""
    from windage.live.journal import Journal

    with wd.live.open(path, wd.UCRL2(SPACE, horizon=10_000)) as live:
        loop(live, 5)
        query = Journal.all
        moves = []

        def interrupted(self, *args):
            if type(self) is Journal:
                moves.append(loop(live, 1))
            return query(self, *args)

        monkeypatch.setattr(Journal, "all", interrupted)
        if look == "status":
            found = wd.live.status(path)
            (one,) = found.agents
            assert (found.events, one.decisions, one.learned, one.unused) == (11, 5, 5, 0)
            assert (one.t, one.pending, one.trouble) == (6, "", "")
        elif look == "verify":
            found = verify(path)
            assert (found.problems, found.events, found.decisions) == ([], 11, 5)
        elif look == "export":
            from windage.live.views import export

            assert export(path, tmp_path / "orders.parquet") == 5
        else:
            from windage.live.explain import explain

            assert explain(path).id == 10
        assert moves


def test_what_is_acknowledged_while_the_end_is_looked_for_was_not_cut(path, monkeypatch):
    from windage.live import journal

    with wd.live.open(path, wd.UCRL2(SPACE, horizon=10_000)) as live:
        loop(live, 2)
        read = journal.read_head

        def later(where):
            loop(live, 1)
            return read(where)

        monkeypatch.setattr(journal, "read_head", later)
        reader = journal.Journal(path)
        assert reader.n == 7
        reader.close()


@pytest.mark.parametrize("delay", [1, 7])
def test_a_loop_in_which_every_outcome_is_late_replays_a_bounded_stretch(path, delay, monkeypatch):
    """Counted in steps: without snapshots there, all of the history for every outcome."""
    monkeypatch.setattr(history, "SNAPSHOT_STEPS", 16)
    monkeypatch.setattr(history, "SNAPSHOT_BYTES", 10**9)
    replayed, replay = [], wd.SWUCRL2CW.replay

    def counted(self, steps):
        replayed.append(steps.states.size)
        return replay(self, steps)

    monkeypatch.setattr(wd.SWUCRL2CW, "replay", counted)
    with wd.live.open(path, swucrl(window=100), missing="skip") as live:
        waiting, count = [], 300
        for i in range(count):
            d = live.decide(i % 3)
            waiting.append((d.id, *outcome(i % 3, d.action, i)))
            if i >= delay:
                assert live.observe(*waiting.pop(0)).how == "late"
        state = live.agent.state()
    assert 0 < sum(replayed) <= count * (16 + delay + 2)
    assert verify(path).problems == []
    assert verify(path).snapshots > 5
    replayed.clear()
    with wd.live.open(path, swucrl(window=100), missing="skip") as live:
        assert live.agent.state() == state
    assert 0 < sum(replayed) <= 16 + delay + 2


def test_outcomes_that_are_late_in_any_order_lead_to_the_same_agent(path, monkeypatch):
    import numpy as np

    monkeypatch.setattr(history, "SNAPSHOT_STEPS", 8)
    with wd.live.open(path, swucrl(window=100), missing="skip") as live, live.batch():
        told = []
        for i in range(60):
            d = live.decide(i % 3)
            told.append((d.id, *outcome(i % 3, d.action, i)))
        live.expire(d.id)
        for k in np.random.default_rng(2).permutation(60):
            assert live.observe(*told[k]).how == "late"
        state = live.agent.state()
    assert verify(path).problems == []
    monkeypatch.setattr(history, "SNAPSHOT_STEPS", 10**9)
    other = path.with_name("in order.journal")
    with wd.live.open(other, swucrl(window=100), missing="skip") as live, live.batch():
        for i in range(60):
            live.decide(i % 3)
        live.expire(told[-1][0])
        for one in told:
            live.observe(*one)
        assert live.agent.state() == state


COUNT = 29
LEARNERS = {
    **dict.fromkeys(["multi-scale", "ucb1", "diff-q", "imed-rl", "ucrl2", "psrl"], COUNT),
    **dict.fromkeys(["multi-scale-guarded", "borl", "bob", "exp3-s"], 0),
    "certainty-equivalent": COUNT,
    "sw-imed-rl": COUNT,
}


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_late_outcomes_are_learned_by_whoever_can(path, name):
    """Each in its place: the agent is one that saw every outcome in time, of the actions played."""
    budgets = wd.envs.make("two-state-cosine", horizon=500).budgets()

    def make():
        return wd.agents.make(name, SPACE, horizon=500, budgets=budgets)

    assert make().off_policy == bool(LEARNERS[name])
    with wd.live.open(path, make(), missing="skip") as live, live.batch():
        twin, told, s = make(), None, 0
        for i in range(COUNT + 1):
            d = live.decide(s)
            if told:
                how = live.observe(*told).how
                assert how == ("late" if LEARNERS[name] else "unused")
            reward, after = outcome(s, d.action, i)
            told, s = (d.id, reward, after), after
            if LEARNERS[name] and i < COUNT:
                twin.act(d.state)
                twin.observe(d.state, d.action, reward, after)
        assert live.agent.t == 1 + LEARNERS[name]
        if LEARNERS[name]:
            twin.act(d.state)
            assert live.agent.state() == twin.state()
    assert verify(path).is_sound
    assert wd.live.status(path).agents[0].learned == LEARNERS[name]
