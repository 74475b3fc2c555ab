"""One run, and one oracle: a function of plain data that returns the bytes of a result file.

Threads, processes and machines of a cluster call the same two functions; whoever started the study
writes what they return. So the bytes cannot depend on where a run was made.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import platform
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from windage import agents, envs
from windage.agents.base import Agent, listening
from windage.drift import DriftingMDP
from windage.errors import StateError
from windage.record import Run
from windage.regret import gain_sums, rounding
from windage.simulate import run
from windage.study.kinds import Player, World
from windage.study.tables import ORACLE, RUN, encode

__all__ = ["Gains", "Outcome", "Stopped", "Task", "every", "gains_of", "play", "solve"]

POINTS = 200
"""About so many times of a run are kept in its curves."""

SNAPSHOTS = 25
"""So often it is looked at what an agent remembers."""

MOST_EPISODES = 2_000
MOST_PAIRS = 64

_MOST_LISTED = 64  # values of a parameter that every run writes down

_NOT_A_VARIANT = (
    "window", "widening", "delta", "radii", "ties", "seed", "problem", "diameter", "reward_range",
)  # fmt: skip


class Task(msgspec.Struct, frozen=True):
    """A run that is asked for."""

    key: str
    world: World
    player: Player
    seed: int


class Gains(NamedTuple):
    """What runs in one world are measured by: sums of rho*_t up to the times of their curves."""

    cumulative: NDArray[np.float64]
    total: float
    error: float


class Outcome(NamedTuple):
    """What came of a task: the bytes of its file, and what the file must not hold."""

    data: bytes
    seconds: float
    cpu: float
    host: str
    pid: int
    warnings: tuple[tuple[str, str], ...] = ()


class Stopped(Exception):  # noqa: N818 - nothing went wrong
    """The study was interrupted while this run was on its way."""


def every(horizon: int) -> int:
    """Return how many steps lie between two times of a curve.

    >>> every(20_000), every(150)
    (100, 1)
    """
    return -(-horizon // POINTS)


def play(task: Task, gains: Gains | None, stopping: Callable[[], bool] = lambda: False) -> Outcome:
    """Make one run; returns its file."""
    start = time.perf_counter(), time.thread_time()
    with _not_ending(), listening() as heard:
        world = task.world.make()
        agent = task.player.make(world, task.seed)
        memory = _Memory(agent, world, stopping)
        found = run(
            world, agent, task.seed, record=every(world.horizon),
            progress=memory.look, every=memory.every,
        )  # fmt: skip
        row = {
            "key": task.key,
            "environment_id": task.world.id,
            "environment_parameters": text_of(task.world),
            "agent_id": task.player.id,
            "agent_parameters": json.dumps(_short(task.player.parameters), sort_keys=True),
            "horizon": world.horizon,
            "seed": task.seed,
            **_labels(agent, task.player),
            **_curves(found, gains),
            **_episodes(found),
            **_blocks(agent),
            **memory.columns(),
        }
    data = encode(row, RUN)
    warned = tuple(dict.fromkeys((message, kind.__name__) for message, kind in heard))
    return _outcome(data, start, warned)


def solve(world: World) -> Outcome:
    """Find the optimal gains of a world; returns the oracle's file."""
    start = time.perf_counter(), time.thread_time()
    with _not_ending():
        model = world.make()
        assert isinstance(model, DriftingMDP)
        curve = model.optimal_gains()
    T, step = model.horizon, every(model.horizon)
    sums, total, error = gain_sums(curve, 1, T, step)
    times = _times(np.arange(step, T + 1, step), T)
    budgets = model.budgets()
    by_id = ":" not in world.id and world.id != "file"
    row = {
        "key": world.key,
        "environment_id": world.id,
        "environment_parameters": text_of(world),
        "horizon": T,
        "states": model.space.n_states,
        "pairs": model.space.n_pairs,
        "reward_budget": budgets.reward,
        "transition_budget": budgets.transition,
        "diameter_bound": envs.facts(world.id, **world.parameters)[2] if by_id else None,
        "total": total,
        "error": error,
        "largest_error": curve.error,
        "solves": curve.solves,
        "t": times,
        "optimal_gain": curve.evaluate(times)[0],
        "cumulative": np.append(sums, total) if sums.size < times.size else sums,
    }
    return _outcome(encode(row, ORACLE), start)


def gains_of(row: pl.DataFrame) -> Gains:
    """Return what runs are measured by, from the oracle's file."""
    cumulative = row["cumulative"][0].to_numpy()
    return Gains(cumulative, row["total"][0], row["error"][0])


def text_of(world: World) -> str:
    """Return the parameters of a world as JSON; a file or a module is told by its digest."""
    digest = {"digest": world.digest} if world.digest else {}
    return json.dumps(world.parameters | digest, sort_keys=True)


@contextlib.contextmanager
def _not_ending() -> Iterator[None]:
    """Let no class of the user's end the study: that it wants to leave is a failure like others."""
    try:
        yield
    except SystemExit as err:
        raise StateError(
            f"asked Python to end (SystemExit: {err})", fix="raise an error that says why"
        ) from None


def _outcome(
    data: bytes, start: tuple[float, float], warned: tuple[tuple[str, str], ...] = ()
) -> Outcome:
    seconds, cpu = time.perf_counter() - start[0], time.thread_time() - start[1]
    return Outcome(data, seconds, cpu, platform.node(), os.getpid(), warned)


def _times(recorded: NDArray[np.int64], T: int) -> NDArray[np.int64]:
    """Return the times of a curve: those recorded, and T."""
    return recorded if recorded.size and recorded[-1] == T else np.append(recorded, T)


def _curves(found: Run, gains: Gains | None) -> dict[str, Any]:
    """Return the totals of a run and its curves; what nobody knows is null."""
    times = _times(found.times, found.last)

    def curve(sums: NDArray[np.float64], total: float) -> NDArray[np.float64]:
        return sums if sums.size == times.size else np.append(sums, total)

    reward = curve(found.cumulative_reward, found.total_reward)
    mean = curve(found.cumulative_mean_reward, found.total_mean_reward)
    row: dict[str, Any] = {
        "steps": found.steps,
        "total_reward": found.total_reward,
        "t": times,
        "cumulative_reward": reward,
        "total_mean_reward": None,
        "cumulative_mean_reward": None,
        "oracle_reward": None,
        "oracle_error": None,
        "regret": None,
        "observed_regret": None,
        "share": None,
        "cumulative_regret": None,
    }
    if math.isfinite(found.total_mean_reward):
        row |= {"total_mean_reward": found.total_mean_reward, "cumulative_mean_reward": mean}
    if gains is not None:
        earned = max(abs(found.total_mean_reward), abs(found.total_reward))
        row |= {
            "oracle_reward": gains.total,
            "oracle_error": gains.error + rounding(gains.total + earned),
            "regret": gains.total - found.total_mean_reward,
            "observed_regret": gains.total - found.total_reward,
            "share": found.total_mean_reward / gains.total if gains.total > 0 else None,
            "cumulative_regret": gains.cumulative - mean,
        }
    return row


def _labels(agent: Any, player: Player) -> dict[str, Any]:
    """Return what a result must be labelled with, as far as the agent has it."""
    widening = getattr(agent, "widening", None)
    window = getattr(agent, "window", None)
    delta = getattr(agent, "delta", None)
    return {
        "radii": getattr(getattr(agent, "radii", None), "label", None),
        "ties": getattr(agent, "ties", None) if isinstance(agent, Agent) else None,
        "variant": _variant(agent, player),
        "told": list(getattr(agent, "told", ()) if player.told is None else player.told),
        "window": window if isinstance(window, int) else None,
        "widening": widening if isinstance(widening, float) else None,
        "delta": delta if isinstance(delta, float) else None,
    }


def _variant(agent: Any, player: Player) -> str | None:
    """Return the parameters that differ from their defaults and have no column of their own."""
    if not isinstance(agent, Agent):
        return None
    chosen = _short(player.parameters)
    parts = [
        f"{name} {_word(chosen[name])}"
        for name, default in _defaults(type(agent)).items()
        if name in chosen and chosen[name] != default
    ]
    return ", ".join(parts) or None


@functools.cache
def _defaults(kind: type[Agent]) -> dict[str, Any]:
    known = agents.parameters(kind).items()
    return {name: p.default for name, p in known if name not in _NOT_A_VARIANT}


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _short(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters with long lists as their length; the manifest has them in full."""
    return {
        name: f"{len(value):,} values"
        if isinstance(value, list) and len(value) > _MOST_LISTED
        else value
        for name, value in parameters.items()
    }


def _episodes(found: Run) -> dict[str, Any]:
    log = found.episodes
    last = slice(max(0, len(log) - MOST_EPISODES), None)
    return {
        "episodes": log.total,
        "episode_start": log.start[last],
        "episode_length": log.length[last],
        "episode_reason": log.reason[last].tolist(),
        "episode_gain": log.gain[last],
        "episode_span": log.span[last],
        "episode_sweeps": log.sweeps[last],
        "episode_vacuous": log.vacuous[last],
        "episode_ties": log.ties[last],
    }


def _blocks(agent: Any) -> dict[str, Any]:
    if not isinstance(agent, agents.BORL):
        names = ("block_arm", "block_reward", "block_probabilities", "arm_window", "arm_widening")
        return {name: [] for name in names}
    blocks = agent.blocks
    return {
        "block_arm": blocks.arm,
        "block_reward": blocks.reward,
        "block_probabilities": blocks.probabilities.tolist(),
        "arm_window": [W for W, _ in agent.arms],
        "arm_widening": [eta for _, eta in agent.arms],
    }


class _Memory:
    """Looks now and then at what an agent remembers, and whether anybody still wants the run."""

    def __init__(self, agent: Any, world: Any, stopping: Callable[[], bool]) -> None:
        self.agent = agent
        self.space = world.space
        self.stopping = stopping
        self.seen = hasattr(agent, "in_memory") and self.space.n_pairs <= MOST_PAIRS
        self.every = -(-world.horizon // SNAPSHOTS) if self.seen else None
        self.times: list[int] = []
        self.counts: list[list[int]] = []

    def look(self, done: int, steps: int) -> None:
        if self.stopping():
            raise Stopped
        if self.every is not None and (done % self.every == 0 or done == steps):
            self.times.append(done)
            self.counts.append(self.agent.in_memory.tolist())

    def columns(self) -> dict[str, Any]:
        space = self.space
        pairs = range(space.n_pairs) if self.times else ()
        return {
            "memory_t": self.times,
            "memory_counts": self.counts,
            "pair_names": [
                f"{space.state_name(s)}/{space.action_name(s, a)}"
                for s, a in ((int(space.state_of[i]), int(space.action_of[i])) for i in pairs)
            ],
        }
