"""Run benchmarks, all groups or those named, print their figures, write them to results.json."""

from __future__ import annotations

import datetime as dt
import json
import platform
import sys

import numba
import numpy as np

import windage
from benchmarks import (
    adapters,
    cold,
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
from benchmarks.clock import others

GROUPS = {
    "stepping": stepping.measure,
    "startup": startup.measure,
    "cold": cold.measure,
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
    for name in wanted:
        busy = others()
        if busy > 0.2:
            print(f"note: others kept {busy:.2f} cores busy; ratios may be off")
        print(f"\n{name}", flush=True)
        figures = GROUPS[name]()
        for what, figure in figures.items():
            print(f"  {what:<70} {figure:10.3g}", flush=True)
        _keep(name, busy, figures)
    print(f"\nwritten to {page.RESULTS} and {page.PAGE}")


def _keep(name: str, busy: float, figures: dict[str, float]) -> None:
    """Put the figures of a group in the place of its former ones, here and on the page."""
    results = json.loads(page.RESULTS.read_text()) if page.RESULTS.is_file() else {}
    about = {
        "windage": windage.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "busy": round(busy, 2),
        "day": dt.date.today().isoformat(),
    }
    results[name] = {"measured": about, "figures": figures}
    ordered = {group: results[group] for group in GROUPS if group in results}
    page.RESULTS.write_text(json.dumps(ordered, indent=2) + "\n")
    page.write()


main()
