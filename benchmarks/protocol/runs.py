"""Runs, one line a (problem, configuration) in a file; what is there already is not run again."""

from __future__ import annotations

import functools
import json
import os
import time
import warnings
from pathlib import Path

import windage as wd
from benchmarks.protocol.configurations import FEW_SEEDS, Maker
from benchmarks.protocol.problems import Problem

HERE = Path(__file__).parent / "results"
ROUNDS = ((1000, 2), (6, 8), (3, 1000))  # of each kind of fixed: how many go on, to which seeds
BEFORE = {2: 0, 8: 2, 1000: 8}  # the seeds that decide who goes on
Regrets = dict[str, dict[str, list[float]]]  # problem, configuration


def load(file: str) -> Regrets:
    """Return what has been run: path pseudo-regrets, seed by seed."""
    found: Regrets = {}
    path = HERE / f"{file}.jsonl"
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            found.setdefault(row["problem"], {})[row["configuration"]] = row["regret"]
    return found


@functools.cache
def horizons() -> dict[str, tuple[int, float]]:
    """Return T and the sum of all rho* of every problem that was run."""
    lines = (path.read_text(encoding="utf-8").splitlines() for path in HERE.glob("*.jsonl"))
    rows = [json.loads(line) for file in lines for line in file]
    return {row["problem"]: (row["horizon"], row["best"]) for row in rows}


class OutOfTimeError(Exception):
    """Time to stop; what is missing is run the next time."""


def run_all(
    file: str, problem: Problem, makers: dict[str, Maker], seeds: range, until: float
) -> None:
    """Run what is missing, and write each result as soon as it is there."""
    done = load(file).get(problem.name, {})
    if problem.long:
        makers = {name: make for name, make in makers.items() if name not in FEW_SEEDS}
    wanted = {name: seeds[: FEW_SEEDS.get(name, len(seeds))] for name in makers}
    missing = [name for name in makers if len(done.get(name, [])) < len(wanted[name])]
    if not missing:
        return
    model = problem.make()
    best = model.optimal_gains(tol=1e-5).sum(1, model.horizon)
    for name in missing:
        if time.monotonic() > until:
            raise OutOfTimeError
        before = done.get(name, [])
        start, more = time.process_time(), wanted[name][len(before) :]
        regret = [best - _total(model, makers[name], seed) for seed in more]
        seconds = time.process_time() - start
        _append(file, {
            "problem": problem.name, "configuration": name, "first_seed": seeds.start,
            "best": best, "horizon": model.horizon, "version": wd.__version__,
            "microseconds": round(1e6 * seconds / len(more) / model.horizon, 3),
            "regret": before + [round(x, 4) for x in regret],
        })  # fmt: skip


def run_grid(
    file: str, problem: Problem, grid: dict[str, Maker], seeds: range, until: float
) -> None:
    """Run all fixed configurations on a few seeds, the better ones on more, the best on all.

    The better of each kind: some look best on a few seeds and lose everything on one in thirty.
    """
    kinds: dict[str, list[str]] = {}
    for name in grid:
        kinds.setdefault(" ".join(name.split()[:2]), []).append(name)
    for most, n in ROUNDS:
        done = load(file).get(problem.name, {})
        for kind, names in kinds.items():
            names.sort(key=lambda name: sum(done.get(name, [])[: BEFORE[n]]))
            kinds[kind] = names[:most]
        chosen = {name: grid[name] for names in kinds.values() for name in names}
        run_all(file, problem, chosen, seeds[:n], until)


def _total(model: wd.DriftingMDP, make: Maker, seed: int) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of guarantees and parameters: what is fixed is on purpose
        return wd.run(model, make(model, seed), seed=seed, record="totals").total_mean_reward


def _append(file: str, row: dict[str, object]) -> None:
    """Add a line that is either whole or, after a crash, the last one and cut off."""
    path = HERE / f"{file}.jsonl"
    HERE.mkdir(exist_ok=True)
    if path.exists():  # a line cut off by a crash is dropped
        text = path.read_text(encoding="utf-8")
        if text and not text.endswith("\n"):
            path.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")
    with path.open("a", encoding="utf-8") as out:
        out.write(json.dumps(row) + "\n")
        out.flush()
        os.fsync(out.fileno())
