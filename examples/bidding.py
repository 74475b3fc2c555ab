"""Bid in three markets at once, one journal and one commit a round; prices drift.

python examples/bidding.py [bids.journal]
"""

from __future__ import annotations

import sys

import numpy as np

import windage as wd

BIDS, VALUE, ROUNDS = (0.0, 1.0, 2.0, 3.0), 4.0, 200
MARKETS = ("books", "music", "games")

space = wd.StateActions.uniform(
    3, len(BIDS), ["quiet", "usual", "busy"], [f"bid {b:g}" for b in BIDS]
)
agents = {
    name: wd.SWUCRL2CW.practical(space, horizon=10_000, window=100, seed=i)
    for i, name in enumerate(MARKETS)
}


def auction(market: str, t: int, state: int, bid: float) -> tuple[float, int]:
    """Return the profit of a round and how busy the market is next; rivals bid more and more."""
    rng = np.random.default_rng([t, MARKETS.index(market)])
    rival = rng.gamma(2.0, (0.4 + 0.4 * t / ROUNDS) * (1 + state) / 2)
    profit = VALUE - bid if bid > rival else 0.0
    return profit, int(rng.integers(3))


def report(fleet: wd.live.Fleet, told: dict[str, tuple[int, float, int]]) -> bool:
    """Send the outcomes of a round; False if the journal could not take them."""
    try:
        fleet.observe(told)
    except wd.JournalError as err:
        print(f"outcomes kept for later: {err}")
        return False
    return True


def main(path: str) -> None:
    """Play rounds; if the disk is full, bid nothing and say so."""
    states = dict.fromkeys(MARKETS, 0)
    owed: dict[str, tuple[int, float, int]] = {}
    with wd.live.open(path, agents, fallback=[0, 0, 0], reward_range=(0, VALUE)) as fleet:
        for t in range(ROUNDS):
            if owed and report(fleet, owed):
                owed = {}
            decisions = fleet.decide(states, keys=dict.fromkeys(MARKETS, f"round {t}"))
            why = next(iter(decisions.values())).fallback
            if why:
                print(f"round {t}: no bids. {why}")
            told = {
                name: (d.id, *auction(name, t, d.state, BIDS[d.action]))
                for name, d in decisions.items()
            }
            if not why and not report(fleet, told):
                owed = told
            states = {name: outcome[-1] for name, outcome in told.items()}
        print(f"{ROUNDS} rounds in {len(fleet)} markets")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "bids.journal")
