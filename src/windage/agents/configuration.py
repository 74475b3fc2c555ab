"""The configuration of an agent: one frozen record of its arguments, derived from its constructor.

Every argument of a constructor but the space, those it passes on as `**options` included, is a
field of the class's `Config`. The attribute of the same name holds the checked value and can be set
once: sets, tables and windows are built from it, and a saved state says by it how to make the agent
again.
"""

from __future__ import annotations

import inspect
from operator import attrgetter
from typing import Any, NoReturn, TypedDict

import msgspec
import numpy as np

from windage.confidence.radii import Radii
from windage.spaces import StateActions
from windage.structure import Structure

__all__ = ["AgentOptions", "arguments", "declare", "is_ours", "named", "parameters", "plain"]


class AgentOptions(TypedDict, total=False):
    """Keyword arguments of every agent, beside `horizon`."""

    seed: int
    reward_range: tuple[float, float] | None


def declare(kind: type[Any]) -> None:
    """Give a class of agents its signature, its `Config` and its read-only attributes.

    Called for each class when it is defined. A class of the user's own may change the attributes
    it adds; its configuration keeps what the constructor was given.
    """
    known = parameters(kind)
    first = [p for p in _own(kind) if p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in known]
    kind.__signature__ = inspect.Signature([*first, *known.values()])
    fields = dict.fromkeys(("space", "horizon", *known))
    kind.Config = msgspec.defstruct(
        f"{kind.__name__}Config",
        [(name, Any) for name in fields],
        frozen=True,
        kw_only=True,
        module=kind.__module__,
    )
    if is_ours(kind):
        keywords = [p.name for p in _own(kind) if p.kind is p.KEYWORD_ONLY]
        for name in ("space", *keywords, *kind.derived):
            if not any(name in vars(base) for base in kind.__mro__):
                setattr(kind, name, _set_once(name))


def parameters(kind: type[Any]) -> dict[str, inspect.Parameter]:
    """Return the arguments of a class of agents, its own first, then those it passes on.

    The space comes first and is none of them; all others are passed by name, whether or not the
    constructor insists on it.
    """
    known: dict[str, inspect.Parameter] = {}
    for base in kind.__mro__:
        if "__init__" not in vars(base):
            continue
        found = list(inspect.signature(vars(base)["__init__"]).parameters.values())
        for p in found[2:]:
            if p.name not in known and p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD):
                known[p.name] = p.replace(kind=p.KEYWORD_ONLY)
        if not any(p.kind is p.VAR_KEYWORD for p in found):
            break  # what the class above takes, this one decides
    return {name: p for name, p in known.items() if name not in kind.fixed}


def named(kind: type[Any], values: tuple[Any, ...]) -> dict[str, Any]:
    """Return positional arguments of a constructor by their names, without the space."""
    return {p.name: value for p, value in zip(_own(kind)[1:], values[1:], strict=False)}


def is_ours(kind: type[Any]) -> bool:
    """Return whether a class is the library's, and none of the user's."""
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def _own(kind: type[Any]) -> list[inspect.Parameter]:
    """Return the arguments of the constructor, without those it passes on."""
    init = next(vars(base)["__init__"] for base in kind.__mro__ if "__init__" in vars(base))
    return list(inspect.signature(init).parameters.values())[1:]


def _set_once(name: str) -> property:
    slot = _slot(name)

    def put(self: Any, value: object) -> None:
        if slot in self.__dict__:
            refuse(self)
        if isinstance(value, np.ndarray) and value.flags.writeable:
            value = value.copy()  # the caller may go on writing into it
            value.flags.writeable = False
        self.__dict__[slot] = value

    def refuse(self: Any) -> NoReturn:
        raise AttributeError(
            f"{name} is fixed when a {type(self).__name__} is made; make another one"
        )

    return property(attrgetter(slot), put, refuse)  # read in C: some are read in every step


def _slot(name: str) -> str:
    return f"_fixed_{name}"


def arguments(agent: Any) -> dict[str, Any]:
    """Return the arguments of an agent, checked, arrays and lists as tuples.

    Where the attribute is derived (the paper's grid where no arms were given), the argument itself.
    """
    kind, given = type(agent), agent._given
    known, found = kind.__signature__.parameters, {}
    for name in kind.Config.__struct_fields__:
        value = agent.__dict__.get(_slot(name), agent)
        if value is agent or name in kind.derived:
            value = given[name] if name in given else known[name].default
        found[name] = _frozen(value)
    return found


def _frozen(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value


def plain(config: msgspec.Struct) -> dict[str, Any]:
    """Return a configuration as plain data; arguments that are none, such as functions, are not in.

    >>> agent = __import__("windage").UCRL2(StateActions([2, 2]), horizon=100)
    >>> plain(agent.config)["radii"]
    'ucrl2'
    """
    found = {}
    for name, value in msgspec.structs.asdict(config).items():
        try:
            found[name] = _plain(value)
        except TypeError:
            continue
    return found


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, Radii):
        return value.spec()
    if isinstance(value, Structure):
        return value.to_dict()
    if isinstance(value, StateActions):
        return {
            "actions": value.counts.tolist(),
            "state_names": _plain(value.state_names),
            "action_names": _plain(value.action_names),
        }
    raise TypeError(type(value).__name__)
