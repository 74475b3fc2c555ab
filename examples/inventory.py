"""Order stock day by day while demand drifts, from a CSV; kill it at any moment and start it again.

python examples/inventory.py [orders.journal]
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import windage as wd

ROOM, HOLDING, LOST, TRUCK = 5, 1.0, 4.0, 1.0
MOST = 5  # nobody has ever wanted more in a day
DEMAND = Path(__file__).with_name("demand.csv")

space = wd.StateActions(
    [ROOM - stock + 1 for stock in range(ROOM + 1)],
    [f"{stock} on the shelf" for stock in range(ROOM + 1)],
    [[f"order {n}" for n in range(ROOM - stock + 1)] for stock in range(ROOM + 1)],
)


def one_day(stock: int, order: int, demand: int) -> tuple[float, int]:
    """Return what a day costs, and what is left on the shelf."""
    left = stock + order - demand
    return HOLDING * max(left, 0) + LOST * max(-left, 0) + TRUCK * (order > 0), max(left, 0)


# The costs and the balance of the shelf are known; what is learned is one law, that of demand.
known = wd.Structure(
    space,
    [wd.Exogenous("demand", range(MOST + 1))],
    next_state=lambda stock, order, demand: one_day(stock, order, demand)[1],
    reward=lambda stock, order, demand: -one_day(stock, order, demand)[0],
)
agent = wd.MultiScale(space, horizon=10_000, structure=known)


def main(path: str) -> None:
    """Go through the days; those that were lived through already are only repeated."""
    stock = 0
    least, most = known.reward_range
    with wd.live.open(path, agent, reward_range=(-most, -least), direction="cost") as live:
        for day in csv.DictReader(DEMAND.read_text().splitlines()):
            d = live.decide(stock, key=day["date"])
            demand = int(day["demand"])
            cost, stock = one_day(stock, d.action, demand)
            live.observe(d.id, cost, stock, seen={"demand": demand})
        print(f"{live.agent.t - 1} days, {stock} on the shelf")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "orders.journal")
