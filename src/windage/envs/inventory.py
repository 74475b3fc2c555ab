"""Inventory: a shop that orders ahead of a demand whose season and nature change."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.envs.registry import Facts, Instance, register
from windage.models import MDP, DriftingMDP, Noise
from windage.schedules import Knots
from windage.spaces import StateActions
from windage.structure import Exogenous, Structure
from windage.validation import as_choice, as_horizon, as_integer, as_real, as_size, require_memory

__all__ = ["inventory"]

Reals = NDArray[np.float64]

_SLOW, _BUSY, _LUMPY = range(3)
_DEAREST = 1e100  # sums of costs stay finite


@register("inventory-v0")
def inventory_v0(
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
    Noise.of(noise)
    shop = _Shop(
        *(horizon, capacity, seasons, order_cost, unit_cost, holding_cost, shortage_cost, zeta),
        called="shortage_cost",
    )
    carried = [_carried(law, shop.costs.holding, shop.costs.shortage) for law in shop.laws]
    scale = _largest_cost(carried, shop.costs)

    def build() -> DriftingMDP:
        space = shop.space()
        level = space.state_of + space.action_of
        ordering = shop.costs.of_order(space.action_of)
        models = [
            MDP(space, 1 - (ordering + cost[level]) / scale, _left_over(law)[level])
            for law, cost in zip(shop.laws, carried, strict=True)
        ]
        return DriftingMDP.blend(
            [models[k] for k in shop.order], Knots(shop.times), horizon=shop.horizon, noise=noise
        )

    return Instance(build, lambda: shop.facts(carried, scale))


@register("inventory-v1")
def inventory(
    horizon: int = 20_000,
    capacity: int = 9,
    seasons: int = 2,
    order_cost: float = 6.0,
    unit_cost: float = 1.0,
    holding_cost: float = 0.6,
    price: float = 4.0,
    zeta: float | None = None,
    seen: str = "demand",
) -> Instance:
    """A shop that pays for every delivery, loses what it cannot sell, and meets a changing demand.

    States
        0 .. capacity, the stock on hand in the evening.
    Actions
        "order 0" .. "order (capacity - s)" in state s; the delivery comes before the next day's
        demand X, of which what is not on hand is lost: s' = (s + a - X)+. A day brings `price` a
        piece sold and costs order_cost if anything is ordered, unit_cost a piece, and holding_cost
        a piece left over; the reward is the profit, scaled so that the worst day pays 0 and the
        best 1.
    Structure
        One variable, "demand", 0 .. capacity, with one law. It is always seen, lost customers
        included; with seen="sales" only sales are, and a demand that sells the shelf out is known
        to be no less than what was on it.
    Drift
        Demand moves in straight lines from a slow law (Poisson with mean capacity / 5) to a busy
        one (capacity / 2) and back, `seasons` times over the horizon. Where the last season
        begins, the slow law gives way at once to a lumpy one: three days in four hardly a sale,
        on the fourth a bulk order. The laws are cut off at the capacity and every demand has
        probability at least `zeta` (.2 / (capacity + 1) if not said).
    B_r
        The largest change of what is expected of sales less holding, summed over the turns.
    B_p
        The L1 distance between the demand laws, summed over the turns: with full shelves the next
        state tells the demand. It is B_q too.
    D
        At most 1 / zeta.
    Why communicating
        Any level is reached in a day with probability at least zeta: order up to it and sell
        nothing, or order nothing and sell down to it.
    Version history
        v1: demand is drawn and seen, and the reward is the profit of the day: a lost sale costs the
        price that is not paid. An order costs 6, for the myopic policy had earned 92 %. v0: first.
    """
    shop = _Shop(horizon, capacity, seasons, order_cost, unit_cost, holding_cost, price, zeta)
    shows = {"demand": "always", "sales": "interval"}[as_choice(seen, "seen", ("demand", "sales"))]
    costs, most = shop.costs, shop.most

    def earned(level: Any, demand: Any) -> Any:
        return price * np.minimum(level, demand) - costs.holding * np.maximum(level - demand, 0)

    x = np.arange(most + 1)
    on_a_day = earned(x[:, None], x)
    least = float((on_a_day - costs.of_order(x)[:, None]).min())  # all of it ordered
    width = float(on_a_day.max()) - least
    expected = [on_a_day @ law for law in shop.laws]

    def build() -> DriftingMDP:
        known = Structure(
            shop.space(),
            [Exogenous("demand", range(most + 1), seen=shows)],
            next_state=lambda s, a, x: np.maximum(s + a - x, 0),
            reward=lambda s, a, x: (earned(s + a, x) - costs.of_order(a) - least) / width,
            reward_range=(0.0, 1.0),
        )
        bases = np.stack([shop.laws[k] for k in shop.order])
        return known.drifting({"demand": (bases, Knots(shop.times))}, horizon=shop.horizon)

    return Instance(build, lambda: shop.facts(expected, width))


class _Shop:
    """The parameters of a shop, checked, and what follows from them."""

    def __init__(
        self,
        horizon: int,
        capacity: int,
        seasons: int,
        order_cost: float,
        unit_cost: float,
        holding_cost: float,
        lost: float,
        zeta: float | None,
        called: str = "price",
    ) -> None:
        self.horizon, self.most = as_horizon(horizon), as_size(capacity, "capacity")
        self.seasons = as_integer(seasons, "seasons", low=1, high=1000)
        self.costs = _Costs(
            as_real(order_cost, "order_cost", low=0, high=_DEAREST),
            as_real(unit_cost, "unit_cost", low=0, high=_DEAREST),
            as_real(holding_cost, "holding_cost", low=0, high=_DEAREST),
            as_real(lost, called, low=0, high=_DEAREST, open_low=True),
        )
        pairs = (self.most + 1) * (self.most + 2) // 2
        require_memory(8.0 * 5 * pairs * (self.most + 1), "capacity", fix="ask for less capacity")
        self.least = as_real(
            0.2 / (self.most + 1) if zeta is None else zeta,
            "zeta",
            low=0,
            high=1 / (self.most + 1),
            open_low=True,
        )
        self.times, self.order = _calendar(self.horizon, seasons)
        self.laws = _laws(self.most, self.least)

    def facts(self, expected: list[Reals], scale: float) -> Facts:
        """Return the closed forms, given what each law is worth at each level, and the scale."""
        turns = 2 * self.seasons + 1 + (self.seasons > 1)
        if len(self.times) < turns:  # a turn fell out of a short horizon
            return Facts(diameter_bound=1 / self.least)
        moves = list(itertools.pairwise(self.order))
        laws = self.laws
        return Facts(
            reward_budget=sum(
                float(np.abs(expected[j] - expected[i]).max()) / scale for i, j in moves
            ),
            transition_budget=sum(float(np.abs(laws[j] - laws[i]).sum()) for i, j in moves),
            diameter_bound=1 / self.least,
        )

    def space(self) -> StateActions:
        """Return the levels of stock, and what can be ordered at each."""
        most = self.most
        return StateActions(
            most + 1 - np.arange(most + 1),
            state_names=[f"{s} on hand" for s in range(most + 1)],
            action_names=[[f"order {a}" for a in range(most + 1 - s)] for s in range(most + 1)],
        )


class _Costs(NamedTuple):
    order: float
    unit: float
    holding: float
    shortage: float

    def of_order(self, pieces: Any) -> Any:
        """Return what an order costs."""
        return self.order * (pieces > 0) + self.unit * pieces


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
