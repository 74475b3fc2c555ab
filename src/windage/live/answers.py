"""What a live agent answers, and what it may be asked with: decisions, receipts, keys, names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from windage.errors import InputError, WindageError
from windage.spaces import StateActions
from windage.validation import shown

__all__ = ["Decision", "Fallback", "Receipt", "as_action", "as_fallback", "as_key", "as_state"]

_KEY_LENGTH = 500

Fallback = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do. `fallback` is why the fallback policy decided; empty if the agent did.

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
    """What became of a report.

    `how` is "learned", "late" (learned at its step's place), "unused" (too late, only kept),
    "again" (known already, counted once) or "fallback" (of a decision that is in no journal).
    """

    id: int
    how: str


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
    """Whether a string can be written down; half a surrogate pair cannot."""
    return not any("\ud800" <= letter <= "\udfff" for letter in key)


def as_fallback(policy: object, space: StateActions) -> Fallback | None:
    """Return a fallback policy: a function of the state, or one action a state."""
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
