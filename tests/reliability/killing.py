"""A live loop that is killed with SIGKILL at random moments, again and again.

    python -m tests.reliability.killing FOLDER KILLS SEED

Each child continues the loop where the journal stands, and tells its parent of every call that has
returned. The parent kills it at a random moment, whatever it is doing: opening, deciding, closing.
At the end nothing that was told may be missing or there twice, and the agent must be the one of a
twin who was never interrupted. The result is printed as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

import windage as wd
from tests.live_loops import loop, outcome, swucrl, twin_loop
from windage.live.journal import Journal
from windage.live.maintenance import verify


def live_on(path: Path, tell: int, seed: int) -> None:
    """Go on with the loop for ever, in stretches of some steps, some of them in batches."""
    rng = np.random.default_rng(seed)
    while True:
        with wd.live.open(path, swucrl()) as live:
            for _ in range(rng.integers(1, 6)):
                if rng.random() < 0.5:
                    step(live, tell)
                else:
                    with live.batch():
                        told = [step(live, None) for _ in range(rng.integers(1, 8))]
                    os.write(tell, b"".join(told))


def step(live, tell) -> bytes:
    """One step of the loop, asked for by its key: a decision that was made is not made again."""
    agent = live.agent
    i, s = agent.t - 1, live.pending.state if live.pending else agent.last_state or 0
    d = live.decide(s, key=f"step {i}")
    decided = b"decided %d\n" % d.id
    if tell is not None:
        os.write(tell, decided)
    live.observe(d.id, *outcome(s, d.action, i))
    observed = b"observed %d\n" % d.id
    if tell is not None:
        os.write(tell, observed)
    return decided + observed


def kill_once(path: Path, rng: np.random.Generator, first: bool) -> bytes:
    """Let a child live on, kill it, and return what it has told; the first one must tell."""
    ear, mouth = os.pipe()
    seed = int(rng.integers(1 << 32))
    child = os.fork()
    if child == 0:
        try:
            os.close(ear)
            live_on(path, mouth, seed)
        finally:
            os._exit(1)  # only if something went wrong
    os.close(mouth)
    waits = rng.random() < 0.7 or first  # else it may still be opening
    told = os.read(ear, 1 << 16) if waits else b""
    time.sleep(float(rng.uniform(0.0, 0.08)))
    os.kill(child, signal.SIGKILL)
    while part := os.read(ear, 1 << 16):
        told += part
    os.close(ear)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the loop ended by itself"
    return told


def check(path: Path, told: Counter[str]) -> dict[str, object]:
    """Compare the journal with what was told, and the agent with an uninterrupted twin."""
    journal = Journal(path)
    there = Counter(
        f"{kind} {step}"
        for kind, step in journal.all("SELECT kind, step FROM events WHERE kind != 'created'")
    )
    keys = journal.all("SELECT key FROM events WHERE kind = 'decided' ORDER BY n")
    rows = journal.all("SELECT state, action FROM events WHERE kind = 'decided' ORDER BY n")
    journal.close()
    found = verify(path)
    with wd.live.open(path, swucrl()) as live:
        twin = swucrl()
        steps, s = twin_loop(twin, live.agent.t - 1)
        if live.pending:
            twin.act(s)
            steps.append((s, live.pending.action))
        same = live.agent.state() == twin.state()
        following = (
            live.pending.action == twin.act(s)
            if live.pending
            else live.decide(s).action == twin.act(s)
        )
    return {
        "told": sum(told.values()),
        "lost": len(told.keys() - there.keys()),
        "told twice": [line for line, n in told.items() if n > 1 and line.startswith("observed")],
        "doubled": sum(count - 1 for count in there.values()),
        "steps": len(rows),
        "keys in order": [key for (key,) in keys] == [f"step {i}" for i in range(len(keys))],
        "actions": rows == [one[:2] for one in steps],
        "state": same,
        "next action": following,
        "sound": found.is_sound,
    }


def main(folder: str, kills: int, seed: int) -> None:
    path, rng = Path(folder) / "killed.journal", np.random.default_rng(seed)
    with wd.live.open(Path(folder) / "warm.journal", swucrl()) as live:
        loop(live, 3)  # loads what is compiled, so that children have it
        live.agent.state()
    told: Counter[str] = Counter()
    for i in range(kills):
        told.update(kill_once(path, rng, i == 0).decode().splitlines())
    print(json.dumps({"kills": kills} | check(path, told)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
