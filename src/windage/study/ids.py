"""What an id in a study file names, and which parameters that has.

An id is that of an environment or an agent of the library, or `module:Class`: a class of one's own,
which is known by a hash of its source.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from windage import agents, envs
from windage.agents import plugins
from windage.errors import InputError, StateError

__all__ = [
    "agent_kind",
    "agent_parameters",
    "environment_parameters",
    "require_same_source",
    "source_digest",
    "versioned",
    "world_kind",
]


def environment_parameters(id: str, field: str) -> dict[str, Any]:  # noqa: A002
    """Return the parameters an environment takes and their defaults."""
    if ":" not in id:
        found: dict[str, Any] = _named(lambda: envs.get(id), field).parameters
        return found
    return _signature(world_kind(id, field), field)


def agent_parameters(id: str, field: str) -> dict[str, Any]:  # noqa: A002
    """Return the parameters a study may set of an agent and their defaults."""
    known = agents.parameters(agent_kind(id, field))
    return {name: p.default for name, p in known.items() if name not in plugins.GIVEN}


def agent_kind(id: str, field: str) -> Any:  # noqa: A002
    """Return the class of an agent by its id or as `module:Class`."""
    return _named(lambda: agents.resolve(id), field)


def versioned(id: str) -> str:  # noqa: A002
    """Return the id of an environment as results store it."""
    return id if ":" in id else envs.get(id).id


def world_kind(id: str, field: str) -> Callable[..., Any]:  # noqa: A002
    """Return the class or function that makes a world of one's own."""
    found = _named(lambda: plugins.imported(id), field)
    if not callable(found):
        raise InputError(f"{id!r} makes nothing", field=field, fix="name a class or a function")
    made: Callable[..., Any] = found
    return made


def source_digest(kind: Any) -> str:
    """Return a hash of the file a class stands in: another text may be another agent."""
    try:
        file = inspect.getsourcefile(kind)
        text = Path(file).read_bytes() if file else b""
    except (OSError, TypeError):
        text = b""
    return hashlib.sha256(text).hexdigest()[:16]


def require_same_source(kind: Any, id: str, digest: str) -> None:  # noqa: A002
    """Refuse to run other source than the study was planned with."""
    if digest and source_digest(kind) != digest:
        raise StateError(
            "its source is not the one the study was started with",
            field=id,
            fix="give all workers the same file, and start the study again",
        )


def _signature(kind: Any, field: str) -> dict[str, Any]:
    try:
        found = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):
        raise InputError(
            f"{kind!r} does not say what it takes", field=field, fix="give it a signature"
        ) from None
    return {p.name: p.default for p in found if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}


def _named(find: Callable[[], Any], field: str) -> Any:
    """Return what an id names; the error names the place in the study."""
    try:
        return find()
    except InputError as err:
        raise InputError(err.problem, field=field, where=err.where, fix=err.fix) from err.__cause__
