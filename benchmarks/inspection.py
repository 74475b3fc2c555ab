"""Past logs: how late and how often wrongly `inspect` speaks, and what it costs.

Delays and false alarms are counted on simulated logs in which an abrupt change is known, or none is
there. A test that looks at the halves of a window needs the second half: it can speak of a change
no sooner than that, so the delay is the end of its window less the time of the change.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import windage as wd
from windage.logs.counts import BlockCounts, count_blocks
from windage.logs.drift_tests import ALPHA, budgets, half_tests, segment

STEPS = 100_000
STILL = 200
SEGMENTED = 60  # of them are cut into segments, which takes longest
CHANGED = 40
ROWS = 10_000_000
GIGABYTE = 1 << 30

COST = """
import sys, time, windage as wd
start = time.perf_counter()
found = wd.logs.read_log(sys.argv[1]).inspect()
seconds = time.perf_counter() - start
found.save(sys.argv[2])
assert found.log.unusable_count == 0
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(found.log.steps, seconds, int(peak.split()[1]) / 1024)
"""


def measure() -> dict[str, float]:
    """Errors per 1e5 steps, delays in steps, seconds and megabytes."""
    return reliability() | cost()


def reliability() -> dict[str, float]:
    """False alarms on stationary logs, delays on logs that change in the middle."""
    found: dict[str, float] = {}
    alarms, cuts, p_values = np.zeros(STILL), np.zeros(STILL), np.zeros((2, STILL))
    for seed in range(STILL):
        blocks = count_blocks(_log(_still(seed), seed))
        alarms[seed] = len(half_tests(blocks).drifts(blocks.ends))
        if seed < SEGMENTED:
            cuts[seed] = len(segment(blocks, seed).cuts)
        if seed < 100:
            estimates = budgets(blocks.merged(8), seed, 99)
            p_values[:, seed] = [one.p_value for one in estimates]
    found["half-window tests: false alarms per 1e5 steps"] = alarms.mean()
    found["half-window tests: logs with any false alarm (Holm at 0.05)"] = (alarms > 0).mean()
    found["change points: false cuts per 1e5 steps"] = cuts[:SEGMENTED].mean()
    found["change points: logs with any (1 in 20 is meant)"] = (cuts[:SEGMENTED] > 0).mean()
    found["B_r beyond its null's 95 % though nothing moves"] = (p_values[0, :100] <= 0.05).mean()
    found["B_p beyond its null's 95 % though nothing moves"] = (p_values[1, :100] <= 0.05).mean()
    for what, size in (("reward", 0.1), ("reward", 0.3), ("transition", 0.2), ("transition", 0.6)):
        delays, places, seen = [], [], 0
        for seed in range(CHANGED):
            blocks = count_blocks(_log(_changed(what, size, seed), seed))
            first = _first_alarm(blocks, _when(seed))
            if first is not None:
                delays.append(first - _when(seed))
            cut = segment(blocks, seed).cuts
            seen += bool(cut)
            if cut:
                places.append(min(abs(one - _when(seed) - 1) for one in cut))
        label = f"one pair's {what} changes by {size:g} in 1e5 steps"
        found[f"{label}: found by half-window tests"] = len(delays) / CHANGED
        found[f"{label}: median delay, steps"] = float(np.median(delays)) if delays else np.nan
        found[f"{label}: found by change points"] = seen / CHANGED
        found[f"{label}: median distance of the cut, steps"] = (
            float(np.median(places)) if places else np.nan
        )
    return found | seldom()


def seldom() -> dict[str, float]:
    """One article over four years, whose pairs of stock and order are met a few times each."""
    found: dict[str, float] = {}
    scenes = [((mean,), 40, 15) for mean in (3, 5, 7)]
    scenes += [((3, 7, 4), 40, most) for most in (15, 13, 11)] + [((5, 6, 5), 20, 15)]
    for means, capacity, most in scenes:
        alarms = cuts = pairs = 0
        for seed in range(STILL):
            log = stock(seed, means, capacity=capacity, most=most)
            blocks = count_blocks(log)
            pairs += log.space.n_pairs
            alarms += bool(half_tests(blocks).drifts(blocks.ends))
            cuts += seed < SEGMENTED and bool(segment(blocks, seed).cuts)
        label = f"demand {', '.join(map(str, means))}; orders to {most}, {pairs // STILL} pairs"
        found[f"{label}: found by half-window tests"] = alarms / STILL
        found[f"{label}: found by change points"] = cuts / SEGMENTED
    return found


def stock(
    seed: int, means: tuple[float, ...], days: int = 1461, capacity: int = 40, most: int = 15
) -> wd.logs.Log:
    """Daily sales of one article: Poisson demand, orders drawn from 0 to `most`, lost sales."""
    rng = np.random.default_rng(seed)
    mean = np.repeat(means, np.diff(np.linspace(0, days, len(means) + 1).astype(int)))
    s, rows = 5, []
    for demand in rng.poisson(mean).tolist():
        order = min(int(rng.integers(most + 1)), capacity - s)
        left = max(s + order - demand, 0)
        rows.append((s, order, 4.0 * (s + order - left) - 2.0 * order - 0.5 * left, left))
        s = left
    return wd.logs.Log.from_arrays(*zip(*rows, strict=True))


def cost() -> dict[str, float]:
    """Time and peak memory of reading and inspecting 1e7 lines, and of a file of a gigabyte."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("csv", "parquet"):
            path = Path(folder) / f"log.{kind}"
            _write(path, ROWS)
            steps, seconds, peak = _cost(path)
            assert steps == ROWS
            found[f"1e7 lines, {kind}: seconds"] = seconds
            found[f"1e7 lines, {kind}: peak memory, MB"] = peak
            if kind == "csv":
                rows = int(ROWS * GIGABYTE / path.stat().st_size) + 1
            path.unlink()
        path = Path(folder) / "large.csv"
        _write(path, rows)
        size = path.stat().st_size
        steps, seconds, peak = _cost(path)
        assert steps == rows
        found["a large CSV: its size, MB"] = size / 2**20
        found["a large CSV: seconds"] = seconds
        found["a large CSV: peak memory, MB"] = peak
        assert size < GIGABYTE * 0.98 or peak < 2048, f"{peak:.0f} MB"
    return found


def _model(seed: int) -> wd.MDP:
    space = wd.StateActions.uniform(states=6, actions=3)
    rng = np.random.default_rng(seed)
    return wd.MDP(space, rng.uniform(0.3, 0.7, 18), rng.dirichlet(np.ones(6), size=18))


def _still(seed: int) -> wd.DriftingMDP:
    return wd.DriftingMDP.stationary(_model(seed), horizon=STEPS)


def _changed(what: str, size: float, seed: int) -> wd.DriftingMDP:
    """A model in which one pair's mean reward moves by `size`, or its row by `size` in L1."""
    before = _model(seed)
    rewards, rows = before.rewards.copy(), np.array(before.transitions)
    if what == "reward":
        rewards[4] += size if rewards[4] + size <= 1 else -size
    else:
        target = np.zeros(6)
        target[int(np.argmin(rows[4]))] = 1.0
        rows[4] += (target - rows[4]) * size / np.abs(target - rows[4]).sum()
    after = wd.MDP(before.space, rewards, rows)
    return wd.DriftingMDP.blend(
        [before, after], wd.schedules.Steps([_when(seed) + 1]), horizon=STEPS
    )


def _when(seed: int) -> int:
    """The last step before the change: anywhere in the middle fifth, not where blocks end."""
    return int(np.random.default_rng([seed, 1]).integers(40_000, 60_000))


def _log(model: wd.DriftingMDP, seed: int) -> wd.logs.Log:
    agent = wd.agents.make("random", model.space, horizon=STEPS, seed=seed)
    run = wd.run(model, agent, seed=seed)
    columns = run.states[:-1], run.actions, run.rewards, run.states[1:]
    return wd.logs.Log.from_arrays(*columns, reward_range=(0, 1))


def _first_alarm(blocks: BlockCounts, change: int) -> int | None:
    """The end of the first significant window that reaches beyond the change."""
    tests = half_tests(blocks)
    ends = np.minimum(tests.block + tests.half, blocks.count)
    steps = blocks.ends[ends - 1]
    hits = steps[(tests.corrected <= ALPHA) & (steps > change)]
    return int(hits.min()) if hits.size else None


def _write(path: Path, rows: int) -> None:
    """A log of RiverSwim, a piece at a time."""
    import polars as pl

    model = wd.envs.make("riverswim", horizon=rows)
    agent = wd.agents.make("random", model.space, horizon=rows)
    pieces, t = [], 1
    while t <= rows:
        run = wd.run(model, agent, seed=0, steps=min(5_000_000, rows + 1 - t))
        frame = pl.DataFrame(
            {
                "t": run.times,
                "state": run.states[:-1],
                "action": run.actions,
                "reward": run.rewards,
                "next_state": run.states[1:],
            }
        )
        if path.suffix == ".csv":
            with path.open("ab") as file:
                frame.write_csv(file, include_header=t == 1)
        else:
            pieces.append(frame)
        t += run.steps
    if pieces:
        pl.concat(pieces).write_parquet(path)


def _cost(path: Path) -> tuple[int, float, float]:
    page = path.with_suffix(".html")
    done = subprocess.run(
        [sys.executable, "-c", COST, str(path), str(page)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    steps, seconds, peak = done.stdout.split()
    return int(steps), float(seconds), float(peak)


if __name__ == "__main__":
    groups = {"reliability": reliability, "seldom": seldom, "cost": cost}
    for name in sys.argv[1:] or list(groups):
        for what, figure in groups[name]().items():
            print(f"{what:<80} {figure:10.4g}", flush=True)
