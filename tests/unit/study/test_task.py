"""One run of a study: its columns against the library's own `run` and `dynamic_regret`."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import windage as wd
from windage.errors import listening
from windage.study import schema
from windage.study.expand import expand
from windage.study.schema import ORACLE, RUN, decode
from windage.study.spec import read_spec
from windage.study.task import Stopped, gains_of, play, solve

pytestmark = pytest.mark.filterwarnings("ignore::windage.errors.GuaranteeWarning")

T = 2_530  # 200 times do not divide it
OWN = "tests.unit.study.own"


def tasks(agents, environment="riverswim", seeds=(3,), **more):
    tables = [{"id": environment} | more]
    data = {"horizon": T, "seeds": list(seeds), "environments": tables, "agents": agents}
    return list(expand(read_spec(data)).tasks.values())


def row_of(task, gains=None):
    return decode(play(task, gains).data, RUN, Path("run")).row(0, named=True)


def oracle_of(task):
    return gains_of(decode(solve(task.environment).data, ORACLE, Path("oracle")))


TOLD = {"swucrl2-cw": ["B_r", "B_p"], "sw-psrl": ["B_r", "B_p"], "oracle": ["the model"]}


@pytest.mark.parametrize(
    "agent",
    [
        {"id": "swucrl2-cw", "radii": {"kind": "laplace", "scale": 0.3}},
        {"id": "borl", "block_length": 400},
        {"id": "ucrl2-restarts", "restarts": [[700, 1400]]},
        {"id": "sw-psrl"},
        {"id": "random"},
        {"id": "oracle"},
    ],
    ids=lambda agent: agent["id"],
)
def test_a_row_is_what_the_library_finds(agent):
    (task,) = tasks([agent])
    gains = oracle_of(task)
    row = row_of(task, gains)
    model = wd.envs.make("riverswim", horizon=T)
    options = {k: v[0] if isinstance(v, list) else v for k, v in agent.items() if k != "id"}
    told = wd.agents.facts(agent["id"], model, **options)
    with listening():
        made = wd.agents.make(agent["id"], model.space, horizon=T, seed=3, **(told | options))
        run = wd.run(model, made, seed=3)
    regret = wd.dynamic_regret(run, model)
    assert row["total_reward"] == run.total_reward
    assert row["total_mean_reward"] == run.total_mean_reward
    assert row["oracle_reward"] == regret.total_optimal
    assert row["oracle_error"] == regret.error
    assert row["regret"] == regret.total
    assert row["observed_regret"] == regret.total_observed
    assert row["share"] == pytest.approx(regret.share, abs=1e-15)
    t = np.array(row["t"])
    assert t.tolist() == [*range(13, T, 13), T]
    assert (np.array(row["cumulative_regret"]) == regret.cumulative[t - 1]).all()
    assert (np.array(row["cumulative_reward"]) == run.cumulative_reward[t - 1]).all()
    assert (np.array(row["cumulative_mean_reward"]) == run.cumulative_mean_reward[t - 1]).all()
    assert row["episodes"] == run.episodes.total
    last = slice(max(0, run.episodes.total - 2000), None)
    for name in ("start", "length", "reason", "gain", "span", "sweeps", "vacuous", "ties"):
        assert row[f"episode_{name}"] == getattr(run.episodes, name)[last].tolist(), name
    _check_memory(row, run, made, options)
    assert row["told"] == list(wd.agents.requires(agent["id"], **(told | options)))
    assert row["told"] == TOLD.get(agent["id"], [])
    if agent["id"] == "borl":
        assert row["block_arm"] == made.blocks.arm.tolist()
        assert row["block_reward"][:-1] == made.blocks.reward.tolist()[:-1]
        assert row["block_probabilities"] == made.blocks.probabilities.tolist()
        assert list(zip(row["arm_window"], row["arm_widening"], strict=True)) == list(made.arms)
        assert row["variant"] == "block_length 400"
    else:
        assert row["block_arm"] == row["arm_window"] == row["block_probabilities"] == []


@pytest.mark.parametrize("id", ["multi-scale", "multi-scale-guarded"])
def test_how_far_a_multi_scale_learner_looks_back(id):
    (task,) = tasks([{"id": id}])
    row = row_of(task)
    model = wd.envs.make("riverswim", horizon=T)
    with listening():
        made = wd.agents.make(id, model.space, horizon=T, seed=3)
        wd.run(model, made, seed=3)
    told = made.forgetting()
    assert told.times.size > 100 >= len(row["forgetting_t"]) > 50
    assert row["forgetting_t"] == told.times[::2].tolist()
    assert row["forgetting_rewards"] == told.mean("rewards")[::2].tolist()
    assert row["forgetting_transitions"] == told.mean("transitions")[::2].tolist()
    (other,) = tasks([{"id": "random"}])
    assert row_of(other)["forgetting_t"] == row_of(other)["forgetting_rewards"] == []


def _check_memory(row, run, agent, options):
    """Recount what an agent can remember from the history of the run."""
    if not hasattr(agent, "in_memory"):
        assert row["memory_t"] == row["memory_counts"] == row["pair_names"] == []
        return
    assert row["memory_t"] == [*range(102, T, 102), T]
    space = agent.space
    assert row["pair_names"][3] == "1/right"
    pairs = space.offsets[run.states[:-1]] + run.actions
    for t, counts in zip(row["memory_t"], row["memory_counts"], strict=True):
        first = max([0, *(r - 1 for r in options.get("restarts", []) if r <= t + 1)])
        window = getattr(agent, "window", T)
        if agent.id == "borl":
            block = (t - 1) // agent.block_length
            first, window = block * agent.block_length, agent.arms[agent.blocks.arm[block]][0]
        seen = pairs[max(first, t - window) : t]
        assert counts == np.bincount(seen, minlength=space.n_pairs).tolist(), t


def test_of_many_episodes_the_last_are_kept(monkeypatch):
    (task,) = tasks([{"id": "ucrl2"}])
    whole = row_of(task)
    assert whole["episodes"] > 10
    monkeypatch.setattr(schema, "MOST_EPISODES", 7)
    cut = row_of(task)
    assert cut["episodes"] == whole["episodes"]
    assert cut["episode_start"] == whole["episode_start"][-7:]
    assert cut["episode_reason"] == whole["episode_reason"][-7:]


def test_of_who_remembers_nothing_nothing_is_written_down():
    (task,) = tasks([{"id": "bob"}])
    row = row_of(task)
    assert row["memory_t"] == row["memory_counts"] == row["pair_names"] == []


def test_labels_are_honest():
    options = {"window": 90, "widening": 0.25, "radii": {"kind": "paper", "scale": 0.1}}
    (task,) = tasks([{"id": "swucrl2-cw", "ties": "lowest", "slack": 0.5, "delta": 0.1} | options])
    row = row_of(task)
    assert row["radii"] == "paper x0.1"
    assert row["ties"] == "lowest"
    assert row["variant"] == "slack 0.5"
    assert (row["window"], row["widening"], row["delta"]) == (90, 0.25, 0.1)
    assert row["told"] == []  # both numbers were chosen by hand
    assert json.loads(row["agent_parameters"])["window"] == 90
    assert json.loads(row["environment_parameters"]) == {
        "horizon": T, "noise": "bernoulli", "states": 6
    }  # fmt: skip
    assert row["environment_id"] == "riverswim-v0"
    assert row["regret"] is row["cumulative_regret"] is None  # nobody asked an oracle
    (plain,) = tasks([{"id": "random"}])
    row = row_of(plain)
    assert all(row[name] is None for name in ("radii", "ties", "variant", "window", "widening"))


KNOWN = {"structure": "environment"}


@pytest.mark.parametrize("id", ["multi-scale", "psrl", "sw-psrl", "certainty-equivalent"])
def test_an_agent_is_given_the_structure_of_its_environment(id):
    (task,) = tasks([{"id": id, **KNOWN}], "queue-v1", horizon=200)
    (without,) = tasks([{"id": id}], "queue-v1", horizon=200)
    row = row_of(task)
    model = wd.envs.make("queue-v1", horizon=200)
    options = wd.agents.facts(id, model) | {"structure": model.structure}
    run = wd.run(model, wd.agents.make(id, model.space, horizon=200, seed=3, **options), seed=3)
    assert row["total_reward"] == run.total_reward != row_of(without)["total_reward"]
    assert task.agent.parameters["structure"] == "environment" in row["variant"]
    assert row["told"] == [*TOLD.get(id, []), "the structure"]
    assert list(wd.agents.requires(id, **options)) == row["told"]
    assert task.key != without.key
    assert "structure" not in without.agent.parameters
    assert task.agent.build(model, 0).structure is model.structure  # and not a copy a run


def test_a_class_of_ones_own_is_given_it_too():
    (task,) = tasks([{"id": f"{OWN}:Knowing", **KNOWN}], "replacement-v1", horizon=50)
    row = row_of(task)
    assert row["variant"] == "structure environment"
    assert row["told"] == ["the structure"]


@pytest.mark.parametrize(
    ("agent", "environment", "message"),
    [
        (
            {"id": "multi-scale", **KNOWN},
            "riverswim",
            "agents[0].structure: the environment riverswim-v0 has no structure (on riverswim)",
        ),
        ({"id": "ucrl2", **KNOWN}, "queue-v1", "agents[0].structure: ucrl2 learns no laws"),
        ({"id": f"{OWN}:Plain", **KNOWN}, "queue-v1", "agents[0].structure: "),
        ({"id": "psrl", "structure": "queue"}, "queue-v1", "agents[0].structure: 'queue' names no"),
        ({"id": "psrl", "structure": 3}, "queue-v1", "agents[0].structure: 3 names no structure"),
    ],
)
def test_structures_that_there_are_not(agent, environment, message):
    with pytest.raises(wd.InputError) as caught:
        tasks([agent], environment, horizon=50)
    assert str(caught.value).startswith(message)
    assert "environment" in caught.value.fix or "sw-psrl" in caught.value.fix


def test_a_structure_itself_is_no_data_of_a_study():
    known = wd.envs.make("queue-v1", horizon=50).structure
    with pytest.raises(wd.InputError, match='write "environment" for that of the environment'):
        wd.Study([{"id": "queue-v1"}], [{"id": "psrl", "structure": known}], horizon=50)


def test_long_lists_are_not_repeated_in_every_file():
    (task,) = tasks([{"id": "ucrl2-restarts", "restarts": [list(range(20, 220))]}])
    assert len(task.agent.parameters["restarts"]) == 200
    assert json.loads(row_of(task)["agent_parameters"])["restarts"] == "200 values"


def test_agents_on_one_seed_meet_the_same_noise():
    """Two agents that are configured otherwise and act alike are paid alike, draw by draw."""
    one, other = tasks([{"id": f"{OWN}:Plain", "action": [1, 9]}])  # of two actions: the last
    assert one.key != other.key
    first, second = row_of(one), row_of(other)
    assert first["cumulative_reward"] == second["cumulative_reward"]
    model = wd.envs.make("riverswim", horizon=T)
    assert first["total_reward"] == wd.run(model, one.agent.build(model, 3), seed=3).total_reward
    (elsewhere,) = tasks([{"id": f"{OWN}:Plain", "action": 1}], seeds=(4,))
    assert row_of(elsewhere)["cumulative_reward"] != first["cumulative_reward"]


def test_worlds_of_ones_own_have_no_oracle():
    found = tasks(
        [{"id": f"{OWN}:Plain", "action": 1}, {"id": "random"}], f"{OWN}:Counter", pay=2.0
    )
    row = row_of(found[0])
    assert row["total_reward"] == 2.0 * T
    assert row["total_mean_reward"] is None
    assert row["cumulative_mean_reward"] is None
    assert row["t"][-1] == T
    assert row["cumulative_reward"][-1] == 2.0 * T
    assert row_of(found[1])["seed"] == 3


def test_functions_that_make_models_have_one():
    (task,) = tasks([{"id": f"{OWN}:Modest"}], f"{OWN}:shore", low=0.25)
    gains = oracle_of(task)
    row = row_of(task, gains)
    curve = wd.DriftingMDP.optimal_gains(task.environment.build())
    assert row["oracle_reward"] == pytest.approx(curve.sum(), abs=1e-9)
    assert task.environment.build() is task.environment.build()  # models do not change
    assert row["agent_id"] == f"{OWN}:Modest"


def test_the_oracles_file():
    (task,) = tasks([{"id": "random"}])
    row = decode(solve(task.environment).data, ORACLE, Path("oracle")).row(0, named=True)
    model = wd.envs.make("riverswim", horizon=T)
    curve = model.optimal_gains()
    assert row["t"] == [*range(13, T, 13), T]
    assert row["optimal_gain"] == [curve.at(t) for t in row["t"]]
    sums = np.cumsum(curve.values)
    assert row["cumulative"] == pytest.approx(sums[np.array(row["t"]) - 1], abs=1e-9)
    assert row["total"] == pytest.approx(math.fsum(curve.values), abs=1e-9)
    assert row["reward_budget"] == model.budgets().reward
    assert row["diameter_bound"] == wd.envs.facts("riverswim", horizon=T).diameter_bound


def test_a_run_that_nobody_wants_any_more_is_given_up():
    (task,) = tasks([{"id": "random"}])
    with pytest.raises(Stopped):
        play(task, None, lambda: True)


def test_more_pairs_than_a_picture_shows_are_not_kept():
    data = {"horizon": 100, "seeds": 1, "agents": [{"id": "ucrl2"}],
            "environments": [{"id": "random-drift", "states": 13, "actions": 5}]}  # fmt: skip
    (task,) = expand(read_spec(data)).tasks.values()
    assert row_of(task)["memory_t"] == []
