"""What a report costs: a study of 1,000 runs, from its folder to the page."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import windage as wd

AGENTS = [
    {
        "id": "swucrl2-cw",
        "window": [200, 800, 3200],
        "widening": [0.02, 0.1, 0.4],
        "radii": ["paper", "laplace"],
    },
    *({"id": name} for name in ("borl", "ucrl2", "sw-psrl", "swucrl2-cw-practical", "psrl")),
    {"id": "oracle"},
    {"id": "random"},
]

REPORT = """
import sys, time
start = time.perf_counter()
from windage.report.page import write_report
write_report(sys.argv[1], sys.argv[2])
print(time.perf_counter() - start)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) / 1024)
"""


def measure() -> dict[str, float]:
    """Return seconds, megabytes of memory and megabytes of page for 1,000 runs of T = 20,000."""
    worlds = [{"id": "riverswim"}, {"id": "inventory"}]
    study = wd.Study(worlds, AGENTS, horizon=20_000, seeds=20, name="a thousand runs")
    with tempfile.TemporaryDirectory() as folder:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = study.run(f"{folder}/results")
        assert done.runs == 1_000
        page = Path(folder) / "report.html"
        command = [sys.executable, "-c", REPORT, f"{folder}/results", str(page)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        size = page.stat().st_size / 1e6
    return {
        "report of 1,000 runs: seconds, imports included (at most 30)": float(said[0]),
        "report of 1,000 runs: MB of memory at most (at most 1,000)": float(said[1]),
        "report of 1,000 runs: MB of the page": size,
    }
