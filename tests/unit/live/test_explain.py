"""Explanations of decisions, against a twin at that time."""

from __future__ import annotations

import polars as pl
import pytest

import windage as wd
from tests.live_loops import SPACE, busy_journal, outcome, swucrl
from windage.live.explain import explain
from windage.live.views import to_frame


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


@pytest.mark.filterwarnings("ignore::windage.GuaranteeWarning")
@pytest.mark.parametrize("kind", ["MultiScale", "MultiScaleGuarded"])
def test_reasons_of_multi_scale_are_in_the_units_of_the_user(path, kind):
    """Costs from 10 to 60: what the agent calls x is 60 - 50 x, and a difference is 50 times it."""
    twin, s = getattr(wd, kind)(SPACE, horizon=500), 0
    units = {"reward_range": (10, 60), "direction": "cost"}
    with wd.live.open(path, getattr(wd, kind)(SPACE, horizon=500), **units) as live, live.batch():
        for i in range(60):
            d = live.decide(s)
            assert twin.act(s) == d.action
            reward, after = outcome(s, d.action, i)
            live.observe(d.id, 60 - 50 * reward, after)
            twin.observe(s, d.action, reward, after)
            s = after
        d = live.decide(1)
        assert twin.act(1) == d.action
    said = twin.explain(1)
    believed = said if kind == "MultiScale" else said.decision
    found = explain(path)
    cells = [dict(zip(found.columns, cell, strict=True)) for cell in found.rows]
    best = believed.actions[d.action].value
    for cell, action in zip(cells, believed.actions, strict=True):
        assert cell["action"] == action.name + " *" * (action.action == d.action)
        for column, expected in (
            ("visits", action.visits),
            ("mean", 60 - 50 * action.mean_reward),
            ("bonus", 50 * action.hope),
            ("value", 60 - 50 * action.value),
            ("behind", 50 * (best - action.value)),
        ):
            assert float(cell[column]) == pytest.approx(expected, rel=6e-3, abs=1e-9), column
    assert f"an expected cost of {60 - 50 * believed.gain:.4g} per step" in str(found)
    if kind == "MultiScaleGuarded":
        assert f"within {50 * said.slack:.4g} of the most hopeful" in str(found)
    assert found.details == ""


@pytest.mark.filterwarnings("ignore::windage.GuaranteeWarning")
def test_other_explanations_say_that_their_units_are_the_agents(path):
    agent = wd.agents.make("borl", SPACE, horizon=400, reward_range=(-1, 1))
    with wd.live.open(path, agent, reward_range=(0, 50)) as live:
        live.decide(0)
    assert "In the agent's own units, rewards from -1 to 1, more is better:" in str(explain(path))
