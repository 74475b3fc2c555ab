"""Status, alarms, reasons, exports: what a journal says of its agent, against counts by hand."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy import integrate

import windage as wd
from windage.live.drift_test import DELTA, drift_alarms
from windage.live.explain import explain
from windage.live.history import History
from windage.live.types import Units
from windage.live.views import export, performance, status, to_frame

from .loops import SPACE, loop, outcome, swucrl

PLAIN = Units(None, "profit", (0.0, 1.0))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "orders.journal"


def past_of(states, actions, rewards, afters):
    n = len(states)
    columns = (np.arange(n) + 2, states, actions, actions, rewards, afters)
    return History(
        *(np.asarray(c) for c in columns), np.full(n, True), np.full(n, True), np.arange(n) + 3
    )


def random_past(rng, n, changed_at=None):
    """A history; from a time on one pair has other rewards and another leads elsewhere."""
    means, rows = rng.random(6), rng.dirichlet(np.ones(3), 6)
    states, actions, rewards, afters = [], [], [], []
    s = 0
    for i in range(n):
        a = int(rng.integers(SPACE.counts[s]))
        pair = SPACE.pair(s, a)
        mean, row = means[pair], rows[pair]
        if changed_at is not None and i >= changed_at:
            mean = (0.95 if mean < 0.5 else 0.05) if pair == 0 else mean
            row = np.eye(3)[np.argmin(row)] if pair == 5 else row
        states.append(s)
        actions.append(a)
        rewards.append(float(rng.random() < mean))
        s = int(rng.choice(3, p=row))
        afters.append(s)
    return past_of(states, actions, rewards, afters)


def test_a_world_that_stands_still_raises_no_alarm():
    """At most one look in a hundred may be wrong: more than 8 of 60 has a chance below 1e-6."""
    rng = np.random.default_rng(1)
    false = sum(bool(drift_alarms(random_past(rng, 1200), SPACE, PLAIN, 400)) for _ in range(60))
    assert false <= 8


def test_drift_is_found_with_its_pair_and_size():
    rng = np.random.default_rng(2)
    for _ in range(10):
        past = random_past(rng, 1200, changed_at=600)
        found = drift_alarms(past, SPACE, PLAIN, 600)
        pairs = {(alarm.pair, alarm.what == "reward") for alarm in found}
        assert (5, False) in pairs
        (moved,) = [alarm for alarm in found if alarm.pair == 5]
        mine = (past.states == 2) & (past.actions == 0)
        rows = [np.bincount(past.next_states[part][mine[part]], minlength=3) / mine[part].sum()
                for part in (slice(0, 600), slice(600, None))]  # fmt: skip
        assert moved.size == pytest.approx(np.abs(rows[0] - rows[1]).sum(), abs=1e-12)
        assert moved.samples == (mine[:600].sum(), mine[600:].sum())
        assert "high" in str(moved)
        assert {0, 5} >= {alarm.pair for alarm in found}


def test_the_evidence_is_that_of_the_text():
    """Forty tails, then k heads of forty: the first k that alarms, by integrating over coins."""

    def mixture(heads, n):
        def likelihood(angle):  # Beta(1/2, 1/2) is uniform in the angle
            p = math.sin(angle) ** 2
            return p**heads * (1 - p) ** (n - heads)

        return integrate.quad(likelihood, 0, math.pi / 2, epsabs=0)[0] / (math.pi / 2)

    def alarms(k):
        rewards = [0.0] * 40 + [1.0] * k + [0.0] * (40 - k)
        past = past_of([2] * 80, [0] * 80, rewards, [2] * 80)
        return bool(drift_alarms(past, SPACE, PLAIN, 40))

    def wanted(k):
        tests, z = 6 * (3 + 1), k / 80
        return mixture(0, 40) * mixture(k, 40) / (z**k * (1 - z) ** (80 - k)) > tests / DELTA

    assert [alarms(k) for k in range(41)] == [wanted(k) for k in range(41)]
    assert alarms(25)
    assert not alarms(10)


def test_choices_that_follow_outcomes_raise_no_alarm():
    """An agent that tries an action again only after luck: visits depend on what was seen."""
    rng, false = np.random.default_rng(3), 0
    for _ in range(200):
        rewards, states = [], []
        while len(rewards) < 400:
            states.append(2 if not rewards or rewards[-1] == 1.0 else int(rng.integers(3)))
            rewards.append(float(rng.random() < 0.5))
        past = past_of(states, [0] * 400, rewards, [2] * 400)
        false += bool(drift_alarms(past, SPACE, PLAIN, 200))
    assert false <= 11, "at most 2 are expected; more than 11 has a chance below 1e-6"


def busy_journal(path):
    """A journal in which everything happens; returns what happened, counted by hand."""
    units = {"reward_range": (0, 10), "direction": "cost"}
    with wd.live.open(path, swucrl(window=25), missing="skip", **units) as live:
        with live.batch():
            s, costs, other = 0, [], None
            for i in range(60):
                d = live.decide(s, key=f"day {i}")
                reward, after = outcome(s, d.action, i)
                if i == 3:
                    lost = d.id  # never reported
                elif i == 7:
                    too_late = (d.id, 2.0, after)
                elif i == 50:
                    late = (d.id, 5.0, after)
                elif i >= 20 and other is None and SPACE.counts[s] > 1:
                    other = (d.action + 1) % SPACE.counts[s]
                    live.observe(d.id, 10 * reward, after, action=other)
                    costs.append(10 * reward)
                else:
                    live.observe(d.id, 10 * reward, after)
                    costs.append(10 * reward)
                s = after
            assert live.observe(*too_late).how == "unused"
            assert live.observe(*late).how == "late"
        for bad in (11.0, float("nan")):
            with pytest.raises(wd.InputError):
                live.observe(d.id, bad, 0)
        waiting = live.decide(s)
    costs.insert(50 - 2, 5.0)
    return {
        "costs": costs,
        "waiting": waiting,
        "lost": lost,
        "late": late[0],
        "unused": too_late[0],
    }


def test_status_counts_what_happened(path):
    told = busy_journal(path)
    (found,) = status(path).agents
    costs = told["costs"]
    assert found.decisions == 61
    assert (found.learned, found.late, found.unused) == (len(costs), 1, 1)
    assert found.given_up == 2, "the lost one, and the one whose outcome came too late"
    assert found.rejected == 2
    assert found.overridden == 1
    assert found.pending.startswith(f"decision {told['waiting'].id}: ")
    assert found.mean == pytest.approx(np.mean(costs), abs=1e-12)
    assert found.recent == 25
    assert found.recent_mean == pytest.approx(np.mean(costs[-25:]), abs=1e-12)
    with wd.live.open(path, swucrl(window=25), missing="skip", reward_range=(0, 10),
                        direction="cost") as live:  # fmt: skip
        episode = live.agent.episode
        assert found.gain == pytest.approx(10 * (1 - episode.gain), abs=1e-12)
        assert found.vacuous == episode.vacuous
        assert status(path).writer is not None
    assert status(path).writer is None


def test_what_was_refused_in_a_round_that_is_taken_back_is_counted(path):
    """A round counts as a whole; that somebody sent nonsense is worth knowing all the same."""
    with wd.live.open(path, {name: swucrl() for name in "ab"}) as fleet:
        d = fleet.decide({"a": 0, "b": 0})
        events = fleet.journal.n
        with pytest.raises(wd.InputError, match="next_state"):
            fleet.observe({"a": (d["a"].id, 0.5, 1), "b": (d["b"].id, 0.5, 9)})
        with pytest.raises(wd.InputError, match="reward"), fleet.batch():
            fleet["b"].observe(d["b"].id, float("nan"), 1)
        with fleet.batch(), pytest.raises(wd.InputError, match="id"):
            fleet["a"].observe(999, 0.5, 1)
        assert fleet.journal.n == events
    found = wd.live.status(path).agents
    assert [(one.learned, one.rejected) for one in found] == [(0, 1), (0, 2)]
    assert wd.live.verify(path).is_sound


def test_the_export_has_a_row_for_every_decision(path, tmp_path):
    told = busy_journal(path)
    assert export(path, tmp_path / "out" / "all.parquet") == 61
    frame = pl.read_parquet(tmp_path / "out" / "all.parquet")
    assert frame["id"].to_list() == sorted(frame["id"].to_list())
    by_id = {row["id"]: row for row in frame.to_dicts()}
    assert by_id[told["lost"]]["outcome"] == "given up"
    assert by_id[told["lost"]]["reward"] is None
    assert by_id[told["late"]]["outcome"] == "late"
    assert by_id[told["unused"]]["outcome"] == "unused"
    assert by_id[told["waiting"].id]["outcome"] == "pending"
    assert frame["outcome"].to_list().count("learned") == 57
    learned = frame.filter(pl.col("outcome").is_in(["learned", "late"]))
    assert learned["reward"].to_list() == told["costs"]
    names = set(zip(frame["state"], frame["state_name"], strict=True))
    assert names == {(s, SPACE.state_name(s)) for s, _ in names}
    assert to_frame(path).equals(frame)


def test_reasons_are_what_the_agent_knew_then(path):
    """The numbers are those of a twin at that time, in the user's units."""
    busy_journal(path)
    frame = to_frame(path)
    row = frame.filter(pl.col("key") == "day 40").to_dicts()[0]
    twin = swucrl(window=25)
    for told in frame.filter(pl.col("id") <= row["id"]).to_dicts():
        action = twin.act(told["state"])
        assert action == told["advised"]
        if told["id"] == row["id"]:
            break
        if told["outcome"] == "learned":
            twin.observe(told["state"], told["played"], 1 - told["reward"] / 10, told["next_state"])
        else:
            twin.withdraw()
    said = twin.explain(row["state"])
    found = explain(path, row["id"])
    assert (found.state, found.action) == (row["state_name"], row["advised_name"])
    cells = [dict(zip(found.columns, cell, strict=True)) for cell in found.rows]
    assert [cell["visits"] for cell in cells] == [str(a.visits) for a in said.actions]
    for cell, action in zip(cells, said.actions, strict=True):
        assert cell["action"].endswith(" *") == (action.action == row["advised"])
        if action.visits:
            assert float(cell["mean"]) == pytest.approx(10 * (1 - action.mean_reward), rel=1e-3)
        assert float(cell["radius"]) == pytest.approx(10 * action.reward_radius, rel=1e-2)
        assert float(cell["optimism"]) == pytest.approx(10 * action.bonus, rel=1e-2, abs=1e-9)
        of_eta = 10 * action.bonus_from_widening
        assert float(cell["of eta"]) == pytest.approx(of_eta, rel=1e-2, abs=1e-9)
    chosen = said.actions[row["advised"]]
    assert f"tried there {chosen.visits} times" in str(found) or chosen.visits == 0


def test_reasons_of_other_agents_and_of_nothing(path, tmp_path):
    with wd.live.open(path, swucrl()) as live:
        with pytest.raises(wd.InputError, match="nothing was decided yet"):
            explain(path)
        live.decide(0)
    assert "Nothing is known" in str(explain(path)) or "not tried" in str(explain(path))
    for bad in (1, 99):
        with pytest.raises(wd.InputError, match=f"there is no decision {bad}"):
            explain(path, bad)
    with wd.live.open(tmp_path / "r.journal", wd.agents.make("random", SPACE, horizon=9)) as live:
        live.decide(0)
    assert "does not explain itself" in str(explain(tmp_path / "r.journal"))


def test_a_course_is_what_came_in_and_what_was_hoped(path):
    told = busy_journal(path)
    found = performance(path)
    assert found.rewards.tolist() == told["costs"]
    assert found.since == 1
    with wd.live.open(path, swucrl(window=25), missing="skip", reward_range=(0, 10),
                        direction="cost") as live:  # fmt: skip
        episode = live.agent.episode
    assert found.starts[-1] == episode.start
    assert found.gains[-1] == pytest.approx(10 * (1 - episode.gain))


def test_an_agent_of_ones_own_is_journaled_and_still_counted(path):
    class Stubborn(wd.agents.RandomAgent):
        id = "stubborn"

        def _choose(self, state):
            return 0

        play = None

    def make():
        return Stubborn(SPACE, horizon=100)

    with wd.live.open(path, make()) as live:
        loop(live, 5)
    with wd.live.open(path, make()) as live:
        assert live.agent.t == 6
        assert live.decide(0).action == 0
    (found,) = status(path).agents
    assert found.learned == 5
    assert "stubborn" in found.trouble
    assert to_frame(path).height == 6
