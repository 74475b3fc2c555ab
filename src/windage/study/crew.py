"""A crew of workers: jobs are handed out, and workers that die are replaced."""

from __future__ import annotations

import contextlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from dataclasses import dataclass
from typing import Any

from windage.errors import StateError
from windage.study.play import Outcome, play
from windage.study.pools import Pool

__all__ = ["Crew", "Job"]

_LOOK = 0.25  # seconds between two looks at who is running
_STRIKES = 3  # so often a job may take its worker down


@dataclass(frozen=True)
class Job:
    """Something for a worker to do: a run, or an oracle."""

    key: str
    name: str
    work: Callable[..., Outcome]
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
        """Yield jobs as they end, with what they made or what they raised.

        A job whose worker died is done again, alone; one that takes three workers down has failed.
        """
        waiting = deque(jobs)
        flying: dict[Future[Outcome], Job] = {}
        strikes: Counter[str] = Counter()
        while waiting or flying:
            pool = self._launch(waiting, flying, strikes)
            running([job.name for job in flying.values()][: pool.workers()])
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
    ) -> Pool:
        """Hand out a few jobs more than there are workers; one that is suspect flies alone."""
        pool = self._pool
        assert pool is not None
        room = pool.workers() + pool.ahead()
        while waiting and len(flying) < room:
            job = waiting[0]
            suspect = strikes[job.key] or any(strikes[one.key] for one in flying.values())
            if suspect and flying:
                break
            try:
                work = pool.play if job.work is play else job.work
                flying[pool.submit(work, *job.arguments)] = job
            except BrokenExecutor:  # a worker died while nobody looked
                if flying:
                    break  # those in flight will say so too
                pool = self._renew()
                continue
            waiting.popleft()
        return pool

    def _renew(self) -> Pool:
        self._stack.close()
        self._pool = self._stack.enter_context(self._open())
        return self._pool


def _ended(future: Future[Outcome]) -> Outcome | Exception:
    """Return what a job made, or what it raised: a class of the user's may raise anything."""
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
