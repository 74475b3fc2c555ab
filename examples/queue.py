"""Run a server at one of two speeds while arrivals drift; costs are known three periods later.

python examples/queue.py [queue.journal]
"""

from __future__ import annotations

import sys

import numpy as np

import windage as wd

ROOM, SLOW, FAST, POWER = 6, 0.35, 0.75, 2.0
PERIODS, LATE = 400, 3

space = wd.StateActions.uniform(
    ROOM + 1, 2, [f"{n} waiting" for n in range(ROOM + 1)], ["slow", "fast"]
)


def make(horizon: int) -> wd.SWUCRL2CW:
    """Return the agent for a horizon: how long this will run nobody knows, so it is doubled."""
    return wd.SWUCRL2CW.practical(space, horizon=horizon, window=150, seed=horizon)


def period(t: int, waiting: int, speed: int) -> tuple[float, int]:
    """Return what a period costs and how many wait then; arrivals come and go with the season."""
    rng = np.random.default_rng([t, 5])
    arrives = rng.random() < 0.3 + 0.2 * np.sin(2 * np.pi * t / PERIODS)
    served = waiting > 0 and rng.random() < (FAST if speed else SLOW)
    return waiting + POWER * speed, min(waiting + arrives - served, ROOM)


def main(path: str) -> None:
    """Decide every period, report every cost when the bill comes."""
    waiting, bills = 0, []
    with wd.live.open(
        path, wd.Doubling(make, first=256), missing="skip", reward_range=(0, ROOM + POWER),
        direction="cost",
    ) as live:  # fmt: skip
        for t in range(PERIODS):
            d = live.decide(waiting, key=f"period {t}")
            cost, waiting = period(t, waiting, d.action)
            bills.append((d.id, cost, waiting))
            if len(bills) > LATE:
                live.observe(*bills.pop(0))
        for bill in bills:
            live.observe(*bill)
        print(f"{live.agent.t - 1} of {PERIODS} periods learned from, all of them late")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "queue.journal")
