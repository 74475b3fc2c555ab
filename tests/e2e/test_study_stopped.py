"""Studies that are killed, interrupted and resumed, here and on a cluster; scenes 4 and 12.

Of every scene one form here, all forms and a hundred kills in `make reliability`.
"""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import RELIABILITY, one_of
from tests.e2e.commands import PATIENCE, WINDAGE, windage
from tests.e2e.studying import (
    SLOW,
    STUDY,
    children,
    contents,
    hash_in,
    interrupt_until_it_ends,
    read_terminal,
    stamps,
    started,
    wait_for_files,
    wait_for_runs,
    wait_for_the_end_of,
    wait_until_held,
    write_snail,
)

KILLS = 100 if RELIABILITY else 1


@pytest.fixture
def river(here):
    Path("river.toml").write_text(STUDY.format(horizon=100_000, seeds=8))
    return here


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The study of the river that nothing has stopped: its files, and the hash it ends with."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "river.toml").write_text(STUDY.format(horizon=100_000, seeds=8))
    done = windage("run", "river.toml", "-o", "whole", cwd=folder)
    assert done.returncode == 0, done.stderr
    return contents(folder / "whole"), hash_in(done.stdout)


def test_scene_4_killed_at_63_percent_it_ends_with_the_same_hash(river, whole):
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
    assert (contents("cut"), hash_in(again.stdout)) == whole
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
    assert kills - early >= max(1, KILLS // 3)


def test_ctrl_c_keeps_what_is_done(here):
    write_snail()
    process = started("run", "snail.toml", "-o", "out", "-w", "2", cwd=here)
    wait_for_runs(process, "out", 2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    there = len(list(Path("out/runs").iterdir()))
    assert f"windage: stopped; {there} of 8 runs are done. The same command goes on" in err
    assert 2 <= there < 8
    done = windage("run", "snail.toml", "-o", "out", cwd=here)
    assert f"({8 - there} made now, {there} kept)" in done.stdout


def test_ctrl_c_is_not_heard_where_it_is_ignored(here):
    """As a shell has it for commands in the background of a script."""
    write_snail()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which a new process inherits
    try:
        process = started("run", "snail.toml", "-o", "out", "-w", "2", cwd=here)
    finally:
        signal.signal(signal.SIGINT, before)
    wait_for_runs(process, "out", 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "8 of 8 runs in out (8 made now, 0 kept)" in out


@pytest.mark.parametrize(
    ("executor", "code"), one_of(("processes", 130), ("threads", -signal.SIGINT))
)
def test_ctrl_c_ends_a_study_whose_agent_hangs(here, executor, code):
    """In processes the first one does, in threads the second."""
    write_snail(pause=0)
    Path("hold").touch()  # and nobody takes it away
    process = started("run", "snail.toml", "-o", "out", "-w", "2", "--executor", executor, cwd=here)
    wait_until_held(process)
    workers = children(process.pid)
    if executor == "threads":
        interrupt_until_it_ends(process)
    else:
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in err
    wait_for_the_end_of(workers)


def test_a_second_ctrl_c_leaves_the_terminal_its_cursor(here):
    write_snail(pause=0)
    Path("hold").touch()  # and nobody takes it away
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*WINDAGE, "run", "snail.toml", "-o", "out"],
        cwd=here, stderr=theirs, env=os.environ | {"TERM": "xterm-256color"},
    )  # fmt: skip
    os.close(theirs)
    with ThreadPoolExecutor(1) as apart:
        reading = apart.submit(read_terminal, ours)
        wait_until_held(process)
        interrupt_until_it_ends(process)
        said = reading.result()
    assert process.returncode == -signal.SIGINT
    hidden, shown = said.rfind(b"\x1b[?25l"), said.rfind(b"\x1b[?25h")
    assert 0 <= hidden < shown


@pytest.mark.parametrize("executor", one_of("threads", "processes"))
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
    assert "windage: stopped; 0 of 8 runs are done" in err
    assert time.monotonic() - start < 15


@pytest.mark.parametrize("moment", one_of("runs are made", "workers start", "workers import"))
def test_ctrl_c_of_a_terminal_reaches_every_process_and_only_one_answers(here, moment):
    write_snail(pause=0)
    text = SLOW.replace("seeds = 8", "seeds = 2") + '[[agents]]\nid = "random"\n'
    Path("snail.toml").write_text(text)
    Path("hold").touch()
    process = started(
        "run", "snail.toml", "-o", "out", "-w", "3", "--executor", "processes",
        cwd=here, start_new_session=True,
    )  # fmt: skip
    workers, limit = [], time.monotonic() + PATIENCE
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
        f"windage: stopped; {there} of 4 runs are done. The same command goes on from here.\n"
    )
    wait_for_the_end_of(workers)
    Path("hold").unlink()
    done = windage("run", "snail.toml", "-o", "out", cwd=here)
    assert f"4 of 4 runs in out ({4 - there} made now, {there} kept)" in done.stdout


@pytest.mark.parametrize("end", one_of(signal.SIGKILL, signal.SIGINT))
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


def test_scene_12_a_cluster_gives_the_same_bytes_though_a_worker_is_killed(river, whole):
    script = Path(__file__).with_name("cluster.py")
    done = subprocess.run(
        [sys.executable, script, "river.toml", "cluster"],
        cwd=river, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["code"] == 0, found["err"]
    assert found["alive"], "the study was over before the worker was killed"
    assert (contents("cluster"), hash_in(found["out"])) == whole
    times = [json.loads(line) for line in Path("cluster/timings.jsonl").read_text().splitlines()]
    assert len({entry["pid"] for entry in times} & set(found["pids"])) >= 1
    assert os.getpid() not in {entry["pid"] for entry in times}
