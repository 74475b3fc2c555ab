"""Values of a live agent (decisions, receipts, names, units) and its configuration.

The configuration is data in the events `created` and `configured`: the agent, the units of its
rewards, the missing-outcome rule. So a journal can be read, checked and continued without the
program that wrote it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from windage import agents
from windage.agents import Agent, Doubling
from windage.agents.state import unpack
from windage.errors import InputError, JournalError, WindageError
from windage.live.schema import UnknownAgentError
from windage.spaces import StateActions
from windage.validation import as_choice, as_real, shown

__all__ = [
    "AgentMaker",
    "Body",
    "Created",
    "Decision",
    "Fallback",
    "Made",
    "Receipt",
    "SavedAgent",
    "Switched",
    "Units",
    "as_action",
    "as_fallback",
    "as_key",
    "as_seen",
    "as_state",
    "as_units",
    "class_of",
    "decode_body",
    "decode_seen",
    "differences",
    "encode_body",
    "encode_seen",
    "require_units_of_structure",
    "save",
]

_KEY_LENGTH, _SEEN_LENGTH = 500, 10_000
_DIRECTIONS = ("profit", "cost")

Fallback = Callable[[int], int]
Number = TypeVar("Number", float, NDArray[np.float64])


@dataclass(frozen=True, slots=True)
class Decision:
    """The action to take. `fallback` says why the fallback policy decided; empty if the agent did.

    A decision of the fallback has the number 0: it is in no journal and nothing is learned from it.
    """

    id: int
    state: int
    action: int
    action_name: str
    key: str | None = None
    fallback: str = ""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Acknowledgement of an outcome.

    `how` is "learned", "late" (learned at its step's place), "unused" (too late, only stored),
    "again" (known already, counted once) or "fallback" (of a decision that is in no journal).
    """

    id: int
    how: str


@dataclass(frozen=True)
class Units:
    """Conversion of rewards, costs or profits in the user's units, to the range the agent expects.

    Without a range of rewards, they are passed on as they are.

    Examples
    --------
    >>> costs = Units((0.0, 50.0), "cost", (0.0, 1.0))
    >>> costs.to_agent(12.5), costs.to_user(0.75)
    (0.75, 12.5)
    """

    reward_range: tuple[float, float] | None
    direction: str
    agent_range: tuple[float, float]

    def check(self, reward: object) -> float:
        """Return a reward in the user's units as a number; refuse one out of range."""
        if self.reward_range is None:
            value = as_real(reward, "reward")
        else:
            value = as_real(reward, "reward", low=self.reward_range[0], high=self.reward_range[1])
        return value + 0.0  # SQLite keeps no minus zero

    def to_agent(self, reward: Number) -> Number:
        """Return a reward, or an array of them, as the agent learns it."""
        if self.reward_range is None:
            return reward
        (low, high), (least, most) = self.reward_range, self.agent_range
        share = (reward - low) / (high - low)
        if self.direction == "cost":
            share = 1.0 - share
        return least + share * (most - least)

    def to_user(self, value: Number) -> Number:
        """Return a reward of the agent in the user's units."""
        if self.reward_range is None:
            return value
        (low, high), (least, most) = self.reward_range, self.agent_range
        share = (value - least) / (most - least)
        if self.direction == "cost":
            share = 1.0 - share
        return low + share * (high - low)

    def optimistic(self, gain: float) -> float:
        """Return an optimistic gain in the user's units; planning may overshoot the range a bit."""
        value = self.to_user(gain)
        if self.reward_range is None:
            return value
        return min(max(value, self.reward_range[0]), self.reward_range[1])

    @property
    def scale(self) -> float:
        """The size of the agent's 1 in the user's units."""
        if self.reward_range is None:
            return 1.0
        (low, high), (least, most) = self.reward_range, self.agent_range
        return (high - low) / (most - least)

    @property
    def word(self) -> str:
        """The user's word for a reward: "cost" or "reward"."""
        return "cost" if self.direction == "cost" else "reward"


def as_units(
    reward_range: Any, direction: object, agent_range: tuple[float, float] | None
) -> Units:
    """Return the units of a journal for an agent with its own range of rewards, or none."""
    way = as_choice(direction, "direction", _DIRECTIONS)
    inside = agent_range or (0.0, 1.0)
    if reward_range is None:
        if way == "cost":
            raise InputError(
                "costs need a range, so that the largest becomes the worst",
                field="reward_range",
                fix="pass reward_range=(lowest, highest) in your own units",
            )
        return Units(None, way, inside)
    try:
        low, high = reward_range
    except (TypeError, ValueError):
        raise InputError(
            f"{reward_range!r} is not a range", field="reward_range", fix="pass (lowest, highest)"
        ) from None
    low = as_real(low, "reward_range[0]")
    high = as_real(high, "reward_range[1]", low=low, open_low=True)
    as_real(high - low, "reward_range")
    return Units((low, high), way, inside)


def as_state(space: StateActions, value: object, field: str) -> int:
    """Return a state by its number or its name."""
    if isinstance(value, str):
        return _by_name(value, space.state_names or (), field)
    return space.check_state(value, field)


def as_action(space: StateActions, s: int, value: object) -> int:
    """Return an action of a state by its number or its name."""
    if isinstance(value, str):
        return _by_name(value, space.action_names[s] if space.action_names else (), "action")
    return space.check_action(s, value)


def _by_name(value: str, names: Sequence[str], field: str) -> int:
    if value not in names:
        raise InputError(
            f"no such name: {shown(value)}",
            field=field,
            fix="one of: " + ", ".join(names) if names else "pass a number: there are no names",
        )
    return names.index(value)


def as_key(key: object) -> str | None:
    """Return a caller's own name for a decision, if there is one."""
    if key is None:
        return None
    if not isinstance(key, str) or not 0 < len(key) <= _KEY_LENGTH or not _is_text(key):
        raise InputError(
            f"{shown(key)} is not a key",
            field="key",
            fix=f"pass a string of 1 to {_KEY_LENGTH} characters, each of them whole",
        )
    return key


def _is_text(key: str) -> bool:
    """Whether a string can be encoded; half a surrogate pair cannot."""
    return not any("\ud800" <= letter <= "\udfff" for letter in key)


def as_seen(seen: object) -> dict[str, Any] | None:
    """Return what a step showed, by variable, as plain data: outcomes, or pairs of them."""
    if seen is None or (isinstance(seen, Mapping) and not seen):
        return None
    if isinstance(seen, Mapping):
        found = {
            name: [_plain_outcome(end) for end in value]
            if isinstance(value, (list, tuple)) and len(value) == 2
            else _plain_outcome(value)
            for name, value in seen.items()
        }
        with suppress(TypeError, ValueError, OverflowError):
            text = encode_seen(found) or ""
            if len(text) <= _SEEN_LENGTH and decode_seen(text) == found:
                return found
    raise InputError(
        f"{shown(seen)} does not say what was seen",
        field="seen",
        fix='pass an outcome, or (lowest, highest), by the name of its variable: {"demand": 7}',
    )


def _plain_outcome(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool) or not isinstance(plain, (int, float, str)):
        raise InputError(
            f"{shown(value)} is no outcome",
            field="seen",
            fix="pass a number or a word that the structure declares, or (lowest, highest)",
        )
    return plain


def encode_seen(seen: Mapping[str, Any] | None) -> str | None:
    """Return what a step showed as JSON."""
    return None if seen is None else msgspec.json.encode(seen).decode()


def decode_seen(text: str | None) -> dict[str, Any] | None:
    """Return what a step showed."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as err:
        raise JournalError(
            f"{shown(text)} cannot be read ({err})",
            field="seen",
            fix="see with `windage live verify` which events are sound",
        ) from None


def require_units_of_structure(agent: Agent, units: Units) -> None:
    """Refuse rewards in other units than those of a structure that knows them."""
    acting: Any = agent._made(agent.first) if isinstance(agent, Doubling) else agent
    structure = getattr(acting, "structure", None)
    if structure is None or structure.reward is None or units.reward_range is None:
        return
    sign = -1.0 if units.direction == "cost" else 1.0
    low, high = units.reward_range
    if max(abs(units.to_agent(r) - sign * r) for r in (low, high)) > 1e-9 * (high - low):
        least, most = sorted(sign * r for r in units.agent_range)
        raise InputError(
            f"({low:g}, {high:g}) is not the range of the structure's rewards, whose units they "
            "must have",
            field="reward_range",
            fix=f"leave it out, or pass ({least:g}, {most:g})",
        )


def as_fallback(policy: object, space: StateActions) -> Fallback | None:
    """Return a fallback policy: a function of the state, or one action per state."""
    if policy is None or callable(policy):
        return policy
    try:
        listed: list[Any] = list(policy)  # type: ignore[call-overload]
        actions = [space.check_action(s, a) for s, a in enumerate(listed)]
    except TypeError:
        actions = []
    except WindageError as err:
        raise InputError(err.problem, field="fallback", fix=err.fix) from None
    if len(actions) != space.n_states:
        raise InputError(
            f"{shown(policy)} is no policy",
            field="fallback",
            fix="pass one action a state, or a function of the state",
        )
    return actions.__getitem__


class SavedAgent(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent as data: its id, its configuration and, if it was not new, its state."""

    agent: str
    configuration: dict[str, Any]
    state: str | None = None

    @property
    def t(self) -> int:
        """The time of its next decision."""
        return 1 if self.state is None else int(unpack(base64.b64decode(self.state)).values["t"])

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

    def units(self, declared: tuple[float, float] | None) -> Units:
        """Return the units of its rewards, for an agent with its own range of rewards, or none."""
        return as_units(self.reward_range, self.direction, declared)


class Switched(msgspec.Struct, frozen=True, tag="switched"):
    """Another agent goes on from here, at its time t, with `carried` of the last samples."""

    saved: SavedAgent
    carried: int
    t: int


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

    def last(self) -> SavedAgent:
        """Return the last agent that was made."""
        return next(reversed(self._saved.values()))

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
    with suppress(InputError):
        return agents.get(id)  # without a look at all installed packages
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
    if path.endswith("structure") and old != new:
        return [f"{path}: {_structures(old, new)}"]
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            line
            for name in {**old, **new}
            for line in differences(
                old.get(name), new.get(name), f"{path}.{name}" if path else name
            )
        ]
    return [] if old == new else [f"{path}: {old!r} in the journal, {new!r} now"]


def _structures(old: Any, new: Any) -> str:
    """Return in words how two structures differ: their tables are too long to show."""
    if old is None or new is None:
        return "one in the journal, none now" if new is None else "none in the journal, one now"
    parts = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return f"another one than in the journal (differs in {', '.join(parts)})"
