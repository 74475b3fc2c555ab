"""Studies: what a study costs beyond its bare runs, and what a second worker brings.

The bare side makes the same runs: the same agents with the same numbers, on
the same seeds, in models that are built once. It keeps totals only and writes nothing. Before a
ratio is quoted the rewards of both sides are compared, run by run.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import windage as wd
from windage.study.expand import expand
from windage.study.task import Task

T = 100_000
SEEDS = 20
AGENTS = [
    {"id": "swucrl2-cw"},
    {"id": "swucrl2-cw-practical"},
    {"id": "borl"},
    {"id": "ucrl2"},
    {"id": "ucrl2-restarts"},
    {"id": "sw-psrl"},
    {"id": "diff-q"},
    {"id": "random"},
]
ROUNDS = 5


def measure() -> dict[str, float]:
    """CPU of a study over that of its bare runs; throughput of two workers over one."""
    warnings.simplefilter("ignore", wd.GuaranteeWarning)
    warnings.simplefilter("ignore", wd.ParameterWarning)
    study = wd.Study([{"id": "riverswim"}], AGENTS, horizon=T, seeds=SEEDS, name="overhead")
    folder = Path(tempfile.mkdtemp(prefix="windage-bench-"))
    try:
        return _measured(study, folder)
    finally:
        shutil.rmtree(folder)


def _measured(study: wd.Study, folder: Path) -> dict[str, float]:
    study.run(folder / "warm", workers=1)
    bare, one, two = [], [], []
    walls: dict[int, list[float]] = {1: [], 2: []}
    alone: dict[int, list[float]] = {1: [], 2: []}
    for k in range(ROUNDS):  # in turns, so that all meet the same machine
        for threads in (2, 1):
            cpu, wall, rewards = _timed(lambda threads=threads: _bare(study, threads))
            alone[threads].append(wall)
        bare.append(cpu)
        for workers, cpus in ((1, one), (2, two)):
            place = folder / f"{k}-{workers}"
            cpu, wall, done = _timed(
                lambda place=place, workers=workers: study.run(place, workers=workers)
            )
            cpus.append(cpu)
            walls[workers].append(wall)
            assert done.made == len(AGENTS) * SEEDS
            assert wd.load_results(place)["total_reward"].to_list() == rewards
    cost = statistics.median(one) / statistics.median(bare)
    return {
        "CPU of a study on one worker / bare runs (T = 1e5, 8 agents, 20 seeds)": cost,
        "CPU of a study on two workers / bare runs": statistics.median(two)
        / statistics.median(bare),
        "throughput of two workers / one, best round each": min(walls[1]) / min(walls[2]),
        "the same runs, bare, on two threads / one, best round each": min(alone[1]) / min(alone[2]),
    }


def _bare(study: wd.Study, threads: int) -> list[float]:
    """Make the same runs without a study, whole seeds first; returns rewards as it lists them."""
    found = expand(study.spec)
    tasks = sorted(found.tasks.values(), key=lambda task: task.seed)
    model = wd.envs.make("riverswim", horizon=T)

    def one(task: Task) -> float:
        agent = task.player.make(model, task.seed)
        return wd.run(model, agent, task.seed, record="totals").total_reward

    with ThreadPoolExecutor(threads) as pool:
        keys = (task.key for task in tasks)
        rewards = dict(zip(keys, pool.map(one, tasks), strict=True))
    return [rewards[asked.key] for asked in found.manifest.runs]


def _timed(work):
    """CPU seconds of all threads, wall seconds, and what was returned."""
    cpu, wall = time.process_time(), time.perf_counter()
    found = work()
    return time.process_time() - cpu, time.perf_counter() - wall, found


if __name__ == "__main__":
    print(f"load {os.getloadavg()[0]:.2f}")
    for name, figure in measure().items():
        print(f"  {name:<75} {figure:10.3g}")
