"""Executors of runs: threads, processes, a Dask cluster, or any executor of the user's.

A `Crew` hands jobs out to them, and replaces workers that die.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Any

from windage.errors import InputError, ParameterWarning, StateError
from windage.study.schema import Gains
from windage.study.task import Outcome, Task, play
from windage.validation import as_choice, as_integer

__all__ = ["EXECUTORS", "Crew", "Job", "Pool", "cores", "opener"]

EXECUTORS = ("threads", "processes", "dask")
_MOST_WORKERS = 4096
_AHEAD = 2
_ASK = 1.0  # seconds between two looks at how many workers a cluster has
_ANSWER = 10  # seconds that a scheduler may take to answer
_LOOK = 0.25  # seconds between two looks at which jobs are running
_STRIKES = 3  # so often a job may take its worker down


@dataclass(frozen=True)
class Pool:
    """Workers, and how to ask them to stop.

    Attributes
    ----------
    workers
        Returns how many runs are made at a time: the workers of a cluster come and go.
    remote
        Whether workers may be remote; if so, one run per worker is handed out ahead.
    submit
        Takes a function of plain data and its arguments.
    play
        `play` as these workers call it: in a thread it notices when it is to stop.
    stop
        Asks for an end; runs that have begun are given up.
    """

    workers: Callable[[], int]
    remote: bool
    submit: Callable[..., Future[Outcome]]
    play: Callable[[Task, Gains | None], Outcome]
    stop: Callable[[], None]

    def room(self) -> tuple[int, int]:
        """Return how many runs are made at a time, and how many are handed out."""
        workers = self.workers()
        return workers, workers + (workers if self.remote else _AHEAD)


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def opener(
    executor: str | Executor, workers: int | None, scheduler: str | None
) -> Callable[[], contextlib.AbstractContextManager[Pool]]:
    """Return a function that opens the chosen pool; a `with` block closes it."""
    if workers is not None:
        as_integer(workers, "workers", low=1, high=_MOST_WORKERS)
    if isinstance(executor, Executor):
        _require_fresh_processes(executor)
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


def _require_fresh_processes(executor: Executor) -> None:
    """Refuse processes that are forked: they would wait for ever for locks of threads left behind.

    Polars has such threads as soon as a result was read, so a study that goes on would hang.
    """
    context: Any = getattr(executor, "_mp_context", None)
    if context is not None and context.get_start_method() == "fork":
        raise InputError(
            "its processes are forked, and may hang",
            field="executor",
            fix='pass "processes", or give it mp_context=multiprocessing.get_context("spawn")',
        )


@contextlib.contextmanager
def _given(executor: Executor, workers: int) -> Iterator[Pool]:
    """Use an executor of the user's, which stays open and cannot be replaced if it breaks."""

    def submit(work: Callable[..., Outcome], *arguments: Any) -> Future[Outcome]:
        try:
            return executor.submit(work, *arguments)
        except RuntimeError as err:  # broken, or shut down
            raise StateError(
                f"takes no more work ({err})",
                field="executor",
                fix="run the study again with a new one: it goes on from here",
            ) from None

    yield Pool(lambda: workers, True, submit, play, lambda: None)


@contextlib.contextmanager
def _threads(workers: int) -> Iterator[Pool]:
    """Agents play in compiled loops that let other threads run meanwhile."""
    over = threading.Event()

    def play_here(task: Task, gains: Gains | None) -> Outcome:
        return play(task, gains, over.is_set)

    with ThreadPoolExecutor(workers, thread_name_prefix="windage") as pool:
        try:
            yield Pool(lambda: workers, False, pool.submit, play_here, over.set)
        finally:
            over.set()
            pool.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def _processes(workers: int) -> Iterator[Pool]:
    """For agents in Python, which would wait for each other in threads.

    Processes are started afresh: one that is forked from a program with threads may hang.
    """
    context = multiprocessing.get_context("spawn")
    lifeline, ours = context.Pipe(duplex=False)  # workers end when our end of it is closed
    pool = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start_worker, initargs=(lifeline,)
    )
    starter = ThreadPoolExecutor(1, initializer=_hear_ctrl_c, initargs=(False,))

    def submit(work: Callable[..., Outcome], *arguments: Any) -> Future[Outcome]:
        """The first call starts the workers: in a thread, where Ctrl-C does not cut that short."""
        return starter.submit(pool.submit, work, *arguments).result()

    try:
        yield Pool(lambda: workers, False, submit, play, ours.close)
    finally:
        starter.shutdown(wait=True)
        pool.shutdown(wait=True, cancel_futures=True)
        ours.close()
        lifeline.close()


def _start_worker(lifeline: Connection) -> None:
    """Prepare a process: Ctrl-C is for its parent, and it does not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _hear_ctrl_c(True)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _hear_ctrl_c(hear: bool) -> None:
    """Let Ctrl-C wait, or not, in this thread and in the processes that it starts.

    A terminal sends it to workers too, which import for a second before they can ignore it.
    """
    if hasattr(signal, "pthread_sigmask"):
        how = signal.SIG_UNBLOCK if hear else signal.SIG_BLOCK
        signal.pthread_sigmask(how, {signal.SIGINT})


def _end_with(lifeline: Connection) -> None:
    """End at once when the parent says so or dies: results are written by the parent."""
    connection.wait([lifeline])
    os._exit(1)


class _Seats:
    """The number of threads of a cluster, whose workers may come after the study has begun."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._known, self._again = 1, 0.0

    def __call__(self) -> int:
        now = time.monotonic()
        if now >= self._again:
            with contextlib.suppress(Exception):  # a lost connection ends the runs, and is told so
                self._known = max(1, sum(self._client.nthreads().values()))
            self._again = now + _ASK
        return self._known


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
        if not client.nthreads():
            warnings.warn(
                f"the Dask scheduler at {scheduler} has no workers: runs wait for the first one",
                ParameterWarning,
                stacklevel=2,
            )
        seats = (lambda: workers) if workers else _Seats(client)
        pool = client.get_executor(pure=False)
        try:
            yield Pool(seats, True, pool.submit, play, lambda: None)
        finally:
            pool.shutdown(wait=False)  # takes back what has not been done


async def _knock(scheduler: str) -> None:
    """See whether a scheduler answers: a client waits for ever where a port is open but silent."""
    import distributed

    dask: Any = distributed
    options = dask.Security().get_connection_args("client")
    calling = dask.comm.connect(scheduler, timeout=_ANSWER, **options)
    comm = await asyncio.wait_for(calling, 2 * _ANSWER)
    comm.abort()


# --- handing out jobs ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """Work for one worker: a run, or an oracle.

    Attributes
    ----------
    work
        Called with the arguments; None for a run, which each pool plays in its own way.
    """

    key: str
    name: str
    work: Callable[..., Outcome] | None
    arguments: tuple[Any, ...]
    steps: int = 0


class Crew:
    """Workers of one pool; a pool that broke is opened again."""

    def __init__(self, open_pool: Callable[[], contextlib.AbstractContextManager[Pool]]) -> None:
        self._open = open_pool
        self._stack = contextlib.ExitStack()
        self._pool: Pool | None = None

    def __enter__(self) -> Crew:
        self._renew()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._pool is not None:
            self._pool.stop()
        self._stack.close()

    def results(
        self, jobs: Iterable[Job], running: Callable[[list[str]], None]
    ) -> Iterator[tuple[Job, Outcome | Exception]]:
        """Yield jobs as they end, with their outcome or the error they raised.

        A job whose worker died is done again, alone; one that takes three workers down has failed.
        """
        waiting = deque(jobs)
        flying: dict[Future[Outcome], Job] = {}
        strikes: Counter[str] = Counter()
        while waiting or flying:
            workers = self._launch(waiting, flying, strikes)
            running([job.name for job in flying.values()][:workers])
            done, _ = wait(flying, timeout=_LOOK, return_when=FIRST_COMPLETED)
            died: list[Job] = []
            for future in done:
                job = flying.pop(future)
                ended = _ended(future)
                if isinstance(ended, BrokenExecutor):
                    died.append(job)
                else:
                    yield job, ended
            if died:
                died += flying.values()
                flying.clear()
                self._renew()
            for job in died:
                strikes[job.key] += 1
                if strikes[job.key] < _STRIKES:
                    waiting.append(job)
                else:
                    yield (
                        job,
                        StateError(
                            f"{_STRIKES} workers died at it",
                            fix="see whether memory is enough; in a script, call run under "
                            'if __name__ == "__main__":',
                        ),
                    )

    def _launch(
        self, waiting: deque[Job], flying: dict[Future[Outcome], Job], strikes: Counter[str]
    ) -> int:
        """Hand out a few jobs more than there are workers; one that is suspect flies alone.

        Returns how many workers there are.
        """
        pool = self._pool
        assert pool is not None
        workers, most = pool.room()
        while waiting and len(flying) < most:
            job = waiting[0]
            suspect = strikes[job.key] or any(strikes[other.key] for other in flying.values())
            if suspect and flying:
                break
            try:
                flying[pool.submit(job.work or pool.play, *job.arguments)] = job
            except BrokenExecutor:  # a worker died since the last look
                if flying:
                    break  # those in flight will say so too
                pool = self._renew()
                continue
            waiting.popleft()
        return workers

    def _renew(self) -> Pool:
        self._stack.close()
        self._pool = self._stack.enter_context(self._open())
        return self._pool


def _ended(future: Future[Outcome]) -> Outcome | Exception:
    """Return the outcome of a job, or its error: a class of the user's may raise anything."""
    try:
        return future.result()
    except CancelledError:
        raise StateError(
            "the workers were taken away",
            field="executor",
            fix="run the study again: it goes on from here",
        ) from None
    except Exception as err:
        return err
