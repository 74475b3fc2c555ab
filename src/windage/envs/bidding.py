"""Bidding: pace a budget through auctions whose other bidders grow fierce and tame."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windage.envs.registry import Facts, Instance, register
from windage.models import MDP, DriftingMDP, Noise
from windage.schedules import Cosine
from windage.spaces import StateActions
from windage.structure import Exogenous, Structure
from windage.validation import as_horizon, as_real, as_size, require_memory

__all__ = ["bidding"]

_MARKETS = ("cold", "mild", "hot")
_VALUES = (0.2, 0.5, 1.0)  # of an impression in each market
_MARKET_CHAIN = np.array([[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]])
# The probability that all other bids are lower, by market and bid 0..3.
_TAME = np.array([[0.0, 0.6, 0.85, 0.95], [0.0, 0.5, 0.8, 0.95], [0.0, 0.4, 0.7, 0.9]])
_FIERCE = np.array([[0.0, 0.5, 0.8, 0.95], [0.0, 0.25, 0.6, 0.85], [0.0, 0.05, 0.25, 0.6]])


@register("bidding-v0")
def bidding_v0(
    horizon: int = 20_000,
    budget: int = 10,
    refill: float = 0.5,
    cycles: float = 2,
    noise: Noise | str = "bernoulli",
) -> Instance:
    """A buyer of impressions who must pace a budget while the other bidders change their minds.

    States
        The budget left, 0 .. budget, with the market, "cold", "mild" or "hot": an impression is
        worth .2, .5 or 1 there. The market moves on its own.
    Actions
        "pass" and "bid 1" .. "bid 3" as far as the budget allows. A bid that wins is paid in full,
        so that a higher bid costs more budget (the specification spends 1 whatever the bid), and
        one unit of budget comes in with probability `refill`, up to the full budget. The reward is
        the value of an impression times the probability of winning it.
    Drift
        The winning probabilities of the bids move on a cosine, `cycles` times, between those
        against tame bidders and those against fierce ones, who want the hot market most.
    B_r
        .9 cycles up to the discrete sum: bid 2 in the hot market, won with probability .7 or .25
        (a budget of 1 allows less).
    B_p
        1.8 cycles up to the discrete sum, for the same bid.
    D
        Not known in closed form.
    Why communicating
        Passing fills the budget, bidding 1 empties it, each with positive probability a step, and
        the market chain is irreducible with every market able to stay.
    Version history
        v0: first.
    """
    T, most, comes, schedule = _checked(horizon, budget, refill, cycles)
    Noise.of(noise)

    def build() -> DriftingMDP:
        models = [_model(most, comes, wins) for wins in (_TAME, _FIERCE)]
        return DriftingMDP.blend(models, schedule, horizon=T, noise=noise)

    return Instance(build, lambda: _facts(T, most, comes, schedule))


@register("bidding-v1")
def bidding(
    horizon: int = 20_000, budget: int = 10, refill: float = 0.5, cycles: float = 2
) -> Instance:
    """A buyer of impressions who must pace a budget while the other bidders change their minds.

    States
        The budget left, 0 .. budget, with the market, "cold", "mild" or "hot": an impression is
        worth .2, .5 or 1 there. The market moves on its own.
    Actions
        "pass" and "bid 1" .. "bid 3" as far as the budget allows. A bid that wins is paid in full,
        so that a higher bid costs more budget (the specification spends 1 whatever the bid), and
        one unit of budget comes in with probability `refill`, up to the full budget. The reward is
        the value of an impression if it is won, else nothing.
    Structure
        "win", 0 or 1, with a law for each market and bid, seen where one is bid; "refill", 0 or 1,
        with one law; "market", the next one, with a law for each market.
    Drift
        The winning probabilities of the bids move on a cosine, `cycles` times, between those
        against tame bidders and those against fierce ones, who want the hot market most.
    B_r
        .9 cycles up to the discrete sum: bid 2 in the hot market, won with probability .7 or .25
        (a budget of 1 allows less).
    B_p
        1.8 cycles up to the discrete sum, for the same bid.
    D
        Not known in closed form.
    Why communicating
        Passing fills the budget, bidding 1 empties it, each with positive probability a step, and
        the market chain is irreducible with every market able to stay.
    Version history
        v1: auctions are drawn and seen, and the reward is what was won. v0: first.
    """
    T, most, comes, schedule = _checked(horizon, budget, refill, cycles)
    n = len(_MARKETS)

    def after(s: int, a: int, won: int | None, coming: int, market: int) -> Any:
        left = np.minimum(s // n - a * (0 if won is None else won) + coming, most)
        return left * n + market

    def label(s: int, a: int) -> tuple[str, int] | None:
        return (_MARKETS[s % n], a) if a else None

    def build() -> DriftingMDP:
        space, _ = _space(most)
        known = Structure(
            space,
            [
                Exogenous("win", [0, 1], label, "involved"),
                Exogenous("refill", [0, 1]),
                Exogenous("market", range(n), lambda s, a: _MARKETS[s % n]),  # noqa: ARG005
            ],
            next_state=after,
            reward=lambda s, a, won, *_: _VALUES[s % n] * won if a else 0.0,
            reward_range=(0.0, 1.0),
        )
        bids = range(1, min(most, 3) + 1)
        wins = {
            (market, bid): ([_coin(_TAME[m, bid]), _coin(_FIERCE[m, bid])], schedule)
            for m, market in enumerate(_MARKETS)
            for bid in bids
        }
        markets = dict(zip(_MARKETS, _MARKET_CHAIN, strict=True))
        return known.drifting({"win": wins, "refill": _coin(comes), "market": markets}, horizon=T)

    return Instance(build, lambda: _facts(T, most, comes, schedule))


def _checked(
    horizon: int, budget: int, refill: float, cycles: float
) -> tuple[int, int, float, Cosine]:
    T, most = as_horizon(horizon), as_size(budget, "budget")
    comes = as_real(refill, "refill", low=0, high=1, open_low=True, open_high=True)
    require_memory(8.0 * 3 * 36 * (most + 1) ** 2, "budget", fix="ask for a smaller budget")
    return T, most, comes, Cosine(cycles)


def _facts(horizon: int, most: int, comes: float, schedule: Cosine) -> Facts:
    bid = min(most, 2)  # the bid whose fortune changes most, in the hot market
    change = float(_TAME[2, bid] - _FIERCE[2, bid])
    swings = schedule.variation(horizon)
    # Won or lost, the next budgets do not overlap, unless a refill makes up for a bid of 1.
    apart = 2.0 if bid == 2 else 2 * (1 - comes)
    return Facts(
        reward_budget=_VALUES[2] * change * swings, transition_budget=apart * change * swings
    )


def _coin(chance: float) -> list[float]:
    return [1 - chance, chance]


def _space(most: int) -> tuple[StateActions, list[tuple[int, int]]]:
    """Return the space, and the budget and the market of each state."""
    states = list(itertools.product(range(most + 1), range(len(_MARKETS))))
    bids = ["pass", "bid 1", "bid 2", "bid 3"]
    space = StateActions(
        [min(left, 3) + 1 for left, _ in states],
        state_names=[f"budget {left}, {_MARKETS[market]} market" for left, market in states],
        action_names=[bids[: min(left, 3) + 1] for left, _ in states],
    )
    return space, states


def _model(most: int, comes: float, wins: NDArray[np.float64]) -> MDP:
    space, states = _space(most)
    rewards = np.empty(space.n_pairs)
    transitions = np.zeros((space.n_pairs, most + 1, len(_MARKETS)))
    for pair, (s, bid) in enumerate(zip(space.state_of, space.action_of, strict=True)):
        left, market = states[s]
        win = wins[market, bid]
        rewards[pair] = _VALUES[market] * win
        for paid, chance in ((bid, win), (0, 1 - win)):
            for new, coming in ((1, comes), (0, 1 - comes)):
                then = min(left - paid + new, most)
                transitions[pair, then] += chance * coming * _MARKET_CHAIN[market]
    return MDP(space, rewards, transitions.reshape(space.n_pairs, -1))
