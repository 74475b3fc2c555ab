"""Environments and agents of a study as plain data: `EnvironmentConfig` and `AgentConfig`.

They hold all that determines a run, with every default and every tuned number written out, so that
a hash of them is the key of its result; and they can be sent to another process or machine and
built there.

An id is that of an environment or an agent of the library, or `module:Class`: a class of the
user's, which is identified by a hash of its source.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from windage import agents, envs
from windage.agents import registry
from windage.confidence.radii import Radii
from windage.errors import InputError, StateError, WindageError
from windage.models import DriftingMDP
from windage.models.files import fingerprint, load
from windage.simulate import time_of
from windage.simulators import Problem

__all__ = [
    "AT_HAND",
    "FILE",
    "FORMAT",
    "AgentConfig",
    "EnvironmentConfig",
    "agent_class",
    "agent_parameters",
    "changed",
    "current_digest",
    "environment_class",
    "environment_parameters",
    "file_environment",
    "hash_of",
    "source_digest",
    "tuned",
    "versioned",
    "with_defaults",
]

FORMAT = 2
"""Of result files; part of every key, so another format makes all runs anew.

It changes only with what older files cannot be read as: a column that is required, is of another
type or means something else. A nullable column is added without it.
"""

AT_HAND = 16
"""Models a worker keeps; runs are ordered so that it need not build one again."""

FILE = "file"
"""The id of an environment that was read from a file; its digest says which."""


class EnvironmentConfig(msgspec.Struct, frozen=True):
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

    def build(self) -> DriftingMDP | Problem:
        """Return the environment; one that is no model is a new one every time."""
        if self.id == FILE:
            return _load(self.path, self.digest)
        if ":" in self.id:
            return _build_own(self)
        return _build(self.id, json.dumps(self.parameters))


class AgentConfig(msgspec.Struct, frozen=True):
    """An agent with all its parameters, every tuned number written out.

    Attributes
    ----------
    id
        As in `windage agents`, or `module:Class`.
    parameters
        All but the space, the horizon and the seed, those at their defaults included; a default
        that is no plain data, such as a function, is its name. `structure` is the word
        "environment", whose key says which.
    digest
        Of the source of a module.
    told
        What it knows of the environment, if that is less or more than its kind requires: the same
        numbers, chosen by hand, are a result with another label, and so have another key.
    """

    id: str
    parameters: dict[str, Any]
    digest: str = ""
    told: tuple[str, ...] | None = None

    def keys(
        self, environment: EnvironmentConfig, seeds: Iterable[int], *, measured: bool
    ) -> list[str]:
        """The names of the results of runs on these seeds, measured by the oracle or not.

        Parameters may be long, so they are hashed once, and then each seed with their hash.
        """
        more = () if self.told is None else ({"told": self.told},)
        shared = hash_of(
            FORMAT, environment.key, self.id, self.parameters, self.digest, measured, *more
        )
        return [hash_of(shared, seed) for seed in seeds]

    def build(self, environment: DriftingMDP | Problem, seed: int) -> Any:
        """Return a new agent for a run in this environment."""
        kind = agent_class(self.id, "agent")
        _require_same_source(kind, self.id, self.digest)
        if registry.is_own(kind):
            options = changed(agent_parameters(self.id, "agent"), self.parameters)
            options = registry.with_structure(kind, options, environment)
            return registry.build(kind, _own_arguments(kind, environment, seed), options)
        options = self.parameters | {"horizon": environment.horizon, "seed": seed}
        options = registry.with_structure(kind, options, environment)
        if "problem" in agents.parameters(kind):
            options["problem"] = environment
        return kind(environment.space, **options)


def tuned(
    id: str,  # noqa: A002
    options: dict[str, Any],
    environment: DriftingMDP | Problem,
) -> AgentConfig:
    """Return an agent as data, tuned to an environment where its options say so.

    The agent is built once on the way, so what it refuses is refused here.
    """
    kind = agent_class(id, "id")
    digest = "" if kind.__module__.startswith("windage.") else current_digest(kind, id)
    written, options = options, registry.with_structure(kind, options, environment)
    if registry.is_own(kind):
        arguments = _own_arguments(kind, environment, 0)
        time_of(registry.build(kind, arguments, options))
        given = {name: arguments.get(name) for name in ("budgets", "diameter")}
        given["structure"] = options.get("structure")
        parameters = with_defaults(agent_parameters(id, "id"), written)
        return AgentConfig(id, parameters, digest, _told(kind, given))
    model = environment if isinstance(environment, DriftingMDP) else None
    facts = {} if model is None else agents.facts(kind, model, **options)
    horizon = environment.horizon
    agent = agents.make(kind, environment.space, horizon=horizon, seed=0, **(facts | options))
    parameters = {
        name: value
        for name, value in agent.configuration().items()
        if name not in ("space", "horizon", "seed")
    }
    if "structure" in written:
        parameters["structure"] = written["structure"]
    return AgentConfig(id, json.loads(json.dumps(parameters)), digest, _told(kind, facts | options))


def file_environment(path: Path, field: str) -> EnvironmentConfig:
    """Return the environment of a model file, identified by its content."""
    try:
        model = load(path)
    except WindageError as err:
        place = f"{field} {path}"
        raise InputError(err.problem, field=place, where=err.where, fix=err.fix) from None
    return EnvironmentConfig(
        FILE, {"horizon": model.horizon}, fingerprint(model), str(path.resolve())
    )


def hash_of(*parts: object) -> str:
    """Return a name for plain data: the same for the same data on every machine.

    >>> hash_of(1, {"a": 1, "b": 2}) == hash_of(1, {"b": 2, "a": 1})
    True
    """
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def environment_parameters(id: str, field: str) -> dict[str, Any]:  # noqa: A002
    """Return the parameters an environment takes and their defaults."""
    if ":" not in id:
        environment = _named(lambda: envs.get(id), field)
        return dict(environment.parameters)
    kind = environment_class(id, field)
    try:
        signature = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):
        raise InputError(
            f"{kind!r} does not say what it takes", field=field, fix="give it a signature"
        ) from None
    return {p.name: p.default for p in signature if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}


def agent_parameters(id: str, field: str) -> dict[str, Any]:  # noqa: A002
    """Return the parameters a study may set of an agent and their defaults."""
    known = agents.parameters(agent_class(id, field))
    return {name: p.default for name, p in known.items() if name not in registry.GIVEN}


def environment_class(id: str, field: str) -> Callable[..., Any]:  # noqa: A002
    """Return the class or function of the user's that builds an environment."""
    kind = _named(lambda: registry.imported(id), field)
    if not callable(kind):
        raise InputError(f"{id!r} makes nothing", field=field, fix="name a class or a function")
    build: Callable[..., Any] = kind
    return build


def versioned(id: str) -> str:  # noqa: A002
    """Return the id of an environment as results store it."""
    return id if ":" in id else envs.get(id).id


def with_defaults(known: Mapping[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return all parameters of a class of the user's as plain data, the given ones first.

    >>> with_defaults({"rate": 0.5, "depth": 3, "rule": max}, {"depth": 4})
    {'depth': 4, 'rate': 0.5, 'rule': 'builtins:max'}
    """
    rest = {n: v for n, v in known.items() if n not in given and v is not inspect.Parameter.empty}
    return given | {name: _plain(value) for name, value in rest.items()}


def changed(known: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that are not at the defaults of a class of the user's.

    >>> changed({"rate": 0.5, "depth": 3}, {"depth": 4, "rate": 0.5})
    {'depth': 4}
    """
    return {
        name: value
        for name, value in parameters.items()
        if name not in known or json.dumps(value) != json.dumps(_plain(known[name]))
    }


def _plain(value: Any) -> Any:
    """Return a default as JSON has it; what JSON has not is named."""
    try:
        return json.loads(json.dumps(value, default=_named_value, allow_nan=False))
    except (TypeError, ValueError):  # keys that are no texts; infinity
        return str(value) if isinstance(value, float) else _named_value(value)


def _named_value(value: Any) -> Any:
    """Return numbers of NumPy as plain ones, all else as its name, without its address."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Radii):
        return value.spec()
    kind = value if hasattr(value, "__qualname__") else type(value)
    return f"{kind.__module__}:{kind.__qualname__}"


_loaded: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def source_digest(kind: Any) -> str:
    """Return a hash of the file a class stands in, as it was when the class was first asked for.

    Another text may be another agent; but a class that was loaded does not change with its file.
    """
    try:
        return _loaded.setdefault(kind, _digest(kind))
    except TypeError:  # an object that cannot be hashed, or referred to weakly
        return _digest(kind)


def current_digest(kind: Any, field: str) -> str:
    """Return the hash of a class's file, or refuse a class that was loaded from another text."""
    if (loaded := source_digest(kind)) != _digest(kind):
        raise InputError(
            f"{inspect.getsourcefile(kind)} was changed after Python had loaded it",
            field=field,
            fix="start Python again, or importlib.reload its module",
        )
    return loaded


def _digest(kind: Any) -> str:
    try:
        file = inspect.getsourcefile(kind)
        text = Path(file).read_bytes() if file else b""
    except (OSError, TypeError):
        text = b""
    return hashlib.sha256(text).hexdigest()[:16]


def agent_class(id: str, field: str = "id") -> Any:  # noqa: A002
    """Return the class of an agent of the library, or of the user's."""
    return _named(lambda: agents.resolve(id), field)


def _named(find: Callable[[], Any], field: str) -> Any:
    """Return what an id names; the error names the place in the study."""
    try:
        return find()
    except InputError as err:
        raise InputError(err.problem, field=field, where=err.where, fix=err.fix) from err.__cause__


def _require_same_source(kind: Any, id: str, digest: str) -> None:  # noqa: A002
    """Refuse to run other source than the study was planned with."""
    if digest and source_digest(kind) != digest:
        raise StateError(
            f"{inspect.getsourcefile(kind)} is not the file that the study was planned with: it "
            "was edited since, or this machine has another copy",
            field=id,
            fix=_PLAN_AGAIN,
        )


_PLAN_AGAIN = (
    "run the study again, which makes its runs anew; workers of a cluster must have the same file, "
    "and be started again after an edit"
)


_own_models: dict[str, DriftingMDP] = {}


def _build_own(config: EnvironmentConfig) -> DriftingMDP | Problem:
    """Build an environment of the user's; models do not change and are built once."""
    if config.key not in _own_models:
        kind = environment_class(config.id, "environment")
        _require_same_source(kind, config.id, config.digest)
        known = environment_parameters(config.id, "environment")
        environment: DriftingMDP | Problem = kind(**changed(known, config.parameters))
        if not isinstance(environment, DriftingMDP):
            return environment
        _own_models[config.key] = environment
    return _own_models[config.key]


@functools.lru_cache(maxsize=AT_HAND)
def _build(id: str, parameters: str) -> DriftingMDP:  # noqa: A002
    return envs.make(id, **json.loads(parameters))


@functools.lru_cache(maxsize=AT_HAND)
def _load(path: str, digest: str) -> DriftingMDP:
    model = load(path)
    if fingerprint(model) != digest:
        raise StateError(
            "holds another model than when the study was planned: it was written anew since, or "
            "this machine has another copy",
            field=path,
            fix=_PLAN_AGAIN,
        )
    return model


def _told(kind: Any, given: dict[str, Any]) -> tuple[str, ...] | None:
    """Return what an agent with these arguments knows; None if it is what its kind requires."""
    told = agents.requires(kind, **given)
    return None if told == getattr(kind, "requires", ()) else told


def _own_arguments(kind: Any, environment: DriftingMDP | Problem, seed: int) -> dict[str, Any]:
    """Return what a class of the user's may ask for; of a model also the facts it requires."""
    facts = dict(_facts(kind, environment)) if isinstance(environment, DriftingMDP) else {}
    given = {"space": environment.space, "horizon": environment.horizon, "seed": seed}
    return given | facts


@functools.lru_cache(maxsize=64)
def _facts(kind: Any, model: DriftingMDP) -> tuple[tuple[str, Any], ...]:
    return tuple(agents.facts(kind, model).items())
