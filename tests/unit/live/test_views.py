"""Status, performance and export: what a journal says of its agent, against counts by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import windage as wd
from tests.live_loops import SPACE, busy_journal, loop, swucrl
from windage.live.views import export, performance, status, to_frame


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


def test_what_was_refused_in_a_round_or_a_batch_is_counted(path):
    """A round keeps what is sound, a batch that fails keeps nothing; both count the nonsense."""
    with wd.live.open(path, {name: swucrl() for name in "ab"}) as fleet:
        d = fleet.decide({"a": 0, "b": 0})
        events = fleet.journal.n
        with pytest.raises(wd.InputError, match="next_state"):
            fleet.observe({"a": (d["a"].id, 0.5, 9), "b": (d["b"].id, 0.5, 1)})
        assert fleet.journal.n == events + 1
        d["b"] = fleet["b"].decide(1)
        events = fleet.journal.n
        with pytest.raises(wd.InputError, match="reward"), fleet.batch():  # noqa: PT012 - a batch
            fleet["a"].observe(d["a"].id, 0.5, 1)
            fleet["b"].observe(d["b"].id, float("nan"), 1)
        with fleet.batch(), pytest.raises(wd.InputError, match="id"):
            fleet["a"].observe(999, 0.5, 1)
        assert fleet.journal.n == events
    found = wd.live.status(path).agents
    assert [(one.learned, one.rejected) for one in found] == [(0, 2), (1, 1)]
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


def test_performance_is_rewards_and_optimistic_gains(path):
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
