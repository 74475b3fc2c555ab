"""Where runs are made: threads, processes, a Dask cluster, or any executor of one's own."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any

from windage.errors import InputError
from windage.inputs import as_choice, as_integer
from windage.study.columns import Gains
from windage.study.play import Outcome, Task, play

__all__ = ["EXECUTORS", "Pool", "cores", "opener"]

EXECUTORS = ("threads", "processes", "dask")
_MOST_WORKERS = 4096
_AHEAD = 2
_ANSWER = 10  # seconds that a scheduler may take to answer


@dataclass(frozen=True)
class Pool:
    """Workers, and how to ask them to stop.

    Attributes
    ----------
    workers, ahead
        How many runs are made at a time, and how many wait at the workers' door.
    submit
        Takes a function of plain data and its arguments.
    play
        `play` as these workers call it: in a thread or process it notices when it is to stop.
    stop
        Asks for an end; runs that are on their way are given up.
    """

    workers: int
    ahead: int
    submit: Callable[..., Future[Outcome]]
    play: Callable[[Task, Gains | None], Outcome]
    stop: Callable[[], None]


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def opener(
    executor: str | Executor, workers: int | None, scheduler: str | None
) -> Callable[[], contextlib.AbstractContextManager[Pool]]:
    """Return what opens the pool that is asked for; it is closed at the end of a `with` block."""
    if workers is not None:
        as_integer(workers, "workers", low=1, high=_MOST_WORKERS)
    if isinstance(executor, Executor):
        return lambda: _given(executor, workers or cores())
    kind = as_choice(executor, "executor", EXECUTORS)
    if (scheduler is None) == (kind == "dask"):
        raise InputError(
            "the address of the cluster is missing" if scheduler is None
            else f"{scheduler!r} is the address of a cluster, the executor is {kind}",
            field="scheduler",
            fix="pass one such as tcp://10.0.0.1:8786" if scheduler is None
            else 'leave it out, or choose the executor "dask"',
        )  # fmt: skip
    if scheduler is not None:
        return lambda: _dask(scheduler, workers)
    return lambda: (_threads if kind == "threads" else _processes)(workers or cores())


@contextlib.contextmanager
def _given(executor: Executor, workers: int) -> Iterator[Pool]:
    """Use somebody else's executor, which stays open."""
    yield Pool(workers, workers, executor.submit, play, lambda: None)


@contextlib.contextmanager
def _threads(workers: int) -> Iterator[Pool]:
    """Agents play in compiled loops that let other threads run meanwhile."""
    over = threading.Event()

    def play_here(task: Task, gains: Gains | None) -> Outcome:
        return play(task, gains, over.is_set)

    with ThreadPoolExecutor(workers, thread_name_prefix="windage") as pool:
        try:
            yield Pool(workers, _AHEAD, pool.submit, play_here, over.set)
        finally:
            over.set()
            pool.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def _processes(workers: int) -> Iterator[Pool]:
    """For agents in Python, which would wait for each other in threads.

    Processes are started afresh: one that is forked from a program with threads may hang.
    """
    context = multiprocessing.get_context("spawn")
    over = context.Event()
    pool = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start_worker, initargs=(over,)
    )
    try:
        yield Pool(workers, _AHEAD, pool.submit, _play_in_process, over.set)
    finally:
        over.set()
        pool.shutdown(wait=True, cancel_futures=True)


_over: Any = None  # of a worker process: the event that asks it to stop


def _start_worker(over: Any) -> None:
    """Prepare a process: Ctrl-C is for its parent, and it does not outlive it."""
    global _over
    _over = over
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


def _play_in_process(task: Task, gains: Gains | None) -> Outcome:
    return play(task, gains, _over.is_set)


@contextlib.contextmanager
def _dask(scheduler: str, workers: int | None) -> Iterator[Pool]:
    """Use a cluster; the scheduler gives runs of a worker that dies to another."""
    try:
        import distributed
    except ImportError:
        raise InputError(
            "distributed is not installed",
            field="executor",
            fix="python -m pip install 'windage[dask]'",
        ) from None
    try:
        with ThreadPoolExecutor(1) as apart:  # a notebook has an event loop of its own
            apart.submit(asyncio.run, _knock(scheduler)).result()
        connect: Any = distributed.Client
        client = connect(scheduler, timeout=_ANSWER, set_as_default=False)
    except Exception as err:  # what is at the other end may say anything
        raise InputError(
            f"no Dask scheduler answers at {scheduler!r} ({type(err).__name__})",
            field="scheduler",
            fix="start one with `dask scheduler`, and workers with `dask worker ADDRESS`",
        ) from None
    with client:
        n = workers or max(1, sum(client.nthreads().values()))
        pool = client.get_executor(pure=False)
        try:
            yield Pool(n, n, pool.submit, play, lambda: None)  # the way there may be long
        finally:
            pool.shutdown(wait=False)  # takes back what has not been done


async def _knock(scheduler: str) -> None:
    """See whether a scheduler answers: a client waits for ever where somebody listens silently."""
    import distributed

    dask: Any = distributed
    options = dask.Security().get_connection_args("client")
    calling = dask.comm.connect(scheduler, timeout=_ANSWER, **options)
    comm = await asyncio.wait_for(calling, 2 * _ANSWER)
    comm.abort()
