"""One run, and one oracle: a function of plain data that returns the bytes of a result file.

Threads, processes and machines of a cluster call the same two functions; whoever started the study
writes what they return. So the bytes cannot depend on where a run was made.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl

from windage import envs
from windage.agents.plugins import in_words
from windage.agents.warning_capture import listening
from windage.errors import StateError, WindageError
from windage.models import DriftingMDP
from windage.regret import gain_sums
from windage.simulate import run
from windage.study.columns import (
    Gains,
    blocks,
    census_every,
    curves,
    episodes,
    every,
    forgetting,
    labels,
    memory,
    short,
    text_of,
    times_of,
)
from windage.study.kinds import FILE, Player, World
from windage.study.tables import ORACLE, RUN, encode

__all__ = ["Outcome", "Stopped", "Task", "gains_of", "play", "solve"]


class Task(msgspec.Struct, frozen=True):
    """A run that is asked for."""

    key: str
    world: World
    player: Player
    seed: int


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


def play(task: Task, gains: Gains | None, stopping: Callable[[], bool] = lambda: False) -> Outcome:
    """Make one run; returns its file."""
    start = time.perf_counter(), time.thread_time()
    with _failing_in_words(), listening() as heard:
        world = task.world.make()
        agent = task.player.make(world, task.seed)
        found = run(
            world, agent, task.seed, record=every(world.horizon),
            progress=_until(stopping), census=census_every(world),
        )  # fmt: skip
        row = {
            "key": task.key,
            "environment_id": task.world.id,
            "environment_parameters": text_of(task.world),
            "agent_id": task.player.id,
            "agent_parameters": json.dumps(short(task.player.parameters), sort_keys=True),
            "horizon": world.horizon,
            "seed": task.seed,
            **labels(agent, task.player),
            **curves(found, gains),
            **episodes(found),
            **blocks(agent),
            **memory(found, world.space),
            **forgetting(agent),
        }
    data = encode(row, RUN)
    warned = tuple(dict.fromkeys((message, kind.__name__) for message, kind in heard))
    return _outcome(data, start, warned)


def solve(world: World) -> Outcome:
    """Find the optimal gains of a world; returns the oracle's file."""
    start = time.perf_counter(), time.thread_time()
    with _failing_in_words():
        model = world.make()
        assert isinstance(model, DriftingMDP)
        curve = model.optimal_gains()
    T, step = model.horizon, every(model.horizon)
    sums, total, error = gain_sums(curve, 1, T, step)
    times = times_of(np.arange(step, T + 1, step), T)
    budgets = model.budgets()
    by_id = ":" not in world.id and world.id != FILE
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


def _until(stopping: Callable[[], bool]) -> Callable[[int, int], None]:
    """Return what a run calls now and then, which ends it when nobody wants it any more."""

    def look(done: int, steps: int) -> None:  # noqa: ARG001
        if stopping():
            raise Stopped

    return look


@contextlib.contextmanager
def _failing_in_words() -> Iterator[None]:
    """Let no class of the user's end the study: whatever it raises is a failure, told in words.

    Words get from any worker to whoever started the study. An exception of the user's may not: one
    that cannot be made again there would look like a worker that died.
    """
    try:
        yield
    except (Stopped, KeyboardInterrupt):
        raise
    except SystemExit as err:
        raise StateError(
            f"asked Python to end (SystemExit: {err})", fix="raise an error that says why"
        ) from None
    except WindageError as err:
        raise StateError(str(err)) from None
    except BaseException as err:
        raise StateError(in_words(err)) from None


def _outcome(
    data: bytes, start: tuple[float, float], warned: tuple[tuple[str, str], ...] = ()
) -> Outcome:
    seconds, cpu = time.perf_counter() - start[0], time.thread_time() - start[1]
    return Outcome(data, seconds, cpu, platform.node(), os.getpid(), warned)
