"""One step of a drifting model: compiled, against the same loop in NumPy and Python."""

from __future__ import annotations

import math
import time

import numpy as np

import windage as wd
from benchmarks.clock import cpu_seconds

COMPILED_STEPS = 2_000_000
PYTHON_STEPS = 60_000
SIZES = ((6, 2), (20, 4), (100, 4))


def measure() -> dict[str, float]:
    """Nanoseconds a step and the ratios that matter."""
    found: dict[str, float] = {}
    still, drifting = {}, {}
    for states, actions in SIZES:
        size = f"{states}x{actions}"
        drifting[states] = _compiled(_world(states, actions, wd.schedules.Cosine(3)))
        still[states] = _compiled(_world(states, actions, wd.schedules.Steps()))
        slow = _python(_world(states, actions, wd.schedules.Cosine(3)))
        found[f"{size}: ns a step, compiled, drifting"] = drifting[states]
        found[f"{size}: ns a step, compiled, still"] = still[states]
        found[f"{size}: Python loop / compiled loop"] = slow / drifting[states]
        found[f"{size}: drifting / still"] = drifting[states] / still[states]
    found["drifting, S = 100 / S = 6"] = drifting[100] / drifting[6]
    return found


def _world(states: int, actions: int, schedule: object) -> wd.DriftingMDP:
    space = wd.StateActions.uniform(states, actions)
    rng = np.random.default_rng(0)
    models = [
        wd.MDP(space, rng.random(space.n_pairs), rng.dirichlet(np.ones(states), space.n_pairs))
        for _ in range(2)
    ]
    return wd.DriftingMDP.blend(models, schedule, horizon=1_000_000)


def _compiled(world: wd.DriftingMDP) -> float:
    """Nanoseconds a step of whole runs, two of a million steps each."""

    def work() -> None:
        for seed in range(COMPILED_STEPS // world.horizon):
            agent = wd.agents.make("random", world.space, horizon=world.horizon, seed=seed)
            wd.run(world, agent, seed=seed, record="totals")

    return cpu_seconds(work) / COMPILED_STEPS * 1e9


def _python(world: wd.DriftingMDP) -> float:
    """Nanoseconds a step of the same world and agent, written as one would in NumPy."""
    space, rng = world.space, np.random.default_rng(1)
    (p0, p1), (r0, r1) = world.source.kernels.parts, world.source.rewards.parts
    offsets, counts = space.offsets.tolist(), space.counts.tolist()
    cycles, horizon = world.source.kernels.schedule.cycles, world.horizon
    rewards, means, visits, state = 0.0, 0.0, np.zeros(space.n_states), 0
    start = time.process_time()
    for t in range(1, PYTHON_STEPS + 1):
        visits[state] += 1
        pair = offsets[state] + int(rng.random() * counts[state])
        w = (1.0 - math.cos(2.0 * math.pi * cycles * t / horizon)) / 2.0
        mean = (1.0 - w) * r0[pair] + w * r1[pair]
        means += mean
        rewards += rng.random() < mean
        row = np.cumsum((1.0 - w) * p0[pair] + w * p1[pair])
        state = min(int(np.searchsorted(row, rng.random(), side="right")), space.n_states - 1)
    seconds = time.process_time() - start
    _same_work(world, rewards / PYTHON_STEPS, means / PYTHON_STEPS, visits / PYTHON_STEPS)
    return seconds / PYTHON_STEPS * 1e9


def _same_work(world: wd.DriftingMDP, reward: float, mean: float, visits: np.ndarray) -> None:
    """Both loops play one world: rewards and visits agree within six standard errors."""
    agent = wd.agents.make("random", world.space, horizon=world.horizon)
    run = wd.run(world, agent, steps=PYTHON_STEPS)
    error = 6 / math.sqrt(PYTHON_STEPS)
    assert abs(run.rewards.mean() - reward) < error, (run.rewards.mean(), reward)
    assert abs(run.mean_rewards.mean() - mean) < error, (run.mean_rewards.mean(), mean)
    share = np.bincount(run.states[:-1], minlength=world.space.n_states) / PYTHON_STEPS
    assert np.abs(share - visits).max() < error
