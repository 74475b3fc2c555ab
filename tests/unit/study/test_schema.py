"""Columns of result files: those added later need no new key, others need another format."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import polars as pl
import pytest

import windage as wd
from tests.unit.study.test_store import contents, small
from windage.errors import StateError
from windage.study import configs, schema
from windage.study.diff import diff
from windage.study.schema import Column, Schema
from windage.study.store import load_oracles
from windage.study.verify import verify

LUCK = Column("luck", pl.Float64, lambda done: done.run.total_reward / 2, nullable=True)


def without(*names, of):
    return Schema(*(column for column in of.columns if column.name not in names))


@pytest.fixture(scope="module")
def older(tmp_path_factory):
    """Results of a version that knew neither shares nor closed forms of the diameter."""
    folder = tmp_path_factory.mktemp("older") / "results"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "RUN", without("share", of=schema.RUN))
        patch.setattr(schema, "ORACLE", without("diameter_bound", of=schema.ORACLE))
        small().run(folder)
    return folder


@pytest.fixture
def results(older, tmp_path):
    return Path(shutil.copytree(older, tmp_path / "results"))


def test_a_column_that_older_files_lack_is_null_and_the_files_are_used(results):
    columns = pl.read_parquet(sorted((results / "runs").iterdir())[0]).columns
    assert columns == [name for name in schema.RUN.dtypes if name != "share"]
    before = contents(results)
    done = small().run(results)
    assert (done.kept, done.made, done.repaired, done.spare) == (6, 0, (), 0)
    assert contents(results) == before
    table = wd.load_results(results)
    assert table["share"].null_count() == table.height == 6
    assert table["share"].dtype == pl.Float64
    assert table["regret"].null_count() == 0
    oracles = load_oracles(results)
    assert oracles["diameter_bound"].to_list() == [None]
    assert oracles.columns == ["environment", *schema.ORACLE.dtypes]


def test_what_is_made_now_has_the_column_beside_files_that_lack_it(results, tmp_path):
    assert small(seeds=4).run(results).made == 2
    table = wd.load_results(results)
    assert table["share"].is_null().to_list() == [True] * 3 + [False] + [True] * 3 + [False]
    small(seeds=4).run(tmp_path / "anew")
    anew = wd.load_results(tmp_path / "anew")
    assert anew["share"].null_count() == 0
    assert table.drop("share").equals(anew.drop("share"))
    assert table.columns == anew.columns


def test_verify_and_diff_compare_the_columns_that_both_have(results, tmp_path):
    small().run(tmp_path / "anew")
    found = verify(results, sample=None)
    assert (found.recomputed, found.different, found.holds) == (7, (), True)
    for pair in ((results, tmp_path / "anew"), (tmp_path / "anew", results)):
        compared = diff(*pair)
        assert [change.same for change in compared.changes] == [3, 3]
        assert compared.measure == "regret"


def test_a_value_that_differs_is_noticed_though_a_column_is_missing(results):
    path = sorted((results / "runs").iterdir())[0]
    older = without("share", of=schema.RUN)
    row = schema.decode(path.read_bytes(), older, path).row(0, named=True)
    path.write_bytes(schema.encode(row | {"regret": row["regret"] + 1.0}, older))
    (mismatch,) = verify(results, sample=None).different
    assert mismatch.columns == ("regret",)


def test_one_declaration_adds_a_column(results, monkeypatch):
    monkeypatch.setattr(schema, "RUN", Schema(*schema.RUN.columns, LUCK))
    assert small(seeds=4).run(results).made == 2
    table = wd.load_results(results)
    known = table.filter(pl.col("luck").is_not_null())
    assert known["seed"].to_list() == [3, 3]
    assert known["luck"].to_list() == (known["total_reward"] / 2).to_list()
    monkeypatch.undo()  # an older version reads the files of the newer one
    assert "luck" not in wd.load_results(results).columns
    assert small(seeds=4).run(results).kept == 8


@pytest.mark.parametrize("name", ["steps", "t"])
def test_a_file_without_a_required_column_is_refused(results, monkeypatch, name):
    path = sorted((results / "runs").iterdir())[0]
    row = schema.decode(path.read_bytes(), schema.RUN, path).row(0, named=True)
    path.write_bytes(schema.encode(row, without(name, of=schema.RUN)))
    with pytest.raises(StateError, match="is damaged .it has other columns than this version"):
        wd.load_results(results)
    assert small().run(results).made == 1


def test_a_column_of_another_type_is_refused(results):
    path = sorted((results / "runs").iterdir())[0]
    row = schema.decode(path.read_bytes(), schema.RUN, path).row(0, named=True)
    other = [
        Column(c.name, pl.String if c.name == "share" else c.dtype, c.compute, c.nullable)
        for c in schema.RUN.columns
    ]
    path.write_bytes(schema.encode(row | {"share": "half"}, Schema(*other)))
    with pytest.raises(StateError, match="other columns than this version reads"):
        wd.load_results(results)


def test_other_required_columns_are_another_format():
    """Change these lines only together with `FORMAT`: old files would be taken for damaged ones.

    A nullable column may be added without it; then only the last number changes.
    """
    columns = [*schema.RUN.columns, *schema.ORACLE.columns]
    required = "\n".join(f"{c.name} {c.dtype}" for c in columns if not c.nullable)
    digest = hashlib.sha256(required.encode()).hexdigest()[:16]
    assert {configs.FORMAT: digest} == {2: "3b1d7552eef14019"}
    nullable = {c.name: str(c.dtype) for c in columns if c.nullable}
    reals = ["widening", "delta", "total_mean_reward", "oracle_reward", "oracle_error", "regret",
             "observed_regret", "share", "diameter_bound"]  # fmt: skip
    curves = ["cumulative_mean_reward", "cumulative_regret"]
    assert (
        nullable.items()
        >= (
            dict.fromkeys(["radii", "ties", "variant"], "String")
            | {"window": "Int64"}
            | dict.fromkeys(reals, "Float64")
            | dict.fromkeys(curves, "List(Float64)")
        ).items()
    )
    assert len(columns) == 62
