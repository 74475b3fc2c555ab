"""Ride: where a driver should be while demand wanders through the city."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windage.envs.registry import Facts, Instance, register
from windage.models import DriftingMDP, Noise
from windage.spaces import StateActions
from windage.structure import Exogenous, Structure
from windage.validation import as_horizon, as_size, require_memory

__all__ = ["ride"]

Reals = NDArray[np.float64]

_KNOTS_A_DAY = 12  # one every two hours
_ARRIVES, _MOVE_COST = 0.9, 0.02
_QUIET, _FIRST, _SECOND, _FLIGHTS, _EVENT = 0.03, 0.75, 0.3, 0.2, 0.95


@register("ride-v0")
def ride_v0(
    horizon: int = 20_000,
    zones: int = 8,
    days: int = 1,
    noise: Noise | str = "bernoulli",
) -> Instance:
    """A driver who waits for a fare or moves on, in a city whose demand goes round with the hours.

    States
        "zone 0" .. "zone (zones - 2)" along a ring road, and the "airport" beyond zone 0.
    Actions
        "wait" for a rider, or drive "to" one of the neighbours, which succeeds with probability .9.
        A ride pays .2 and up to .8 more with its distance; driving empty costs .02. The reward is
        (what comes in + .02) / 1.02.
    Drift
        A waiting driver finds a rider with probability .03, and .75 or .3 more at the heart of two
        Gaussian bumps that go round the ring once a day, opposite to one another; .2 at the
        airport. Riders go where the riders will be half a day later. On the evening of the last day
        an event opposite to the airport road raises its zone to .95. The model is set every two
        hours; in between it moves in a straight line.
    B_r
        Not known in closed form.
    B_p
        Not known in closed form.
    D
        At most the distance to the airport from the far side of the ring, over .9: 4.4 with eight
        zones.
    Why communicating
        The graph is connected and every move to a neighbour succeeds with probability .9.
    Version history
        v0: first.
    """
    T, n, each = _checked(horizon, zones, days)
    Noise.of(noise)
    ring = n - 1

    def build() -> DriftingMDP:
        space, neighbours = _city(n)
        fares = _fares(ring)
        moving = np.zeros((space.n_pairs, n))
        for z, near in enumerate(neighbours):
            for a, there in enumerate(near, start=1):
                moving[space.pair(z, a), [there, z]] = _ARRIVES, 1 - _ARRIVES
        waiting = space.offsets[:-1]
        times, hours = _calendar(T, each)
        rewards = np.zeros((hours.size, space.n_pairs))
        transitions = np.tile(moving, (hours.size, 1, 1))
        for i, k in enumerate(hours):
            found, trips = _riders(k / _KNOTS_A_DAY, each, ring)
            rewards[i, waiting] = found * (trips * fares).sum(axis=1) + _MOVE_COST
            transitions[i, waiting] = found[:, None] * trips + np.diag(1 - found)
        rewards /= 1 + _MOVE_COST
        return DriftingMDP(space, times, rewards, transitions, horizon=T, noise=noise)

    return Instance(build, lambda: Facts(diameter_bound=(ring // 2 + 1) / _ARRIVES))


@register("ride-v1")
def ride(horizon: int = 20_000, zones: int = 8, days: int = 1) -> Instance:
    """A driver who waits for a fare or moves on, in a city whose demand goes round with the hours.

    States
        "zone 0" .. "zone (zones - 2)" along a ring road, and the "airport" beyond zone 0.
    Actions
        "wait" for a rider, or drive "to" one of the neighbours, which succeeds with probability .9.
        A ride pays .2 and up to .8 more with its distance; driving empty costs .02. The reward is
        (what comes in + .02) / 1.02.
    Structure
        "rider", where the ride of this slot goes, with a law for each zone, seen by whoever waits
        there; the zone itself stands for no rider. "arrived", 0 or 1, where the driver moves.
    Drift
        A waiting driver finds a rider with probability .03, and .75 or .3 more at the heart of two
        Gaussian bumps that go round the ring once a day, opposite to one another; .2 at the
        airport. Riders go where the riders will be half a day later. On the evening of the last day
        an event opposite to the airport road raises its zone to .95. The model is set every two
        hours; in between it moves in a straight line.
    B_r
        Not known in closed form.
    B_p
        Not known in closed form.
    D
        At most the distance to the airport from the far side of the ring, over .9: 4.4 with eight
        zones.
    Why communicating
        The graph is connected and every move to a neighbour succeeds with probability .9.
    Version history
        v1: rides are drawn and seen, and the reward is the fare. v0: first.
    """
    T, n, each = _checked(horizon, zones, days)
    ring = n - 1

    def build() -> DriftingMDP:
        space, neighbours = _city(n)
        fares = _fares(ring)
        np.fill_diagonal(fares, 0.0)  # nobody came

        def after(s: int, a: int, rider: int | None, arrived: int | None) -> int | None:
            return (neighbours[s][a - 1] if arrived else s) if a else rider

        def reward(s: int, a: int, rider: int | None, _: int | None) -> float:
            return 0.0 if a else min(1.0, float(fares[s, rider] + _MOVE_COST) / (1 + _MOVE_COST))

        known = Structure(
            space,
            [
                Exogenous("rider", range(n), lambda s, a: None if a else s, "involved"),
                Exogenous("arrived", [0, 1], lambda s, a: "road" if a else None, "involved"),  # noqa: ARG005
            ],
            next_state=after,
            reward=reward,
            reward_range=(0.0, 1.0),
        )
        times, hours = _calendar(T, each)
        laws = np.empty((hours.size, n, n))
        for i, k in enumerate(hours):
            found, trips = _riders(k / _KNOTS_A_DAY, each, ring)
            laws[i] = found[:, None] * trips + np.diag(1 - found)
        return known.drifting(
            {
                "rider": {z: (laws[:, z], times) for z in range(n)},
                "arrived": {"road": [1 - _ARRIVES, _ARRIVES]},
            },
            horizon=T,
        )

    return Instance(build, lambda: Facts(diameter_bound=(ring // 2 + 1) / _ARRIVES))


def _checked(horizon: int, zones: int, days: int) -> tuple[int, int, int]:
    T, n, each = as_horizon(horizon), as_size(zones, "zones", low=4), as_size(days, "days")
    knots = _KNOTS_A_DAY * each + 1
    require_memory(8.0 * 3 * knots * 3 * n * n, "zones", fix="ask for fewer zones or days")
    return T, n, each


def _city(n: int) -> tuple[StateActions, list[list[int]]]:
    """Return the space, and the neighbours of each zone."""
    ring = n - 1
    neighbours = [[(z - 1) % ring, (z + 1) % ring] for z in range(ring)] + [[0]]
    neighbours[0].append(ring)
    names = [f"zone {z}" for z in range(ring)] + ["airport"]
    space = StateActions(
        [1 + len(near) for near in neighbours],
        state_names=names,
        action_names=[["wait", *(f"to {names[z]}" for z in near)] for near in neighbours],
    )
    return space, neighbours


def _calendar(horizon: int, days: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the times at which the model is set, and which hours they are; what fits is kept."""
    knots = _KNOTS_A_DAY * days + 1
    times = 1 + np.arange(knots) * (horizon - 1) // (knots - 1)
    return np.unique(times, return_index=True)


def _riders(day: float, days: int, ring: int) -> tuple[Reals, Reals]:
    """The chance to find a rider in each zone, and where the riders of each zone want to go."""
    found, later = _demand(day, ring), _demand(day + 0.5, ring)
    if days - 0.25 <= day < days:  # from six in the evening on, until midnight
        found[ring // 2] = _EVENT
    trips = np.tile(later, (ring + 1, 1))
    np.fill_diagonal(trips, 0.0)
    return found, trips / trips.sum(axis=1, keepdims=True)


def _demand(day: float, ring: int) -> Reals:
    width = 0.8 * ring / 7
    demand = np.full(ring + 1, _QUIET)
    for height, place in ((_FIRST, day), (_SECOND, day + 0.5)):
        apart = np.abs(np.arange(ring) - place % 1 * ring)
        demand[:ring] += height * np.exp(-0.5 * (np.minimum(apart, ring - apart) / width) ** 2)
    demand[ring] = _FLIGHTS
    return demand


def _fares(ring: int) -> Reals:
    """What a ride pays, from zone to zone; the airport is one step beyond zone 0."""
    apart = np.abs(np.subtract.outer(np.arange(ring), np.arange(ring)))
    distance = np.zeros((ring + 1, ring + 1))
    distance[:ring, :ring] = np.minimum(apart, ring - apart)
    distance[ring, :ring] = distance[:ring, ring] = 1 + distance[0, :ring]
    fares: Reals = 0.2 + 0.8 * distance / distance.max()
    return fares
