"""Run the protocol: rivals and fixed configurations on both sets, then the learner."""

from __future__ import annotations

import argparse
import math
import sys
import time

from benchmarks.protocol.configurations import RIVALS, fixed
from benchmarks.protocol.problems import SETS
from benchmarks.protocol.runs import OutOfTimeError, load, run_all


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.protocol")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after as many")
    parser.add_argument("--only", choices=sorted(SETS), help="one set of problems")
    given = parser.parse_args()
    until = time.monotonic() + 60.0 * given.minutes
    try:
        for name, (problems, seeds) in SETS.items():
            if given.only in (None, name):
                for problem in problems:
                    horizon = problem.make().horizon
                    run_all(name, problem, RIVALS | fixed(horizon), seeds, until)
                    _say(name, problem.name)
    except OutOfTimeError:
        return 3  # more to do
    return 0


def _say(name: str, problem: str) -> None:
    n = len(load(name)[problem])
    print(f"{name}: {problem}: {n} configurations", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
