"""Scene 11: `windage explain` says why this action: counts, radii, values, ties, optimism."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest

import windage as wd
from tests.e2e import studies
from tests.e2e.commands import refused, windage_here
from windage.cli import main

T = 700


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    agents = [
        {"id": "swucrl2-cw", "window": 300, "widening": 0.2, "radii": "laplace", "ties": "lowest"},
        {"id": "borl"},
        {"id": "sw-psrl"},
        {"id": "random"},
        {"id": "oracle"},
    ]
    made = wd.Study([{"id": "two-state-cosine"}], agents, horizon=T, seeds=[3, 5])
    return studies.run(made, tmp_path_factory.mktemp("explain") / "results")


def told(study, capsys, *options):
    assert main(["explain", str(study), *options]) == 0
    return capsys.readouterr().out


def test_counts_radii_values_ties_and_optimism(here, study):
    """What the command says, against the same learner played by hand to the same moment."""
    done = windage_here("explain", str(study), "--run", "2", "--t", "650", cwd=here)
    assert done.returncode == 0, done.stderr
    world = wd.envs.make("two-state-cosine", horizon=T)
    agent = wd.SWUCRL2CW(
        world.space, horizon=T, window=300, widening=0.2, radii="laplace", ties="lowest", seed=5
    )
    run = wd.run(world, agent, seed=5, steps=649)
    s = int(run.states[-1])
    action = agent.act(s)
    known = agent.explain(s)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Run 2: ")
    assert "T = 700, seed 5 (key " in lines[0]
    name = world.space.action_name(s, action)
    assert lines[1] == (
        f"At t = 650 it stands in state {world.space.state_name(s)} and plays {name}."
    )
    for report in known.actions:
        row = next(line for line in lines if re.match(rf"{report.name}( \*)? +\d", line))
        numbers = [float(x) for x in re.findall(r"-?\d+\.\d+|\b\d+\b", row[len(report.name) :])]
        assert numbers == pytest.approx(
            [
                report.visits, report.mean_reward, report.reward_radius, report.optimistic_reward,
                report.transition_radius, report.bonus, report.bonus_from_widening, report.value,
            ],
            abs=6e-4,
        )  # fmt: skip
        assert row.endswith("yes" if report.tied else "no")
        assert (" *" in row) == (report.action == action)
    played = next(a for a in known.actions if a.chosen)
    assert f"{played.bonus_from_widening:.4g} of that (" in done.stdout
    assert "due to the widening eta = 0.2" in done.stdout
    assert f"seen {played.visits:,} times" in done.stdout
    best = wd.gain_lp(world.at(650)).primal
    agrees = f"at this t {name} is optimal" in done.stdout
    assert agrees or f"the optimal gain is {best:.4g}" in done.stdout
    whole = wd.SWUCRL2CW(
        world.space, horizon=T, window=300, widening=0.2, radii="laplace", ties="lowest", seed=5
    )
    path = wd.run(world, whole, seed=5)  # never stopped: rewards[649] is that of t = 650
    assert int(path.actions[649]) == action
    after = f"reward {path.rewards[649]:g}, and state {world.space.state_name(path.states[650])}"
    assert after in done.stdout


def test_json_holds_the_same(study, capsys):
    data = json.loads(told(study, capsys, "--run", "1", "--t", "400", "--json"))
    assert (data["run"], data["t"], data["seed"]) == (1, 400, 3)
    assert len(data["explanation"]["actions"]) == 2
    assert min(data["oracle"]["losses"]) == 0
    results = wd.load_results(study)
    assert data["key"] == results["key"][0]
    again = json.loads(told(study, capsys, "--run", data["key"][:9], "--t", "400", "--json"))
    assert again == data


def test_others_say_what_they_can(study, capsys):
    borl = told(study, capsys, "--run", "3", "--t", "500")
    assert "block " in borl
    assert "due to the widening" in borl
    psrl = told(study, capsys, "--run", "5")
    assert "At t = 700 " in psrl
    assert "samples in memory" in psrl
    random = told(study, capsys, "--run", "7", "--t", "1")
    assert "Plays every action of a state with equal probability." in random
    assert "The oracle agrees" in told(study, capsys, "--run", "9", "--t", "300")


def test_without_a_run_it_lists_them(study, capsys):
    out = told(study, capsys)
    assert re.search(r"two-state-cosine +700 +random +7 to 8 \(3 to 5\)", out)
    assert "--run K --t T" in out


def test_what_is_refused(here, study, capsys):
    place = str(study)
    assert refused(capsys, "explain", "gone", "--run", "1").startswith("gone: is no folder")
    for run in ("0", "11", "-1", "zzzz"):
        assert refused(capsys, "explain", place, "--run", run).startswith("run: ")
    for t in ("0", "701"):
        said = refused(capsys, "explain", place, "--run", "1", "--t", t)
        assert said.startswith("t: ")


def test_a_replay_that_differs_from_what_is_stored_is_none(here, study, capsys):
    from windage.study.schema import RUN, encode

    shutil.copytree(study, "changed")
    key = wd.load_results(study)["key"][6]
    path = Path("changed/runs") / f"{key}.parquet"
    row = pl.read_parquet(path).row(0, named=True)
    row["cumulative_reward"] = [x + 1 for x in row["cumulative_reward"]]
    path.write_bytes(encode(row, RUN))
    said = refused(capsys, "explain", "changed", "--run", "7", "--t", "100")
    assert said.startswith(f"run {key[:12]} at t=4: played again, it has collected ")
