"""`windage.reference`, SWUCRL2-CW in plain NumPy: the other side of the learning benchmark.

The loop over steps is Python's, and so is that over the states of an inner maximum; the rest of an
episode is vectorised over pairs. A step is sampled in one of two ways. `blended` is how one does it
in NumPy: blend the row of the pair at time t, sum it up, search it. `by_alias` is as lean as Python
gets: the library's own tables, as lists, and its own noise. Noise and weights are made beforehand,
and such that all play the same steps: episodes, sweeps and rewards must be equal before any speed
is quoted.
"""

from __future__ import annotations

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
    keys, drawn = (world.base_key, world.state_key, world.noise.key), np.empty((3, run.steps))
    for one, out in zip(keys, drawn, strict=True):
        _uniforms(one, 1, out)
    bases, places, coins = drawn.tolist()
    near, far = world.alias.states.tolist(), world.alias.others.tolist()
    rows, cuts = world.alias.rows.tolist(), (world.alias.cuts * 2.0**-53).tolist()
    means = world.rewards.tolist()
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
    *,
    window: int,
    widening: float,
    scale: float,
    delta: float = 0.05,
) -> Outcome:
    """Play the reference with lowest ties."""
    agent = wd.reference.SWUCRL2CW(
        model.space,
        horizon=model.horizon,
        window=window,
        widening=widening,
        delta=delta,
        scale=scale,
        ties="lowest",
    )
    first = model.space.offsets.tolist()
    state, total = 0, 0.0
    for t in range(1, steps + 1):
        action = agent.act(state)
        reward, after = sample(t, first[state] + action)
        agent.observe(state, action, reward, after)
        total += reward
        state = after
    return Outcome(len(agent.episodes), sum(sweeps for *_, sweeps in agent.episodes), total)
