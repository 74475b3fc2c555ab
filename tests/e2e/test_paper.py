"""`windage paper` as people meet it: the list, all results in their quick form, refusals."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import windage
from paper import SUMMARIES, names
from tests.e2e.commands import PATIENCE, png_size, refused
from windage.cli import main


def test_the_list(capsys):
    assert main(["paper"]) == 0
    out = capsys.readouterr().out
    for name, what in SUMMARIES.items():
        assert re.search(rf"^{name} +{re.escape(what)}$", out, re.MULTILINE)


def test_all_in_quick_form(capsys, tmp_path):
    assert main(["paper", "all", "--quick", "-o", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("Expected: ") == out.count(" Seen: ") == len(names())
    assert out.count("Quick form") == len(names())
    assert "14 of 14 results are as expected.\n" in out
    index = (tmp_path / "index.md").read_text()
    for name in names():
        page = (tmp_path / f"{name}.md").read_text()
        assert f"Made by `windage paper {name}` with `--quick`" in page
        assert "**Expected and seen: as expected**" in page
        assert "|  | expected | seen | verdict |" in page
        assert f"]({name}.svg)" in page
        assert f"[{name}]({name}.md)" in index
        assert (tmp_path / f"{name}.svg").stat().st_size > 10_000
        rows = [line.count("|") for line in page.splitlines() if line.startswith("|")]
        assert len(rows) >= 4
    assert (tmp_path / "lecture.html").read_text().startswith("<!doctype html>")


def test_the_same_bytes_every_time(tmp_path, capsys):
    for place in ("one", "two"):
        assert main(["paper", "episodes", "--quick", "-o", str(tmp_path / place)]) == 0
    capsys.readouterr()
    for name in ("episodes.md", "episodes.svg"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_picture_of_another_kind(tmp_path, capsys):
    assert main(["paper", "figures", "--quick", "--kind", "png", "-o", str(tmp_path)]) == 0
    assert png_size(tmp_path / "figures.png")[0] == 1200
    assert "](figures.png)" in (tmp_path / "figures.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["peril"], "did you mean"),
        (["episodes", "-T", "20"], "the least that means something is 60"),
        (["all", "-T", "30000"], "too small: slopes need three horizons"),
        (["coverage", "--seeds", "2"], "ask for 20 at the least"),
        (["episodes", "--kind", "gif"], "'gif' is no kind of picture"),
        (["episodes", "-o", "/dev/null/there"], "cannot be written"),
    ],
)
def test_refusals_are_one_line(capsys, arguments, words):
    assert words in refused(capsys, "paper", *arguments)


@pytest.mark.parametrize(("options", "code"), [([], 0), (["--strict"], 1)])
def test_what_is_not_as_expected_is_said_and_fails_only_if_asked(
    capsys, tmp_path, monkeypatch, options, code
):
    """An honest no is a result: a script that makes the pages goes on, unless it asks."""
    from paper import episodes

    assert main(["paper", "episodes", "--quick", "-o", str(tmp_path), *options]) == 0
    monkeypatch.setattr(episodes, "most_episodes", lambda SA, W, T: 1.0)
    assert main(["paper", "episodes", "--quick", "-o", str(tmp_path), *options]) == code
    assert "Seen, not as expected: " in capsys.readouterr().out
    page = (tmp_path / "episodes.md").read_text()
    assert "**Expected and seen: not as expected in 1 of 2**" in page
    assert "| does not hold |" in page


def test_the_index_names_what_does_not_hold(capsys, tmp_path, monkeypatch):
    import paper
    from paper import episodes

    monkeypatch.setattr(episodes, "most_episodes", lambda SA, W, T: 1.0)
    monkeypatch.setattr(paper, "names", lambda: ["episodes", "benchmark"])
    assert main(["paper", "all", "--quick", "-o", str(tmp_path)]) == 0
    said = "1 of 2 results are as expected. What does not hold: episodes (C2)."
    assert said in capsys.readouterr().out
    assert main(["paper", "all", "--quick", "--strict", "-o", str(tmp_path)]) == 1
    assert said in capsys.readouterr().out
    index = (tmp_path / "index.md").read_text()
    assert re.search(r"\| \[episodes\]\(episodes\.md\) \| .* \| no: C2 \|", index)
    assert re.search(r"\| \[benchmark\]\(benchmark\.md\) \| .* \| yes \|", index)


@pytest.mark.parametrize("arguments", [[], ["episodes", "--quick"], ["all"]])
def test_an_installed_package_says_where_the_results_are_to_be_had(tmp_path, arguments):
    """The folder `paper` stays in the checkout: of a wheel only `windage` is there."""
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages/windage").symlink_to(Path(windage.__file__).parent)
    done = subprocess.run(
        [sys.executable, "-m", "windage", "paper", *arguments],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path / "site-packages")},
        capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("windage: paper: the results of the paper are not part of the ")
    assert f"Fix: unpack the source distribution of windage {windage.__version__} " in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_checkout_finds_its_results_from_any_folder(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "windage", "paper"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "perils" in done.stdout
