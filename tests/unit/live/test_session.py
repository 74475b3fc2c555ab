"""Decide and observe: durable, repeatable, and never imputed."""

from __future__ import annotations

import os
import sqlite3
import threading

import pytest

import windage as wd
from tests.live_loops import SPACE, loop, outcome, state_in, swucrl, twin_loop
from windage.live import history
from windage.live.journal import Journal
from windage.live.schema import FORMAT

pytestmark = pytest.mark.filterwarnings("ignore:exp3p")  # a short horizon for BORL

AGENTS = {
    "window": swucrl,
    "practical": lambda: wd.SWUCRL2CW.practical(SPACE, horizon=10_000),
    "ucrl2": lambda: wd.UCRL2(SPACE, horizon=10_000),
    "restarts": lambda: wd.RestartedUCRL2(SPACE, horizon=10_000, restarts=[25, 60, 110]),
    "psrl": lambda: wd.PSRL(SPACE, horizon=10_000),
    "borl": lambda: wd.BORL(SPACE, horizon=10_000),
    "doubling": lambda: wd.Doubling(
        lambda T: wd.SWUCRL2CW(SPACE, horizon=T, window=25, widening=0.1, seed=T), first=32
    ),
    "diff-q": lambda: wd.DifferentialQ(SPACE, horizon=10_000),
    "random": lambda: wd.agents.make("random", SPACE, horizon=10_000),
}


@pytest.mark.parametrize("name", AGENTS)
def test_a_loop_cut_anywhere_is_the_loop_that_was_never_cut(name, path):
    make = AGENTS[name]
    twin = make()
    wanted, _ = twin_loop(twin, 150)
    done, s = [], 0
    for steps in (1, 30, 2, 70, 47):
        with wd.live.open(path, make()) as live, live.batch():
            part, s = loop(live, steps, start=len(done), s=s)
            done += part
    assert done == wanted
    assert state_in(path, make()) == twin.state()


def test_a_snapshot_changes_nothing(path, monkeypatch):
    monkeypatch.setattr(history, "SNAPSHOT_STEPS", 16)
    monkeypatch.setattr(history, "SNAPSHOT_BYTES", 10**9)
    twin = swucrl()
    wanted, _ = twin_loop(twin, 200)
    with wd.live.open(path, swucrl()) as live, live.batch():
        assert loop(live, 200)[0] == wanted
    kept = Journal(path).all("SELECT step, n FROM snapshots ORDER BY step")
    assert 1 < len(kept) <= 5, "as many as the window needs"
    assert all(n == step + 1 for step, n in kept)
    assert state_in(path, swucrl()) == twin.state()


def test_a_damaged_snapshot_is_only_a_lost_cache(path, monkeypatch):
    monkeypatch.setattr(history, "SNAPSHOT_STEPS", 16)
    with wd.live.open(path, swucrl()) as live, live.batch():
        loop(live, 60)
        wanted = live.agent.state()
    path.with_name(path.name + "-head").unlink()  # its seal would refuse the file
    with sqlite3.connect(path) as con:
        con.execute(
            "UPDATE snapshots SET state = x'00' WHERE step = (SELECT max(step) FROM snapshots)"
        )
    con.close()
    assert state_in(path, swucrl()) == wanted


def test_the_same_key_gives_the_same_decision_also_after_its_outcome(path):
    with wd.live.open(path, swucrl()) as live:
        first = live.decide("low", key="monday")
        assert live.decide(0, key="monday") == first
        live.observe(first.id, 1.0, "high")
        assert live.decide(0, key="monday") == first
        events = live.journal.n
    with wd.live.open(path, swucrl()) as live:
        assert live.decide(0, key="monday") == first
        assert live.journal.n == events == 3
        with pytest.raises(
            wd.InputError, match=r"'monday' was used for s=0 \('low'\), now for s=1"
        ):
            live.decide(1, key="monday")
        assert live.journal.n == events


def test_feedback_sent_twice_counts_once_and_another_value_is_refused(path):
    with wd.live.open(path, swucrl()) as live:
        d = live.decide(0)
        assert live.observe(d.id, 1.0, 2).how == "learned"
        before = live.agent.state()
        assert live.observe(d.id, 1.0, 2).how == "again"
        assert live.observe(d.id, 1, 2, action=d.action).how == "again"
        for told in [(0.5, 2), (1.0, 1), (1.0, 2, 1 - d.action)]:
            with pytest.raises(wd.InputError, match="the outcome is known already"):
                live.observe(d.id, *told)
        assert live.agent.state() == before
        assert live.journal.n == 3
        rejected = live.journal.all("SELECT what, problem FROM rejected")
        assert [what for what, _ in rejected] == [f"observe({d.id})"] * 3


def test_wait_refuses_a_second_decision_until_the_first_is_given_up(path):
    with wd.live.open(path, swucrl()) as live:
        d = live.decide(0)
        with pytest.raises(wd.CallOrderError, match=f"decision {d.id} in s=0 .* is waiting"):
            live.decide(0)
        assert live.pending == d
        live.expire(d.id)
        assert live.pending is None
        with pytest.raises(wd.CallOrderError, match="is not waiting"):
            live.expire(d.id)
        live.decide(1)
        assert live.agent.t == 1, "a step that was given up is not played"


def test_skip_drops_the_step_and_counts_it(path):
    twin = swucrl()
    twin.act(0)
    twin.withdraw()
    twin.act(1)
    with wd.live.open(path, swucrl(), missing="skip") as live:
        live.decide(0)
        live.decide(1)
        kinds = [kind for (kind,) in live.journal.all("SELECT kind FROM events ORDER BY n")]
        assert kinds == ["created", "decided", "expired", "decided"]
        assert live.agent.state() == twin.state()
    with wd.live.open(path, swucrl(), missing="skip") as live:
        assert live.agent.state() == twin.state()


@pytest.mark.parametrize("missed", [0, 17, 59])
def test_a_late_reward_stands_where_it_would_have_stood_in_time(path, missed, monkeypatch):
    monkeypatch.setattr(history, "SNAPSHOT_STEPS", 16)
    with wd.live.open(path, swucrl(window=100), missing="skip") as live, live.batch():
        s, told, late = 0, [], None
        for i in range(80):
            d = live.decide(s)
            reward, after = outcome(s, d.action, i)
            told.append((s, d.action, reward, after))
            if i == missed:
                late = (d.id, reward, after)
            else:
                live.observe(d.id, reward, after)
            s = after
        d = live.decide(s)  # waits while the late one comes in
        assert live.observe(*late).how == "late"
        assert live.observe(*late).how == "again"
        twin = swucrl(window=100)
        for step in told:
            twin.act(step[0])
            twin.observe(*step)
        twin.act(s)
        assert live.agent.state() == twin.state()
        assert live.pending == d
        reward, after = outcome(s, d.action, 80)
        live.observe(d.id, reward, after)
        twin.observe(s, d.action, reward, after)
        assert live.agent.state() == twin.state()
    with wd.live.open(path, swucrl(window=100), missing="skip") as live:
        assert live.agent.state() == twin.state()


def late_reward(path, make, steps, missed=0):
    with wd.live.open(path, make(), missing="skip") as live, live.batch():
        d = live.decide(0)
        loop(live, steps)
        before = live.agent.state()
        how = live.observe(d.id, 0.5, 1).how
        return how, live.agent.state() != before


def test_a_reward_is_too_late_when_its_step_has_left_the_window(path, tmp_path):
    assert late_reward(path, swucrl, 39) == ("late", True)
    assert late_reward(tmp_path / "b.journal", swucrl, 40) == ("unused", False)
    assert late_reward(tmp_path / "c.journal", AGENTS["ucrl2"], 200) == ("late", True)
    assert late_reward(tmp_path / "d.journal", AGENTS["borl"], 5) == ("unused", False)
    assert late_reward(tmp_path / "f.journal", AGENTS["doubling"], 20) == ("late", True)
    assert late_reward(tmp_path / "g.journal", AGENTS["doubling"], 40) == ("unused", False)


def test_an_action_that_was_done_instead_is_learned_from(path):
    with wd.live.open(path, swucrl()) as live:
        d = live.decide("middle")
        other = "wait" if d.action_name != "wait" else "rush"
        live.observe(d.id, 1.0, "low", action=other)
        twin = swucrl()
        twin.act(1)
        twin.observe(1, SPACE.action_names[1].index(other), 1.0, 0)
        assert live.agent.state() == twin.state()
        assert live.agent.overridden == 1


@pytest.mark.parametrize(("direction", "told"), [("profit", 0.2), ("cost", 0.8)])
def test_rewards_come_in_the_users_units(path, direction, told):
    units = {"reward_range": (-10, 40), "direction": direction}
    with wd.live.open(path, swucrl(), **units) as live:
        d = live.decide(0)
        live.observe(d.id, 0, 1)
        twin = swucrl()
        twin.act(0)
        twin.observe(0, d.action, told, 1)
        assert live.agent.state() == twin.state()
        d = live.decide(1)
        for reward in (-10.5, 41, float("nan"), True, "1"):
            with pytest.raises(wd.InputError, match="reward"):
                live.observe(d.id, reward, 1)
        assert live.agent.t == 2
    with wd.live.open(path, swucrl(), **units) as live:
        assert live.pending == d


def test_the_agents_own_range_is_kept_to(path):
    with wd.live.open(path, swucrl(reward_range=(2, 4)), reward_range=(0, 1)) as live:
        d = live.decide(0)
        live.observe(d.id, 0.25, 1)
        twin = swucrl(reward_range=(2, 4))
        twin.act(0)
        twin.observe(0, d.action, 2.5, 1)
        assert live.agent.state() == twin.state()


def test_minus_zero_is_zero(path):
    with wd.live.open(path, swucrl()) as live:
        live.observe(live.decide(0).id, -0.0, 1)
    journal = Journal(path)
    journal.require_chain(1)


@pytest.mark.parametrize("bad", [3, -1, True, 1.0, "nowhere", None])
def test_unknown_states_change_nothing(path, bad):
    with wd.live.open(path, swucrl()) as live:
        before = live.journal.n
        with pytest.raises(wd.InputError, match="state"):
            live.decide(bad)
        d = live.decide(0)
        with pytest.raises(wd.InputError, match="next_state"):
            live.observe(d.id, 1.0, bad)
        assert live.journal.n == before + 1
        assert live.pending == d


@pytest.mark.parametrize("bad", [1, 7, -3, True, "2", 2.0, None])
def test_feedback_for_decisions_that_never_were(path, bad):
    with wd.live.open(path, swucrl()) as live:
        live.decide(0)
        with pytest.raises(wd.InputError, match="id"):
            live.observe(bad, 1.0, 1)
        assert live.journal.n == 2


@pytest.mark.parametrize("bad", ["", 7, "x" * 501, b"k", "\ud800", "a\udfffb"])
def test_bad_keys(path, bad):
    with wd.live.open(path, swucrl()) as live, pytest.raises(wd.InputError, match="key"):
        live.decide(0, key=bad)


def test_the_horizon_ends_it(path):
    def make():
        return wd.UCRL2(SPACE, horizon=2)

    with wd.live.open(path, make()) as live:
        loop(live, 2)
        with pytest.raises(wd.HorizonReached):
            live.decide(0)
        assert live.journal.n == 5


def test_another_configuration_is_refused_with_the_difference(path):
    wd.live.open(path, swucrl(), reward_range=(0, 1)).close()
    before = path.read_bytes()
    for agent, options, problem in [
        (swucrl(window=50), {"reward_range": (0, 1)}, "agent.window: 40 in the journal, 50 now"),
        (swucrl(), {}, r"reward_range: \[0.0, 1.0\] in the journal, None now"),
        (swucrl(), {"reward_range": (0, 1), "missing": "skip"}, "missing: 'wait' in the journal"),
        (swucrl(), {"reward_range": (0, 1), "direction": "cost"}, "direction: 'profit' in the jo"),
        (wd.UCRL2(SPACE, horizon=100_000), {"reward_range": (0, 1)}, "agent.id: 'swucrl2-cw' in"),
    ]:
        with pytest.raises(wd.JournalError, match=problem):
            wd.live.open(path, agent, **options)
    assert path.read_bytes() == before


def test_a_second_writer_is_named(path):
    with wd.live.open(path, swucrl()) as live:
        live.decide(0)
        with pytest.raises(wd.JournalError, match=f"process {os.getpid()} is writing to it"):
            wd.live.open(path, swucrl())
        assert live.pending is not None
    wd.live.open(path, swucrl()).close()


def test_a_writer_that_got_past_the_lock_is_noticed(path):
    with wd.live.open(path, swucrl()) as live:
        live.decide(0)
        con = sqlite3.connect(path)
        con.execute("INSERT INTO events SELECT n + 1, agent, kind, n + 1, state, action, reward, "
                    "used, seen, key, body, at, chain FROM events WHERE n = 2")  # fmt: skip
        con.commit()
        con.close()
        with pytest.raises(wd.JournalError, match="another process has written to it"):
            live.observe(2, 1.0, 1)


def test_a_child_of_the_process_may_not_write(path):
    with wd.live.open(path, swucrl()) as live:
        live.journal._pid += 1
        with pytest.raises(wd.JournalError, match="belongs to process"):
            live.decide(0)
        live.journal._pid -= 1


@pytest.mark.parametrize(
    ("form", "version"), [(FORMAT + 1, "a newer version"), (FORMAT - 1, "an earlier version")]
)
def test_a_journal_of_another_version_is_refused_untouched(path, form, version):
    wd.live.open(path, swucrl()).close()
    con = sqlite3.connect(path)
    con.execute(f"PRAGMA user_version = {form}")
    con.close()
    before = path.read_bytes()
    with pytest.raises(wd.JournalError, match=f"{version} of windage: format {form}"):
        wd.live.open(path, swucrl())
    assert path.read_bytes() == before
    with pytest.raises(wd.JournalError, match=f"{version} of windage: format {form}"):
        wd.live.recover(path, path.with_name("new.journal"))


def test_what_is_no_journal_is_refused_untouched(path, tmp_path):
    con = sqlite3.connect(path)
    con.execute("CREATE TABLE shopping (item)")
    con.close()
    before = path.read_bytes()
    with pytest.raises(wd.JournalError, match="is not a journal"):
        wd.live.open(path, swucrl())
    assert path.read_bytes() == before
    path.write_bytes(b"no database at all, but long enough to be one" * 100)
    with pytest.raises(wd.JournalError, match="is not a journal"):
        wd.live.open(path, swucrl())
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    for bad in (tmp_path, tmp_path / "no" / "folder.journal"):
        with pytest.raises(wd.JournalError):
            wd.live.open(bad, swucrl())
    with pytest.raises(wd.InputError):
        wd.live.open(7, swucrl())


def test_a_journal_that_is_gone_is_not_started_anew(path):
    with wd.live.open(path, swucrl()) as live:
        live.decide(0)
    path.unlink()
    with pytest.raises(wd.JournalError, match="is gone, but 2 events were acknowledged"):
        wd.live.open(path, swucrl())
    assert not path.exists()


def test_a_closed_journal_says_so(path):
    live = wd.live.open(path, swucrl())
    live.close()
    live.close()
    with pytest.raises(wd.JournalError, match="is closed"):
        live.decide(0)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"missing": "impute"}, "missing"),
        ({"direction": "up"}, "direction"),
        ({"direction": "cost"}, "costs need a range"),
        ({"reward_range": (1, 1)}, "reward_range"),
        ({"reward_range": 5}, "reward_range"),
        ({"fallback": [0, 0]}, "fallback"),
        ({"fallback": [0, 5, 0]}, "fallback"),
        ({"fallback": 7}, "fallback"),
    ],
)
def test_bad_options_make_no_file(path, options, problem):
    with pytest.raises(wd.InputError, match=problem):
        wd.live.open(path, swucrl(), **options)
    assert not path.exists()


def test_agents_that_cannot_be_opened(path):
    world = wd.envs.make("two-state-cosine", horizon=100)
    oracle = wd.agents.make("oracle", world.space, horizon=100, problem=world)
    waiting = swucrl()
    waiting.act(0)
    for agent in (oracle, waiting, "swucrl2-cw", {}, {"": swucrl()}):
        with pytest.raises(wd.InputError):
            wd.live.open(path, agent)
    assert not path.exists()


def test_a_preloaded_agent_starts_with_what_it_knows(path):
    def make():
        agent = swucrl()
        for i in range(30):
            agent.preload(i % 3, 0, 0.5, (i + 1) % 3)
        return agent

    twin = make()
    wanted, _ = twin_loop(twin, 50)
    with wd.live.open(path, make()) as live, live.batch():
        assert loop(live, 50)[0] == wanted
    assert state_in(path, swucrl()) == twin.state(), "the past is in the journal"


def test_a_batch_is_all_or_nothing(path):
    with wd.live.open(path, swucrl()) as live:
        loop(live, 3)
        before = live.agent.state()
        with pytest.raises(ZeroDivisionError), live.batch():
            raise ZeroDivisionError(loop(live, 5, start=3))
        assert live.journal.n == 7
        assert live.agent.state() == before
        with live.batch():
            loop(live, 5, start=3)
            with pytest.raises(wd.InputError):
                live.decide(9)
        assert live.journal.n == 17
    assert Journal(path).n == 17


def test_an_interrupted_call_leaves_nothing_behind(path, monkeypatch):
    with wd.live.open(path, swucrl()) as live:
        _, s = loop(live, 20)
        before = live.agent.state()
        d = live.decide(s)
        waiting = live.agent.state()

        def interrupted(*_, **__):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(live.journal, "append", interrupted)
            with pytest.raises(KeyboardInterrupt):
                live.observe(d.id, 1.0, 0)
        assert live.agent.state() == waiting != before
        assert live.observe(d.id, 1.0, 0).how == "learned"


def test_threads_take_turns(path):
    with wd.live.open(path, swucrl()) as live:
        taken = []

        def work(name):
            for i in range(5):
                d = live.decide(0, key=f"{name}-{i}")
                taken.append(d.id)
                live.observe(d.id, 1.0, 0)

        lock = threading.Lock()

        def in_turn(name):
            with lock:
                work(name)

        threads = [threading.Thread(target=in_turn, args=(name,)) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(taken)) == 15
        assert live.agent.t == 16


def test_a_reader_does_not_disturb_and_is_not_disturbed(path):
    with wd.live.open(path, swucrl()) as live:
        loop(live, 3)
        reader = Journal(path)
        assert reader.n == 7
        loop(live, 1, start=3)
        with pytest.raises(wd.JournalError), reader.reading() as con:
            con.execute("DELETE FROM events")
        reader.close()


def test_a_fleet_has_one_journal_and_one_commit_a_round(path):
    def make():
        return {f"shop {i}": swucrl(seed=i) for i in range(4)}

    twins, states = make(), dict.fromkeys(make(), 0)
    for parts in (3, 4):
        with wd.live.open(path, make()) as fleet:
            for _ in range(parts):
                decisions = fleet.decide(states)
                outcomes = {}
                for k, (name, d) in enumerate(decisions.items()):
                    assert twins[name].act(states[name]) == d.action
                    reward, after = outcome(d.state, d.action, k)
                    twins[name].observe(d.state, d.action, reward, after)
                    outcomes[name] = (d.id, reward, after)
                fleet.observe(outcomes)
                states = {name: told[2] for name, told in outcomes.items()}
    with wd.live.open(path, make() | {"new": swucrl()}) as fleet:
        for name, twin in twins.items():
            assert fleet[name].agent.state() == twin.state()
        assert fleet["new"].agent.t == 1
        assert len(fleet) == 5
        with pytest.raises(wd.InputError, match="there is no agent 'nobody'"):
            fleet.decide({"nobody": 0})
        events = fleet.journal.n
        with pytest.raises(wd.InputError, match="state"):
            fleet.decide({"shop 0": 0, "shop 1": 99})
        assert fleet.journal.n == events, "a round is decided as a whole"
        assert fleet["shop 0"].pending is None
    with pytest.raises(wd.JournalError, match="holds several agents"):
        wd.live.open(path, swucrl())
