"""Run the protocol: rivals and fixed configurations on both sets, then the learner."""

from __future__ import annotations

import argparse
import math
import sys
import time

from benchmarks.protocol import tables
from benchmarks.protocol.configurations import RIVALS, fixed
from benchmarks.protocol.problems import SETS
from benchmarks.protocol.runs import OutOfTimeError, run_all, run_grid
from benchmarks.protocol.variants import VARIANTS
from benchmarks.protocol.versions import VERSIONS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.protocol")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after as many")
    parser.add_argument("--only", choices=sorted(SETS), help="one set of problems")
    parser.add_argument(
        "--backwards", action="store_true", help="last problems first, beside another process"
    )
    parser.add_argument("--tables", action="store_true", help="only write the tables")
    given = parser.parse_args()
    if given.tables:
        tables.main()
        return 0
    until = time.monotonic() + 60.0 * given.minutes
    try:
        for name in SETS if given.only is None else [given.only]:
            problems, seeds = SETS[name]
            learners = VERSIONS if name == "test" else VARIANTS
            if given.backwards:  # but the longest last, as they are
                problems = [*reversed(problems)]
                problems.sort(key=lambda problem: "long" in problem.name)
            for problem in problems:
                run_all(f"{name}-learner", problem, learners, seeds, until)
                run_all(name, problem, RIVALS, seeds, until)
                run_grid(name, problem, fixed(problem.make().horizon), seeds, until)
                print(f"{name}: {problem.name}", file=sys.stderr, flush=True)
        if given.only is None:
            tables.main()
    except OutOfTimeError:
        return 3  # more to do
    return 0


if __name__ == "__main__":
    sys.exit(main())
