"""Run all benchmarks, print their figures, write them to results.json."""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path

import numba
import numpy as np

import windage
from benchmarks import (
    adapters,
    inspection,
    learning,
    online,
    oracle,
    page,
    reports,
    scales,
    startup,
    stepping,
    studies,
)

GROUPS = {
    "stepping": stepping.measure,
    "startup": startup.measure,
    "oracle": oracle.measure,
    "learning": learning.measure,
    "studies": studies.measure,
    "reports": reports.measure,
    "adapters": adapters.measure,
    "inspection": inspection.measure,
    "online": online.measure,
    "scales": scales.measure,
}


def main() -> None:
    wanted = sys.argv[1:] or list(GROUPS)
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"note: the machine was not idle (load {load:.2f}); ratios may be off")
    results = {}
    for name in wanted:
        print(f"\n{name}", flush=True)
        results[name] = GROUPS[name]()
        for what, figure in results[name].items():
            print(f"  {what:<70} {figure:10.3g}", flush=True)
    facts = {
        "windage": windage.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "load": load,
    }
    target = Path(__file__).parent / "results.json"
    if wanted == list(GROUPS):
        target.write_text(json.dumps({"versions": facts, "figures": results}, indent=2) + "\n")
        page.write()
        print(f"\nwritten to {target} and {page.PAGE}")


main()
