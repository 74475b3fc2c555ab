"""Comparisons and `verify` on studies whose answers are known."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import sys
from pathlib import Path

import polars as pl
import pytest

import windage as wd
from tests.unit.study.conftest import rewrite, study
from windage.cli import main
from windage.errors import InputError, StateError
from windage.report.page.data import gather
from windage.study import stats
from windage.study.compare import comparisons, measure, summaries
from windage.study.diff import diff
from windage.study.store import Store, load_oracles
from windage.study.task import play
from windage.study.verify import _tasks, verify


def table(rows, column="regret"):
    """Results by hand: (environment, agent, seed, value)."""
    return pl.DataFrame(
        [
            {
                "environment": e, "horizon": 100, "agent": a, "seed": s, column: float(v),
                "told": ["the model"] if a == "oracle" else ["B_r"],
            }
            for e, a, s, v in rows
        ]
    )  # fmt: skip


HAND = table(
    [
        *(("river", "a", s, v) for s, v in enumerate([1, 2, 3, 4, 5])),
        *(("river", "b", s, v) for s, v in reversed(list(enumerate([3, 5, 7, 9, 11])))),
        *(("queue", "a", s, 10) for s in range(5)),
        *(("queue", "b", s, v) for s, v in enumerate([11, 9, 11, 9, 10])),
        *(("queue", "oracle", s, 0) for s in range(5)),
        ("queue", "c", 0, 5),
    ]
)


def test_summaries_by_hand():
    found = {(c.environment, c.agent): (c.n, c.mean.estimate) for c in summaries(HAND)}
    assert found[("river", "a")] == (5, 3.0)
    assert found[("river", "b")] == (5, 7.0)
    assert found[("queue", "c")] == (1, 5.0)


def test_intervals_do_not_hang_on_the_order_of_the_seeds(pair, tmp_path):
    """Draws go by places; the page sorts its seeds, so tables of a study must, too."""
    values = [9.0, 7.1, 3.3, 2.0, 8.7, 1.9, 5.3]
    rows = [("river", "b", seed, value) for seed, value in enumerate(values)]
    assert stats.mean(values) != stats.mean(values[::-1])
    assert summaries(table(rows[::-1]))[0].mean == stats.mean(values)
    study(seeds=[3, 0, 2, 1]).run(tmp_path / "turned")
    assert diff(tmp_path / "turned", pair[1]).changes == diff(*pair).changes


def test_two_runs_on_one_seed_are_refused():
    """As in the tables of two studies, one below the other: the second would hide the first."""
    twice = pl.concat([HAND, table([("river", "b", 3, 0)])])
    for asked in (summaries, comparisons):
        with pytest.raises(InputError, match=r"b on river, T = 100, has two runs on seed 3"):
            asked(twice)


def test_comparisons_pair_by_seed():
    found = comparisons(HAND)
    assert [(c.environment, c.first, c.second) for c in found] == [
        ("river", "a", "b"), ("queue", "a", "b")
    ]  # fmt: skip
    river, queue = found
    # b - a on seed s is 2 + s, whatever the order of the rows: -2, -3, -4, -5, -6
    assert river.paired.difference.estimate == -4.0
    assert river.paired.p_value == 2 / 32
    assert (river.paired.wins, river.paired.better) == (5, "less")  # a has less regret
    assert (queue.paired.wins, queue.paired.ties) == (2, 1)
    more = comparisons(HAND.with_columns(total_reward="regret"), "total_reward")[0].paired
    assert (more.wins, more.better) == (0, "more")
    assert queue.paired.difference.estimate == 0.0
    assert queue.paired.p_value == 1.0
    by_hand = stats.paired([1, 2, 3, 4, 5], [3, 5, 7, 9, 11], better="less")
    assert river.paired == by_hand


def test_tests_are_corrected_for_the_pairs_of_their_own_environment():
    """Neither other environments, nor agents told the model, nor single seeds are counted."""
    river, queue = comparisons(HAND)
    assert river.adjusted == 2 / 32  # one pair
    assert queue.adjusted == 1.0
    third = [("river", "c", s, v) for s, v in enumerate([2, 4, 6, 8, 10])]
    found = comparisons(pl.concat([HAND, table(third)]))
    # b - a, b - c and c - a have one sign on all five seeds each: three tests of 2 / 32
    assert [c.adjusted for c in found if c.environment == "river"] == [3 * 2 / 32] * 3


def test_horizons_are_kept_apart():
    """One environment at two horizons: two rows of everything, and two families of tests."""
    rows = HAND.filter(pl.col("environment") == "river")
    later = rows.with_columns(
        horizon=pl.lit(200, rows["horizon"].dtype), regret=pl.col("regret") * 3
    )
    both = pl.concat([rows, later])
    assert [(c.horizon, c.agent, c.n, c.mean.estimate) for c in summaries(both)] == [
        (100, "a", 5, 3.0), (100, "b", 5, 7.0), (200, "a", 5, 9.0), (200, "b", 5, 21.0)
    ]  # fmt: skip
    found = [(c.horizon, c.paired.difference.estimate, c.adjusted) for c in comparisons(both)]
    assert found == [(100, -4.0, 2 / 32), (200, -12.0, 2 / 32)]


def test_levels_are_passed_on(pair):
    a, b = [1.0, 2.0, 3.0, 4.0, 5.0], [3.0, 5.0, 7.0, 9.0, 11.0]
    assert summaries(HAND, level=0.5)[0].mean == stats.mean(a, 0.5)
    assert comparisons(HAND, level=0.5)[0].paired == stats.paired(a, b, 0.5, better="less")
    narrow, wide = (diff(*pair, level=level).changes[1].paired.difference for level in (0.5, 0.95))
    assert narrow.level == 0.5
    assert wide.low < narrow.low


def test_the_planned_comparisons_are_the_family_of_the_tests():
    """Five differences of one sign: p = 2/32, times as many tests as there are."""
    found = comparisons(HAND, baseline="a")
    assert [(c.first, c.second) for c in found] == [("b", "a"), ("b", "a")]
    assert found[0].paired.difference.estimate == 4.0
    third = [("river", "c", s, v) for s, v in enumerate([20, 40, 60, 80, 100])]
    three = pl.concat([HAND, table(third)])
    adjusted = {}
    for name, asked in (("all", {}), ("c", {"baseline": "c"}), ("one", {"compare": [("c", "b")]})):
        here = [c for c in comparisons(three, **asked) if c.environment == "river"]
        adjusted[name] = {
            (c.first, c.second): c.adjusted for c in here if "c" in (c.first, c.second)
        }
    assert adjusted["all"] == {("a", "c"): 3 / 16, ("b", "c"): 3 / 16}
    assert adjusted["c"] == {("a", "c"): 2 / 16, ("b", "c"): 2 / 16}
    assert adjusted["one"] == {("c", "b"): 1 / 16}
    for wrong in ("z", "oracle"):
        with pytest.raises(InputError, match=f"baseline: no such choice: '{wrong}'"):
            comparisons(HAND, baseline=wrong)
    for pairs, why in (
        ([("a", "z")], r"compare\[0\]\[1\]: no such choice: 'z'"),
        ([("a", "b"), ("a", "a")], r"compare\[1\]: .* is no pair"),
        ([("a", "b"), ("b", "a")], r"compare\[1\]: .* is there twice"),
        ([("a",)], r"compare\[0\]: .* is no pair"),
    ):
        with pytest.raises(InputError, match=why):
            comparisons(HAND, compare=pairs)
    with pytest.raises(InputError, match="baseline: stands beside compare"):
        comparisons(HAND, baseline="a", compare=[("a", "b")])


def test_page_and_comparisons_give_the_same_p_values(tmp_path):
    """By share on the page, by regret in the table; two environments, and one yardstick."""
    worlds = [{"id": "riverswim"}, {"id": "two-state-cosine"}]
    agents = [{"id": name} for name in ("random", "ucrl2", "sw-psrl", "oracle")]
    wd.Study(worlds, agents, horizon=300, seeds=7).run(tmp_path / "results")
    results = wd.load_results(tmp_path / "results")
    material = gather(results, load_oracles(tmp_path / "results"))
    shown = {
        (c.setting.environment, *sorted(labels)): p
        for c in material.comparisons.values()
        for labels, p in c.corrected.items()
    }
    found = {
        (c.environment, *sorted((c.first, c.second))): c.adjusted for c in comparisons(results)
    }
    assert len(found) == 6
    assert 3 * 2 / 2**7 in found.values()
    assert shown == found


def test_what_is_compared():
    rewards = table([("river", "a", 0, 1), ("river", "a", 1, 2)], "total_reward")
    unknown = rewards.with_columns(pl.lit(None, dtype=pl.Float64).alias("regret"))
    assert measure(unknown) == "total_reward"
    assert measure(HAND) == "regret"
    assert summaries(unknown)[0].mean.estimate == 1.5
    with pytest.raises(InputError, match="is not known in river"):
        summaries(unknown, "regret")
    with pytest.raises(InputError, match="no such choice: 'regrets'"):
        summaries(HAND, "regrets")


@pytest.fixture
def copy(pair, tmp_path):
    return Path(shutil.copytree(pair[0], tmp_path / "a"))


def test_verify_computes_again_and_changes_nothing(copy):
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*")}
    found = verify(copy, sample=3)
    assert found.holds
    assert (found.files, found.recomputed, found.missing) == (9, 4, 0)
    assert verify(copy, sample=None).recomputed == 9
    assert verify(copy, sample=0).recomputed == 0
    assert before == {path: path.stat().st_mtime_ns for path in copy.rglob("*")}
    with pytest.raises(InputError, match="sample"):
        verify(copy, sample=-1)


def test_verify_notices_a_result_that_is_whole_but_wrong(copy):
    """A file with a valid checksum whose numbers are those of another seed."""
    store = Store(copy)
    tasks = list(_tasks(store.manifest()).values())
    other = next(task for task in tasks if task.seed == 1 and task.agent.id == "ucrl2")
    victim = next(task for task in tasks if task.seed == 0 and task.agent.id == "ucrl2")
    forged = type(other)(victim.key, other.environment, other.agent, other.seed)
    (copy / "runs" / f"{victim.key}.parquet").write_bytes(play(forged, None).data)
    found = verify(copy, sample=None)
    assert not found.holds
    assert found.damaged == ()
    (one,) = found.different
    assert one.what == f"ucrl2 on riverswim, seed 0 ({victim.key})"
    assert {"seed", "total_reward", "cumulative_reward", "regret"} <= set(one.columns)
    assert "agent_id" not in one.columns


def test_verify_notices_a_forged_oracle(copy):
    store = Store(copy)
    (path,) = (copy / "oracles").iterdir()
    row = store.oracle(path.stem).row(0, named=True)
    from windage.study.schema import ORACLE, encode

    path.write_bytes(encode(row | {"total": row["total"] + 1.0}, ORACLE))
    found = verify(copy, sample=1)
    assert [one.columns for one in found.different] == [("total",)]


def test_the_seed_of_verify_names_its_sample(copy, monkeypatch):
    def played(seed):
        seen = set()
        monkeypatch.setattr(
            "windage.study.verify.play", lambda task, gains: seen.add(task.key) or play(task, gains)
        )
        assert verify(copy, sample=3, seed=seed).recomputed == 4
        return frozenset(seen)

    assert played(0) == played(0)
    assert len({played(seed) for seed in range(5)}) > 1


def test_verify_names_what_is_missing_damaged_and_of_other_versions(copy):
    first, second = sorted((copy / "runs").iterdir())[:2]
    first.unlink()
    second.write_bytes(second.read_bytes()[:100])
    path = copy / "manifest.json"
    manifest = json.loads(path.read_text())
    now = manifest["versions"]["numba"]
    manifest["versions"]["numba"] = "0.1"
    rewrite(path, manifest)
    found = verify(copy, sample=0)
    assert found.missing == 1
    assert len(found.damaged) == 1
    assert str(second) in found.damaged[0]
    assert found.versions == (("numba", "0.1", now),)
    assert not found.holds
    with pytest.raises(StateError, match="holds no study"):
        verify(copy / "runs")


@pytest.mark.parametrize("kind", ["runs", "oracles"])
def test_verify_does_not_hold_if_only_something_is_missing(copy, kind):
    sorted((copy / kind).iterdir())[0].unlink()
    found = verify(copy, sample=0)
    assert (found.missing, found.damaged, found.holds) == (1, (), False)


def test_verify_names_what_it_cannot_compute_any_more_and_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(tmp_path)
    text = Path(__file__).with_name("own.py").read_text()
    (tmp_path / "mine_v8.py").write_text(text)
    agents = [{"id": "mine_v8:Plain"}, {"id": "random"}]
    wd.Study([{"id": "riverswim"}], agents, horizon=100, seeds=2).run(tmp_path / "results")
    (tmp_path / "mine_v8.py").write_text(text + "# another thought\n")
    importlib.reload(sys.modules["mine_v8"])
    found = verify(tmp_path / "results", sample=None)
    assert [one.what.split(" (")[0] for one in found.failed] == [
        f"mine_v8:Plain on riverswim, seed {seed}" for seed in range(2)
    ]
    why = r"mine_v8.py is not the file .* planned with: it was edited since, .* run the study again"
    assert re.search(why, found.failed[0].why)
    assert (found.files, found.recomputed, found.different) == (5, 3, ())
    assert not found.holds
    sorted((tmp_path / "results" / "oracles").iterdir())[0].unlink()
    assert main(["verify", str(tmp_path / "results"), "--all"]) == 1
    assert capsys.readouterr().out == (
        "4 files read, 3 results computed again: 0 damaged, 0 different, 1 missing, "
        "2 that cannot be computed any more\n"
    )


def test_verify_goes_on_when_an_oracle_fails(copy, monkeypatch):
    def refused(model, tol=1e-6):
        raise wd.NotConverged("did not close", field="optimal_gains", fix="wait")

    monkeypatch.setattr(wd.DriftingMDP, "optimal_gains", refused)
    found = verify(copy, sample=2)
    assert "did not close" in found.failed[0].why
    assert [one.why for one in found.failed[1:]] == ["its oracle failed"] * 2
    assert found.recomputed == 0
