"""`verify`: whether results are whole, and whether they come out the same today."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from windage.errors import StateError, WindageError
from windage.rng import stream
from windage.study.columns import Gains
from windage.study.manifest import Manifest, version_changes
from windage.study.play import Outcome, Task, gains_of, play, solve
from windage.study.pools import cores
from windage.study.status import Failure, reason
from windage.study.store import Store
from windage.study.tables import ORACLE, RUN, Schema, decode
from windage.validation import as_integer

__all__ = ["Difference", "Verification", "verify"]


@dataclass(frozen=True)
class Difference:
    """A result that came out differently, and in which columns."""

    what: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Verification:
    """What was looked at and what was found.

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
        What differs between the versions of then and of now: name, then, now.
    """

    files: int
    recomputed: int
    missing: int
    damaged: tuple[str, ...]
    different: tuple[Difference, ...]
    failed: tuple[Failure, ...]
    versions: tuple[tuple[str, str, str], ...]

    @property
    def holds(self) -> bool:
        """Whether all is there, nothing is damaged, and what was chosen came out the same."""
        return not (self.missing or self.damaged or self.different or self.failed)


def verify(
    folder: str | Path,
    *,
    sample: int | None = 5,
    seed: int = 0,
    progress: Callable[[str], None] = lambda what: None,  # noqa: ARG005
) -> Verification:
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
        Called with what is being done.
    """
    from windage.study.planning import versions

    if sample is not None:
        as_integer(sample, "sample", low=0)
    store = Store.found(folder)
    manifest = store.manifest()
    progress("reading")
    runs, oracles = manifest.run_keys(), manifest.oracle_keys()
    damaged: list[str] = []
    there = [key for key in runs if _whole(store.run, key, damaged)]
    solved = [key for key in oracles if _whole(store.oracle, key, damaged)]
    tasks = _tasks(manifest)
    chosen = [tasks[key] for key in _sample(there, sample, seed)]
    found = list(_recomputed(store, manifest, chosen, progress))
    failed = tuple(one for one in found if isinstance(one, Failure))
    keys = {task.key for task in chosen}
    worlds = {asked.oracle for asked in manifest.runs if asked.oracle and asked.key in keys}
    return Verification(
        files=len(there) + len(solved),
        recomputed=len(chosen) + len(worlds) - len(failed),
        missing=len(set(runs) - store.present("runs"))
        + len(set(oracles) - store.present("oracles")),
        damaged=tuple(damaged),
        different=tuple(one for one in found if isinstance(one, Difference)),
        failed=failed,
        versions=version_changes(manifest.versions, versions()),
    )


def _recomputed(
    store: Store, manifest: Manifest, chosen: list[Task], progress: Callable[[str], None]
) -> Iterable[Difference | Failure]:
    """Yield what came out differently, and what did not come out; the others go on."""
    names = {asked.key: asked for asked in reversed(manifest.runs)}
    worlds = {task.world.key: task.world for task in chosen if names[task.key].oracle}
    gains: dict[str | None, Gains | None] = {None: None}
    with ThreadPoolExecutor(cores()) as pool:
        progress(f"{len(worlds)} oracles")
        solving = {key: pool.submit(solve, world) for key, world in worlds.items()}
        for key, future in solving.items():
            what = f"the oracle {key}"
            outcome = _outcome(future, what)
            if isinstance(outcome, Failure):
                yield outcome
                continue
            gains[key] = gains_of(decode(outcome.data, ORACLE, Path(key)))
            yield from _compared(store.path("oracles", key), outcome.data, ORACLE, what)
        progress(f"{len(chosen)} runs")
        playing = {
            task.key: pool.submit(play, task, gains[names[task.key].oracle])
            for task in chosen
            if names[task.key].oracle in gains
        }
        for task in chosen:
            asked = names[task.key]
            what = f"{asked.agent} on {asked.environment}, seed {asked.seed} ({task.key})"
            if task.key not in playing:
                yield Failure(what, "its oracle failed")
                continue
            outcome = _outcome(playing[task.key], what)
            if isinstance(outcome, Failure):
                yield outcome
                continue
            yield from _compared(store.path("runs", task.key), outcome.data, RUN, what)


def _outcome(future: Future[Outcome], what: str) -> Outcome | Failure:
    """Return what was computed, or why it was not: a class of the user's may raise anything."""
    try:
        return future.result()
    except Exception as err:
        return Failure(what, reason(err))


def _compared(path: Path, now: bytes, schema: Schema, what: str) -> Iterable[Difference]:
    try:
        then = path.read_bytes()
    except OSError:
        return  # missing: counted elsewhere
    if then == now:
        return
    try:
        before, after = decode(then, schema, path), decode(now, schema, path)
    except StateError:
        return  # damaged: counted elsewhere
    columns = [name for name in schema if not _same(before[name], after[name])]
    if columns:  # other bytes of the same content: another version of the writer
        yield Difference(what, tuple(columns))


def _same(one: pl.Series, other: pl.Series) -> bool:
    return one.equals(other, null_equal=True)


def _tasks(manifest: Manifest) -> dict[str, Task]:
    return {
        asked.key: Task(
            asked.key, manifest.worlds[asked.world], manifest.players[asked.player], asked.seed
        )
        for asked in manifest.runs
    }


def _sample(keys: list[str], n: int | None, seed: int) -> list[str]:
    if n is None or n >= len(keys):
        return keys
    places = stream(seed, "study.verify").permutation(len(keys))[:n]
    return [keys[i] for i in sorted(places.tolist())]


def _whole(read: Callable[[str], pl.DataFrame | None], key: str, damaged: list[str]) -> bool:
    try:
        return read(key) is not None
    except WindageError as err:
        damaged.append(f"{err.field} {err.problem}")
        return False
