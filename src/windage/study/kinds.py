"""Environments and agents of a study as plain data: `World` and `Player`.

They hold all that determines a run, with every default and
every tuned number written out, so that a hash of them is the key of its result; and they can be
sent to another process or machine and made there again.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from windage import agents, envs
from windage.agents import plugins
from windage.errors import InputError, StateError, WindageError
from windage.models import DriftingMDP
from windage.models.files import fingerprint, load
from windage.simulate import time_of
from windage.simulators import Problem
from windage.study.ids import agent_kind, require_same_source, source_digest, world_kind

__all__ = ["AT_HAND", "FILE", "FORMAT", "Player", "World", "file_world", "hash_of", "resolve"]

FORMAT = 2
"""Of result files, 2 since they tell what multi-scale learners forget.

It is part of every key: another format is another result, and older files stay as they are.
"""

AT_HAND = 16
"""So many worlds a worker keeps; runs are handed out so that it need not make one again."""

FILE = "file"
"""The id of an environment that was read from a file; its digest says which."""


class World(msgspec.Struct, frozen=True):
    """An environment with all its parameters.

    Attributes
    ----------
    id
        With its version; `module:Class`; or "file".
    parameters
        All of them, the horizon and the defaults included.
    digest
        Of the content of a file, or of the source of a module.
    path
        Where the file is. Not part of the key.
    """

    id: str
    parameters: dict[str, Any]
    digest: str = ""
    path: str = ""

    @property
    def key(self) -> str:
        """The name of its oracle."""
        return hash_of(FORMAT, self.id, self.parameters, self.digest)

    def make(self) -> DriftingMDP | Problem:
        """Return the world; one that is no model is a new one every time."""
        if self.id == FILE:
            return _loaded(self.path, self.digest)
        if ":" in self.id:
            return _own(self)
        return _made(self.id, json.dumps(self.parameters))


class Player(msgspec.Struct, frozen=True):
    """An agent with all its parameters, every tuned number written out.

    Attributes
    ----------
    id
        As in `windage agents`, or `module:Class`.
    parameters
        All but the space, the horizon and the seed.
    digest
        Of the source of a module.
    told
        What it is told of the world, if that is less or more than its kind is told: the same
        numbers, chosen by hand, are a result with another label, and so have another key.
    """

    id: str
    parameters: dict[str, Any]
    digest: str = ""
    told: tuple[str, ...] | None = None

    def keys(self, world: World, seeds: Iterable[int], *, measured: bool) -> list[str]:
        """The names of the results of runs on these seeds, measured by the oracle or not.

        Parameters may be long, so they are hashed once, and then each seed with their hash.
        """
        more = () if self.told is None else ({"told": self.told},)
        made = hash_of(FORMAT, world.key, self.id, self.parameters, self.digest, measured, *more)
        return [hash_of(made, seed) for seed in seeds]

    def make(self, world: DriftingMDP | Problem, seed: int) -> Any:
        """Return a new agent for a run in this world."""
        kind = agent_kind(self.id, "agent")
        require_same_source(kind, self.id, self.digest)
        if plugins.is_own(kind):
            return plugins.build(kind, _own_arguments(kind, world, seed), self.parameters)
        options = self.parameters | {"horizon": world.horizon, "seed": seed}
        if "problem" in agents.parameters(kind):
            options["problem"] = world
        return kind(world.space, **options)


def resolve(
    id: str,  # noqa: A002
    options: dict[str, Any],
    world: DriftingMDP | Problem,
) -> Player:
    """Return an agent as data, tuned to a world where its options say so; it can be made."""
    kind = agent_kind(id, "id")
    digest = "" if kind.__module__.startswith("windage.") else source_digest(kind)
    if plugins.is_own(kind):
        arguments = _own_arguments(kind, world, 0)
        time_of(plugins.build(kind, arguments, options))
        given = {name: arguments.get(name) for name in ("budgets", "diameter")}
        return Player(id, options, digest, _told(kind, given))
    facts = agents.facts(kind, world, **options) if isinstance(world, DriftingMDP) else {}
    agent = agents.make(kind, world.space, horizon=world.horizon, seed=0, **(facts | options))
    resolved = {
        name: value
        for name, value in agent.configuration().items()
        if name not in ("space", "horizon", "seed")
    }
    return Player(id, json.loads(json.dumps(resolved)), digest, _told(kind, facts | options))


def _told(kind: Any, given: dict[str, Any]) -> tuple[str, ...] | None:
    """Return what an agent with these arguments is told; None if that is what its kind is told."""
    told = agents.requires(kind, **given)
    return None if told == getattr(kind, "requires", ()) else told


def file_world(path: Path, field: str) -> World:
    """Return the world of a model file, known by its content."""
    try:
        model = load(path)
    except WindageError as err:
        place = f"{field} {path}"
        raise InputError(err.problem, field=place, where=err.where, fix=err.fix) from None
    return World(FILE, {"horizon": model.horizon}, fingerprint(model), str(path.resolve()))


def hash_of(*parts: object) -> str:
    """Return a name for plain data: the same for the same data on every machine.

    >>> hash_of(1, {"a": 1, "b": 2}) == hash_of(1, {"b": 2, "a": 1})
    True
    """
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


_models: dict[str, DriftingMDP] = {}


def _own(world: World) -> DriftingMDP | Problem:
    """Make a world of the user's own; models do not change and are made once."""
    if world.key not in _models:
        kind = world_kind(world.id, "environment")
        require_same_source(kind, world.id, world.digest)
        made: DriftingMDP | Problem = kind(**world.parameters)
        if not isinstance(made, DriftingMDP):
            return made
        _models[world.key] = made
    return _models[world.key]


@functools.lru_cache(maxsize=AT_HAND)
def _made(id: str, parameters: str) -> DriftingMDP:  # noqa: A002
    return envs.make(id, **json.loads(parameters))


@functools.lru_cache(maxsize=AT_HAND)
def _loaded(path: str, digest: str) -> DriftingMDP:
    model = load(path)
    if fingerprint(model) != digest:
        raise StateError(
            "holds another model than when the study was started",
            field=path,
            fix="give all workers the same file, and start the study again",
        )
    return model


def _own_arguments(kind: Any, world: DriftingMDP | Problem, seed: int) -> dict[str, Any]:
    """Return what a class of one's own may ask for; of a model also what it must be told."""
    told = dict(_facts(kind, world)) if isinstance(world, DriftingMDP) else {}
    return {"space": world.space, "horizon": world.horizon, "seed": seed} | told


@functools.lru_cache(maxsize=64)
def _facts(kind: Any, world: DriftingMDP) -> tuple[tuple[str, Any], ...]:
    return tuple(agents.facts(kind, world).items())
