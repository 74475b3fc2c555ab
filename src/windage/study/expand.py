"""Expansion of a study into runs: agents tuned, keys known, nothing run yet."""

from __future__ import annotations

import functools
import platform
import re
import subprocess
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from windage.agents.registry import in_words
from windage.errors import InputError, StateError, WindageError, listening
from windage.models import DriftingMDP
from windage.simulators import Problem
from windage.spaces import StateActions
from windage.study.compare import better, measure
from windage.study.configs import FORMAT, AgentConfig, EnvironmentConfig, hash_of, tuned
from windage.study.spec import Entry, Spec
from windage.study.store import TUNING, Manifest, ManifestRun, Store, load_results
from windage.study.task import Task
from windage.validation import LAST_TIME, as_integer, shown

__all__ = ["Expansion", "Preview", "PreviewRow", "expand", "pick", "preview", "versions"]

_PACKAGES = ("windage", "numpy", "scipy", "numba", "llvmlite", "polars")


@dataclass(frozen=True)
class Expansion:
    """All runs of a study.

    Attributes
    ----------
    manifest
        As it will stand in the folder.
    tasks
        By their keys; runs that two labels share are there once.
    warned
        What agents have warned of while they were built: label and message, with its numbers and
        without.
    """

    manifest: Manifest
    tasks: dict[str, Task]
    warned: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class PreviewRow:
    """One agent in one environment at one horizon.

    Attributes
    ----------
    environment, agent
        Their labels.
    seeds
        On how many seeds it is to be run.
    done
        Of how many of them the folder has a result, whole or not: none was read.
    """

    environment: str
    horizon: int
    agent: str
    seeds: int
    done: int

    @property
    def there(self) -> int:
        """Former name of `done`."""
        return _renamed(self.done)


@dataclass(frozen=True)
class Preview:
    """The size of a study; a run that two labels share is made once, and counted once.

    Attributes
    ----------
    places
        Agents in environments, in the order of the study.
    runs, done
        Runs that are asked for, and of how many the folder has a result.
    steps
        Of the runs that are to be made.
    tuning
        The runs that parameters are picked from; None if there is nothing to tune.
    """

    places: tuple[PreviewRow, ...]
    runs: int
    done: int
    steps: int
    tuning: Preview | None = None

    @property
    def there(self) -> int:
        """Former name of `done`."""
        return _renamed(self.done)


def _renamed(done: int) -> int:
    warnings.warn("`there` is called `done`", DeprecationWarning, stacklevel=3)
    return done


Picks = Mapping[tuple[str, str], Entry]
"""What was picked for an agent in an environment: by the environment's key, and the label."""


def expand(spec: Spec, picks: Picks | None = None) -> Expansion:
    """Tune every agent to every environment, and list the runs.

    Where nothing was picked yet, the first value stands for those to be tuned over.

    Raises
    ------
    InputError
        An agent cannot be made for an environment; the message says which and why, and where it
        stands in the file.
    """
    try:
        return _expand(spec, picks or {})
    except InputError as err:
        if not spec.source:
            raise
        place = f"{spec.source}: {err.field}"
        raise InputError(err.problem, field=place, where=err.where, fix=err.fix) from err.__cause__


def preview(spec: Spec, folder: str | Path | None) -> Preview:
    """Return what a study asks for; agents are tuned, and nothing is written."""
    store = None if folder is None else Store.at(folder)
    present = set() if store is None else store.present("runs")
    tuning, picks = None, None
    if spec.tuning is not None:
        tuning = preview(spec.tuning, None if store is None else store.folder / TUNING)
        if store is not None and tuning.runs == tuning.done:
            picks = pick(spec, store.folder / TUNING)
    unknown = {entry.label for entry in spec.agents if entry.candidates and picks is None}
    runs = expand(spec, picks).manifest.runs
    seeds: dict[tuple[str, int, str], list[bool]] = {}
    for run in runs:
        place = run.environment, run.horizon, run.agent
        done = run.key in present and run.agent not in unknown
        seeds.setdefault(place, []).append(done)
    horizons = {run.key: run.horizon for run in runs}
    present &= {run.key for run in runs if run.agent not in unknown}
    return Preview(
        places=tuple(PreviewRow(*place, len(done), sum(done)) for place, done in seeds.items()),
        runs=len(horizons),
        done=len(horizons.keys() & present),
        steps=sum(horizon for key, horizon in horizons.items() if key not in present),
        tuning=tuning,
    )


def pick(spec: Spec, folder: Path) -> Picks:
    """Return the candidate with the best mean on the tuning seeds, in every environment.

    The first of equals is taken. One that has not a run on every tuning seed is left out.
    """
    assert spec.tuning is not None
    results = load_results(folder, unfinished=True)
    picks: dict[tuple[str, str], Entry] = {}
    for environment_entry, environment, _ in spec.environments:
        horizon = environment.parameters.get("horizon")
        here = results.filter(pl.col("environment") == environment_entry.label)
        if horizon is not None:
            here = here.filter(pl.col("horizon") == horizon)
        by = measure(here)
        sign = 1.0 if better(by) == "more" else -1.0
        for entry in spec.agents:
            scores: dict[str, float] = {}
            for candidate in entry.candidates:
                runs = here.filter(pl.col("agent") == candidate.label)[by]
                if runs.len() == len(spec.tuning.seeds):
                    scores[candidate.label] = sign * float(np.mean(runs.to_numpy()))
            if entry.candidates and not scores:
                raise StateError(
                    f"none of its {len(entry.candidates)} settings has a run on every tuning seed "
                    f"on {environment_entry.label}",
                    field=entry.place,
                    fix="mend what failed, or leave it out",
                )
            if scores:
                best = max(scores, key=lambda label: scores[label])
                chosen = next(one for one in entry.candidates if one.label == best)
                picks[environment.key, entry.label] = chosen
    return picks


def _tuned_in_words(spec: Spec, entry: Entry) -> str:
    """Return what was picked for an entry, and on which seeds."""
    if not entry.tuned or spec.tuning is None:
        return ""
    first, last = min(spec.tuning.seeds), max(spec.tuning.seeds)
    seeds = "seed" if first == last else f"{len(spec.tuning.seeds)} seeds from"
    span = f"{first}" if first == last else f"{first} to {last}"
    return f"{' and '.join(entry.tuned)}, on {seeds} {span}"


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions that results may depend on."""
    known = {name: metadata.version(name) for name in _PACKAGES}
    known["python"] = platform.python_version()
    commit = _commit()
    return known | ({"commit": commit} if commit else {})


def _expand(spec: Spec, picks: Picks) -> Expansion:
    environments: list[EnvironmentConfig] = []
    agents: list[AgentConfig] = []
    runs: list[ManifestRun] = []
    tasks: dict[str, Task] = {}
    warned: set[tuple[str, str]] = set()
    for entry, environment, oracle in spec.environments:
        problem = _build(entry, environment)
        measured = oracle and isinstance(problem, DriftingMDP)
        oracle_key = environment.key if measured else None
        for agent_entry in spec.agents:
            chosen = picks.get((environment.key, agent_entry.label), agent_entry)
            agent = _tuned(replace(chosen, label=agent_entry.label), entry, problem, warned)
            keys = agent.keys(environment, spec.seeds, measured=measured)
            for seed, key in zip(spec.seeds, keys, strict=True):
                tasks.setdefault(key, Task(key, environment, agent, seed))
                runs.append(
                    ManifestRun(
                        key=key,
                        environment=entry.label,
                        agent=agent_entry.label,
                        horizon=problem.horizon,
                        seed=seed,
                        environment_index=len(environments),
                        agent_index=len(agents),
                        oracle=oracle_key,
                        tuned=_tuned_in_words(spec, agent_entry),
                    )
                )
            agents.append(agent)
        environments.append(environment)
    _require_one_name_each([entry for entry, _, _ in spec.environments], "environment", runs)
    _require_one_name_each(spec.agents, "agent", runs)
    names = [[run.key, run.environment, run.agent, run.oracle] for run in runs]
    planned = [[spec.plan.baseline, spec.plan.pairs]] if spec.plan else []
    manifest = Manifest(
        windage_study=FORMAT,
        name=spec.name,
        hash=hash_of(FORMAT, spec.name, names, *planned),
        study=spec.data,
        environments=environments,
        agents=agents,
        versions=versions(),
        before=[],
        runs=runs,
    )
    return Expansion(manifest, tasks, frozenset(warned))


def _require_one_name_each(
    entries: Sequence[Entry], kind: str, runs: Sequence[ManifestRun]
) -> None:
    """Refuse two names for the same thing in all its runs: a page would show it twice."""
    keys: dict[str, list[str]] = {}
    for run in runs:
        keys.setdefault(getattr(run, kind), []).append(run.key)
    first: dict[tuple[str, ...], Entry] = {}
    for entry in entries:
        if entry.candidates:  # what was picked may well be what another has been set to
            continue
        other = first.setdefault(tuple(keys[entry.label]), entry)
        if other.label != entry.label:
            raise InputError(
                f"{entry.label!r} is {other.label!r} of {other.place} under another name: "
                "all their runs are the same",
                field=entry.place,
                fix="leave one of them out",
            )


def _build(entry: Entry, environment: EnvironmentConfig) -> DriftingMDP | Problem:
    try:
        problem = environment.build()
    except WindageError as err:
        raise InputError(
            err.problem, field=f"{entry.place}.{err.field}", where=err.where, fix=_fix(err, entry)
        ) from None
    except (Exception, SystemExit) as err:
        raise InputError(
            f"cannot be made: {in_words(err)}",
            field=entry.place,
            fix=_hint(entry, "mend its parameters"),
        ) from err
    if not isinstance(problem, DriftingMDP):
        _require_problem(problem, entry.place)
    return problem


def _require_problem(problem: Any, place: str) -> None:
    """Refuse an object that is no environment, in its own name: agents would be blamed for it."""
    kind = type(problem).__name__
    fix = "return a DriftingMDP, or an environment with space, horizon, reset, step"
    for name in ("space", "horizon", "step", "reset"):
        if not hasattr(problem, name):
            raise InputError(f"makes a {kind}, which has no {name!r}", field=place, fix=fix)
    if not isinstance(problem.space, StateActions):
        message = f"makes a {kind} whose space is {shown(problem.space)}"
        raise InputError(message, field=place, fix="give it wd.StateActions")
    as_integer(problem.horizon, f"{place}.horizon", low=1, high=LAST_TIME)


def _tuned(
    agent: Entry,
    environment: Entry,
    problem: DriftingMDP | Problem,
    warned: set[tuple[str, str]],
) -> AgentConfig:
    """Return an agent tuned to an environment; a warning is passed on once, numbers apart."""
    where = f"on {environment.label}"
    try:
        with listening() as heard:
            config = tuned(agent.id, agent.parameters, problem)
    except WindageError as err:
        raise InputError(
            f"{err.problem} ({where})",
            field=f"{agent.place}.{err.field}" if _top(err) in agent.parameters else agent.place,
            where=err.where,
            fix=_fix(err, agent),
        ) from None
    except (Exception, SystemExit) as err:
        raise InputError(
            f"cannot be made {where}: {in_words(err)}",
            field=agent.place,
            fix=_hint(agent, "mend its parameters"),
        ) from err
    for message, category in heard:
        if (agent.label, _shape(message)) not in warned:
            name = f"{agent.label} {where}, T = {problem.horizon:,}"
            warnings.warn(f"{name}: {message}", category, stacklevel=2)
        warned |= {(agent.label, message), (agent.label, _shape(message))}
    return config


def _shape(message: str) -> str:
    """Return a message without its numbers: at other horizons it would say the same again.

    >>> _shape("gamma = 5.23 > 1")
    'gamma = # > #'
    """
    return re.sub(r"\d[\d,.e+-]*", "#", message)


def _fix(err: WindageError, entry: Entry) -> str:
    return _hint(entry, err.fix) if err.field in entry.listed else err.fix


def _top(err: WindageError) -> str:
    """Return the parameter an error is about, without the way to the value inside it."""
    return re.split(r"[.\[]", err.field, maxsplit=1)[0]


def _hint(entry: Entry, fix: str) -> str:
    """Return a fix, and beside it what a list means."""
    if not entry.listed:
        return fix
    return f"{fix}; a list is a sweep, a parameter that is a list is written [[...]]"


def _commit() -> str:
    """Return the commit of the source, with a mark if it was changed since; empty if unknown."""
    here = Path(__file__).parent

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603
            ["git", "-C", str(here), *arguments],  # noqa: S607
            capture_output=True, text=True, check=False, timeout=10,
        )  # fmt: skip

    try:
        if git("ls-files", "--error-unmatch", Path(__file__).name).returncode:
            return ""  # the repository around this folder is not that of the library
        described = git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return ""
    return described.stdout.strip() if described.returncode == 0 else ""
