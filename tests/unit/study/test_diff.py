"""`diff` of two studies: matches, seeds, numbers, and remarks on the rest."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

import windage as wd
from tests.unit.study.conftest import rewrite, study
from windage.cli import main
from windage.errors import InputError, StateError
from windage.study import stats
from windage.study.configs import AgentConfig, EnvironmentConfig
from windage.study.diff import Condition, ConditionConfig, ConfigDifference, diff, match


def test_diff_of_two_studies(pair):
    found = diff(*pair)
    assert found.measure == "regret"
    assert (found.only_first, found.only_second) == (0, 2)
    random, ucrl2 = found.changes
    assert (random.match.first.agent, random.same, random.paired.n) == ("random", 4, 4)
    assert random.match.differences == ()
    assert random.paired.difference.estimate == 0.0
    assert ucrl2.same == 0
    assert ucrl2.match.differences == (ConfigDifference("delta", "0.05", "0.5"),)
    assert (found.alone_first, found.alone_second) == ((), ())
    a, b = (wd.load_results(folder).filter(pl.col("agent") == "ucrl2") for folder in pair)
    mine, theirs = a["regret"].to_list(), b["regret"].to_list()[:4]
    assert ucrl2.paired == stats.paired(theirs, mine, better="less")
    assert ucrl2.before == pytest.approx(sum(mine) / 4)
    assert ucrl2.adjusted == pytest.approx(min(1.0, 2 * ucrl2.paired.p_value))
    assert diff(*pair, column="total_reward").measure == "total_reward"
    assert found.versions == ()


def test_diff_pairs_seeds_by_their_names_and_corrects_for_all_rows(tmp_path):
    """Seeds 2 to 7 of one are in the other, at other places; two agents, so twice the p-value."""
    agents = [{"id": name, "label": f"mine {k}"} for k, name in enumerate(("random", "ucrl2"))]
    river = {"id": "riverswim", "label": "river"}
    wd.Study([river], agents, horizon=300, seeds=8).run(tmp_path / "a")
    better = [{"id": "oracle", "label": one["label"]} for one in agents[:1]] + agents[1:]
    wd.Study([river | {"states": 4}], better, horizon=300, seeds=[2, 9, 3, 4, 5, 6, 7]).run(
        tmp_path / "b"
    )
    found = diff(tmp_path / "a", tmp_path / "b")
    tables = [wd.load_results(tmp_path / name) for name in "ab"]
    for change in found.changes:
        one, other = (
            dict(part.filter(pl.col("agent") == change.match.first.agent)
                 .select("seed", "regret").iter_rows())
            for part in tables
        )  # fmt: skip
        differences = [other[seed] - one[seed] for seed in range(2, 8)]
        assert change.paired.difference == stats.mean(differences)
    p_values = [change.paired.p_value for change in found.changes]
    assert p_values[0] == 2 / 2**6  # the oracle is better on all six
    assert (
        [change.adjusted for change in found.changes] == stats.holm(p_values).tolist() != p_values
    )
    assert (found.only_first, found.only_second) == (4, 2)


def test_diff_tells_other_versions(pair, tmp_path):
    other = Path(shutil.copytree(pair[1], tmp_path / "b"))
    manifest = json.loads((other / "manifest.json").read_text())
    now = manifest["versions"].pop("numba")
    manifest["versions"]["polars"] = "0.1"
    rewrite(other / "manifest.json", manifest)
    was = {name: one for name, one, _ in diff(pair[0], other).versions}
    assert diff(pair[0], other).versions == (
        ("numba", now, "-"), ("polars", was["polars"], "0.1")
    )  # fmt: skip


def test_diff_knows_agents_and_environments_by_what_they_are(tmp_path, capsys):
    """Names are swapped: "one" is what the other study calls "two", and the river is renamed."""
    small, large = {"id": "ucrl2", "delta": 0.05}, {"id": "ucrl2", "delta": 0.5}
    more = {"horizon": 200, "seeds": 3}
    first = [small | {"label": "one"}, large | {"label": "two"}, {"id": "random"}]
    wd.Study([{"id": "riverswim"}], first, **more).run(tmp_path / "a")
    second = [small | {"label": "two"}, large | {"label": "one"}, {"id": "psrl"}]
    wd.Study([{"id": "riverswim", "label": "river"}], second, **more).run(tmp_path / "b")
    found = diff(tmp_path / "a", tmp_path / "b")
    assert [(c.match.first.agent, c.match.second.agent) for c in found.changes] == [
        ("one", "two"), ("two", "one")
    ]  # fmt: skip
    for change in found.changes:
        assert (change.same, change.paired.n, change.match.differences) == (3, 3, ())
        assert change.match.second.environment == "river"
    assert [str(place) for place in found.alone_first] == ["random on riverswim, T = 200"]
    assert [str(place) for place in found.alone_second] == ["psrl on river, T = 200"]
    assert (found.only_first, found.only_second) == (3, 3)
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert capsys.readouterr().out.splitlines()[-6:] == [
        "one: is called two in B (riverswim, T = 200)",
        "riverswim is called river in B",
        "two: is called one in B (riverswim, T = 200)",
        "random: only in A (riverswim, T = 200)",
        "psrl: only in B (river, T = 200)",
        "6 of 6 runs are the same to the last bit; 3 are only in A, 3 only in B",
    ]


def test_namesakes_are_compared_and_their_differences_told(tmp_path, monkeypatch):
    """A class that was edited, in a river of another length: what a second try is about."""
    monkeypatch.syspath_prepend(tmp_path)
    text = Path(__file__).with_name("own.py").read_text()
    for name, states in (("mine_v9", 5), ("mine_v10", 6)):
        (tmp_path / f"{name}.py").write_text(text + f"# {name}\n")
        wd.Study(
            [{"id": "riverswim", "states": states, "label": "river"}],
            [{"id": f"{name}:Plain", "label": "mine"}], horizon=100, seeds=2,
        ).run(tmp_path / name)  # fmt: skip
    (change,) = diff(tmp_path / "mine_v9", tmp_path / "mine_v10").changes
    told = {one.name: (one.first, one.second) for one in change.match.differences}
    assert told.pop("environment.states") == ("5", "6")
    assert told.pop("id") == ("mine_v9:Plain", "mine_v10:Plain")
    assert told.keys() == {"source"}


def test_diff_of_studies_with_nothing_in_common(pair, tmp_path):
    study(horizon=301).run(tmp_path / "c")
    with pytest.raises(InputError, match="no agent of one is in the other"):
        diff(pair[0], tmp_path / "c")


def test_diff_of_one_seed_has_no_interval_and_large_numbers_are_written_out(tmp_path, capsys):
    for agent in ("random", "ucrl2"):
        world, player = {"id": "riverswim"}, {"id": agent, "label": "mine"}
        wd.Study([world], [player], horizon=25_000, seeds=1).run(tmp_path / agent)
    before, after = (
        wd.load_results(tmp_path / agent)["regret"][0] for agent in ("random", "ucrl2")
    )
    assert before > 10_000
    assert main(["diff", str(tmp_path / "random"), str(tmp_path / "ucrl2")]) == 0
    row = capsys.readouterr().out.splitlines()[1].split()
    assert row[-5:] == [f"{before:,.0f}", f"{after - before:+,.4g}", "-", "1", "0"]


def test_what_both_have_but_cannot_be_compared_is_not_called_alone(tmp_path, capsys):
    worlds = [{"id": "riverswim"}, {"id": "two-state-cosine", "oracle": False}]
    for name, seeds in (("a", [0, 1]), ("b", [1, 2]), ("c", [3])):
        wd.Study(worlds, [{"id": "random"}], horizon=100, seeds=seeds).run(tmp_path / name)
    a, b, c = (str(tmp_path / name) for name in "abc")
    found = diff(a, b, column="regret")
    (change,) = found.changes
    assert (change.match.first.environment, change.paired.n) == ("riverswim", 1)
    assert [one.first.environment for one in found.apart] == ["two-state-cosine"]
    assert (found.alone_first, found.alone_second) == ((), ())
    assert (found.only_first, found.only_second) == (2, 2)  # seeds 0 and 2, in either world
    assert main(["diff", a, b, "--measure", "regret"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "random: in both, but no seed of which both know the regret (two-state-cosine, T = 100)",
        "1 of 1 runs are the same to the last bit; 2 are only in A, 2 only in B",
    ]
    assert diff(a, b).measure == "total_reward"
    assert diff(a, b).apart == ()
    with pytest.raises(InputError, match="at the same horizon and on the same seeds"):
        diff(a, c)
    wd.Study(worlds[1:], [{"id": "random"}], horizon=100, seeds=2).run(tmp_path / "d")
    with pytest.raises(InputError, match="regret: is not known of any run that both have"):
        diff(a, tmp_path / "d", column="regret")


def test_diff_with_a_study_that_has_no_run_yet(pair, tmp_path):
    shutil.copytree(pair[0], tmp_path / "begun")
    for path in (tmp_path / "begun" / "runs").iterdir():
        path.unlink()
    with pytest.raises(StateError, match="begun: no run is in it yet"):
        diff(pair[0], tmp_path / "begun")


ENVIRONMENT = EnvironmentConfig("riverswim-v0", {"horizon": 100})


def configured(delta, told=None, digest=""):
    return ConditionConfig(ENVIRONMENT, AgentConfig("ucrl2", {"delta": delta}, digest, told))


def conditions(**agents):
    return {Condition("river", 100, name): one for name, one in agents.items()}


def matched(first, second):
    return {one.first.agent: one.second.agent for one in match(first, second)}


def test_of_several_alike_the_namesake_is_taken():
    assert matched(
        conditions(x=configured(0.1)), conditions(y=configured(0.1), x=configured(0.1))
    ) == {"x": "x"}


def test_namesakes_choose_before_others_of_the_same_configuration():
    assert matched(
        conditions(a=configured(0.1), x=configured(0.1)), conditions(x=configured(0.1))
    ) == {"x": "x"}


def test_nobody_has_two_partners():
    """What a second study calls b is the first one's a; so its b has no partner."""
    assert matched(
        conditions(a=configured(0.1), b=configured(0.2)), conditions(b=configured(0.1))
    ) == {"a": "b"}


def test_the_order_is_that_of_the_first_conditions():
    first = conditions(a=configured(0.1), b=configured(0.2), c=configured(0.3))
    second = conditions(c=configured(0.3), b=configured(0.4), z=configured(0.1))
    assert list(matched(first, second).items()) == [("a", "z"), ("b", "b"), ("c", "c")]


def test_what_an_agent_is_told_is_part_of_what_it_is():
    first = conditions(x=configured(0.1))
    second = conditions(y=configured(0.1, told=()), x=configured(0.2, told=("B_r", "B_p")))
    (one,) = match(first, second)
    assert (one.first.agent, one.second.agent) == ("x", "x")
    assert one.differences == (
        ConfigDifference("delta", "0.1", "0.2"),
        ConfigDifference("given", "what its kind requires", "B_r and B_p"),
    )
    (one,) = match(first, conditions(x=configured(0.1, told=())))
    assert one.differences == (ConfigDifference("given", "what its kind requires", "nothing"),)


def test_what_differs_is_told_the_environment_first():
    theirs = ConditionConfig(
        EnvironmentConfig("riverswim-v0", {"horizon": 100, "states": 4}),
        AgentConfig("psrl", {}, digest="ab"),
    )
    (one,) = match(conditions(x=configured(0.1)), conditions(x=theirs))
    assert one.differences == (
        ConfigDifference("environment.states", "-", "4"),
        ConfigDifference("id", "ucrl2", "psrl"),
        ConfigDifference("delta", "0.1", "-"),
        ConfigDifference("source", "-", "ab"),
    )
