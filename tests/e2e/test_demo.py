"""Scene 1: the demo ends with the path of a report that opens offline."""

from __future__ import annotations

import re
from pathlib import Path

import windage as wd
from tests.conftest import RELIABILITY
from tests.e2e.commands import refused, windage

SEEDS = 20 if RELIABILITY else 2
MANY = () if RELIABILITY else ("--seeds", str(SEEDS))


def test_the_demo_ends_with_a_report_that_opens_offline(here, visit):
    done = windage("demo", "-o", "somewhere", *MANY, cwd=here)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    *_, last = done.stdout.splitlines()
    path = re.fullmatch(r"The report is (\S+) \((\d\.\d) MB\): open it in a browser\.", last)
    assert path, last
    report = here / path[1]
    assert report.stat().st_size < 8e6
    seen = visit(report)
    charts = seen.drawn()
    assert len(charts) == 16
    assert all(chart["found"] == chart["wanted"] for chart in charts)
    assert seen.errors == []
    assert seen.foreign_requests() == []
    assert seen.page.locator(".card").count() == 2
    headline = seen.page.locator(".headline").text_content().strip()
    assert headline in done.stdout
    results = wd.load_results(here / "somewhere" / "results")
    assert results.height == 18 * SEEDS
    assert results["seed"].n_unique() == SEEDS
    assert {"riverswim-v0", "inventory-v1"} == set(results["environment_id"])
    assert set(results["agent_id"]) == {
        "multi-scale", "swucrl2-cw", "swucrl2-cw-practical", "borl", "ucrl2", "ucrl2-restarts",
        "sw-psrl", "oracle", "random",
    }  # fmt: skip
    before = report.read_bytes()
    again = windage("demo", "-o", "somewhere", *MANY, cwd=here)
    assert f"0 runs made, {18 * SEEDS} kept from before" in again.stdout
    assert report.read_bytes() == before


def test_a_demo_of_one_seed_is_refused(here, capsys):
    assert refused(capsys, "demo", "--seeds", "1").startswith(
        "--seeds: 1 is not an integer from 2 on"
    )
    assert list(here.iterdir()) == []


def test_a_demo_that_cannot_be_written(here, capsys):
    Path("out").write_text("a file, not a folder")
    said = refused(capsys, "demo")
    assert said.startswith("out/demo/report.html: cannot be written (its folder is a file)")
    assert Path("out").read_text() == "a file, not a folder"
