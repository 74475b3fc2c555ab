"""SWUCRL2-CW as one would write it with NumPy: the other side of the learning benchmark.

The loop over steps is Python's, counts are kept up to date at the start of an episode, and EVI is
vectorised over pairs, or done one pair at a time as a first version would. A step is sampled in one
of two ways. `blended` is how one does it in NumPy: blend the row of the pair at time t, sum it up,
search it. `by_alias` is as lean as Python gets: the library's own tables, as lists, and its own
noise. Noise and weights are made beforehand, and such that all play the same steps: episodes,
sweeps and rewards must be equal before any speed is quoted.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import windage as wd
from windage.kernels.jit import compiled
from windage.kernels.random import uniform
from windage.rng import key
from windage.simulators import world_of


class Outcome(NamedTuple):
    """What both sides must agree on."""

    episodes: int
    sweeps: int
    reward: float


@compiled
def _uniforms(key, first, out):
    for i in range(out.size):
        out[i] = uniform(key, first + i, 0)


Sampler = Callable[[int, int], tuple[float, int]]
"""Gives reward and next state of a pair at a time."""


def blended(model: wd.DriftingMDP, run: wd.Run) -> Sampler:
    """Blend, sum up, search, with noise that plays the steps of a run.

    The library draws a base and an alias cell. Each number here is the middle of the interval that
    leads where the run went: a loop that decides otherwise goes elsewhere.
    """
    kernels, t = np.stack(model.source.kernels.parts), run.times
    models, weights = model.source.kernels.schedule.active(t, model.horizon)
    pairs = model.space.offsets[run.states[:-1]] + run.actions
    u = np.empty(t.size)
    for i in range(0, t.size, 1 << 12):
        here = slice(i, i + (1 << 12))
        rows = np.einsum("tj,tjs->ts", weights[here], kernels[models[here], pairs[here, None]])
        ends = np.cumsum(rows, axis=1)
        at = np.arange(ends.shape[0]), run.states[1:][here]
        u[here] = ends[at] - 0.5 * rows[at]
    coins = np.empty(t.size)
    _uniforms(key(run.seed, "world.reward"), 1, coins)
    parts, means = model.source.kernels.parts, model.source.rewards.parts
    reward_models, reward_weights = model.source.rewards.schedule.active(t, model.horizon)

    def sample(t: int, pair: int) -> tuple[float, int]:
        row, mean = 0.0, 0.0
        for k, weight in zip(models[t - 1], weights[t - 1], strict=True):
            row = row + weight * parts[k][pair]
        for k, weight in zip(reward_models[t - 1], reward_weights[t - 1], strict=True):
            mean += weight * means[k][pair]
        after = int(np.searchsorted(np.cumsum(row), u[t - 1], side="right"))
        return 1.0 if coins[t - 1] < mean else 0.0, after

    return sample


def by_alias(model: wd.DriftingMDP, run: wd.Run) -> Sampler:
    """Look a cell up in the alias tables of the library, with its own noise; lists throughout."""
    world, pairs = world_of(model, run.seed, 1, run.last), model.space.n_pairs
    assert world.last >= run.last  # one table for all times
    keys, drawn = (world.base_key, world.state_key, world.reward_key), np.empty((3, run.steps))
    for one, out in zip(keys, drawn, strict=True):
        _uniforms(one, 1, out)
    bases, places, coins = drawn.tolist()
    near = world.alias.states
    far = near[
        np.repeat(world.alias.rows[:-1], np.diff(world.alias.rows)) + world.alias.places
    ].tolist()
    near, rows, cuts = near.tolist(), world.alias.rows.tolist(), world.alias.cuts * 2.0**-53
    cuts, means = cuts.tolist(), world.rewards.tolist()
    models, ends = world.kernel_base.tolist(), world.kernel_weight.tolist()
    reward_models, weights = world.reward_base.tolist(), world.reward_weight.tolist()
    last = world.kernel_base.shape[1] - 1

    def sample(t: int, pair: int) -> tuple[float, int]:
        i, j = t - 1, 0
        while j < last and bases[i] >= ends[i][j]:
            j += 1
        row = models[i][j] * pairs + pair
        start = rows[row]
        place = places[i] * (rows[row + 1] - start)
        cell = start + int(place)
        mean = 0.0
        for k, weight in zip(reward_models[i], weights[i], strict=True):
            mean += weight * means[k][pair]
        after = near[cell] if place - int(place) < cuts[cell] else far[cell]
        return 1.0 if coins[i] < mean else 0.0, after

    return sample


def run(
    model: wd.DriftingMDP,
    steps: int,
    sample: Sampler,
    planner: Callable[..., tuple[np.ndarray, int]],
    *,
    window: int,
    widening: float,
    scale: float,
    delta: float = 0.05,
) -> Outcome:
    """Play SWUCRL2-CW with lowest ties and cold EVI."""
    space, T = model.space, model.horizon
    S, pairs = space.n_states, space.n_pairs
    offsets, first = space.offsets.tolist(), space.offsets[:-1]
    L = math.log(pairs * T / delta)
    visits, sums = np.zeros(pairs, int), np.zeros(pairs)
    counts = np.zeros((pairs, S))
    past: deque[tuple[int, float, int]] = deque()
    coming: list[tuple[int, float, int]] = []
    nu, limit, policy = np.zeros(pairs, int), np.ones(pairs, int), np.zeros(S, int)
    state, total, episodes, swept = 0, 0.0, 0, 0
    for t in range(1, steps + 1):
        if t == 1 or t % window == 0 or nu[policy[state]] >= limit[policy[state]]:
            for pair, reward, after in coming:
                visits[pair] += 1
                sums[pair] += reward
                counts[pair, after] += 1
            past.extend(coming)
            coming.clear()
            while len(past) > window:
                pair, reward, after = past.popleft()
                visits[pair] -= 1
                sums[pair] -= reward
                counts[pair, after] -= 1
            limit = np.maximum(1, visits)
            upper = np.clip(sums / limit + scale * 2 * np.sqrt(2 * L / limit), 0, 1)
            upper[visits == 0] = 1.0
            width = scale * 2 * np.sqrt(2 * S * L / limit) + widening
            p_hat = counts / limit[:, None]
            free = (visits == 0) | (width >= 2)
            policy, sweeps = planner(first, upper, p_hat, width / 2, free, 1 / math.sqrt(t))
            nu[:] = 0
            episodes += 1
            swept += sweeps
        pair = policy[state]
        reward, after = sample(t, pair)
        total += reward
        coming.append((pair, reward, after))
        nu[pair] += 1
        state = after
    assert offsets[-1] == pairs
    return Outcome(episodes, swept, total)


def vectorised(
    first: np.ndarray,
    upper: np.ndarray,
    p_hat: np.ndarray,
    half: np.ndarray,
    free: np.ndarray,
    epsilon: float,
) -> tuple[np.ndarray, int]:
    """EVI over all pairs at once."""

    def values(u: np.ndarray) -> np.ndarray:
        order = np.lexsort((np.arange(u.size), u))
        rows = p_hat[:, order]
        moved = np.minimum(half, 1 - rows[:, -1])
        kept = np.maximum(np.cumsum(rows, axis=1) - moved[:, None], 0)
        q = np.diff(kept, axis=1, prepend=0.0)
        q[:, -1] = rows[:, -1]
        value = upper + q @ u[order] + moved * u[order[-1]]
        whole = free | (half >= 1 - rows[:, -1])  # exactly: it may be a tie
        value[whole] = upper[whole] + u[order[-1]]
        return value

    return _iterate(first, upper.size, p_hat.shape[1], values, epsilon)


def plain(
    first: np.ndarray,
    upper: np.ndarray,
    p_hat: np.ndarray,
    half: np.ndarray,
    free: np.ndarray,
    epsilon: float,
) -> tuple[np.ndarray, int]:
    """EVI with one inner maximum at a time."""

    def values(u: np.ndarray) -> np.ndarray:
        order = np.lexsort((np.arange(u.size), u))
        best = order[-1]
        value = np.empty(upper.size)
        for pair in range(upper.size):
            if free[pair] or half[pair] >= 1 - p_hat[pair, best]:
                value[pair] = upper[pair] + u[best]
                continue
            q = p_hat[pair].copy()
            q[best] += half[pair]
            left = half[pair]
            for s in order:
                if left <= 0:
                    break
                taken = min(left, q[s])
                q[s] -= taken
                left -= taken
            value[pair] = upper[pair] + q @ u
        return value

    return _iterate(first, upper.size, p_hat.shape[1], values, epsilon)


def _iterate(
    first: np.ndarray,
    pairs: int,
    states: int,
    values: Callable[[np.ndarray], np.ndarray],
    epsilon: float,
) -> tuple[np.ndarray, int]:
    u = np.zeros(states)
    state_of = np.repeat(np.arange(states), np.diff(np.append(first, pairs)))
    for sweeps in range(1, 100_000):
        value = values(u)
        best = np.maximum.reduceat(value, first)
        gap = best - u
        if gap.max() - gap.min() <= epsilon:
            hits = np.flatnonzero(value >= (best - 1e-12 * np.maximum(1, abs(best)))[state_of])
            return hits[np.unique(state_of[hits], return_index=True)[1]], sweeps
        u = best - best.min()
    raise AssertionError("EVI did not converge")
