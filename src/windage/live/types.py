"""Values that a live agent takes and returns: decisions, receipts, names, keys, units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from windage.errors import InputError, WindageError
from windage.spaces import StateActions
from windage.validation import as_choice, as_real, shown

__all__ = [
    "Decision",
    "Fallback",
    "Receipt",
    "Units",
    "as_action",
    "as_fallback",
    "as_key",
    "as_state",
    "as_units",
]

_KEY_LENGTH = 500
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
