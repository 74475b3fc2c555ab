"""Studies on the command line: what is shown, what fails and what is refused."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from pathlib import Path

import polars as pl
import pytest

import windage as wd
from tests.e2e.commands import WINDAGE, refused, windage, windage_here
from tests.e2e.studying import (
    SLOW,
    SNAIL,
    STUDY,
    read_terminal,
    write_snail,
)
from windage.cli import main


def test_a_dry_run_shows_what_is_asked_for_and_changes_nothing(here, capsys):
    Path("s.toml").write_text(STUDY.format(horizon=[50, 70], seeds=2))
    assert main(["run", "s.toml", "-o", "out", "--dry-run"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].split() == ["environment", "T", "agent", "seeds", "done"]
    assert said[2].split() == ["riverswim", "50", "sw-psrl,", "window", "500", "2", "0"]
    assert len(said) == 1 + 2 * 4 + 1
    assert said[-1] == "river: 0 of 16 runs in out, 16 to make, 960 steps; nothing was run"
    assert not Path("out").exists()
    assert main(["run", "s.toml", "-o", "out"]) == 0
    Path("s.toml").write_text(STUDY.format(horizon=[50, 80], seeds=3))
    before = {path: path.stat().st_mtime_ns for path in Path("out").rglob("*")}
    capsys.readouterr()
    assert main(["run", "s.toml", "-o", "out", "--dry-run"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "river: 8 of 24 runs in out, 16 to make, 1,160 steps; nothing was run"
    assert {path: path.stat().st_mtime_ns for path in Path("out").rglob("*")} == before
    message = refused(capsys, "run", "s.toml", "-o", "s.toml", "--dry-run")
    assert message.startswith("s.toml: is a file")


def test_regret_is_printed_where_it_is_known(here, capsys):
    worlds = '[[environments]]\nid = "riverswim"\noracle = {}\nlabel = "{}"\n'
    text = worlds.format("false", "blind") + worlds.format("true", "seen")
    Path("s.toml").write_text(f'horizon = 50\nseeds = 2\n{text}[[agents]]\nid = "random"\n')
    assert main(["run", "s.toml", "-o", "out"]) == 0
    known, seen, unknown, blind = (
        line.split() for line in capsys.readouterr().out.splitlines()[:4]
    )
    assert known[4:6] == ["mean", "regret"]
    assert seen[:3] == ["seen", "50", "random"]
    assert unknown[4:7] == ["mean", "total", "reward"]
    assert blind[:3] == ["blind", "50", "random"]
    runs = wd.load_results("out").filter(pl.col("environment") == "seen")
    assert seen[4] == f"{runs['regret'].mean():,.1f}"


def test_a_failing_agent_is_named_and_the_exit_code_says_so(here):
    write_snail()
    text = SLOW + '[[agents]]\nid = "random"\n'
    Path("snail.toml").write_text(text.replace("seeds = 8", "seeds = 2"))
    Path("snail.py").write_text(
        SNAIL.format(pause=0).replace("pass", "self.n = 0", 1).replace(
            "return 0", "self.n += 1; return 1 // (50 - self.n)"
        )
    )  # fmt: skip
    done = windage("run", "snail.toml", "-o", "out", cwd=here)
    assert done.returncode == 1
    said, line = done.stderr.splitlines(), SNAIL.splitlines().index("        return 0") + 1
    assert said == [
        f"windage: failed: snail:Snail on riverswim, T = 100, seed {seed}: "
        f"ZeroDivisionError: integer division or modulo by zero (snail.py:{line}, in act)"
        for seed in range(2)
    ]  # fmt: skip
    assert "2 of 4 runs in out (2 made now, 0 kept)" in done.stdout
    assert "what failed is tried again by the same command" in done.stdout
    assert "hash" not in done.stdout


def test_of_many_damaged_files_ten_are_named(here, capsys):
    text = '[[environments]]\nid = "riverswim"\n[[agents]]\nid = "random"\n'
    Path("many.toml").write_text("horizon = 50\nseeds = 12\n" + text)
    assert main(["run", "many.toml", "-o", "out"]) == 0
    for path in Path("out/runs").iterdir():
        path.write_bytes(b"")
    capsys.readouterr()
    assert main(["run", "many.toml", "-o", "out"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 11
    assert all(line.endswith("; it was computed anew") for line in said[:-1])
    assert said[-1] == "windage: and 2 more likewise"


def test_a_bar_on_a_terminal_and_silence_elsewhere(here):
    write_snail()
    quiet = windage("run", "snail.toml", "-o", "quiet", cwd=here)
    assert quiet.stderr == ""
    ours, theirs = pty.openpty()
    environment = os.environ | {"COLUMNS": "120", "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [*WINDAGE, "run", "snail.toml", "-o", "seen"],
        cwd=here, stdout=subprocess.DEVNULL, stderr=theirs, env=environment,
    )  # fmt: skip
    os.close(theirs)
    said = read_terminal(ours)
    assert process.wait(100) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode())
    assert re.search(r"runs +\S+ [1-7]/8 +\d+ steps/s +0:\d\d left\s", text), text
    assert re.search(r"\n +snail:Snail on riverswim, T = 100, seed \d and 1 more", text), text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "no.toml", "-o", "out"], "no.toml: there is no such file"),
        (["run", "bad.toml", "-o", "out"],
         "bad.toml: agents[0].widow: no such parameter; did you mean window? Fix: one of: "),
        (["run", "good.toml", "-o", "good.toml"], "good.toml: is a file. Fix: name a folder"),
        (["run", "good.toml", "-o", "other"], "other: holds other things (notes.txt) and no study"),
        (["run", "good.toml", "-o", "out", "-w", "0"], "workers: 0 is not"),
        (["run", "good.toml", "-o", "out", "--executor", "cluster"], "executor: no such choice"),
        (["run", "good.toml", "-o", "out", "--executor", "dask"], "scheduler: the address of the"),
        (["run", "good.toml", "-o", "out", "--executor", "dask", "--scheduler", "nowhere"],
         "scheduler: no Dask scheduler answers at 'nowhere'"),
        (["verify", "no"], "no: is no folder of results"),
        (["verify", "other"], "other: holds no study"),
        (["diff", "no", "other"], "no: is no folder of results"),
    ],
)  # fmt: skip
def test_refused(here, capsys, arguments, message):
    table = '[[environments]]\nid = "riverswim"\n[[agents]]\nid = "swucrl2-cw"\n'
    Path("good.toml").write_text("horizon = 50\nseeds = 2\n" + table)
    Path("bad.toml").write_text(table + "widow = 5\n")
    Path("other").mkdir()
    Path("other/notes.txt").touch()
    assert refused(capsys, *arguments).startswith(message)
    assert not Path("out/runs").exists() or not list(Path("out/runs").iterdir())


def test_verify_and_diff(here):
    Path("a.toml").write_text(STUDY.format(horizon=500, seeds=6))
    Path("b.toml").write_text(STUDY.format(horizon=500, seeds=4).replace("500, 5_000", "50, 500"))
    for name in ("a", "b"):
        assert windage_here("run", f"{name}.toml", "-o", name, cwd=here).returncode == 0
    seen = windage_here("verify", "a", cwd=here)
    assert seen.returncode == 0
    assert seen.stdout == "25 files read, 6 results computed again: 0 damaged, 0 different\n"
    compared = windage_here("diff", "a", "b", cwd=here)
    assert compared.returncode == 0
    said = compared.stdout.splitlines()
    assert [line.split()[2] for line in said[1:3]] == ["swucrl2-cw-practical", "sw-psrl,"]
    assert "sw-psrl, window 5,000: only in A (riverswim, T = 500)" in said
    assert "sw-psrl, window 50: only in B (riverswim, T = 500)" in said
    assert (
        "12 of 12 runs are the same to the last bit; 12 are only in A, 4 only in B"
        in compared.stdout
    )
    victim = sorted(Path("a/runs").iterdir())[0]
    victim.write_bytes(victim.read_bytes()[:-9])
    broken = windage_here("verify", "a", "-n", "0", cwd=here)
    assert broken.returncode == 1
    assert f"windage: {victim} is damaged" in broken.stderr
    victim.unlink()
    lacking = windage_here("verify", "a", "-n", "0", cwd=here)
    assert lacking.returncode == 1
    assert lacking.stderr == "windage: missing results: 1; `windage run` goes on with them\n"
    assert wd.load_results("b").height == 16
