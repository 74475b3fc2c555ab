"""Queue: how fast to serve and whom to turn away while the crowd comes and goes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from windage.envs.registry import Facts, Instance, register
from windage.models import MDP, DriftingMDP, Noise
from windage.schedules import Cosine
from windage.spaces import StateActions
from windage.structure import Exogenous, Structure
from windage.validation import as_horizon, as_size, require_memory

__all__ = ["queue"]

_RATES = {"slow": 0.2, "medium": 0.5, "fast": 0.8}
_COSTS = {"slow": 0.0, "medium": 0.3, "fast": 0.8}
_BUSY, _QUIET = 0.75, 0.15  # arrivals a slot, at the two ends of the season
_VALUE, _HOLDING = 2.0, 1.0


def _fill_up(capacity: int, arrivals: float, rate: float) -> float:
    """The expected time from an empty queue to a full one; emptying it fast takes less."""
    climb = 1 / arrivals
    total = climb
    for _ in range(capacity - 1):
        climb = (1 + rate * (1 - arrivals) * climb) / (arrivals * (1 - rate))
        total += climb
    return total


@register("queue-v0")
def queue_v0(
    horizon: int = 20_000,
    capacity: int = 10,
    cycles: float = 2,
    noise: Noise | str = "bernoulli",
) -> Instance:
    """A counter with three speeds and a door that can be shut, in front of a crowd with seasons.

    States
        0 .. capacity, the customers in the queue.
    Actions
        A speed, "slow", "medium" or "fast": the customer in front leaves in this slot with
        probability .2, .5 or .8, at a cost of 0, .3 or .8. With "reject" nobody is let in; an empty
        queue turns nobody away.
    Drift
        A customer arrives in a slot with probability .45 + .3 cos(2 pi cycles t / T), after the
        service of the slot, and is lost if the queue is full. The reward is
        (2 + 2 P(a customer joins) - s / capacity - cost of the speed) / 4.
    B_r
        .6 cycles up to the discrete sum: the value of a customer who may come or not.
    B_p
        2.4 cycles up to the discrete sum, in the empty queue.
    D
        The expected time to fill an empty queue when it is quiet, serving slowly.
    Why communicating
        Arrivals and departures have probabilities strictly between 0 and 1: a birth-death chain.
    Version history
        v0: first.
    """
    T, most, schedule = _checked(horizon, capacity, cycles)
    Noise.of(noise)

    def build() -> DriftingMDP:
        models = [_model(most, _BUSY), _model(most, _QUIET)]
        return DriftingMDP.blend(models, schedule, horizon=T, noise=noise)

    return Instance(build, lambda: _facts(T, most, schedule))


@register("queue-v1")
def queue(horizon: int = 20_000, capacity: int = 10, cycles: float = 2) -> Instance:
    """A counter with three speeds and a door that can be shut, in front of a crowd with seasons.

    States
        0 .. capacity, the customers in the queue.
    Actions
        A speed, "slow", "medium" or "fast": the customer in front leaves in this slot with
        probability .2, .5 or .8, at a cost of 0, .3 or .8. With "reject" nobody is let in; an empty
        queue turns nobody away.
    Structure
        "arrival", 0 or 1, with one law, always seen; "service", 0 or 1, with one law a speed, seen
        where somebody is served.
    Drift
        A customer arrives in a slot with probability .45 + .3 cos(2 pi cycles t / T), after the
        service of the slot, and is lost if the queue is full. The reward is
        (2 + 2 [a customer joins] - s / capacity - cost of the speed) / 4.
    B_r
        .6 cycles up to the discrete sum: the value of a customer who may come or not.
    B_p
        2.4 cycles up to the discrete sum, in the empty queue. It is B_q too.
    D
        The expected time to fill an empty queue when it is quiet, serving slowly.
    Why communicating
        Arrivals and departures have probabilities strictly between 0 and 1: a birth-death chain.
    Version history
        v1: customers are drawn and seen, and rewards count them. v0: first.
    """
    T, most, schedule = _checked(horizon, capacity, cycles)

    def build() -> DriftingMDP:
        space, offered = _space(most)

        def joins(s: int, a: int, comes: int, served: int | None) -> Any:
            admit, _ = offered[s][a]
            return comes * admit if s < most else comes * admit * (served or 0)

        def after(s: int, a: int, comes: int, served: int | None) -> Any:
            return s - (served or 0) + joins(s, a, comes, served)

        def reward(s: int, a: int, comes: int, served: int | None) -> Any:
            return _reward(joins(s, a, comes, served), s / most, offered[s][a][1])

        known = Structure(
            space,
            [
                Exogenous("arrival", [0, 1]),
                Exogenous(
                    "service", [0, 1], lambda s, a: offered[s][a][1] if s else None, "involved"
                ),
            ],
            next_state=after,
            reward=reward,
            reward_range=(0.0, 1.0),
        )
        return known.drifting(
            {
                "arrival": ([_coin(_BUSY), _coin(_QUIET)], schedule),
                "service": {speed: _coin(rate) for speed, rate in _RATES.items()},
            },
            horizon=T,
        )

    return Instance(build, lambda: _facts(T, most, schedule))


def _checked(horizon: int, capacity: int, cycles: float) -> tuple[int, int, Cosine]:
    T, most = as_horizon(horizon), as_size(capacity, "capacity")
    require_memory(
        8.0 * 3 * 6 * (most + 1) ** 2, "capacity", fix="ask for a queue of smaller capacity"
    )
    return T, most, Cosine(cycles)


def _facts(horizon: int, most: int, schedule: Cosine) -> Facts:
    swings = (_BUSY - _QUIET) * schedule.variation(horizon)
    return Facts(
        reward_budget=_VALUE / 4 * swings,
        transition_budget=2 * swings,
        diameter_bound=_fill_up(most, _QUIET, _RATES["slow"]),
    )


def _coin(chance: float) -> list[float]:
    return [1 - chance, chance]


def _reward(joins: Any, load: float, speed: str) -> Any:
    return (2 + _VALUE * joins - _HOLDING * load - _COSTS[speed]) / 4


def _space(most: int) -> tuple[StateActions, list[list[tuple[bool, str]]]]:
    """Return the space, and what is offered in each state: admit or not, and the speed."""
    choices = list(itertools.product((True, False), _RATES))
    offered = [choices[: len(_RATES)], *[choices] * most]
    space = StateActions(
        [len(of_state) for of_state in offered],
        state_names=[f"{s} in the queue" for s in range(most + 1)],
        action_names=[
            [speed if admit else f"{speed}, reject" for admit, speed in of_state]
            for of_state in offered
        ],
    )
    return space, offered


def _model(most: int, arrivals: float) -> MDP:
    space, offered = _space(most)
    rewards = np.empty(space.n_pairs)
    transitions = np.zeros((space.n_pairs, most + 1))
    pair = 0
    for s, of_state in enumerate(offered):
        for admit, speed in of_state:
            leaves, comes = _RATES[speed] if s else 0.0, arrivals if admit else 0.0
            joins = comes * leaves if s == most else comes
            rewards[pair] = (2 + _VALUE * joins - _HOLDING * s / most - _COSTS[speed]) / 4
            transitions[pair, max(s - 1, 0)] += leaves * (1 - comes)
            transitions[pair, s] += leaves * comes + (1 - leaves) * (1 - comes)
            transitions[pair, min(s + 1, most)] += (1 - leaves) * comes
            pair += 1
    return MDP(space, rewards, transitions)
