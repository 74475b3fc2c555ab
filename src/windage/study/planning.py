"""From what a study says to the runs it asks for: agents tuned, keys known, nothing run yet."""

from __future__ import annotations

import functools
import platform
import re
import subprocess
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from windage.agents.plugins import in_words
from windage.agents.warning_capture import listening
from windage.errors import InputError, WindageError
from windage.models import DriftingMDP
from windage.simulators import Problem
from windage.spaces import StateActions
from windage.study.kinds import FORMAT, Player, World, hash_of, resolve
from windage.study.manifest import Asked, Manifest
from windage.study.play import Task
from windage.study.spec import Entry, Spec
from windage.validation import LAST_TIME, as_integer, shown

__all__ = ["Plan", "plan", "versions"]

_PACKAGES = ("windage", "numpy", "scipy", "numba", "llvmlite", "polars")


@dataclass(frozen=True)
class Plan:
    """All runs of a study.

    Attributes
    ----------
    manifest
        As it will stand in the folder.
    tasks
        By their keys; runs that two labels share are there once.
    said
        What agents have warned of while they were made: label and message, with its numbers and
        without.
    """

    manifest: Manifest
    tasks: dict[str, Task]
    said: frozenset[tuple[str, str]]


def plan(spec: Spec) -> Plan:
    """Tune every agent to every environment, and say what is to be run.

    Raises
    ------
    InputError
        An agent cannot be made for an environment; the message says which and why, and where it
        stands in the file.
    """
    try:
        return _planned(spec)
    except InputError as err:
        if not spec.source:
            raise
        place = f"{spec.source}: {err.field}"
        raise InputError(err.problem, field=place, where=err.where, fix=err.fix) from err.__cause__


def _planned(spec: Spec) -> Plan:
    worlds: list[World] = []
    players: list[Player] = []
    asked: list[Asked] = []
    tasks: dict[str, Task] = {}
    said: set[tuple[str, str]] = set()
    for entry, world, oracle in spec.worlds:
        made = _world(entry, world)
        measured = oracle and isinstance(made, DriftingMDP)
        oracle_key = world.key if measured else None
        for agent in spec.agents:
            player = _player(agent, entry, made, said)
            keys = player.keys(world, spec.seeds, measured=measured)
            for seed, key in zip(spec.seeds, keys, strict=True):
                task = Task(key, world, player, seed)
                tasks.setdefault(task.key, task)
                asked.append(
                    Asked(
                        key=task.key,
                        environment=entry.label,
                        agent=agent.label,
                        horizon=made.horizon,
                        seed=seed,
                        world=len(worlds),
                        player=len(players),
                        oracle=oracle_key,
                    )
                )
            players.append(player)
        worlds.append(world)
    _require_one_name_each([entry for entry, _, _ in spec.worlds], "environment", asked)
    _require_one_name_each(spec.agents, "agent", asked)
    names = [[one.key, one.environment, one.agent, one.oracle] for one in asked]
    manifest = Manifest(
        windage_study=FORMAT,
        name=spec.name,
        hash=hash_of(FORMAT, spec.name, names),
        study=spec.data,
        worlds=worlds,
        players=players,
        versions=versions(),
        before=[],
        runs=asked,
    )
    return Plan(manifest, tasks, frozenset(said))


def _require_one_name_each(entries: Sequence[Entry], kind: str, asked: Sequence[Asked]) -> None:
    """Refuse two names for what is the same in all its runs: a page would show it twice."""
    keys: dict[str, list[str]] = {}
    for one in asked:
        keys.setdefault(getattr(one, kind), []).append(one.key)
    first: dict[tuple[str, ...], Entry] = {}
    for entry in entries:
        other = first.setdefault(tuple(keys[entry.label]), entry)
        if other.label != entry.label:
            raise InputError(
                f"{entry.label!r} is {other.label!r} of {other.place} under another name: "
                "all their runs are the same",
                field=entry.place,
                fix="leave one of them out",
            )


def _world(entry: Entry, world: World) -> DriftingMDP | Problem:
    try:
        made = world.make()
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
    if not isinstance(made, DriftingMDP):
        _require_world(made, entry.place)
    return made


def _require_world(made: Any, place: str) -> None:
    """Refuse what is no world, in its own name: an agent that meets it would be blamed."""
    kind, fix = (
        type(made).__name__,
        "return a DriftingMDP, or a world with space, horizon, reset, step",
    )
    for name in ("space", "horizon", "step", "reset"):
        if not hasattr(made, name):
            raise InputError(f"makes a {kind}, which has no {name!r}", field=place, fix=fix)
    if not isinstance(made.space, StateActions):
        problem = f"makes a {kind} whose space is {shown(made.space)}"
        raise InputError(problem, field=place, fix="give it wd.StateActions")
    as_integer(made.horizon, f"{place}.horizon", low=1, high=LAST_TIME)


def _player(
    agent: Entry,
    environment: Entry,
    world: DriftingMDP | Problem,
    said: set[tuple[str, str]],
) -> Player:
    """Return an agent tuned to a world; what it warns of is said once, numbers apart."""
    where = f"on {environment.label}"
    try:
        with listening() as heard:
            player = resolve(agent.id, agent.parameters, world)
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
        if (agent.label, _shape(message)) not in said:
            name = f"{agent.label} {where}, T = {world.horizon:,}"
            warnings.warn(f"{name}: {message}", category, stacklevel=2)
        said |= {(agent.label, message), (agent.label, _shape(message))}
    return player


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


@functools.cache
def versions() -> dict[str, str]:
    """Return what results may depend on."""
    found = {name: metadata.version(name) for name in _PACKAGES}
    found["python"] = platform.python_version()
    commit = _commit()
    return found | ({"commit": commit} if commit else {})


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
            return ""  # the repository around us is somebody else's
        done = git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
