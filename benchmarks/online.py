"""A live agent: durable steps against bare commits, batches, replay, and ten thousand agents.

All of it happens in a temporary folder on the disk that holds them; where that is memory, a commit
costs nothing and the first ratio says little.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import windage as wd
from windage.live.history import agent_at, agent_records
from windage.live.journal import Journal, Writer
from windage.live.schema import Event

STEPS, ROUNDS, BATCH, REPLAYED = 100, 5, 100, 100_000
FLEET = 10_000


def measure() -> dict[str, float]:
    """The ratios of durable work, and the memory of a fleet."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        found |= _commits(Path(folder))
        found |= _replay(Path(folder))
    return found | _fleet()


def _agent(seed: int = 0) -> wd.SWUCRL2CW:
    space = wd.StateActions.uniform(10, 4)
    return wd.SWUCRL2CW(space, horizon=1_000_000, window=500, widening=0.1, seed=seed)


def _commits(folder: Path) -> dict[str, float]:
    """Decide and observe, one by one and in batches, beside the same rows by SQLite alone."""
    rows = _rows()
    with wd.live.open(folder / "single.journal", _agent()) as live:
        states = cycle(range(10))

        def single() -> None:
            for _ in range(STEPS):
                d = live.decide(next(states))
                live.observe(d.id, 0.5, 1)

        def batched() -> None:
            for _ in range(STEPS // BATCH * 10):
                with live.batch():
                    for _ in range(BATCH):
                        d = live.decide(next(states))
                        live.observe(d.id, 0.5, 1)

        con = _bare(folder / "bare.sqlite")

        def bare() -> None:
            for _ in range(2 * STEPS):
                con.execute("BEGIN IMMEDIATE")
                con.execute(f"INSERT INTO events VALUES ({', '.join('?' * 12)})", next(rows))
                con.execute("COMMIT")

        times = _in_turn({"single": single, "bare": bare, "batched": batched})
        con.close()
    step = times["single"] / STEPS
    batch = times["batched"] / (STEPS * 10)
    return {
        "us a step, decide and observe": 1e6 * step,
        "us two bare commits": 1e6 * times["bare"] / STEPS,
        "rate of steps / rate of the commits they need": times["bare"] / times["single"],
        "us a step in batches of 100": 1e6 * batch,
        "single step / step in batches of 100": step / batch,
    }


def _in_turn(work: dict[str, Callable[[], None]]) -> dict[str, float]:
    """The median wall time of each: waiting for the disk is what is measured."""
    times: dict[str, list[float]] = {name: [] for name in work}
    for i in range(ROUNDS + 1):
        for name, do in work.items():
            start = time.perf_counter()
            do()
            if i:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def _rows() -> Iterator[Event]:
    """Rows like those of a journal: the same columns and sizes."""
    n = 1
    while True:
        n += 1
        kind = ("decided", "observed")[n % 2]
        yield Event(
            n=n, agent=1, kind=kind, step=n - n % 2, state=3, action=1, reward=0.5, used=1,
            at=1_763_000_000_000_000 + n, chain=bytes(32),
        )  # fmt: skip


def _bare(path: Path) -> sqlite3.Connection:
    """The tables of a journal, and nothing but SQLite."""
    Writer(path).close()
    con = sqlite3.connect(path, isolation_level=None)
    con.execute("PRAGMA journal_mode = WAL")
    con.execute("PRAGMA synchronous = FULL")
    return con


def _replay(folder: Path) -> dict[str, float]:
    """Open a journal of many events from its first one: read, check the chain, live through it."""
    path = folder / "long.journal"
    with wd.live.open(path, _agent()) as live, live.batch():
        for i in range(REPLAYED // 2):
            d = live.decide(i * 7 % 10)
            live.observe(d.id, (i % 3) / 2, (i + 1) * 7 % 10)
        live.journal.drop_snapshots(1, "> ?", 0)  # no snapshots
    times = []
    for _ in range(ROUNDS):
        journal = Journal(path)
        start = time.perf_counter()
        journal.require_chain(1)
        live = agent_at(journal, agent_records(journal)["agent"])
        times.append(time.perf_counter() - start)
        journal.close()
    assert live.agent.t == REPLAYED // 2 + 1
    return {"events replayed a second, chain checked": REPLAYED / statistics.median(times)}


def _fleet() -> dict[str, float]:
    """Memory of a process with ten thousand agents, S = 10, A = 4, W = 500, all windows full."""
    code = f"from benchmarks.online import fleet; fleet({FLEET})"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], check=True, capture_output=True, text=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def fleet(agents: int) -> None:
    """Print what a process needs that opens a journal for so many agents and lets them decide."""
    import numpy as np

    from windage.agents.base import Steps

    with tempfile.TemporaryDirectory() as folder:
        made = {f"item {i}": _agent(i) for i in range(agents)}
        start = time.perf_counter()
        live = wd.live.open(Path(folder) / "fleet.journal", made)
        del made
        decisions = live.decide(dict.fromkeys(live, 0))
        live.observe({name: (d.id, 0.5, 1) for name, d in decisions.items()})
        first = time.perf_counter() - start
        rng = np.random.default_rng(0)
        space, n = live["item 0"].space, 1100
        states, actions = rng.integers(0, 10, n + 1), rng.integers(0, 4, n)
        steps = Steps(states[:-1], np.full(n, True), space.offsets[states[:-1]] + actions,
                      rng.random(n), states[1:])  # fmt: skip
        for session in live.values():  # fills the window, as a year of decisions would
            for place in range(0, n, 50):
                session.agent.replay(steps.part(place, place + 50))
        start = time.perf_counter()
        live.decide(dict.fromkeys(live, 1))
        later = time.perf_counter() - start
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * 4096
        live.journal.close()
    print(json.dumps({
        f"MB resident, {agents:,} agents with full windows": resident / 1e6,
        f"ms an agent to open {agents:,} and decide a first round": 1e3 * first / agents,
        f"us an agent of a later round of {agents:,} decisions": 1e6 * later / agents,
    }))  # fmt: skip
