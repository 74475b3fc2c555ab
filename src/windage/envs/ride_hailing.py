"""Ride: where a driver should be while demand wanders through the city."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windage.envs.registry import Facts, Instance, register
from windage.models import DriftingMDP, Noise
from windage.spaces import StateActions
from windage.validation import as_horizon, as_size, require_memory

__all__ = ["ride"]

Reals = NDArray[np.float64]

_KNOTS_A_DAY = 12  # one every two hours
_ARRIVES, _MOVE_COST = 0.9, 0.02
_QUIET, _FIRST, _SECOND, _FLIGHTS, _EVENT = 0.03, 0.75, 0.3, 0.2, 0.95


@register("ride-v0")
def ride(
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
    T, n, each = as_horizon(horizon), as_size(zones, "zones", low=4), as_size(days, "days")
    Noise.of(noise)
    knots = _KNOTS_A_DAY * each + 1
    require_memory(8.0 * 3 * knots * 3 * n * n, "zones", fix="ask for fewer zones or days")
    ring = n - 1

    def build() -> DriftingMDP:
        neighbours = [[(z - 1) % ring, (z + 1) % ring] for z in range(ring)] + [[0]]
        neighbours[0].append(ring)
        names = [f"zone {z}" for z in range(ring)] + ["airport"]
        space = StateActions(
            [1 + len(near) for near in neighbours],
            state_names=names,
            action_names=[["wait", *(f"to {names[z]}" for z in near)] for near in neighbours],
        )
        fares = _fares(ring)
        moving = np.zeros((space.n_pairs, n))
        for z, near in enumerate(neighbours):
            for a, there in enumerate(near, start=1):
                moving[space.pair(z, a), [there, z]] = _ARRIVES, 1 - _ARRIVES
        waiting = space.offsets[:-1]
        rewards, transitions = np.zeros((knots, space.n_pairs)), np.tile(moving, (knots, 1, 1))
        for k in range(knots):
            found, trips = _riders(k / _KNOTS_A_DAY, each, ring)
            rewards[k, waiting] = found * (trips * fares).sum(axis=1) + _MOVE_COST
            transitions[k, waiting] = found[:, None] * trips + np.diag(1 - found)
        rewards /= 1 + _MOVE_COST
        times, kept = np.unique(1 + np.arange(knots) * (T - 1) // (knots - 1), return_index=True)
        return DriftingMDP(space, times, rewards[kept], transitions[kept], horizon=T, noise=noise)

    return Instance(build, lambda: Facts(diameter_bound=(ring // 2 + 1) / _ARRIVES))


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
