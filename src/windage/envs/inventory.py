"""Inventory: a shop that orders ahead of a demand whose season and nature change."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.envs.registry import Facts, Instance, register
from windage.models import MDP, DriftingMDP, Noise
from windage.schedules import Knots
from windage.spaces import StateActions
from windage.validation import as_horizon, as_integer, as_real, as_size, require_memory

__all__ = ["inventory"]

Reals = NDArray[np.float64]

_SLOW, _BUSY, _LUMPY = range(3)
_DEAREST = 1e100  # sums of costs stay finite


@register("inventory-v0")
def inventory(
    horizon: int = 20_000,
    capacity: int = 9,
    seasons: int = 2,
    order_cost: float = 4.0,
    unit_cost: float = 1.0,
    holding_cost: float = 0.6,
    shortage_cost: float = 4.0,
    zeta: float | None = None,
    noise: Noise | str = "bernoulli",
) -> Instance:
    """A shop that pays for every delivery, loses what it cannot sell, and meets a changing demand.

    States
        0 .. capacity, the stock on hand in the evening.
    Actions
        "order 0" .. "order (capacity - s)" in state s; the delivery comes before the next day's
        demand X, of which what is not on hand is lost: s' = (s + a - X)+. A day costs order_cost
        if anything is ordered, unit_cost a piece, holding_cost a piece left over and shortage_cost
        a lost sale; the reward is 1 less the expected cost over the largest expected cost.
    Drift
        Demand moves in straight lines from a slow law (Poisson with mean capacity / 5) to a busy
        one (capacity / 2) and back, `seasons` times over the horizon. Where the last season
        begins, the slow law gives way at once to a lumpy one: three days in four hardly a sale,
        on the fourth a bulk order. The laws are cut off at the capacity and every demand has
        probability at least `zeta` (.2 / (capacity + 1) if not said).
    B_r
        The largest change of the expected holding and shortage cost, summed over the turns.
    B_p
        The L1 distance between the demand laws, summed over the turns: with full shelves the next
        state tells the demand.
    D
        At most 1 / zeta.
    Why communicating
        Any level is reached in a day with probability at least zeta: order up to it and sell
        nothing, or order nothing and sell down to it.
    Version history
        v0: first.
    """
    T, most = as_horizon(horizon), as_size(capacity, "capacity")
    Noise.of(noise)
    as_integer(seasons, "seasons", low=1, high=1000)
    costs = _Costs(
        as_real(order_cost, "order_cost", low=0, high=_DEAREST),
        as_real(unit_cost, "unit_cost", low=0, high=_DEAREST),
        as_real(holding_cost, "holding_cost", low=0, high=_DEAREST),
        as_real(shortage_cost, "shortage_cost", low=0, high=_DEAREST, open_low=True),
    )
    pairs = (most + 1) * (most + 2) // 2
    require_memory(8.0 * 5 * pairs * (most + 1), "capacity", fix="ask for a smaller capacity")
    least = as_real(
        0.2 / (most + 1) if zeta is None else zeta,
        "zeta",
        low=0,
        high=1 / (most + 1),
        open_low=True,
    )
    times, order = _calendar(T, seasons)
    laws = _laws(most, least)
    carried = [_carried(law, costs.holding, costs.shortage) for law in laws]
    scale = _largest_cost(carried, costs)

    def facts() -> Facts:
        if len(times) < 2 * seasons + 1 + (seasons > 1):  # a turn fell out of a short horizon
            return Facts(diameter_bound=1 / least)
        moves = list(itertools.pairwise(order))
        return Facts(
            reward_budget=sum(
                float(np.abs(carried[j] - carried[i]).max()) / scale for i, j in moves
            ),
            transition_budget=sum(float(np.abs(laws[j] - laws[i]).sum()) for i, j in moves),
            diameter_bound=1 / least,
        )

    def build() -> DriftingMDP:
        space = StateActions(
            most + 1 - np.arange(most + 1),
            state_names=[f"{s} on hand" for s in range(most + 1)],
            action_names=[[f"order {a}" for a in range(most + 1 - s)] for s in range(most + 1)],
        )
        level = space.state_of + space.action_of
        ordering = costs.order * (space.action_of > 0) + costs.unit * space.action_of
        models = [
            MDP(space, 1 - (ordering + cost[level]) / scale, _left_over(law)[level])
            for law, cost in zip(laws, carried, strict=True)
        ]
        return DriftingMDP.blend([models[k] for k in order], Knots(times), horizon=T, noise=noise)

    return Instance(build, facts)


class _Costs(NamedTuple):
    order: float
    unit: float
    holding: float
    shortage: float


def _calendar(horizon: int, seasons: int) -> tuple[tuple[int, ...], list[int]]:
    """The turning points of the demand and the law at each; what a short horizon cannot hold goes.

    >>> _calendar(1001, 2)
    ((1, 251, 501, 502, 751, 1001), [0, 1, 0, 2, 1, 2])
    """
    law_at: dict[int, int] = {}
    for turn in range(2 * seasons + 1):
        t = 1 + turn * (horizon - 1) // (2 * seasons)
        quiet = _LUMPY if turn > 2 * seasons - 2 or seasons == 1 else _SLOW
        law_at.setdefault(t, _BUSY if turn % 2 else quiet)
        if turn == 2 * seasons - 2 > 0 and t < horizon:
            law_at.setdefault(t + 1, _LUMPY)
    times = sorted(law_at)
    return tuple(times), [law_at[t] for t in times]


def _laws(capacity: int, zeta: float) -> list[Reals]:
    """The slow, the busy and the lumpy law of the demand 0 .. capacity."""
    shapes = [
        _poisson(capacity, 0.2 * capacity),
        _poisson(capacity, 0.5 * capacity),
        0.75 * _poisson(capacity, 0.02 * capacity) + 0.25 * _poisson(capacity, 0.8 * capacity),
    ]
    return [zeta + (1 - zeta * (capacity + 1)) * shape for shape in shapes]


def _poisson(most: int, mean: float) -> Reals:
    from scipy.special import gammaln

    x = np.arange(most + 1)
    weight = np.exp(x * np.log(mean) - mean - gammaln(x + 1))
    law: Reals = weight / weight.sum()
    return law


def _left_over(law: Reals) -> Reals:
    """Row y: the law of (y - X)+."""
    n = law.size
    y, left = np.indices((n, n))
    rows = np.where(left <= y, law[np.abs(y - left)], 0.0)
    rows[:, 0] = law[::-1].cumsum()[::-1]  # all that is wanted and more
    return rows


def _carried(law: Reals, holding_cost: float, shortage_cost: float) -> Reals:
    """The expected cost of holding and of lost sales from each level of stock after delivery."""
    x = np.arange(law.size)
    left = x[:, None] - x  # row: level; column: demand
    cost: Reals = np.where(left > 0, holding_cost * left, -shortage_cost * left) @ law
    return cost


def _largest_cost(carried: list[Reals], costs: _Costs) -> float:
    """The dearest level, reached from an empty shelf, under the worst of the laws."""
    worst = np.max(carried, axis=0)
    pieces = np.arange(worst.size)
    return float((worst + costs.order * (pieces > 0) + costs.unit * pieces).max())
