"""How things are timed here: CPU time, the median of several rounds, sides taking turns."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


def others(seconds: float = 2.0) -> float:
    """How many cores other processes keep busy while this one sleeps.

    The load average counts what this process itself did a minute ago, so it cannot tell.
    """
    if not Path("/proc/stat").exists():
        return os.getloadavg()[0]
    busy = _busy()
    start = time.monotonic()
    time.sleep(seconds)
    return (_busy() - busy) / (time.monotonic() - start)


def _busy() -> float:
    """CPU seconds all cores together have spent on anything but waiting."""
    user, nice, system = Path("/proc/stat").read_text().split(maxsplit=4)[1:4]
    return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")


def cpu_seconds(work: Callable[[], object], rounds: int = 5) -> float:
    """The median CPU time of `work`, after one round that does not count."""
    work()
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def commands_seconds(commands: dict[str, list[str]], rounds: int = 9) -> dict[str, float]:
    """The median wall time of whole commands, run in turns so that all meet the same machine."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for i in range(rounds + 1):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            if i:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def python(code: str) -> list[str]:
    """The command that runs a line of Python with this interpreter."""
    return [sys.executable, "-c", code]
