"""`windage plan` as people meet it: scene 2, an environment, JSON, refusals."""

from __future__ import annotations

import json

import pytest

import windage as wd
from tests.e2e.commands import refused, windage_here
from windage.cli import main

SCENE = ["--states", "10", "--actions", "4", "--horizon", "100000", "--Br", "1", "--Bp", "1"]


def printed(capsys, *arguments):
    assert main(["plan", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert max(map(len, out.splitlines())) <= 80
    return out


def test_scene_2_what_a_plan_says(here):
    done = windage_here("plan", *SCENE, cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    words = " ".join(done.stdout.split())
    for said in (
        "W* 5,085",
        "eta* 0.319",
        "need 364 visits a pair (516 with eta), the window holds 127 on average",
        "Vacuous",
        "BORL's blocks 12",
        "BORL's arms 70",
        "BORL's gamma 5.23 > 1",
        "same guarantee: Radii.proof() needs 53, Radii.laplace() needs 20",
    ):
        assert said in words, said


def test_every_row_of_the_tables_is_there(capsys):
    out = printed(capsys, *SCENE, "--diameter", "7.5")
    rows = [line.split() for line in out.splitlines()]
    assert ["paper", "364", "516", "146", "146"] in rows
    assert "D = 7.5" in out
    plan = wd.plan(
        wd.StateActions.uniform(10, 4),
        horizon=100_000, reward_budget=1, transition_budget=1, diameter=7.5,
    )  # fmt: skip
    for value in plan.bound.terms.values():
        assert f"{value:,.0f}" in out
    assert f"below T from T = {plan.bound.below_from:.3g}" in out


def test_json_has_the_same_numbers(capsys):
    assert main(["plan", *SCENE, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["window"], round(data["widening"], 3)) == (5085, 0.319)
    assert data["visits_needed"]["paper"] == {
        "transitions": 364, "widened": 516, "rewards": 146, "bounded_rewards": 146
    }  # fmt: skip
    assert data["visits_expected"] == 5085 / 40
    assert data["vacuous"] is True
    assert (data["borl"]["blocks"], data["borl"]["arms"]) == (12, 70)
    assert round(data["borl"]["gamma"], 2) == 5.23
    assert data["diameter"] is None


def test_an_environment_brings_its_numbers(capsys):
    assert main(["plan", "--env", "two-state-cosine", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    world = wd.envs.make("two-state-cosine")
    assert (data["states"], data["pairs"], data["horizon"]) == (2, 4, 5_000)
    assert data["reward_budget"] == world.budgets().reward
    assert data["transition_budget"] == world.budgets().transition
    assert data["diameter"] == pytest.approx(2.0, rel=1e-3)
    assert data["diameter"] == data["bound"]["diameter"]
    assert main(["plan", "--env", "two-state-cosine", "-T", "900", "--Br", "0", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["horizon"], data["reward_budget"]) == (900, 0)
    shorter = wd.envs.make("two-state-cosine", horizon=900)
    assert data["transition_budget"] == shorter.budgets().transition


def test_a_file_brings_its_numbers_too(here, capsys):
    world = wd.envs.make("two-state-cosine", horizon=900)
    world.save("mine.npz")
    found = []
    for source in (["two-state-cosine", "-T", "900"], ["mine.npz"]):
        assert main(["plan", "--json", "--env", *source]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]
    said = refused(capsys, "plan", "--env", "mine.npz", "-T", "5")
    assert said == "mine.npz: a file has its own horizon. Fix: leave out -T."
    assert refused(capsys, "plan", "--env", "gone.npz").startswith("gone.npz: there is no such")


def test_a_model_that_falls_apart_has_no_plan(here, capsys):
    swap, stuck = [[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]
    wd.DriftingMDP(
        wd.StateActions([1, 1]), [1, 5, 6], [[0.1, 0.2]] * 3, [swap, stuck, swap],
        horizon=9, interpolation="step",
    ).save("apart.npz")  # fmt: skip
    said = refused(capsys, "plan", "--env", "apart.npz")
    assert said.startswith("apart.npz: does not communicate at t=5: no policy leads from s=1 to")
    assert main(["plan", "--env", "apart.npz", "--diameter", "3"]) == 0  # whoever knows better


@pytest.mark.parametrize("env", ["bandit", "inventory"])
def test_one_state_and_ragged_actions(capsys, env):
    world = wd.envs.make(env)
    out = printed(capsys, "--env", env)
    assert f"S = {world.space.n_states}, SA = {world.space.n_pairs}," in out


def test_actions_state_by_state(capsys):
    options = ["--horizon", "1000", "--Br", "0", "--Bp", "0.5", "--json"]
    assert main(["plan", "--states", "3", "--actions", "2,3,1", *options]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["states"], data["pairs"], data["mean_actions"]) == (3, 6, 2.0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "plan: --states, --actions, --horizon, --Br, --Bp not given"),
        (SCENE[:6], "plan: --Br, --Bp not given"),
        ([*SCENE, "--delta", "0"], "delta: 0.0 is not"),
        ([*SCENE, "--diameter", "0.5"], "diameter: 0.5 is not"),
        ([*SCENE, "--diameter", "nan"], "diameter: nan is not"),
        ([*SCENE[:-1], "-1"], "transition_budget: -1.0 is not"),
        ([*SCENE, "--states", "0"], "states: 0 is not"),
        ([*SCENE, "--actions", "0"], "actions: 0 is not"),
        ([*SCENE, "--actions", "four"], "--actions: 'four' is no number of actions"),
        ([*SCENE, "--actions", "1,2"], "--actions: 2 numbers for 10 states"),
        ([*SCENE, "--horizon", "0"], "horizon: 0 is not"),
        ([*SCENE, "--Br", "1e308", "--Bp", "1e308"], "reward_budget: 1e+308: no model drifts that"),
        ([*SCENE, "--Bp", "199999"], "transition_budget: 199999: no model drifts that much"),
        ([*SCENE, "--states", "1"], "transition_budget: 1 with one state"),
        ([*SCENE, "--env", "peril"], "--env: an environment has its own states and actions"),
        (["--env", "perl"], "environment: no such choice: 'perl'"),
    ],
)
def test_refusals(capsys, arguments, says):
    said = refused(capsys, "plan", *arguments)
    assert said.startswith(says)
    assert "Fix: " in said


def test_words_that_are_no_numbers_end_with_2(capsys):
    assert main(["plan", *SCENE[:-1], "much"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_the_least_delta_is_no_trouble(capsys):
    assert main(["plan", *SCENE, "--delta", "1e-300"]) == 0
    assert "delta = 1e-300" in capsys.readouterr().out


def test_with_one_state_the_window_is_called_what_it_is(capsys):
    one = ["--states", "1", "--actions", "3", "--horizon", "1000", "--Br", "2", "--Bp", "0"]
    assert main(["plan", *one]) == 0
    out = capsys.readouterr().out
    assert "\nW of the bandit remark  91 " in out
    assert "W*" not in out.partition("Visits per pair from")[0]
