"""Order stock day by day while demand drifts, from a CSV; kill it at any moment and start it again.

python examples/inventory.py [orders.journal]
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import windage as wd

ROOM, HOLDING, LOST, TRUCK = 5, 1.0, 4.0, 1.0
DEMAND = Path(__file__).with_name("demand.csv")

space = wd.StateActions(
    [ROOM - stock + 1 for stock in range(ROOM + 1)],
    [f"{stock} on the shelf" for stock in range(ROOM + 1)],
    [[f"order {n}" for n in range(ROOM - stock + 1)] for stock in range(ROOM + 1)],
)
# Radii a twentieth as wide learn within months instead of decades; the theorem then does not
# speak, and windage says so.
agent = wd.SWUCRL2CW(
    space, horizon=10_000, window=120, widening=0.05, radii=wd.Radii.laplace().scaled(0.05)
)


def one_day(stock: int, order: int, demand: int) -> tuple[float, int]:
    """Return what a day costs, and what is left on the shelf."""
    left = stock + order - demand
    return HOLDING * max(left, 0) + LOST * max(-left, 0) + TRUCK * (order > 0), max(left, 0)


def main(path: str) -> None:
    """Go through the days; those that were lived through already are only repeated."""
    stock = 0
    worst = max(HOLDING * ROOM, LOST * ROOM) + TRUCK
    with wd.live.open(path, agent, reward_range=(0, worst), direction="cost") as live:
        for day in csv.DictReader(DEMAND.read_text().splitlines()):
            d = live.decide(stock, key=day["date"])
            cost, stock = one_day(stock, d.action, int(day["demand"]))
            live.observe(d.id, cost, stock)
        print(f"{live.agent.t - 1} days, {stock} on the shelf")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "orders.journal")
