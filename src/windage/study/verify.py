"""Verification of a study: whether its files are whole, and come out the same when recomputed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from windage.errors import StateError, WindageError
from windage.rng import stream
from windage.study import schema
from windage.study.executors import cores
from windage.study.expand import versions
from windage.study.schema import Gains, Schema
from windage.study.store import Manifest, Store, version_changes
from windage.study.study import Failure, reason
from windage.study.task import Outcome, Task, gains_of, play, solve
from windage.validation import as_integer

__all__ = ["ResultMismatch", "StudyVerification", "verify"]


@dataclass(frozen=True)
class ResultMismatch:
    """A result that came out differently, and in which columns."""

    what: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class StudyVerification:
    """Findings of `verify`.

    Attributes
    ----------
    files
        Result files that were read to the last bit.
    recomputed
        Results that were computed again: runs, and the oracles they are measured by.
    missing
        Runs and oracles that the study asks for and that are not there.
    damaged
        Files that are not as they were written, or cannot be read.
    different
        Results that came out differently.
    failed
        Results that could not be computed again, as when the source of a class has changed.
    versions
        Versions that have changed since: name, then, now.
    """

    files: int
    recomputed: int
    missing: int
    damaged: tuple[str, ...]
    different: tuple[ResultMismatch, ...]
    failed: tuple[Failure, ...]
    versions: tuple[tuple[str, str, str], ...]

    @property
    def holds(self) -> bool:
        """Whether nothing is missing or damaged, and the sample came out the same."""
        return not (self.missing or self.damaged or self.different or self.failed)


def verify(
    folder: str | Path,
    *,
    sample: int | None = 5,
    seed: int = 0,
    progress: Callable[[str], None] = lambda what: None,  # noqa: ARG005
) -> StudyVerification:
    """Read all files of a study, compute some of them again, and compare; nothing is changed.

    Parameters
    ----------
    folder
        What `windage run -o` wrote.
    sample
        How many runs to compute again; None: all of them.
    seed
        Names the sample.
    progress
        Called with the name of each stage.
    """
    if sample is not None:
        as_integer(sample, "sample", low=0)
    store = Store.found(folder)
    manifest = store.manifest()
    progress("reading")
    runs, oracles = manifest.run_keys(), manifest.oracle_keys()
    damaged: list[str] = []
    stored = [key for key in runs if _is_whole(store.run, key, damaged)]
    solved = [key for key in oracles if _is_whole(store.oracle, key, damaged)]
    tasks = _tasks(manifest)
    sampled = [tasks[key] for key in _sample(stored, sample, seed)]
    with contextlib.chdir("."):  # and back to it: agents may leave
        lasting = Store(store.folder.absolute())
        findings = list(_recomputed(lasting, manifest, sampled, progress))
    failed = tuple(finding for finding in findings if isinstance(finding, Failure))
    keys = {task.key for task in sampled}
    benchmarks = {run.oracle for run in manifest.runs if run.oracle and run.key in keys}
    return StudyVerification(
        files=len(stored) + len(solved),
        recomputed=len(sampled) + len(benchmarks) - len(failed),
        missing=len(set(runs) - store.present("runs"))
        + len(set(oracles) - store.present("oracles")),
        damaged=tuple(damaged),
        different=tuple(finding for finding in findings if isinstance(finding, ResultMismatch)),
        failed=failed,
        versions=version_changes(manifest.versions, versions()),
    )


def _recomputed(
    store: Store, manifest: Manifest, sampled: list[Task], progress: Callable[[str], None]
) -> Iterable[ResultMismatch | Failure]:
    """Recompute a sample; yield results that differ or fail. A failure does not end the others."""
    runs = {run.key: run for run in reversed(manifest.runs)}
    environments = {task.environment.key: task.environment for task in sampled
                    if runs[task.key].oracle}  # fmt: skip
    gains: dict[str | None, Gains | None] = {None: None}
    with ThreadPoolExecutor(cores()) as pool:
        progress(f"{len(environments)} oracles")
        solving = {key: pool.submit(solve, config) for key, config in environments.items()}
        for key, future in solving.items():
            name = f"the oracle {key}"
            outcome = _outcome(future, name)
            if isinstance(outcome, Failure):
                yield outcome
                continue
            gains[key] = gains_of(schema.decode(outcome.data, schema.ORACLE, Path(key)))
            path = store.path("oracles", key)
            yield from _mismatches(path, outcome.data, schema.ORACLE, name)
        progress(f"{len(sampled)} runs")
        playing = {
            task.key: pool.submit(play, task, gains[runs[task.key].oracle])
            for task in sampled
            if runs[task.key].oracle in gains
        }
        for task in sampled:
            run = runs[task.key]
            name = f"{run.agent} on {run.environment}, seed {run.seed} ({task.key})"
            if task.key not in playing:
                yield Failure(name, "its oracle failed")
                continue
            outcome = _outcome(playing[task.key], name)
            if isinstance(outcome, Failure):
                yield outcome
                continue
            yield from _mismatches(store.path("runs", task.key), outcome.data, schema.RUN, name)


def _outcome(future: Future[Outcome], name: str) -> Outcome | Failure:
    """Return the outcome, or why there is none: a class of the user's may raise anything."""
    try:
        return future.result()
    except Exception as err:
        return Failure(name, reason(err))


def _mismatches(
    path: Path, recomputed: bytes, columns: Schema, name: str
) -> Iterable[ResultMismatch]:
    """Yield a mismatch if stored values differ; other bytes may come from another writer."""
    try:
        changed = schema.changed_columns(path.read_bytes(), recomputed, columns, path)
    except (OSError, StateError):
        return  # missing or damaged: counted elsewhere
    if changed:
        yield ResultMismatch(name, tuple(changed))


def _tasks(manifest: Manifest) -> dict[str, Task]:
    return {
        run.key: Task(
            run.key,
            manifest.environments[run.environment_index],
            manifest.agents[run.agent_index],
            run.seed,
        )
        for run in manifest.runs
    }


def _sample(keys: list[str], n: int | None, seed: int) -> list[str]:
    if n is None or n >= len(keys):
        return keys
    places = stream(seed, "study.verify").permutation(len(keys))[:n]
    return [keys[i] for i in sorted(places.tolist())]


def _is_whole(read: Callable[[str], pl.DataFrame | None], key: str, damaged: list[str]) -> bool:
    try:
        return read(key) is not None
    except WindageError as err:
        damaged.append(f"{err.field} {err.problem}")
        return False
