"""One run, and one oracle: functions of plain data that return the bytes of a result file.

Threads, processes and machines of a cluster call the same two functions; the process that started
the study writes what they return. So the bytes cannot depend on where a run was made.
"""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl

from windage.agents.registry import in_words
from windage.errors import StateError, WindageError, listening
from windage.models import DriftingMDP
from windage.regret import gain_sums
from windage.simulate import run
from windage.simulators import Problem
from windage.study import schema
from windage.study.configs import AgentConfig, EnvironmentConfig
from windage.study.schema import FinishedRun, Gains, SolvedEnvironment, times_of

__all__ = [
    "Outcome", "Stopped", "Task", "failing_in_words", "gains_of", "play", "recording_step", "solve",
]  # fmt: skip

_POINTS = 200  # times of a run that its curves keep, roughly
_SNAPSHOTS = 25  # times at which the agent's memory is counted
_MOST_PAIRS = 64  # of larger environments it is not


class Task(msgspec.Struct, frozen=True):
    """A run that is asked for."""

    key: str
    environment: EnvironmentConfig
    agent: AgentConfig
    seed: int


class Outcome(NamedTuple):
    """The bytes of a result file, and what the file must not hold: where and how long."""

    data: bytes
    seconds: float
    cpu: float
    host: str
    pid: int
    warnings: tuple[tuple[str, str], ...] = ()


class Stopped(Exception):  # noqa: N818 - nothing went wrong
    """The study was interrupted during this run."""


def play(task: Task, gains: Gains | None, stopping: Callable[[], bool] = lambda: False) -> Outcome:
    """Make one run; returns its file."""
    start = time.perf_counter(), time.thread_time()
    with failing_in_words(), listening() as heard:
        problem = task.environment.build()
        learner = task.agent.build(problem, task.seed)
        record = run(
            problem, learner, task.seed, record=recording_step(problem.horizon),
            progress=_until(stopping), census=_census_step(problem),
        )  # fmt: skip
        done = FinishedRun(
            key=task.key,
            environment=task.environment,
            agent=task.agent,
            seed=task.seed,
            problem=problem,
            learner=learner,
            run=record,
            gains=gains,
        )
        row = schema.RUN.row(done)
    data = schema.encode(row, schema.RUN)
    warned = tuple(dict.fromkeys((message, kind.__name__) for message, kind in heard))
    return _outcome(data, start, warned)


def solve(environment: EnvironmentConfig) -> Outcome:
    """Compute the optimal gains of an environment; returns the oracle's file."""
    start = time.perf_counter(), time.thread_time()
    with failing_in_words():
        model = environment.build()
        assert isinstance(model, DriftingMDP)
        curve = model.optimal_gains()
    T, step = model.horizon, recording_step(model.horizon)
    sums, total, error = gain_sums(curve, 1, T, step)
    times = times_of(np.arange(step, T + 1, step), T)
    cumulative = np.append(sums, total) if sums.size < times.size else sums
    solved = SolvedEnvironment(environment, model, curve, times, cumulative, total, error)
    return _outcome(schema.encode(schema.ORACLE.row(solved), schema.ORACLE), start)


def gains_of(row: pl.DataFrame) -> Gains:
    """Return the benchmark of runs, from the oracle's file."""
    cumulative = row["cumulative"][0].to_numpy()
    return Gains(cumulative, row["total"][0], row["error"][0])


def recording_step(horizon: int) -> int:
    """Return the number of steps between two times of a curve.

    >>> recording_step(20_000), recording_step(150)
    (100, 1)
    """
    return -(-horizon // _POINTS)


def _census_step(problem: DriftingMDP | Problem) -> int | None:
    """Return the number of steps between two counts of the agent's memory; None: too many pairs."""
    few = problem.space.n_pairs <= _MOST_PAIRS
    return -(-problem.horizon // _SNAPSHOTS) if few else None


def _until(stopping: Callable[[], bool]) -> Callable[[int, int], None]:
    """Return a progress callback that ends a run once it is no longer wanted."""

    def look(done: int, steps: int) -> None:  # noqa: ARG001
        if stopping():
            raise Stopped

    return look


@contextlib.contextmanager
def failing_in_words() -> Iterator[None]:
    """Turn everything a class of the user's raises into a failure in words; none ends the study.

    Words get from any worker to the process that started the study. An exception of the user's may
    not: one that cannot be made again there would look like a worker that died.
    """
    try:
        yield
    except Stopped:
        raise
    except KeyboardInterrupt:
        if _hears_ctrl_c():
            raise
        raise StateError(
            "raised KeyboardInterrupt, which is for Ctrl-C", fix="raise an error that says why"
        ) from None
    except SystemExit as err:
        raise StateError(
            f"asked Python to end (SystemExit: {err})", fix="raise an error that says why"
        ) from None
    except WindageError as err:
        raise StateError(str(err)) from None
    except BaseException as err:
        raise StateError(in_words(err)) from None


def _hears_ctrl_c() -> bool:
    """Return whether Ctrl-C would be raised here: in main threads of programs that heed it."""
    main = threading.current_thread() is threading.main_thread()
    return main and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def _outcome(
    data: bytes, start: tuple[float, float], warned: tuple[tuple[str, str], ...] = ()
) -> Outcome:
    seconds, cpu = time.perf_counter() - start[0], time.thread_time() - start[1]
    return Outcome(data, seconds, cpu, platform.node(), os.getpid(), warned)
