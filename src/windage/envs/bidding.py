"""Bidding: pace a budget through auctions whose other bidders grow fierce and tame."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from windage.envs.registry import Facts, Instance, register
from windage.models import MDP, DriftingMDP, Noise
from windage.schedules import Cosine
from windage.spaces import StateActions
from windage.validation import as_horizon, as_real, as_size, require_memory

__all__ = ["bidding"]

_MARKETS = ("cold", "mild", "hot")
_VALUES = (0.2, 0.5, 1.0)  # of an impression in each market
_MARKET_CHAIN = np.array([[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]])
# The probability that all other bids are lower, by market and bid 0..3.
_TAME = np.array([[0.0, 0.6, 0.85, 0.95], [0.0, 0.5, 0.8, 0.95], [0.0, 0.4, 0.7, 0.9]])
_FIERCE = np.array([[0.0, 0.5, 0.8, 0.95], [0.0, 0.25, 0.6, 0.85], [0.0, 0.05, 0.25, 0.6]])


@register("bidding-v0")
def bidding(
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
    T, most = as_horizon(horizon), as_size(budget, "budget")
    Noise.of(noise)
    comes = as_real(refill, "refill", low=0, high=1, open_low=True, open_high=True)
    require_memory(8.0 * 3 * 36 * (most + 1) ** 2, "budget", fix="ask for a smaller budget")
    schedule = Cosine(cycles)

    def facts() -> Facts:
        bid = min(most, 2)  # the bid whose fortune changes most, in the hot market
        change = float(_TAME[2, bid] - _FIERCE[2, bid])
        swings = schedule.variation(T)
        # Won or lost, the next budgets do not overlap, unless a refill makes up for a bid of 1.
        apart = 2.0 if bid == 2 else 2 * (1 - comes)
        return Facts(
            reward_budget=_VALUES[2] * change * swings, transition_budget=apart * change * swings
        )

    def build() -> DriftingMDP:
        models = [_model(most, comes, wins) for wins in (_TAME, _FIERCE)]
        return DriftingMDP.blend(models, schedule, horizon=T, noise=noise)

    return Instance(build, facts)


def _model(most: int, comes: float, wins: NDArray[np.float64]) -> MDP:
    states = list(itertools.product(range(most + 1), range(len(_MARKETS))))
    bids = ["pass", "bid 1", "bid 2", "bid 3"]
    space = StateActions(
        [min(left, 3) + 1 for left, _ in states],
        state_names=[f"budget {left}, {_MARKETS[market]} market" for left, market in states],
        action_names=[bids[: min(left, 3) + 1] for left, _ in states],
    )
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
