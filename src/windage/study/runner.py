"""Run what a study asks for and is not there yet; whatever happens, what is done stays done."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from windage import errors
from windage.agents.base import Agent
from windage.agents.warning_capture import listening
from windage.errors import StateError, WindageError
from windage.models import DriftingMDP
from windage.simulate import run as run_agent
from windage.study import pools
from windage.study.columns import Gains
from windage.study.crew import Crew, Job
from windage.study.kinds import AT_HAND
from windage.study.manifest import Asked, Manifest, OtherFormatError
from windage.study.planning import Plan, plan, versions
from windage.study.play import Outcome, Task, gains_of, play, solve
from windage.study.pools import Pool
from windage.study.spec import Spec
from windage.study.status import Failure, Status, Summary, reason
from windage.study.store import Kind, Store

__all__ = ["run_study"]

_WARM_UP = 16  # steps that compile a learner


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
    open_pool = pools.opener(executor, workers, scheduler)
    status = Status()
    progress(status)
    asked = plan(spec)
    with Store.opened(folder) as store:
        return _Session(store, asked, status, progress).run(open_pool)


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
        self.failures: dict[str, Failure] = {}
        self.repaired: list[str] = []
        self.gains: dict[str, Gains] = {}
        self.said = set(asked.said)
        self.labels = {one.key: one for one in reversed(self.manifest.runs)}

    def run(self, open_pool: Callable[[], AbstractContextManager[Pool]]) -> Summary:
        """Read what is there, make what is missing."""
        store, status = self.store, self.status
        store.write_manifest(_with_history(self.manifest, store))
        self._stage("reading")
        todo = [task for key, task in self.tasks.items() if not self._whole("runs", key)]
        todo.sort(key=self._in_order)
        status.total = len(self.tasks)
        status.kept = len(self.tasks) - len(todo)
        status.steps_to_do = sum(self.labels[task.key].horizon for task in todo)
        to_solve = [key for key in self.manifest.oracle_keys() if not self._solved(key)]
        if todo or to_solve:
            self._stage("compiling")
            _warm_up(todo, oracle=bool(to_solve))
            try:
                with Crew(open_pool) as crew:
                    self._stage("oracles")
                    self._all(crew, self._oracles(to_solve), self._keep_oracle)
                    self._stage("runs")
                    self._all(crew, self._runs(todo), self._keep_run)
            finally:  # an interrupt may fall between a file and its count
                status.made = len(store.present("runs") & self.tasks.keys()) - status.kept
        return self._summary()

    def _in_order(self, task: Task) -> tuple[int, int]:
        """Whole seeds first, so that pairs can be compared early, of few worlds at a time."""
        return self.labels[task.key].world // AT_HAND, task.seed

    def _oracles(self, keys: list[str]) -> Iterable[Job]:
        worlds = {task.world.key: task.world for task in self.tasks.values()}
        places = {one.oracle: one for one in reversed(self.manifest.runs)}
        for key in keys:
            place = f"{places[key].environment}, T = {places[key].horizon:,}"
            yield Job(key, f"the oracle of {place}", solve, (worlds[key],))

    def _runs(self, todo: list[Task]) -> Iterable[Job]:
        for task in todo:
            asked = self.labels[task.key]
            if asked.oracle is not None and asked.oracle not in self.gains:
                self._fail(task.key, _name(asked), "its oracle failed", asked.horizon)
                continue
            gains = None if asked.oracle is None else self.gains[asked.oracle]
            yield Job(task.key, _name(asked), play, (task, gains), asked.horizon)

    def _all(self, crew: Crew, jobs: Iterable[Job], keep: Callable[[Job, Outcome], None]) -> None:
        """Keep what the workers make; what fails is noted, and the others go on."""
        for job, ended in crew.results(jobs, self._running):
            if isinstance(ended, Outcome):
                keep(job, ended)
                continue
            why = reason(ended)
            self._fail(job.key, job.name, why, job.steps)
            self.store.note({"kind": "failure", "key": job.key, "why": why, "finished": _now()})

    def _running(self, names: list[str]) -> None:
        self.status.running = names
        self.progress(self.status)

    def _fail(self, key: str, what: str, why: str, steps: int) -> None:
        self.failures[key] = Failure(what, why)
        self.status.failed += key in self.tasks  # and not an oracle
        self.status.steps_to_do -= steps
        self.progress(self.status)

    def _keep_run(self, job: Job, outcome: Outcome) -> None:
        self.store.keep("runs", job.key, outcome, _now())
        self.status.made += 1
        self.status.steps += job.steps
        agent = self.labels[job.key].agent
        for message, kind in outcome.warnings:  # of one kind once an agent: numbers in them differ
            if not {(agent, message), (agent, kind)} & self.said:
                self.said.add((agent, kind))
                warnings.warn(
                    f"{agent}: {message}", getattr(errors, kind, UserWarning), stacklevel=2
                )
        self.progress(self.status)

    def _keep_oracle(self, job: Job, outcome: Outcome) -> None:
        self.store.keep("oracles", job.key, outcome, _now())
        self._solved(job.key)

    def _solved(self, key: str) -> bool:
        """Return whether an oracle is there; if so, its sums are at hand."""
        if not self._whole("oracles", key):
            return False
        row = self.store.oracle(key)
        assert row is not None
        self.gains[key] = gains_of(row)
        return True

    def _whole(self, kind: Kind, key: str) -> bool:
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
        order = [*self.manifest.oracle_keys(), *self.tasks]
        return Summary(
            folder=self.store.folder,
            runs=len(self.tasks),
            kept=self.status.kept,
            made=self.status.made,
            repaired=tuple(self.repaired),
            failures=tuple(self.failures[key] for key in order if key in self.failures),
            spare=len(present - self.tasks.keys()),
            hash=self.store.hash_of(self.manifest) if whole else "",
        )

    def _stage(self, name: str) -> None:
        self.status.stage, self.status.running = name, []
        self.progress(self.status)


def _with_history(manifest: Manifest, store: Store) -> Manifest:
    """Return the manifest with the versions of those who ran parts of the study before."""
    try:
        last = store.manifest()
    except OtherFormatError as err:
        warnings.warn(
            f"{err.field} {err.problem}: all runs are made anew, and the files of the old ones "
            f"stay in {store.folder / 'runs'}",
            errors.ParameterWarning,
            stacklevel=2,
        )
        return manifest
    except StateError as err:
        if store.has_manifest():
            warnings.warn(
                f"{err.field} {err.problem}; it was written anew, and results that are there stay",
                errors.ParameterWarning,
                stacklevel=2,
            )
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
        with contextlib.suppress(WindageError), listening():  # a run that fails will say so itself
            world = task.world.make()
            assert isinstance(world, DriftingMDP)
            agent = task.player.make(world, task.seed)
            if isinstance(agent, Agent) and agent.has_loop():
                steps = min(_WARM_UP, world.horizon)
                run_agent(world, agent, task.seed, steps=steps, record="totals")
    if oracle:
        from windage import envs

        envs.make("riverswim", horizon=10).optimal_gains()


def _name(asked: Asked) -> str:
    return f"{asked.agent} on {asked.environment}, T = {asked.horizon:,}, seed {asked.seed}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
