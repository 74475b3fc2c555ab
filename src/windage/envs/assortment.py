"""Assortment: what to put on a small shelf while the taste of the customers changes."""

from __future__ import annotations

import itertools
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from windage.envs.registry import Facts, Instance, register
from windage.models import DriftingMDP
from windage.schedules import Cosine
from windage.spaces import StateActions
from windage.structure import Exogenous, Structure
from windage.validation import as_horizon, as_real

__all__ = ["assortment"]

Shelf: TypeAlias = tuple[int, ...]
"""The products on it, at most two, in rising order."""

_NAMES = "ABCDE"
_PRICES = np.array([1.0, 0.9, 0.8, 0.7, 0.5])
# How much customers are drawn to each product; to buying nothing, 1.
_WINTER = np.array([1.2, 0.1, 1.0, 0.1, 0.4])
_SUMMER = np.array([0.1, 1.2, 0.1, 1.0, 0.4])


@register("assortment-v0")
def assortment(
    horizon: int = 20_000, case_cost: float = 0.6, last: float = 0.25, cycles: float = 2
) -> Instance:
    """A kiosk with room for two of five products, and customers whose taste goes with the season.

    States
        What is on the shelf: none, one or two of the products A .. E.
    Actions
        "keep" the shelf, put a case of a product into an empty place, or, on a full shelf, a case
        of one in place of another. A case costs case_cost. Then a customer takes one of the
        products or none, at the prices 1, .9, .8, .7 and .5 of A .. E. What is sold is the last of
        its case with probability `last`: its place is empty then. The reward is
        (price - cost + case_cost) / (1 + case_cost).
    Structure
        "sold", the first or second product on the shelf or 0 for none, with a law for each shelf,
        seen where there is anything on it; "last", 0 or 1, with one law, always seen.
    Drift
        A customer chooses by a multinomial logit: a product with weight w from a shelf with
        probability w / (1 + the weights on it). Winter people have the weights 1.2, .1, 1, .1 and
        .4 for A .. E, summer people .1, 1.2, .1, 1 and .4, and their shares move on a cosine,
        `cycles` times.
    B_r
        The largest change, over all shelves, of the expected price, over 1 + case_cost, times
        2 cycles up to the discrete sum.
    B_p
        `last` times B_q, which is the largest L1 distance, over all shelves, between the choices in
        winter and in summer, times 2 cycles up to the discrete sum.
    D
        Not known in closed form.
    Why communicating
        A customer may always buy nothing, so that any shelf is filled place by place, and every
        product may sell out, so that any shelf is emptied.
    Version history
        v0: first.
    """
    T, schedule = as_horizon(horizon), Cosine(cycles)
    cost = as_real(case_cost, "case_cost", low=0, high=1e100)
    ends = as_real(last, "last", low=0, high=1, open_low=True)
    shelves = [shelf for k in range(3) for shelf in itertools.combinations(range(5), k)]
    offered = [_offered(shelf) for shelf in shelves]
    number = {shelf: s for s, shelf in enumerate(shelves)}

    def after(s: int, a: int, sold: int | None, emptied: int) -> int:
        shelf = offered[s][a][1]
        return number[shelf[: sold - 1] + shelf[sold:] if sold and emptied else shelf]

    def reward(s: int, a: int, sold: int | None, _: int) -> float:
        shelf = offered[s][a][1]
        price = float(_PRICES[shelf[sold - 1]]) if sold and sold <= len(shelf) else 0.0
        return (price + cost * (a == 0)) / (1 + cost)

    def group(s: int, a: int) -> str | None:
        return _named(offered[s][a][1])

    def build() -> DriftingMDP:
        space = StateActions(
            [len(of_shelf) for of_shelf in offered],
            state_names=[_named(shelf) or "nothing" for shelf in shelves],
            action_names=[[name for name, _ in of_shelf] for of_shelf in offered],
        )
        known = Structure(
            space,
            [Exogenous("sold", range(3), group, "involved"), Exogenous("last", [0, 1])],
            next_state=after,
            reward=reward,
            reward_range=(0.0, 1.0),
        )
        choices = {_named(shelf): (_choices(shelf), schedule) for shelf in shelves if shelf}
        return known.drifting({"sold": choices, "last": [1 - ends, ends]}, horizon=T)

    def facts() -> Facts:
        changes = [(shelf, np.subtract(*_choices(shelf))) for shelf in shelves if shelf]
        price = max(abs(float(q[1 : 1 + len(of)] @ _PRICES[list(of)])) for of, q in changes)
        swings = schedule.variation(T)
        apart = max(float(np.abs(q).sum()) for _, q in changes)
        return Facts(price / (1 + cost) * swings, ends * apart * swings)

    return Instance(build, facts)


def _offered(shelf: Shelf) -> list[tuple[str, Shelf]]:
    """Return the actions at a shelf: their names, and what is on it then."""
    found = [("keep", shelf)]
    for new in (product for product in range(5) if product not in shelf):
        if len(shelf) < 2:
            found.append((_NAMES[new], tuple(sorted((*shelf, new)))))
            continue
        for old, kept in zip(shelf, reversed(shelf), strict=True):
            found.append((f"{_NAMES[new]} for {_NAMES[old]}", tuple(sorted((kept, new)))))
    return found


def _choices(shelf: Shelf) -> NDArray[np.float64]:
    """Return the laws of what is sold, in winter and in summer."""
    laws = np.zeros((2, 3))
    for law, weights in zip(laws, (_WINTER, _SUMMER), strict=True):
        law[: 1 + len(shelf)] = [1.0, *weights[list(shelf)]]
    laws /= laws.sum(axis=1, keepdims=True)
    return laws


def _named(shelf: Shelf) -> str | None:
    return " and ".join(_NAMES[product] for product in shelf) or None
