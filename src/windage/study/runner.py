"""Run what a study asks for and is not there yet; whatever happens, what is done stays done."""

from __future__ import annotations

import hashlib
import itertools
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from windage import errors
from windage.agents.base import Agent, listening
from windage.drift import DriftingMDP
from windage.errors import StateError, WindageError
from windage.simulate import run as run_agent
from windage.study import pools
from windage.study.planning import Plan, plan, versions
from windage.study.play import Gains, Outcome, Stopped, Task, solve
from windage.study.pools import Pool
from windage.study.spec import Spec
from windage.study.store import Asked, Manifest, Store

__all__ = ["Failure", "Status", "Summary", "run_study"]

_WARM_UP = 16  # steps that compile a learner
_BEYOND = 2  # runs that wait at a worker's door
_STRIKES = 3  # so often a run may take its worker down with it
_LOOK = 0.25  # seconds between two looks at who is running


@dataclass(frozen=True)
class Failure:
    """A run that could not be made, and why; it is tried again the next time."""

    what: str
    why: str


@dataclass
class Status:
    """How far a study is; given to `progress` now and then.

    Attributes
    ----------
    stage
        What is done: "planning", "reading", "compiling", "oracles" or "runs".
    total, kept, made, failed
        Runs that are asked for, that were there already, that were made now, that failed.
    steps, steps_to_do
        Steps of the runs made now, and of all that are to be made now.
    running
        What the workers are at.
    """

    stage: str = "planning"
    total: int = 0
    kept: int = 0
    made: int = 0
    failed: int = 0
    steps: int = 0
    steps_to_do: int = 0
    running: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Summary:
    """What became of a study.

    Attributes
    ----------
    folder
        Where the results are.
    runs, kept, made
        Runs that are asked for, that were there already, that were made now.
    repaired
        Files that were damaged and have been computed anew.
    failures
        Runs that could not be made.
    spare
        Files of runs that the study does not ask for any more.
    hash
        Of all results, the same wherever and in how many pieces they were made; empty if some are
        missing.
    """

    folder: Path
    runs: int
    kept: int
    made: int
    repaired: tuple[str, ...]
    failures: tuple[Failure, ...]
    spare: int
    hash: str


def run_study(
    spec: Spec,
    folder: str | Path,
    *,
    workers: int | None = None,
    executor: str | Executor = "threads",
    scheduler: str | None = None,
    progress: Callable[[Status], None] = lambda status: None,  # noqa: ARG005
) -> Summary:
    """Make the runs of a study that are not in its folder yet."""
    opened = pools.opened(executor, workers, scheduler)
    status = Status()
    progress(status)
    asked = plan(spec)
    with Store.opened(folder) as store:
        return _Session(store, asked, status, progress).run(opened)


class _Session:
    """One go at a study."""

    def __init__(
        self, store: Store, asked: Plan, status: Status, progress: Callable[[Status], None]
    ) -> None:
        self.store = store
        self.tasks = asked.tasks
        self.manifest = asked.manifest
        self.status = status
        self.progress = progress
        self.failures: list[Failure] = []
        self.repaired: list[str] = []
        self.gains: dict[str, Gains] = {}
        self.said: set[tuple[str, str]] = set()
        self.labels = {one.key: one for one in reversed(self.manifest.runs)}

    def run(self, opened: Any) -> Summary:
        """Read what is there, make what is missing."""
        store, status = self.store, self.status
        store.write_manifest(_with_history(self.manifest, store))
        self._stage("reading")
        missing = [key for key in self.tasks if not self._whole("runs", key)]
        oracles = {self.labels[key].oracle for key in missing}
        oracles |= {one.oracle for one in self.manifest.runs}
        status.total = len(self.tasks)
        status.kept = len(self.tasks) - len(missing)
        to_solve = [key for key in sorted(filter(None, oracles)) if not self._solved(key)]
        todo = [self.tasks[key] for key in missing]
        todo.sort(key=lambda task: task.seed)  # whole seeds first: pairs can be compared early
        status.steps_to_do = sum(self.labels[task.key].horizon for task in todo)
        if todo or to_solve:
            self._stage("compiling")
            _warm_up(todo, oracle=bool(to_solve))
            self._make(opened, to_solve, todo)
        return self._summary()

    def _make(self, opened: Any, to_solve: list[str], todo: list[Task]) -> None:
        worlds = {task.world.key: task.world for task in self.tasks.values()}
        with opened as pool:
            try:
                self._stage("oracles")
                jobs = [
                    _Job(key, f"the oracle of {self._place(key)}", solve, (worlds[key],), 0)
                    for key in to_solve
                ]
                self._all(pool, jobs, self._keep_oracle)
                self._stage("runs")
                self._all(pool, self._runs(pool, todo), self._keep_run)
            except BaseException:
                pool.stop()
                raise

    def _runs(self, pool: Pool, todo: list[Task]) -> Iterable[_Job]:
        for task in todo:
            asked = self.labels[task.key]
            if asked.oracle is not None and asked.oracle not in self.gains:
                self._fail(_name(asked), "its oracle failed")
                continue
            gains = None if asked.oracle is None else self.gains[asked.oracle]
            yield _Job(task.key, _name(asked), pool.play, (task, gains), asked.horizon)

    def _all(self, pool: Pool, jobs: Iterable[_Job], keep: Callable[[_Job, Outcome], None]) -> None:
        """Hand out jobs, a few more at a time than there are workers; keep what comes back."""
        waiting = iter(jobs)
        flying: dict[Future[Outcome], _Job] = {}
        while True:
            room = pool.workers + min(_BEYOND, pool.workers) - len(flying)
            for job in itertools.islice(waiting, max(0, room)):
                flying[pool.submit(job.work, *job.arguments)] = job
            if not flying:
                return
            self.status.running = [job.name for job in flying.values()][: pool.workers]
            self.progress(self.status)
            done, _ = wait_for(flying, timeout=_LOOK, return_when=FIRST_COMPLETED)
            for future in done:
                job = flying.pop(future)
                outcome = self._outcome(job, future)
                if outcome is not None:
                    keep(job, outcome)

    def _outcome(self, job: _Job, future: Future[Outcome]) -> Outcome | None:
        """Return what a job has made; whatever an agent raises is its own failure."""
        try:
            return future.result()
        except (BrokenExecutor, CancelledError) as err:
            raise StateError(
                f"a worker died or was taken away at {job.name} ({err or type(err).__name__})",
                field="executor",
                fix="run the study again, it goes on from here; fewer workers need less memory",
            ) from None
        except Stopped:
            raise
        except Exception as err:
            why = str(err) if isinstance(err, WindageError) else f"{type(err).__name__}: {err}"
            self._fail(job.name, why)
            self.store.note({"kind": "failure", "key": job.key, "why": why, "finished": _now()})
            return None

    def _fail(self, what: str, why: str) -> None:
        self.failures.append(Failure(what, why))
        self.status.failed += 1
        self.progress(self.status)

    def _keep_run(self, job: _Job, outcome: Outcome) -> None:
        self.store.keep("runs", job.key, outcome, _now())
        self.status.made += 1
        self.status.steps += job.steps
        asked = self.labels[job.key]
        for message, kind in outcome.warnings:
            said = f"{asked.agent}: {message}"
            if (asked.agent, kind) not in self.said and not _said_before(message, kind):
                self.said.add((asked.agent, kind))
                warnings.warn(said, getattr(errors, kind, UserWarning), stacklevel=2)
        self.progress(self.status)

    def _keep_oracle(self, job: _Job, outcome: Outcome) -> None:
        self.store.keep("oracles", job.key, outcome, _now())
        self._solved(job.key)

    def _solved(self, key: str) -> bool:
        """Return whether an oracle is there; if so, its sums are at hand."""
        if not self._whole("oracles", key):
            return False
        row = self.store.oracle(key)
        assert row is not None
        cumulative = np.asarray(row["cumulative"][0], dtype=np.float64)
        self.gains[key] = Gains(cumulative, row["total"][0], row["error"][0])
        return True

    def _whole(self, kind: str, key: str) -> bool:
        """Return whether a result is there to the last bit; one that is damaged is taken away."""
        try:
            return (self.store.run if kind == "runs" else self.store.oracle)(key) is not None
        except StateError as err:
            self.repaired.append(f"{err.field} {err.problem}")
            self.store.remove(kind, key)
            return False

    def _summary(self) -> Summary:
        present = self.store.present("runs")
        whole = not self.failures and present >= self.tasks.keys()
        return Summary(
            folder=self.store.folder,
            runs=len(self.tasks),
            kept=self.status.kept,
            made=self.status.made,
            repaired=tuple(self.repaired),
            failures=tuple(self.failures),
            spare=len(present - self.tasks.keys()),
            hash=results_hash(self.store, self.manifest) if whole else "",
        )

    def _place(self, oracle: str) -> str:
        return next(one.environment for one in self.manifest.runs if one.oracle == oracle)

    def _stage(self, name: str) -> None:
        self.status.stage, self.status.running = name, []
        self.progress(self.status)


@dataclass(frozen=True)
class _Job:
    """Something for a worker to do."""

    key: str
    name: str
    work: Callable[..., Outcome]
    arguments: tuple[Any, ...]
    steps: int


def results_hash(store: Store, manifest: Manifest) -> str:
    """Return a hash of all result files a study asks for, in its order."""
    digest = hashlib.sha256()
    oracles = dict.fromkeys(one.oracle for one in manifest.runs if one.oracle is not None)
    runs = dict.fromkeys(one.key for one in manifest.runs)
    for kind, keys in (("oracles", oracles), ("runs", runs)):
        for key in keys:
            digest.update(key.encode())
            digest.update((store.folder / kind / f"{key}.parquet").read_bytes())
    return digest.hexdigest()[:32]


def _with_history(manifest: Manifest, store: Store) -> Manifest:
    """Return the manifest with the versions of those who ran parts of the study before."""
    try:
        last = store.manifest()
    except StateError:  # none, or one that cannot be read: a new one takes its place
        return manifest
    before = [*last.before, last.versions]
    others = [one for i, one in enumerate(before) if one != versions() and one not in before[:i]]
    if others and last.versions != versions() and store.present("runs"):
        warnings.warn(
            f"results in {store.folder} were made with other versions, which manifest.json lists; "
            "they are kept, and `windage verify` says whether they are the same today",
            errors.ParameterWarning,
            stacklevel=2,
        )
    return msgspec.structs.replace(manifest, before=others)


def _warm_up(todo: list[Task], *, oracle: bool) -> None:
    """Compile what the workers will need, once, before there are several of them."""
    seen = set()
    for task in todo:
        if (task.player.id, task.world.id) in seen:
            continue
        seen.add((task.player.id, task.world.id))
        if ":" in task.player.id or ":" in task.world.id:
            continue
        world = task.world.make()
        assert isinstance(world, DriftingMDP)
        with listening():
            agent = task.player.make(world, task.seed)
            if isinstance(agent, Agent) and agent.has_loop():
                steps = min(_WARM_UP, world.horizon)
                run_agent(world, agent, task.seed, steps=steps, record="totals")
    if oracle:
        from windage import envs

        envs.make("riverswim", horizon=10).optimal_gains()


def _said_before(message: str, kind: str) -> bool:
    """Return whether planning has said it already: it makes every agent once."""
    return kind == "GuaranteeWarning" or "longer than the horizon" in message


def _name(asked: Asked) -> str:
    return f"{asked.agent} on {asked.environment}, T = {asked.horizon:,}, seed {asked.seed}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
