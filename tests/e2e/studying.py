"""Studies started from the command line, looked at and stopped; and an agent that is slow."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from tests.e2e.commands import PATIENCE, WINDAGE

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
    limit = time.monotonic() + PATIENCE
    while len(list(runs.glob("*.parquet"))) < n:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(poll)


def hash_in(text):
    return re.search(r"^hash of the results: (\w{32})$", text, re.MULTILINE)[1]


def wait_for_files(process, folder, n):
    """Wait until n results are there, or the process is done."""
    while process.poll() is None and len(stamps(folder)) < n:
        time.sleep(0.002)


def wait_until_held(process):
    """Wait until an agent hangs, as those of `write_snail` do while there is a file `hold`."""
    while process.poll() is None and not list(Path().glob("held-*")):
        time.sleep(0.01)


def interrupt_until_it_ends(process):
    limit = time.monotonic() + 60
    process.send_signal(signal.SIGINT)
    while process.poll() is None:
        assert time.monotonic() < limit, process.kill()
        time.sleep(0.5)  # two at the same moment would be one
        process.send_signal(signal.SIGINT)


def read_terminal(ours):
    """Read what is written to a terminal until nobody holds its other end."""
    said = b""
    with contextlib.suppress(OSError), os.fdopen(ours, "rb", buffering=0) as terminal:
        while part := terminal.read(4096):
            said += part
    return said


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
