"""Studies on the command line: killed, interrupted, resumed, on a cluster; scenes 4 and 12."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import windage as wd
from tests.conftest import RELIABILITY
from tests.e2e.commands import WINDAGE, refused, windage
from windage.cli import main

KILLS = 100 if RELIABILITY else 5

STUDY = """
name = "river"
horizon = {horizon}
seeds = {seeds}
[[environments]]
id = "riverswim"
[[agents]]
id = "swucrl2-cw-practical"
[[agents]]
id = "sw-psrl"
window = [500, 5_000]
[[agents]]
id = "random"
"""

SLOW = """
horizon = 100
seeds = 8
[[environments]]
id = "riverswim"
[[agents]]
id = "snail:Snail"
"""

SNAIL = """
import os, time

class Snail:
    def __init__(self, space):
        pass
    def act(self, s):
        time.sleep({pause})
        while os.path.exists("hold"):
            open(f"held-{{os.getpid()}}", "w").close()
            time.sleep(0.01)
        return 0
    def observe(self, s, a, reward, s_next):
        pass
"""


@pytest.fixture
def river(here):
    Path("river.toml").write_text(STUDY.format(horizon=100_000, seeds=8))
    return here


def write_snail(pause=0.005):
    Path("snail.toml").write_text(SLOW)
    Path("snail.py").write_text(SNAIL.format(pause=pause))


def contents(folder):
    return {path.name: path.read_bytes() for path in Path(folder).rglob("*.parquet")}


def stamps(folder):
    """When each result was written, and into which file."""
    return {
        path.name: (path.stat().st_mtime_ns, path.stat().st_ino)
        for path in Path(folder).rglob("*.parquet")
    }


def started(*arguments, cwd, **options):
    return subprocess.Popen(
        [*WINDAGE, *arguments],
        cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    )  # fmt: skip


def wait_for_runs(process, folder, n, *, poll=0.002):
    """Wait until n runs are there; the process must not be done by then."""
    runs = Path(folder) / "runs"
    limit = time.monotonic() + 100
    while len(list(runs.glob("*.parquet"))) < n:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(poll)


def hash_in(text):
    return re.search(r"^hash of the results: (\w{32})$", text, re.MULTILINE)[1]


def test_scene_4_killed_at_63_percent_it_ends_with_the_same_hash(river):
    whole = windage("run", "river.toml", "-o", "whole", cwd=river)
    assert whole.returncode == 0, whole.stderr
    cut = started("run", "river.toml", "-o", "cut", cwd=river)
    wait_for_runs(cut, "cut", 20)  # of 32
    cut.kill()
    cut.communicate()
    assert cut.returncode == -signal.SIGKILL
    before = stamps("cut")
    assert 20 <= len(before) - 1 < 32
    again = windage("run", "river.toml", "-o", "cut", cwd=river)
    assert again.returncode == 0, again.stderr
    kept = len(before) - 1
    assert f"32 of 32 runs in cut ({32 - kept} made now, {kept} kept)" in again.stdout
    assert hash_in(again.stdout) == hash_in(whole.stdout)
    assert contents("cut") == contents("whole")
    assert before.items() <= stamps("cut").items()  # none of them was written again


def test_killed_at_any_moment_nothing_is_lost_or_done_again(here):
    """SIGKILL at random moments: while it starts, and while results are written."""
    Path("river.toml").write_text(STUDY.format(horizon=20_000, seeds=16))
    start = time.monotonic()
    whole = windage("run", "river.toml", "-o", "whole", cwd=here)
    length = time.monotonic() - start
    wanted, rng = contents("whole"), np.random.default_rng(4)
    assert len(wanted) == 65
    kills = early = studies = 0
    while kills < KILLS:
        folder, studies, done = f"cut{studies}", studies + 1, False
        while not done:
            before = stamps(folder)
            process = started("run", "river.toml", "-o", folder, cwd=here)
            if kills < KILLS:
                if rng.random() < 0.3:
                    time.sleep(rng.uniform(0.0, length))
                else:
                    wait_for_files(process, folder, len(before) + int(rng.integers(1, 12)))
                    time.sleep(rng.uniform(0.0, 0.02))
                process.kill()
            out, err = process.communicate(timeout=100)
            done = process.returncode == 0
            assert done or process.returncode == -signal.SIGKILL, err
            kills += not done
            after = stamps(folder)
            early += not done and before.keys() == after.keys()
            assert before.items() <= after.items(), "a finished run was lost or done again"
            assert all(wanted[name] == data for name, data in contents(folder).items())
        assert contents(folder) == wanted
        assert hash_in(out) == hash_in(whole.stdout)
        assert not list(Path(folder).rglob("*.tmp"))
    print(
        f"{kills} kills in {studies} studies, {kills - early} after new results; 0 lost, 0 redone"
    )
    assert kills - early >= KILLS // 3


def wait_for_files(process, folder, n):
    """Wait until n results are there, or the process is done."""
    while process.poll() is None and len(stamps(folder)) < n:
        time.sleep(0.002)


def test_a_dry_run_shows_what_is_asked_for_and_changes_nothing(here, capsys):
    Path("s.toml").write_text(STUDY.format(horizon=[50, 70], seeds=2))
    assert main(["run", "s.toml", "-o", "out", "--dry-run"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].split() == ["environment", "T", "agent", "seeds", "there"]
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


def test_ctrl_c_keeps_what_is_done(here):
    write_snail()
    process = started("run", "snail.toml", "-o", "out", "-w", "2", cwd=here)
    wait_for_runs(process, "out", 2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    there = len(list(Path("out/runs").iterdir()))
    assert f"windage: stopped; {there} of 8 runs are there. The same command goes on" in err
    assert 2 <= there < 8
    done = windage("run", "snail.toml", "-o", "out", cwd=here)
    assert f"({8 - there} made now, {there} kept)" in done.stdout


@pytest.mark.parametrize(("executor", "code"), [("threads", -signal.SIGINT), ("processes", 130)])
def test_ctrl_c_ends_a_study_whose_agent_hangs(here, executor, code):
    """In processes the first one does, in threads the second."""
    write_snail(pause=0)
    Path("hold").touch()  # and nobody takes it away
    process = started("run", "snail.toml", "-o", "out", "-w", "2", "--executor", executor, cwd=here)
    wait_for_files(process, "out", 1)  # the oracle: runs have begun
    time.sleep(0.5)
    workers = children(process.pid)
    limit = time.monotonic() + 60
    process.send_signal(signal.SIGINT)
    while executor == "threads" and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.5)  # two at the same moment would be one
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in err
    wait_for_the_end_of(workers)


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_ctrl_c_does_not_wait_for_a_slow_agent(here, executor):
    """A run of this one lasts fifty seconds; none is awaited to its end, nor a thousand steps."""
    write_snail(pause=0.5)
    process = started("run", "snail.toml", "-o", "out", "--executor", executor, cwd=here)
    wait_for_files(process, "out", 1)  # the oracle: runs have begun
    time.sleep(1.0)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "windage: stopped; 0 of 8 runs are there" in err
    assert time.monotonic() - start < 15


@pytest.mark.parametrize("moment", ["workers start", "workers import", "runs are made"])
def test_ctrl_c_of_a_terminal_reaches_every_process_and_only_one_answers(here, moment):
    write_snail(pause=0)
    text = SLOW.replace("seeds = 8", "seeds = 2") + '[[agents]]\nid = "random"\n'
    Path("snail.toml").write_text(text)
    Path("hold").touch()
    process = started(
        "run", "snail.toml", "-o", "out", "-w", "3", "--executor", "processes",
        cwd=here, start_new_session=True,
    )  # fmt: skip
    workers, limit = [], time.monotonic() + 60
    while len(workers) < 4:  # with the process that keeps their books
        assert time.monotonic() < limit
        workers = children(process.pid)
    if moment == "workers import":
        time.sleep(0.2)
        process.send_signal(signal.SIGSTOP)  # or it ends them before they can complain
    if moment == "runs are made":
        wait_for_runs(process, "out", 2)
        while len(list(here.glob("held-*"))) < 2:
            assert time.monotonic() < limit
            time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    if moment == "workers import":
        time.sleep(1.5)
        process.send_signal(signal.SIGCONT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    there = len(list(Path("out/runs").iterdir()))
    assert there <= 2
    assert err == (
        f"windage: stopped; {there} of 4 runs are there. The same command goes on from here.\n"
    )
    wait_for_the_end_of(workers)
    Path("hold").unlink()
    done = windage("run", "snail.toml", "-o", "out", cwd=here)
    assert f"4 of 4 runs in out ({4 - there} made now, {there} kept)" in done.stdout


def children(pid):
    try:
        lists = [one.read_text() for one in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    return [int(one) for text in lists for one in text.split()]


def wait_for_the_end_of(pids):
    limit = time.monotonic() + 60
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < limit, "a worker outlives its study"
        time.sleep(0.05)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_worker_processes_do_not_outlive_the_study(here, end):
    write_snail()
    process = started(
        "run", "snail.toml", "-o", "out", "-w", "2", "--executor", "processes", cwd=here
    )
    wait_for_runs(process, "out", 1)
    workers = children(process.pid)
    assert len(workers) >= 2
    process.send_signal(end)
    _, err = process.communicate(timeout=60)
    assert process.returncode == (130 if end == signal.SIGINT else -end)
    assert "Traceback" not in err
    wait_for_the_end_of(workers)
    there = len(list(Path("out/runs").glob("*.parquet")))
    done = windage("run", "snail.toml", "-o", "out", cwd=here)
    assert f"({8 - there} made now, {there} kept)" in done.stdout


def test_two_at_once_on_one_folder(here):
    write_snail(pause=0)
    Path("hold").touch()
    first = started("run", "snail.toml", "-o", "out", "-w", "2", cwd=here)
    wait_for_files(first, "out", 1)  # the oracle: runs have begun
    second = windage("run", "snail.toml", "-o", "out", cwd=here)
    Path("hold").unlink()
    out, err = first.communicate(timeout=100)
    assert second.returncode == 2
    assert second.stderr.startswith("windage: out: another process is running a study in it")
    assert first.returncode == 0, err
    assert "8 of 8 runs in out (8 made now, 0 kept)" in out


def test_scene_12_a_cluster_gives_the_same_bytes_though_a_worker_is_killed(river):
    alone = windage("run", "river.toml", "-o", "alone", cwd=river)
    assert alone.returncode == 0, alone.stderr
    script = Path(__file__).with_name("cluster.py")
    done = subprocess.run(
        [sys.executable, script, "river.toml", "cluster"],
        cwd=river, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["code"] == 0, found["err"]
    assert found["alive"], "the study was over before the worker was killed"
    assert hash_in(found["out"]) == hash_in(alone.stdout)
    assert contents("cluster") == contents("alone")
    times = [json.loads(line) for line in Path("cluster/timings.jsonl").read_text().splitlines()]
    assert len({entry["pid"] for entry in times} & set(found["pids"])) >= 1
    assert os.getpid() not in {entry["pid"] for entry in times}


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
    said = done.stderr.splitlines()
    assert said == [
        f"windage: failed: snail:Snail on riverswim, T = 100, seed {seed}: "
        "ZeroDivisionError: integer division or modulo by zero (snail.py:11, in act)"
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
    said = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        said += part
    os.close(ours)
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
        assert windage("run", f"{name}.toml", "-o", name, cwd=here).returncode == 0
    seen = windage("verify", "a", cwd=here)
    assert seen.returncode == 0
    assert seen.stdout == "25 files read, 6 results computed again: 0 damaged, 0 different\n"
    compared = windage("diff", "a", "b", cwd=here)
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
    broken = windage("verify", "a", "-n", "0", cwd=here)
    assert broken.returncode == 1
    assert f"windage: {victim} is damaged" in broken.stderr
    victim.unlink()
    lacking = windage("verify", "a", "-n", "0", cwd=here)
    assert lacking.returncode == 1
    assert lacking.stderr == "windage: missing results: 1; `windage run` goes on with them\n"
    assert wd.load_results("b").height == 16
