"""Epidemic: when to close and when to open again, with seasons and a variant on the way."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from windage.envs.registry import Facts, Instance, register
from windage.models import DriftingMDP, Noise
from windage.spaces import StateActions
from windage.validation import as_horizon, as_real, as_size, require_memory

__all__ = ["epidemic"]

Reals = NDArray[np.float64]

_MEASURES = ("none", "mild", "strict")
_CONTACTS = (1.0, 0.5, 0.2)
_COSTS = (0.0, 0.1, 0.25)
_ILLNESS, _RECOVERY = 0.7, 0.1
_SPREAD, _SEASON = 0.4, 0.5
_KNOTS_A_CYCLE = 12  # months
_VARIANT_AT = 0.6  # of the horizon
_LEAST = 1e-290  # smaller probabilities are slow to compute with, and one over them overflows


@register("epidemic-v0")
def epidemic(
    horizon: int = 20_000,
    population: int = 15,
    cycles: int = 2,
    variant: float = 1.5,
    importation: float = 0.01,
    noise: Noise | str = "bernoulli",
) -> Instance:
    """A disease that comes back every winter, against measures that cost while they last.

    States
        0 .. population, the number of infected people.
    Actions
        "none", "mild" and "strict" measures leave 1, .5 and .2 of the contacts and cost 0, .1 and
        .25; without a case there is nothing to measure against, only "none". Of the s infected each
        recovers with probability .1, of the others each falls ill with probability
        1 - (1 - beta_t f / population)^s + importation. The reward is
        1 - .7 s / population - the cost.
    Drift
        beta is .4 (1 + .5 cos(2 pi month / 12)), from winter to winter, `cycles` times over the
        horizon; with the last month that ends before .6 of the horizon a variant multiplies it by
        `variant` at once. The model is set at every month; in between it moves in a straight line.
    B_r
        0: only the disease changes.
    B_p
        Not known in closed form.
    D
        Not known in closed form.
    Why communicating
        Any number of the healthy may bring the disease from outside and any number of the infected
        may recover, so every count has positive probability after one step (below 1e-290 it counts
        as none; the counts next to the present one remain).
    Version history
        v0: first.
    """
    T, n = as_horizon(horizon), as_size(population, "population", low=2)
    Noise.of(noise)
    months = _KNOTS_A_CYCLE * as_size(cycles, "cycles")
    factor = as_real(variant, "variant", low=1, high=2.5)
    outside = as_real(importation, "importation", low=0, high=0.1, open_low=True)
    require_memory(
        8.0 * 4 * (months + 2) * 3 * (n + 1) ** 2,
        "population",
        fix="ask for fewer people or cycles",
    )

    def build() -> DriftingMDP:
        space = StateActions(
            [1] + [len(_MEASURES)] * n,
            state_names=[f"{s} infected" for s in range(n + 1)],
            action_names=[_MEASURES[:1]] + [_MEASURES] * n,
        )
        ill, cost = space.state_of, np.array(_COSTS)[space.action_of]
        times, spread = _calendar(T, months, factor)
        return DriftingMDP(
            space,
            times,
            np.tile(1 - _ILLNESS * ill / n - cost, (len(times), 1)),
            np.stack([_kernel(space, beta, outside) for beta in spread]),
            horizon=T,
            noise=noise,
        )

    return Instance(build, lambda: Facts(reward_budget=0.0))


def _calendar(horizon: int, months: int, variant: float) -> tuple[list[int], list[float]]:
    """The knots and beta at each; what a short horizon cannot hold goes."""
    beta_at: dict[int, float] = {}
    arrival = math.floor(_VARIANT_AT * months)
    for month in range(months + 1):
        t = 1 + month * (horizon - 1) // months
        beta = _SPREAD * (1 + _SEASON * math.cos(2 * math.pi * month / _KNOTS_A_CYCLE))
        beta_at.setdefault(t, beta if month <= arrival else variant * beta)
        if month == arrival and t < horizon:
            beta_at.setdefault(t + 1, variant * beta)
    return sorted(beta_at), [beta_at[t] for t in sorted(beta_at)]


def _kernel(space: StateActions, beta: float, importation: float) -> Reals:
    """The law of s + the newly infected - the recovered, for every pair."""
    n = space.n_states - 1
    rows = np.empty((space.n_pairs, n + 1))
    for pair, (s, a) in enumerate(zip(space.state_of, space.action_of, strict=True)):
        falls_ill = 1 - (1 - beta * _CONTACTS[a] / n) ** s + importation
        still_ill = _binomial(int(s), 1 - _RECOVERY)
        rows[pair] = np.convolve(still_ill, _binomial(n - int(s), falls_ill))
    rows[rows < _LEAST] = 0.0
    return rows


def _binomial(n: int, p: float) -> Reals:
    from scipy.special import gammaln

    if n == 0:
        return np.ones(1)
    k = np.arange(n + 1)
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    law: Reals = np.exp(ways + k * math.log(p) + (n - k) * math.log1p(-p))
    law /= law.sum()
    return law
