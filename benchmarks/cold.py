"""The first run on a machine: CPU time from an empty cache, over that of the smallest program.

The smallest program imports numba and compiles a loop of ten lines. `WINDAGE_BEFORE` may name the
`src` folder of another version, measured in the same run.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.clock import python

BARE = """
import numba, numpy as np
@numba.njit
def total(values):
    result = 0.0
    for i in range(values.size):
        if values[i] > 0:
            result += values[i]
        else:
            result -= values[i]
    return result
total(np.ones(10))
"""

ALL = """
import warnings, windage as wd
warnings.simplefilter("ignore")
model = wd.envs.make("riverswim", horizon={T})
for name in wd.agents.names():
    wd.run(model, wd.agents.make(name, model.space, horizon={T}, **wd.agents.facts(name, model)))
"""

LEARNERS = ("swucrl2-cw", "multi-scale", "borl", "sw-psrl")
REPEATS = 3


def measure() -> dict[str, float]:
    """Ratios of first runs to the smallest program, and seconds of all learners together."""
    bare = statistics.median(_cold(python(BARE)) for _ in range(REPEATS))
    figures = {"the smallest program, CPU seconds": bare}
    for steps in (2_000, 200_000):
        for name in LEARNERS:
            figures |= _tried(name, steps, bare, None)
    figures["all learners, 2,000 steps each, CPU seconds"] = _cold(python(ALL.format(T=2_000)))
    if "WINDAGE_BEFORE" in os.environ:
        for name in LEARNERS:
            figures |= _tried(name, 2_000, bare, os.environ["WINDAGE_BEFORE"])
    figures["windage compile, CPU seconds"] = _cold([*_windage(), "compile"])
    return figures


def _tried(name: str, steps: int, bare: float, source: str | None) -> dict[str, float]:
    """CPU seconds of a run from the command line, and their ratio to the smallest program's."""
    command = [*_windage(), "try", "riverswim", name, "-T", str(steps)]
    repeats = REPEATS if source is None else 1  # a minute each, before
    seconds = statistics.median(_cold(command, source) for _ in range(repeats))
    what = f"try riverswim {name} -T {steps:,}{'' if source is None else ', before'}"
    return {f"{what}: CPU seconds": seconds, f"{what} / the smallest program": seconds / bare}


def _windage() -> list[str]:
    return [sys.executable, "-m", "windage"]


def _cold(command: list[str], source: str | None = None) -> float:
    """CPU seconds of a command and its children, with an empty cache of compiled code."""
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"NUMBA_CACHE_DIR": str(Path(folder) / "cache")}
        if source is not None:
            env["PYTHONPATH"] = source
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=folder, env=env, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
