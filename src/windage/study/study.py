"""`Study`: agents, environments, horizons and seeds to compare, and the making of missing runs.

Whatever happens, results that are there stay.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np

from windage import envs, errors
from windage.agents.base import Agent
from windage.confidence.radii import Radii
from windage.errors import InputError, StateError, WindageError, listening
from windage.models import DriftingMDP
from windage.simulate import run as run_agent
from windage.study import executors
from windage.study.compare import Plan
from windage.study.configs import AT_HAND
from windage.study.executors import Crew, Job, Pool
from windage.study.expand import Expansion, Preview, expand, pick, preview, versions
from windage.study.schema import Gains
from windage.study.spec import Spec, read_spec
from windage.study.store import TUNING, Kind, Manifest, OtherFormatError, Store
from windage.study.task import Outcome, Task, gains_of, solve
from windage.validation import shown

__all__ = ["Failure", "Study", "StudyStatus", "StudySummary", "reason"]


class Study:
    """A comparison to be run: environments, agents, horizons and seeds.

    Parameters
    ----------
    environments, agents
        Tables as a study file has them: an `id`, maybe a `label`, and parameters. A list where one
        value would do is a sweep; a tuple is one value, and so are `Radii`.
    horizon
        T, or several; environments that are read from files have their own.
    seeds
        How many, or which. Every agent meets the same noise on the same seed.
    name
        Of the study.
    baseline, compare
        The comparisons that are planned: with one agent, or of pairs of agents, by their labels.
        All pairs if neither is given.
    tune
        Such as `{"over": "window", "seeds": 10}`: the best of the values that are swept over is
        picked on these seeds, which are none of the study's, and takes part in the study.

    Examples
    --------
    >>> agents = [{"id": "random"}, {"id": "ucrl2", "delta": [0.05, 0.1]}]
    >>> Study([{"id": "riverswim"}], agents, horizon=1000, seeds=5, name="first look")
    Study('first look': 1 environment, 3 agents, 5 seeds, 15 runs)
    """

    def __init__(
        self,
        environments: Sequence[Mapping[str, Any]],
        agents: Sequence[Mapping[str, Any]],
        *,
        horizon: int | Sequence[int] | None = None,
        seeds: int | Sequence[int] = 20,
        name: str = "study",
        baseline: str | None = None,
        compare: Sequence[tuple[str, str]] = (),
        tune: Mapping[str, Any] | None = None,
    ) -> None:
        data: dict[str, Any] = {
            "name": name,
            "seeds": _numbers(seeds),
            "environments": _tables(environments, "environments"),
            "agents": _tables(agents, "agents"),
        }
        if horizon is not None:
            data["horizon"] = _numbers(horizon)
        if baseline is not None:
            data["baseline"] = baseline
        if compare:
            data["compare"] = [list(pair) for pair in compare]
        if tune is not None:
            data["tune"] = _table(tune, "tune")
        self.spec = read_spec(data)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a study file; an error names the place in it."""
        return cls._of(read_spec(path))

    @classmethod
    def _of(cls, spec: Spec) -> Self:
        study = cls.__new__(cls)
        study.spec = spec
        return study

    @property
    def name(self) -> str:
        """The name of the study."""
        return self.spec.name

    def preview(self, folder: str | Path | None = None) -> Preview:
        """Return the runs the study asks for, sweeps unrolled, and how many of them a folder has.

        >>> agents = [{"id": "ucrl2", "delta": [0.05, 0.1]}]
        >>> study = Study([{"id": "riverswim"}], agents, horizon=1000, seeds=5)
        >>> [(row.agent, row.seeds, row.done) for row in study.preview().places]
        [('ucrl2, delta 0.05', 5, 0), ('ucrl2, delta 0.1', 5, 0)]
        """
        return preview(self.spec, folder)

    def run(
        self,
        folder: str | Path,
        *,
        workers: int | None = None,
        executor: str | Executor = "threads",
        scheduler: str | None = None,
        progress: Callable[[StudyStatus], None] = lambda status: None,  # noqa: ARG005
    ) -> StudySummary:
        """Make the runs that are not in the folder yet; those that are there are kept.

        Parameters
        ----------
        folder
            Where the results are, or will be.
        workers
            How many runs at a time; as many as there are cores if not said.
        executor
            "threads"; "processes" for agents written in Python; "dask"; or any executor of
            `concurrent.futures`, which stays open. The results are the same bytes.
        scheduler
            The address of a Dask scheduler.
        progress
            Called now and then with a `StudyStatus`.

        Raises
        ------
        InputError
            Something is wrong with the study or the options, and nothing was run; or the folder
            cannot be written any more, as when its disk is full.
        StateError
            The workers were taken away: a cluster without its scheduler.
        KeyboardInterrupt
            After Ctrl-C. In every case finished runs are kept, and the next call goes on from
            there.
        """
        open_pool = executors.opener(executor, workers, scheduler)
        status = StudyStatus()
        progress(status)
        named = Store.at(folder).folder
        place = named.absolute()
        tuning, picks = None, None
        with contextlib.chdir("."):  # and back to it: agents may leave
            if self.spec.tuning is not None:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # they will come, with the values picked
                    expand(self.spec)  # a mistake is told before hours are spent
                tuning = self._of(self.spec.tuning).run(
                    place / TUNING,
                    workers=workers,
                    executor=executor,
                    scheduler=scheduler,
                    progress=progress,
                )
                picks = pick(self.spec, place / TUNING)
            expansion = expand(self.spec, picks)
        with contextlib.chdir("."), Store.opened(named):
            summary = _Session(Store(place), expansion, status, progress).run(open_pool)
        if tuning is not None:
            tuning = replace(tuning, folder=named / TUNING)
        return replace(summary, folder=named, tuning=tuning)

    def __repr__(self) -> str:
        spec = self.spec
        lengths = {config.parameters.get("horizon") for _, config, _ in spec.environments}
        counts = [
            _count(len({entry.label for entry, _, _ in spec.environments}), "environment"),
            *([_count(len(lengths), "horizon")] if len(lengths) > 1 else []),
            _count(len(spec.agents), "agent"),
            _count(len(spec.seeds), "seed"),
            _count(len(spec.environments) * len(spec.agents) * len(spec.seeds), "run"),
        ]
        if (first := spec.tuning) is not None:
            runs = len(first.environments) * len(first.agents) * len(first.seeds)
            counts.append(f"after {_count(runs, 'tuning run')}")
        return f"Study({spec.name!r}: {', '.join(counts)})"


def _numbers(given: Any) -> Any:
    """Return one number or several as a study file would have them, right or wrong."""
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping)):
        return [_value(one) for one in given]
    return _value(given)


def _tables(given: Any, field: str) -> list[dict[str, Any]]:
    """Return tables as a study file would have them."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise InputError(
            f"{shown(given)} is no list of tables",
            field=field,
            fix=f'pass a list, such as {field}=[{{"id": "..."}}]',
        )
    return [_table(table, f"{field}[{i}]") for i, table in enumerate(given)]


def _table(table: Any, field: str) -> dict[str, Any]:
    if not isinstance(table, Mapping) or not all(isinstance(name, str) for name in table):
        raise InputError(
            f"{shown(table)} is no table", field=field, fix='pass a dict, such as {"id": "..."}'
        )
    return {name: _value(value) for name, value in table.items()}


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return [_value(one) for one in value]
    if isinstance(value, Radii):
        return value.spec()
    return value.item() if isinstance(value, np.generic) else value


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


_WARM_UP = 16  # steps that compile a learner


@dataclass(frozen=True)
class Failure:
    """A run that could not be made, and why; it is tried again the next time."""

    what: str
    why: str


@dataclass
class StudyStatus:
    """The state of a running study; given to `progress` now and then.

    Attributes
    ----------
    stage
        The stage: "planning", "reading", "compiling", "oracles" or "runs".
    total, kept, made, failed
        Runs that are asked for, that were there already, that were made now, that failed.
    steps, steps_to_do
        Steps of the runs made now, and of all that are to be made now; those that failed are not.
    running
        Names of the jobs the workers have begun.
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
class StudySummary:
    """The outcome of running a study.

    Attributes
    ----------
    folder
        Of the results.
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
    tuning
        The same of the runs that parameters were picked from; None if there was nothing to tune.
    """

    folder: Path
    runs: int
    kept: int
    made: int
    repaired: tuple[str, ...]
    failures: tuple[Failure, ...]
    spare: int
    hash: str
    tuning: StudySummary | None = None


def reason(err: Exception) -> str:
    """Return why a run failed: our errors speak for themselves, others need their names.

    >>> reason(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    """
    return str(err) if isinstance(err, WindageError) else f"{type(err).__name__}: {err}"


class _Session:
    """One call of `Study.run`."""

    def __init__(
        self,
        store: Store,
        expansion: Expansion,
        status: StudyStatus,
        progress: Callable[[StudyStatus], None],
    ) -> None:
        self.store = store
        self.tasks = expansion.tasks
        self.manifest = expansion.manifest
        self.status = status
        self.progress = progress
        self.failures: dict[str, Failure] = {}
        self.repaired: list[str] = []
        self.gains: dict[str, Gains] = {}
        self.warned = set(expansion.warned)
        self.labels = {run.key: run for run in reversed(self.manifest.runs)}

    def run(self, open_pool: Callable[[], AbstractContextManager[Pool]]) -> StudySummary:
        """Read the results that are there, and make those that are missing."""
        store, status = self.store, self.status
        store.write_manifest(_with_history(self.manifest, store))
        self._stage("reading")
        todo = [task for key, task in self.tasks.items() if not self._is_whole("runs", key)]
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
        """Return a sorting key: whole seeds first, and few models at a time."""
        return self.labels[task.key].environment_index // AT_HAND, task.seed

    def _oracles(self, keys: list[str]) -> Iterable[Job]:
        environments = {task.environment.key: task.environment for task in self.tasks.values()}
        runs = {run.oracle: run for run in reversed(self.manifest.runs)}
        for key in keys:
            name = f"the oracle of {runs[key].environment}, T = {runs[key].horizon:,}"
            yield Job(key, name, solve, (environments[key],))

    def _runs(self, todo: list[Task]) -> Iterable[Job]:
        for task in todo:
            run = self.labels[task.key]
            if run.oracle is not None and run.oracle not in self.gains:
                self._fail(task.key, str(run), "its oracle failed", run.horizon)
                continue
            gains = None if run.oracle is None else self.gains[run.oracle]
            yield Job(task.key, str(run), None, (task, gains), run.horizon)

    def _all(self, crew: Crew, jobs: Iterable[Job], keep: Callable[[Job, Outcome], None]) -> None:
        """Keep the outcomes; a job that fails is noted, and the others go on."""
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
            if not {(agent, message), (agent, kind)} & self.warned:
                self.warned.add((agent, kind))
                warnings.warn(
                    f"{agent}: {message}", getattr(errors, kind, UserWarning), stacklevel=2
                )
        self.progress(self.status)

    def _keep_oracle(self, job: Job, outcome: Outcome) -> None:
        self.store.keep("oracles", job.key, outcome, _now())
        self._solved(job.key)

    def _solved(self, key: str) -> bool:
        """Return whether an oracle is there; if so, its sums are at hand."""
        if not self._is_whole("oracles", key):
            return False
        row = self.store.oracle(key)
        assert row is not None
        self.gains[key] = gains_of(row)
        return True

    def _is_whole(self, kind: Kind, key: str) -> bool:
        """Return whether a result is there to the last bit; a damaged one is deleted."""
        try:
            return (self.store.run if kind == "runs" else self.store.oracle)(key) is not None
        except StateError as err:
            self.repaired.append(f"{err.field} {err.problem}")
            self.store.remove(kind, key)
            return False

    def _summary(self) -> StudySummary:
        present = self.store.present("runs")
        whole = not self.failures and present >= self.tasks.keys()
        order = [*self.manifest.oracle_keys(), *self.tasks]
        return StudySummary(
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
    """Return the manifest with the versions that ran parts of the study before."""
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
    if Plan.of(last.study) != Plan.of(manifest.study) and store.present("runs"):
        warnings.warn(
            f"the planned comparisons changed after there were results in {store.folder}: p-values "
            "are corrected for the new ones only",
            errors.ParameterWarning,
            stacklevel=2,
        )
    before = [*last.before, last.versions]
    now = versions()
    others = [used for i, used in enumerate(before) if used != now and used not in before[:i]]
    if others and last.versions != now and store.present("runs"):
        warnings.warn(
            f"results in {store.folder} were made with other versions, which manifest.json lists; "
            "they are kept, and `windage verify` says whether they are the same today",
            errors.ParameterWarning,
            stacklevel=2,
        )
    return msgspec.structs.replace(manifest, before=others)


def _warm_up(todo: list[Task], *, oracle: bool) -> None:
    """Compile the learners and the oracle once, before there are several workers."""
    seen = set()
    for task in todo:
        ids = task.agent.id, task.environment.id
        if ids in seen:
            continue
        seen.add(ids)
        if any(":" in id for id in ids):  # noqa: A001
            continue
        with contextlib.suppress(WindageError), listening():  # a run that fails will say so itself
            model = task.environment.build()
            assert isinstance(model, DriftingMDP)
            agent = task.agent.build(model, task.seed)
            if isinstance(agent, Agent) and agent.has_loop():
                steps = min(_WARM_UP, model.horizon)
                run_agent(model, agent, task.seed, steps=steps, record="totals")
    if oracle:
        envs.make("riverswim", horizon=10).optimal_gains()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
