"""A journal and a study on a disk whose n-th write, sync, truncation or rename goes wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import windage as wd
from tests.conftest import RELIABILITY
from tests.e2e.studying import contents, hash_in, stamps
from tests.in_process import windage_here

HERE = Path(__file__).parent
FAIL, STOP, HALF, DEAD = range(4)  # as in faults.c

STUDY = """
horizon = 50
seeds = {seeds}
[[environments]]
id = "two-state-cosine"
[[agents]]
id = "random"
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    if shutil.which("cc") is None:
        pytest.fail("the shim is compiled: install a C compiler, such as with apt-get install gcc")
    shim = tmp_path_factory.mktemp("shim") / "faults.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, HERE / "faults.c", "-ldl"], check=True)
    return shim


def with_shim(shim, *arguments, **more):
    """Run a module of this folder in a process of its own."""
    module, *rest = map(str, arguments)
    return subprocess.run(
        [sys.executable, "-m", f"tests.reliability.{module}", *rest],
        env=os.environ | {"LD_PRELOAD": str(shim), "PYTHONPATH": os.pathsep.join(sys.path)} | more,
        cwd=HERE.parents[1], check=False, capture_output=True, text=True,
        timeout=600 if module == "faults" else 60,
    )  # fmt: skip


def test_a_journal_survives_each_fault_of_the_disk(tmp_path, shim):
    """One in thirty calls here, all of them in `make reliability`."""
    done = with_shim(shim, "faults", tmp_path, "1" if RELIABILITY else "30")
    assert done.returncode == 0, done.stderr
    cases = json.loads(done.stdout)["cases"]
    print(f"\n{cases} faults of the disk survived")
    assert cases >= (600 if RELIABILITY else 20)


def run_study(home, name, folder):
    """Run a study to its end; return what the command prints."""
    done = windage_here(["run", f"{name}.toml", "-o", folder, "-w", "1"], home)
    assert done.returncode == 0, done.stderr
    return done.stdout


def disturbed(home, shim, before, n, how):
    """Run the whole study in a folder that holds `before`, while its n-th call goes wrong."""
    shutil.rmtree(home / "case", ignore_errors=True)
    (home / "case").mkdir()
    if before:
        shutil.copytree(home / before, home / "case/out")
    return with_shim(
        shim,
        "faulty_study",
        home / "whole.toml",
        home / "case/out",
        n,
        how,
        WINDAGE_PATIENCE="1000",
    )


def check_readable(out, manifests, rows):
    """Check that all files are old or new ones, and that the table has exactly the runs there."""
    manifest = out / "manifest.json"
    if not manifest.exists():
        with pytest.raises(wd.StateError, match=re.escape(str(out))):
            wd.load_results(out, unfinished=True)
        return
    asked = manifests[manifest.read_bytes()]
    there = [key for key in asked if (out / f"runs/{key}.parquet").exists()]
    found = wd.load_results(out, unfinished=True)
    assert found["key"].to_list() == there
    assert found.equals(rows.filter(pl.col("key").is_in(there)))


def test_a_study_survives_each_fault_of_the_disk(tmp_path, shim):
    """Six cases here, all of them in `make reliability`.

    In a new folder, and in one that holds the same study of fewer seeds.
    """
    manifests = {}
    for name, seeds in (("small", 1), ("whole", 2)):
        (tmp_path / f"{name}.toml").write_text(STUDY.format(seeds=seeds))
        printed = run_study(tmp_path, name, name)
        rows = wd.load_results(tmp_path / name)
        manifests[(tmp_path / name / "manifest.json").read_bytes()] = rows["key"].to_list()
    wanted, out = contents(tmp_path / "whole"), tmp_path / "case/out"
    cases = []
    for before in (None, "small"):
        calls = int(disturbed(tmp_path, shim, before, 0, FAIL).stdout)
        cases += [(before, n, how) for n in range(1, calls + 1) for how in (FAIL, STOP, HALF, DEAD)]
    for case in cases if RELIABILITY else cases[3::21]:
        _, _, how = case
        done = disturbed(tmp_path, shim, *case)
        if how in (STOP, HALF):
            assert done.returncode == -signal.SIGKILL, (case, done.stderr)
        else:
            assert (done.returncode, done.stderr) == (2, ""), (case, done.stderr)
            assert re.match(rf"InputError {tmp_path}/case.*Input/output error", done.stdout), case
            assert how == DEAD or not list(out.rglob("*.tmp")), case
        assert contents(out).items() <= wanted.items(), (case, "a result is there and not whole")
        check_readable(out, manifests, rows)
        kept = stamps(out / "runs")
        printed_again = run_study(tmp_path, "whole", "case/out")
        assert f"({2 - len(kept)} made now, {len(kept)} kept)" in printed_again, case
        assert hash_in(printed_again) == hash_in(printed), case
        assert contents(out) == wanted, case
        assert kept.items() <= stamps(out).items(), (case, "a run was made again")
        assert not list(out.rglob("*.tmp")), case
    print(f"\n{len(cases)} faults of the disk")
    assert len(cases) >= 100
