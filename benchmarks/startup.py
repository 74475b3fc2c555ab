"""What it costs to begin: imports, the command line, first compiled calls, a long run's memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.clock import commands_seconds, python

BARE_TYPER = """
import typer
app = typer.Typer()
@app.command()
def one(x: int = 1): "One."
@app.command()
def two(x: int = 2): "Two."
app()
"""

FIRST_CALL = """
import time, windage as wd
world = wd.envs.make("riverswim", horizon=1000)
agent = wd.agents.make("random", world.space, horizon=1000)
start = time.perf_counter()
wd.run(world, agent)
print(time.perf_counter() - start)
"""

LONG_RUN = """
import windage as wd
world = wd.envs.make("riverswim", horizon=10**8)
agent = wd.agents.make("random", world.space, horizon=10**8)
run = wd.run(world, agent, record="totals")
assert run.steps == 10**8
# ru_maxrss would count the process that started this one
held = dict(line.split()[:2] for line in open("/proc/self/status") if line.endswith("kB\\n"))
print(*(int(held[name]) / 1024 for name in ("VmHWM:", "RssFile:")))
"""

MODELS = """
import windage as wd
wd.StateActions, wd.MDP, wd.DriftingMDP, wd.schedules, wd.envs
"""


def measure() -> dict[str, float]:
    """Ratios of starts, seconds of first calls, megabytes of a run of 1e8 steps."""
    windage = str(Path(sys.executable).parent / "windage")
    times = commands_seconds(
        {
            "numpy": python("import numpy, scipy.sparse"),
            "windage": python("import windage"),
            "models": python(MODELS),
            "typer": [*python(BARE_TYPER), "--help"],
            "help": [windage, "--help"],
        }
    )
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = (_numbers(FIRST_CALL, cache)[0] for _ in range(2))
        _numbers(
            FIRST_CALL.replace("wd.run(world, agent)", 'wd.run(world, agent, record="totals")'),
            cache,
        )
        # Libraries are mapped from their files: clean pages that all processes share. How many of
        # them count is up to the kernel; of LLVM's alone it maps 100 MB where it maps large folios.
        peak, mapped = _numbers(LONG_RUN, cache)
    return {
        "import windage / import numpy, scipy.sparse": times["windage"] / times["numpy"],
        "import windage and its models / import numpy, scipy.sparse": times["models"]
        / times["numpy"],
        "windage --help / a bare typer program's": times["help"] / times["typer"],
        "first compiled run, cold cache, seconds": cold,
        "first compiled run, warm cache, seconds": warm,
        "T = 1e8, totals: peak memory of the process, MB": peak,
        "T = 1e8, totals: of it pages of files, mostly LLVM's library, MB": mapped,
    }


def _numbers(code: str, cache: str) -> list[float]:
    """Return the numbers that a program prints, with a cache of compiled code of its own."""
    done = subprocess.run(
        python(code),
        env=os.environ | {"NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(number) for number in done.stdout.split()]
