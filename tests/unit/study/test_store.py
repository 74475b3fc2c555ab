"""The folder of a study: whole files, locks, manifests, and what a flipped bit does."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import windage as wd
from tests.conftest import RELIABILITY
from tests.unit.study.conftest import rewrite
from windage.cli import main
from windage.errors import InputError, StateError
from windage.study import configs, expand, store
from windage.study.schema import RUN, decode
from windage.study.store import Store, load_oracles
from windage.study.verify import verify


def small(**more):
    options = {"horizon": 300, "seeds": 3, "name": "small"} | more
    return wd.Study([{"id": "riverswim"}], [{"id": "random"}, {"id": "ucrl2"}], **options)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies") / "small"
    small().run(folder)
    return folder


@pytest.fixture
def results(finished, tmp_path):
    return Path(shutil.copytree(finished, tmp_path / "results"))


def contents(folder):
    kinds = ("runs", "oracles")
    return {path.name: path.read_bytes() for kind in kinds for path in (folder / kind).iterdir()}


def test_what_stands_in_the_folder(results):
    names = {path.name for path in results.iterdir()}
    assert names == {"manifest.json", "runs", "oracles", "timings.jsonl", ".lock"}
    assert len(list((results / "runs").iterdir())) == 6
    assert len(list((results / "oracles").iterdir())) == 1
    manifest = json.loads((results / "manifest.json").read_text())
    assert {"numba", "windage", "polars", "numpy", "python"} <= manifest["versions"].keys()
    assert [run["seed"] for run in manifest["runs"]] == [0, 1, 2, 0, 1, 2]
    times = [json.loads(line) for line in (results / "timings.jsonl").read_text().splitlines()]
    assert len(times) == 7
    assert all(entry["seconds"] >= 0 and entry["host"] and entry["pid"] for entry in times)
    host = times[0]["host"].encode()
    if len(host) > 3:  # a short name may stand in compressed bytes by chance
        assert not any(host in data for data in contents(results).values())


def test_results_in_their_order(results):
    table = wd.load_results(results)
    assert table["agent"].to_list() == ["random"] * 3 + ["ucrl2"] * 3
    assert table["seed"].to_list() == [0, 1, 2] * 2
    assert table["study"].unique().to_list() == ["small"]
    assert set(table.columns) == set(RUN.dtypes) | {"study", "environment", "agent"}
    assert load_oracles(results)["environment"].to_list() == ["riverswim"]


def test_a_file_is_read_by_others_as_it_is(results):
    ours = wd.load_results(results).sort("key")
    theirs = pl.read_parquet(results / "runs/*.parquet").sort("key")
    assert theirs.select(list(RUN.dtypes)).equals(ours.select(list(RUN.dtypes)))
    frame = pd.read_parquet(results / "runs").sort_values("key")
    assert frame["regret"].tolist() == ours["regret"].to_list()
    assert frame["cumulative_regret"].iloc[0].tolist() == ours["cumulative_regret"][0].to_list()
    query = f"SELECT key, regret, len(t) FROM '{results}/runs/*.parquet' ORDER BY key"
    assert (
        duckdb.sql(query).fetchall() == ours.select("key", "regret", pl.col("t").list.len()).rows()
    )


def test_every_flipped_byte_and_every_cut_is_noticed(results):
    """All cuts of a file and a flip of every byte (a sample in `make test`) are refused."""
    path = sorted((results / "runs").iterdir())[0]
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    step = 1 if RELIABILITY else 7
    for place in range(0, len(data), step):
        broken = bytearray(data)
        broken[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(StateError, match="is damaged") as caught:
            decode(bytes(broken), RUN, path)
        assert caught.value.field == str(path)
        with pytest.raises(StateError, match="is damaged"):
            decode(data[:place], RUN, path)
    with pytest.raises(StateError, match="is damaged"):
        decode(data + b"x", RUN, path)
    assert decode(data, RUN, path).height == 1


@pytest.mark.parametrize("kind", ["runs", "oracles"])
@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "other"])
def test_damaged_files_are_named_and_made_anew_and_nothing_else(results, kind, damage):
    before = contents(results)
    files = sorted((results / kind).iterdir())
    victim = files[0]
    data = bytearray(victim.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 64
    elif damage == "cut":
        data = data[: len(data) // 2]
    elif damage == "empty":
        data = bytearray()
    else:  # a whole file, under another's name
        data = bytearray(sorted((results / "runs").iterdir())[-1].read_bytes())
    victim.write_bytes(data)
    if kind == "runs":
        with pytest.raises(StateError, match="is damaged") as caught:
            wd.load_results(results)
        assert caught.value.field == str(victim)
    stamps = {path: path.stat().st_mtime_ns for path in results.rglob("*.parquet")}
    done = small().run(results)
    assert len(done.repaired) == 1
    assert str(victim) in done.repaired[0]
    assert done.made == (kind == "runs")
    assert contents(results) == before
    again = {path for path, stamp in stamps.items() if path.stat().st_mtime_ns != stamp}
    assert again == {victim}


@pytest.mark.parametrize("error", [errno.EACCES, errno.EIO, errno.EMFILE])
@pytest.mark.parametrize("name", ["runs", "oracles", "manifest.json"])
def test_what_cannot_be_read_today_is_not_taken_for_damage(results, monkeypatch, name, error):
    place = results / name
    victim = sorted(place.iterdir())[0] if place.is_dir() else place
    before, manifest = contents(results), (results / "manifest.json").read_bytes()
    real = Path.read_bytes

    def read_bytes(path):
        if path == victim:
            raise OSError(error, os.strerror(error))
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", read_bytes)
        with pytest.raises(InputError, match="cannot be read") as caught:
            small().run(results)
        assert caught.value.field == str(victim)
        assert os.strerror(error) in str(caught.value)
    assert contents(results) == before
    assert (results / "manifest.json").read_bytes() == manifest
    assert small().run(results).kept == 6


@pytest.mark.parametrize("kind", ["runs", "oracles"])
def test_a_folder_in_the_place_of_a_result_is_named_and_stays(results, kind):
    victim = sorted((results / kind).iterdir())[0]
    victim.unlink()
    victim.mkdir()
    (victim / "thesis.tex").touch()
    with pytest.raises(InputError, match="cannot be read") as caught:
        small().run(results)
    assert caught.value.field == str(victim)
    assert (victim / "thesis.tex").exists()


@pytest.mark.parametrize("text", ["", "{", '{"windage_study": 2}', "[]", '{"name": "x"}', "\xff"])
def test_a_damaged_manifest_is_refused_and_written_anew(results, text):
    (results / "manifest.json").write_text(text, encoding="latin-1")
    with pytest.raises(StateError, match="cannot be read"):
        wd.load_results(results)
    before = contents(results)
    with pytest.warns(wd.ParameterWarning, match=r"manifest.json cannot be read .*written anew"):
        done = small().run(results)
    assert (done.made, done.kept) == (0, 6)
    assert contents(results) == before
    assert wd.load_results(results).height == 6


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ('"agent": "random"', '"agent": "randon"'),  # of one run: an agent that never was
        ('"seed": 1', '"seed": 3'),
        ('"player": 0', '"player": 1'),
        ('"player": 0', '"player": 9'),
        ('"horizon": 300,\n   "seed"', '"horizon": 301,\n   "seed"'),
        ('"states": 6', '"states": 4'),
        ('"delta": 0.05', '"delta": 0.04'),
    ],
)
def test_a_manifest_that_can_be_read_but_was_changed_is_refused(results, was, now):
    """Labels and their order are nowhere else: no result file would be missed."""
    path = results / "manifest.json"
    text, before = path.read_text(), contents(results)
    assert was in text
    path.write_text(text.replace(was, now, 1))
    for reader in (wd.load_results, verify):
        with pytest.raises(StateError, match=r"manifest.json: cannot be read \(its checksum is"):
            reader(results)
    with pytest.warns(wd.ParameterWarning, match="its checksum is wrong.*; it was written anew"):
        assert small().run(results).kept == 6
    assert (path.read_text(), contents(results)) == (text, before)


def test_a_manifest_without_its_checksum_is_refused(results):
    """Two agents whose keys change places would swap their regrets, and nothing else would say."""
    path = results / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"checksum": ""}))
    for reader in (wd.load_results, verify):
        with pytest.raises(
            StateError, match=r"manifest.json: cannot be read \(its checksum is empty"
        ):
            reader(results)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("world", 10**9, r"runs\[1\].world is 1,000,000,000 of 1"),
        ("player", 2, r"runs\[1\].player is 2 of 2"),
        ("player", -1, r"Expected `int` >= 0 - at `\$.runs\[1\].player`"),
        ("key", "../" * 9 + "etc/passwd", "matching regex"),
        ("oracle", "x", "matching regex"),
        ("horizon", 0, "Expected `int` >= 1"),
        ("seed", -1, "Expected `int` >= 0"),
    ],
)
def test_a_manifest_that_names_what_is_not_there_is_refused(results, name, value, message):
    """Its checksum is right: written by a program, not by chance."""
    path = results / "manifest.json"
    manifest = json.loads(path.read_text())
    rewrite(path, manifest)
    assert wd.load_results(results).height == 6
    manifest["runs"][1][name] = value
    rewrite(path, manifest)
    for reader in (wd.load_results, verify, load_oracles):
        with pytest.raises(StateError, match="manifest.json: cannot be read .*" + message):
            reader(results)
    assert main(["explain", str(results), "--run", "2"]) == 2


@pytest.mark.parametrize("name", ["manifest.json", "runs", "oracles", "timings.jsonl", ".lock"])
def test_a_link_in_the_folder_of_a_study_is_refused(results, tmp_path, name):
    """What it leads to is somebody else's."""
    theirs = tmp_path / "theirs"
    link = results / name
    if link.is_dir():
        shutil.copytree(link, theirs)
        (theirs / f"{'0a' * 16}.parquet.1-0.tmp").write_text("a draft")
        shutil.rmtree(link)
    else:
        theirs.write_text("a thesis")
        link.unlink()
    link.symlink_to(theirs)
    before = {path: path.read_bytes() for path in (theirs, *theirs.glob("*")) if path.is_file()}
    for asked in (small().run, small().preview):
        with pytest.raises(InputError, match="is a link to .*theirs.*remove the link") as caught:
            asked(results)
        assert caught.value.field == str(link)
    after = {path: path.read_bytes() for path in (theirs, *theirs.glob("*")) if path.is_file()}
    assert after == before


def test_a_link_in_the_place_of_a_result_is_refused(results, tmp_path):
    victim = sorted((results / "runs").iterdir())[0]
    victim.unlink()
    victim.symlink_to(tmp_path / "theirs.parquet")
    with pytest.raises(InputError, match="is a link to .*theirs") as caught:
        small().run(results)
    assert caught.value.field == str(victim)
    assert not (tmp_path / "theirs.parquet").exists()


def test_every_flipped_bit_of_a_manifest_is_refused_or_changes_nothing(results):
    """A flip in white space is none; one in a label or a number would be a study never asked."""
    path = results / "manifest.json"
    data, wanted = path.read_bytes(), Store(results).manifest()
    rng = np.random.default_rng(1)
    refused = []
    for place in range(0, len(data) - 1, 1 if RELIABILITY else 3):
        broken = bytearray(data)
        broken[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(broken)
        try:
            assert Store(results).manifest() == wanted, place
        except StateError as err:
            refused.append(err.field)
        path.write_bytes(data[:place])
        with pytest.raises(StateError, match="cannot be read"):
            Store(results).manifest()
    assert set(refused) == {str(path)}
    assert len(refused) > 100


def test_another_format_is_refused_and_its_files_stay(results, monkeypatch):
    path, before = results / "manifest.json", contents(results)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"windage_study": 1}))
    with pytest.raises(StateError, match="has the format 1, this version reads 2"):
        wd.load_results(results)
    monkeypatch.setattr(configs, "FORMAT", 3)  # as a later version would have it
    monkeypatch.setattr(expand, "FORMAT", 3)
    monkeypatch.setattr(store, "FORMAT", 3)
    with pytest.warns(wd.ParameterWarning, match=r"has the format 1, this version reads 3: all"):
        done = small().run(results)
    assert (done.made, done.kept, done.repaired, done.spare) == (6, 0, (), 6)
    assert len(list((results / "oracles").iterdir())) == 2
    assert before.items() <= contents(results).items()
    assert wd.load_results(results).height == 6


def test_runs_that_are_missing(results):
    sorted((results / "runs").iterdir())[0].unlink()
    with pytest.raises(StateError, match="1 of 6 runs are missing"):
        wd.load_results(results)
    assert wd.load_results(results, unfinished=True).height == 5
    shutil.rmtree(results / "runs")
    empty = wd.load_results(results, unfinished=True)
    assert empty.height == 0
    assert "agent" in empty.columns


def test_folders_that_hold_no_study(tmp_path):
    for folder, message in (
        (tmp_path, "holds no study"),
        (tmp_path / "no", "is no folder of results"),
    ):
        with pytest.raises(StateError, match=message):
            wd.load_results(folder)
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InputError, match=r"holds other things \(thesis.tex\) and no study"):
        small().run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "draft.tmp").touch()
    with pytest.raises(InputError, match=r"holds other things \(draft.tmp\) and no study"):
        small().run(tmp_path / "notes")
    assert (tmp_path / "notes" / "draft.tmp").exists()
    with pytest.raises(InputError, match="is a file"):
        small().run(tmp_path / "thesis.tex")
    with pytest.raises(InputError, match="its folder is a file"):
        small().run(tmp_path / "thesis.tex" / "results")
    with pytest.raises(InputError, match="is not the name of a file"):
        small().run(7)


def test_two_at_once_in_one_folder(tmp_path):
    refused = pytest.raises(InputError, match="another process is running a study in it")
    with Store.opened(tmp_path / "results"), refused:
        small().run(tmp_path / "results")
    assert small().run(tmp_path / "results").made == 6


def test_a_disk_without_locks_will_do(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    assert small().run(tmp_path / "results").made == 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_forked_meanwhile_does_not_keep_the_folder_locked(tmp_path):
    """Workers of an executor that stays open are such processes."""
    reader, writer = os.pipe()
    with Store.opened(tmp_path / "results"):
        child = os.fork()
        if child == 0:
            os.close(writer)
            os.read(reader, 1)  # until its parent is done
            os._exit(0)
    try:
        assert small().run(tmp_path / "results").made == 6
    finally:
        os.close(writer)
        os.waitpid(child, 0)
        os.close(reader)


def test_what_the_killed_left_behind_is_taken_away_and_nothing_of_the_users(results):
    result = f"{'0a' * 16}.parquet"
    ours = ("manifest.json.1-0.tmp", f"runs/{result}.1-0.tmp", f"oracles/{result}.77-3.tmp")
    theirs = ("x.tmp", "runs/y.parquet.1-0.tmp", f"{result}.1-0.tmp", f"runs/{result}.tmp",
              "notes/manifest.json.1-0.tmp", "runs/manifest.json.1-0.tmp")  # fmt: skip
    (results / "notes").mkdir()
    for left in ours + theirs:
        (results / left).write_bytes(b"half")
    with (results / "timings.jsonl").open("a") as file:
        file.write('{"kind": "ru')
    sorted((results / "runs").glob("*.parquet"))[0].unlink()
    small().run(results)
    assert {path.relative_to(results).as_posix() for path in results.rglob("*.tmp")} == set(theirs)
    lines = (results / "timings.jsonl").read_text().splitlines()
    assert lines[7] == '{"kind": "ru'
    assert json.loads(lines[8])["kind"] == "run"


def test_versions_of_those_before_are_remembered(results):
    path = results / "manifest.json"
    manifest = json.loads(path.read_text())
    now = manifest["versions"]
    manifest["versions"] = now | {"numba": "0.1"}
    rewrite(path, manifest)
    with pytest.warns(wd.ParameterWarning, match="were made with other versions"):
        small().run(results)
    found = json.loads(path.read_text())
    assert found["versions"] == now
    assert found["before"] == [now | {"numba": "0.1"}]
    small().run(results)  # and said once
    assert json.loads(path.read_text())["before"] == [now | {"numba": "0.1"}]
