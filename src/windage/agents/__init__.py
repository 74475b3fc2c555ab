"""Agents by id: `windage.agents.make("random", space, horizon=T)`."""

from __future__ import annotations

import inspect
from typing import Any

from windage.agents.base import Agent
from windage.agents.blob import unpack
from windage.agents.informed import FiniteHorizonAgent, MyopicAgent, OracleAgent
from windage.agents.simple import RandomAgent
from windage.errors import InputError
from windage.inputs import as_choice
from windage.spaces import StateActions

__all__ = [
    "Agent",
    "FiniteHorizonAgent",
    "MyopicAgent",
    "OracleAgent",
    "RandomAgent",
    "make",
    "names",
    "restore",
]

_AGENTS = (RandomAgent, OracleAgent, FiniteHorizonAgent, MyopicAgent)
_BY_ID: dict[str, type[Agent]] = {agent.id: agent for agent in _AGENTS}


def names() -> list[str]:
    """Return the ids of all agents.

    >>> "random" in names()
    True
    """
    return sorted(_BY_ID)


def make(id: str, space: StateActions, *, horizon: int, **options: Any) -> Agent:  # noqa: A002
    """Return the agent with this id.

    Agents that see the model take it as `problem=`.
    """
    kind = _BY_ID[as_choice(id, "agent", names())]
    known = {
        name
        for base in kind.__mro__
        if "__init__" in vars(base)
        for name, parameter in inspect.signature(vars(base)["__init__"]).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    for option in options:
        if option not in known:
            raise InputError(
                "no such parameter",
                field=f"{id}.{option}",
                fix="one of: " + ", ".join(sorted(known)),
            )
    return kind(space, horizon=horizon, **options)


def restore(state: bytes, **given: Any) -> Agent:
    """Return the agent that `agent.state()` saved, whatever its kind.

    An agent that sees the model needs it again: `restore(state, problem=model)`.
    """
    return _BY_ID[as_choice(unpack(state).agent, "agent", names())].from_state(state, **given)
