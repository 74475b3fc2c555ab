"""Configuration of a live agent: the agent, the units of its rewards, the missing-outcome rule.

All of it is data in the events `created` and `configured`, so that a journal can be read, checked
and continued without the program that wrote it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from windage import agents
from windage.agents import Agent, Doubling
from windage.errors import InputError, JournalError
from windage.live.errors import UnknownAgentError
from windage.live.types import Units, as_units
from windage.validation import shown

__all__ = [
    "AgentMaker",
    "Body",
    "Created",
    "Made",
    "SavedAgent",
    "Switched",
    "class_of",
    "decode_body",
    "differences",
    "encode_body",
    "save",
]


class SavedAgent(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent as data: its id, its configuration and, if it was not new, its state."""

    agent: str
    configuration: dict[str, Any]
    state: str | None = None

    def revive(self, kind: type[Agent] | None, maker: AgentMaker) -> Agent:
        """Return the agent again; `kind` is its class, if it is one of the user's own."""
        if self.agent == Doubling.id:
            return Doubling(maker, first=self.configuration["first"])
        kind = kind or class_of(self.agent)
        if self.state is not None:
            return kind.from_state(base64.b64decode(self.state))
        return kind.remade(self.configuration)


class Created(msgspec.Struct, frozen=True, tag="created"):
    """The body of the first event of an agent."""

    windage: str
    name: str
    saved: SavedAgent
    missing: str
    reward_range: tuple[float, float] | None
    direction: str

    def units(self, agent: Agent) -> Units:
        """Return the units of its rewards."""
        return as_units(self.reward_range, self.direction, agent.reward_range)


class Switched(msgspec.Struct, frozen=True, tag="switched"):
    """Another agent goes on from here, having learned from `carried` of the last samples."""

    saved: SavedAgent
    carried: int


class Made(msgspec.Struct, frozen=True, tag="made"):
    """A `Doubling` has made its agent for a horizon."""

    horizon: int
    saved: SavedAgent


Body = Created | Switched | Made


def encode_body(body: Body) -> str:
    """Return the body of an event as JSON."""
    return msgspec.json.encode(body).decode()


def decode_body(text: str) -> Body:
    """Return the body of an event; `msgspec.DecodeError` if it is none."""
    body: Body = msgspec.json.decode(text, type=Body)
    return body


class AgentMaker:
    """Makes the agents of a `Doubling`: those of the journal again, new ones by its function."""

    def __init__(self, make: Callable[[int], Agent] | None) -> None:
        self._make = make
        self._saved: dict[int, SavedAgent] = {}  # by horizon
        self._kinds: dict[int, type[Agent]] = {}  # they may be the user's own
        self._unrecorded: list[Made] = []

    def __call__(self, horizon: int) -> Agent:
        """Return an agent for a horizon, always the same."""
        if horizon not in self._saved:
            if self._make is None:
                raise JournalError(
                    f"does not say which agent is made for {horizon} steps",
                    field="make_agent",
                    fix="open the journal in the program that decides",
                )
            agent = self._make(horizon)
            self._kinds[horizon] = type(agent)
            self._saved[horizon] = save(agent)
            self._unrecorded.append(Made(horizon, self._saved[horizon]))
        if self._make is not None and horizon not in self._kinds:
            self._kinds[horizon] = type(self._make(horizon))
        return self._saved[horizon].revive(self._kinds.get(horizon), self)

    def first(self) -> SavedAgent:
        """Return the first agent that was made."""
        return next(iter(self._saved.values()))

    def restore(self, event: Made) -> None:
        """Take over an agent from the journal."""
        self._saved[event.horizon] = event.saved

    def take_unrecorded(self) -> Iterator[Made]:
        """Give the agents that are not in the journal yet, once."""
        while self._unrecorded:
            yield self._unrecorded.pop(0)

    def clear(self) -> None:
        """Discard everything: the journal is about to be read again."""
        self._saved.clear()
        self._unrecorded.clear()


def class_of(id: str) -> type[Agent]:  # noqa: A002
    """Return the class of an agent by its id: the library's, or that of an installed package.

    A journal is data: it names no modules to import.
    """
    if ":" in id or id not in agents.names():
        raise UnknownAgentError(
            f"its agent {shown(id)} is of a class that is not known here",
            field="agent",
            fix="look at it in the program that decides, with live.agent",
        )
    return agents.resolve(id)


def save(agent: Agent) -> SavedAgent:
    """Return an agent as data; its state only if it is not a new one."""
    if not isinstance(agent, Agent):
        raise InputError(f"{agent!r} is no agent", field="agent", fix="pass a windage.agents.Agent")
    if agent._pending is not None:
        raise InputError(
            "a decision of this agent is waiting for its outcome",
            field="agent",
            fix="observe it, or withdraw it, first",
        )
    if "the model" in agent.requires or hasattr(agent, "problem"):
        raise InputError(
            f"{agent.id!r} sees the model and cannot decide for real",
            field="agent",
            fix="pass an agent that learns",
        )
    configuration = msgspec.json.decode(msgspec.json.encode(agent.configuration()))
    if isinstance(agent, Doubling):
        if agent.t > 1:
            raise InputError("this Doubling has acted already", field="agent", fix="pass a new one")
        save(agent._made(agent.first))  # refuse now an agent that could not be saved later
        return SavedAgent(agent.id, configuration)
    state = agent.state()
    if state == _new_twin(agent, configuration).state():
        return SavedAgent(agent.id, configuration)
    return SavedAgent(agent.id, configuration, base64.b64encode(state).decode())


def _new_twin(agent: Agent, configuration: dict[str, Any]) -> Agent:
    """Return a new agent of the same class and configuration, as a journal would make it again."""
    try:
        return type(agent).remade(configuration)
    except (TypeError, LookupError, AttributeError) as err:
        raise InputError(
            f"{agent.id!r} cannot be made again from its configuration() ({err})",
            field="agent",
            fix="let its constructor take keyword arguments that are plain data",
        ) from err


def differences(old: Any, new: Any, path: str = "") -> list[str]:
    """Return the differences of two configurations, in words.

    >>> differences({"window": 5, "seed": 0}, {"window": 6, "seed": 0})
    ['window: 5 in the journal, 6 now']
    """
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            line
            for name in {**old, **new}
            for line in differences(
                old.get(name), new.get(name), f"{path}.{name}" if path else name
            )
        ]
    return [] if old == new else [f"{path}: {old!r} in the journal, {new!r} now"]
