"""What a journal knows of one decision: by its key, by its number, and what came of it."""

from __future__ import annotations

from typing import Any

from windage.agents import Agent
from windage.errors import CallOrderError, InputError
from windage.live.answers import Decision
from windage.live.events import DECIDED, OBSERVED, Event
from windage.live.history import Base, reach
from windage.live.journal import Journal
from windage.spaces import StateActions

__all__ = [
    "as_decision",
    "by_key",
    "by_number",
    "has_place",
    "not_waiting",
    "outcome_of",
    "require_same",
    "waiting",
]


def as_decision(space: StateActions, event: Event) -> Decision:
    """Return the decision that an event tells of."""
    assert event.state is not None
    assert event.action is not None
    name = space.action_name(event.state, event.action)
    return Decision(event.n, event.state, event.action, name, event.key)


def by_key(journal: Journal, agent: int, space: StateActions, s: int, key: str) -> Decision | None:
    """Return the decision that has a key already, if it was made in the same state."""
    found = journal.events("agent = ? AND key = ?", agent, key)
    if not found:
        return None
    known = as_decision(space, found[0])
    if known.state != s:
        raise InputError(
            f"{key!r} was used for {space.describe_state(known.state)}, now for "
            f"{space.describe_state(s)}",
            field="key",
            where=f"decision {known.id}",
            fix="use a key for one decision only",
        )
    return known


def by_number(journal: Journal, agent: int, number: int) -> Event:
    """Return the event of a decision."""
    is_there = 0 < number <= journal.n  # SQLite knows no larger numbers than its own
    which = "n = ? AND agent = ? AND kind = ?"
    found = journal.events(which, number, agent, DECIDED) if is_there else []
    if not found:
        raise InputError(
            f"there is no decision {number}", field="id", fix="pass the id that decide() returned"
        )
    return found[0]


def waiting(journal: Journal, agent: int) -> Event | None:
    """Return the decision of an agent that waits for its outcome, if one does."""
    last = journal.events("agent = ? AND kind = ? ORDER BY step DESC LIMIT 1", agent, DECIDED)
    if not last or journal.events("agent = ? AND step = ? AND n > step", agent, last[0].n):
        return None
    return last[0]


def not_waiting(journal: Journal, agent: int, number: int) -> CallOrderError:
    """Return the error about a decision that is there and does not wait."""
    by_number(journal, agent, number)
    return CallOrderError(
        "is not waiting for its outcome",
        field="expire",
        where=f"decision {number}",
        fix="give up the decision that is waiting: see pending",
    )


def outcome_of(journal: Journal, agent: int, number: int) -> Event | None:
    """Return what was told of a decision, if anything was."""
    found = journal.events("agent = ? AND step = ? AND kind = ?", agent, number, OBSERVED)
    return found[0] if found else None


def require_same(known: Event, told: tuple[Any, ...]) -> None:
    """Refuse another outcome (reward, next state, action) than the one that is known."""
    if (known.reward, known.state, known.action) != told:
        raise InputError(
            f"the outcome is known already: reward {known.reward:g}, next state "
            f"{known.state}, action {known.action}; now reward {told[0]:g}, next state "
            f"{told[1]}, action {told[2]}",
            field="observe",
            where=f"decision {known.step}",
            fix="send each outcome once, or the same again",
        )


def has_place(journal: Journal, base: Base, agent: Agent, number: int) -> bool:
    """Whether one more step can be learned from, at the place of a decision given up.

    All later steps move on by one: the last decision must still be within the horizon.
    """
    if number <= base.n:
        return False
    ((later, learned),) = journal.all(
        "SELECT count(*), coalesce(max(step), 0) FROM events "
        "WHERE agent = ? AND step > ? AND kind = ? AND used = 1",
        base.agent, number, OBSERVED,
    )  # fmt: skip
    ((decided,),) = journal.all(
        "SELECT max(step) FROM events WHERE agent = ? AND kind = ?", base.agent, DECIDED
    )
    moved = int(decided > max(number, learned))  # made at time t, and not learned from
    return later < reach(agent) and agent.t + moved <= agent.horizon
