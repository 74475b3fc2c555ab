"""What a journal holds: events in the order they happened, each chained to all before it.

The chain of event n is SHA-256 over the chain of event n - 1 and every field of event n. Whoever
changes, drops, adds or moves an event breaks it at that place.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import msgspec

__all__ = [
    "COLUMNS",
    "CONFIGURED",
    "CREATED",
    "DECIDED",
    "EXPIRED",
    "FORMAT",
    "OBSERVED",
    "ROOT",
    "Event",
    "chained",
]

FORMAT = 1
"""The layout of journals that this version writes, and the newest it reads."""
ROOT = hashlib.sha256(b"windage journal").digest()
"""What the first event is chained to."""

CREATED, DECIDED, OBSERVED = "created", "decided", "observed"
EXPIRED, CONFIGURED = "expired", "configured"

_encode = msgspec.msgpack.Encoder().encode


class Event(NamedTuple):
    """One thing that happened to one agent of a journal.

    Attributes
    ----------
    n
        Its place in the journal, from 1 on.
    agent
        Whose event it is: the place of the agent's `created` event.
    kind
        created, decided, observed, expired or configured.
    step
        The decision it belongs to; of any event but observed and expired, n itself. Events in the
        order of (step, n) are the corrected history: a late reward stands at its step's place.
    state
        Of decided, the state that was asked about; of observed, the one that followed.
    action
        Of decided, the advice; of observed, what was played.
    reward
        As it was reported, in the user's units.
    used
        Of observed, whether it was learned from; a reward that comes too late is only kept.
    key
        Of decided, the caller's own name for the decision.
    body
        Of created and configured, JSON.
    at
        Microseconds since 1970, for people; nothing is computed from it.
    """

    n: int
    agent: int
    kind: str
    step: int
    state: int | None
    action: int | None
    reward: float | None
    used: int | None
    key: str | None
    body: str | None
    at: int


COLUMNS = ", ".join(Event._fields)


def chained(before: bytes, event: tuple[object, ...]) -> bytes:
    """Return the chain of an event after the chain of the one before it."""
    return hashlib.sha256(before + _encode(event)).digest()
