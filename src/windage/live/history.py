"""The corrected history of an agent, queries about its decisions, and the agent it leads to.

Events are read in the order of the steps they belong to, so a reward that came late stands where it
would have stood in time. An agent is reconstructed by replay: from its last configuration, or from
a snapshot after it, through the steps that follow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from windage.agents import Agent, Doubling
from windage.agents.base import Steps
from windage.agents.optimistic.episodic import EpisodicAgent
from windage.errors import CallOrderError, InputError, JournalError, StateError
from windage.live.config import (
    AgentMaker,
    Created,
    Decision,
    Made,
    SavedAgent,
    Switched,
    Units,
    class_of,
    decode_body,
    decode_seen,
)
from windage.live.journal import Journal, Writer
from windage.live.schema import CONFIGURED, CREATED, DECIDED, EXPIRED, OBSERVED, Event, damaged
from windage.spaces import StateActions
from windage.validation import as_choice, as_integers, shown

__all__ = [
    "AgentRecord",
    "History",
    "LiveAgent",
    "Pending",
    "Snapshots",
    "agent_at",
    "agent_records",
    "as_decision",
    "can_learn_late",
    "continued",
    "decision_by_key",
    "decision_event",
    "history",
    "initial_agent",
    "named_record",
    "not_pending",
    "outcome_event",
    "pending_event",
    "preload",
    "require_same_outcome",
]

SNAPSHOT_STEPS = 1000  # between two snapshots: replayed in a few milliseconds
SNAPSHOT_BYTES = 100  # per step: large agents are stored less often
_KEPT = 4  # snapshots of an agent that forgets nothing

_ROW = np.dtype([
    ("n", np.int64), ("kind", "U8"), ("step", np.int64), ("state", np.int64),
    ("action", np.int64), ("reward", np.float64), ("used", np.bool_), ("seen", np.object_),
])  # fmt: skip
_ROWS = (
    "SELECT n, kind, step, coalesce(state, 0), coalesce(action, 0), coalesce(reward, 0.0), "
    "coalesce(used, 0), seen FROM events "
    "WHERE agent = ? AND step > ? AND step <= ? AND n <= ? ORDER BY step, n"
)


@dataclass(frozen=True)
class AgentRecord:
    """The current configuration of an agent in a journal, as of event `n`.

    Attributes
    ----------
    agent
        The agent's number.
    n
        The event that set the configuration: the agent was created, or last switched.
    created, switched
        The bodies of these events.
    maker
        Makes the agents of a `Doubling`.
    """

    agent: int
    n: int
    created: Created
    switched: Switched | None
    maker: AgentMaker

    @property
    def saved(self) -> SavedAgent:
        """The agent as it was at event n."""
        return self.switched.saved if self.switched else self.created.saved

    def revive(self, kind: type[Agent] | None = None) -> Agent:
        """Return the agent as it was at event n, before it learned from carried samples."""
        return self.saved.revive(kind if kind and kind.id == self.saved.agent else None, self.maker)

    def space(self) -> StateActions:
        """Return its states and actions, without making the agent."""
        return StateActions(**self.acting.configuration["space"])

    @property
    def acting(self) -> SavedAgent:
        """The agent that acts: of a `Doubling`, the last one it made."""
        return self.maker.last() if self.saved.agent == Doubling.id else self.saved

    @property
    def units(self) -> Units:
        """The units of its rewards."""
        return self.created.units(self.acting.configuration.get("reward_range"))


class History(NamedTuple):
    """Decisions in order, in columns; rewards in the user's units."""

    ids: NDArray[np.int64]
    states: NDArray[np.int64]
    advised: NDArray[np.int64]
    actions: NDArray[np.int64]
    rewards: NDArray[np.float64]
    next_states: NDArray[np.int64]
    learned: NDArray[np.bool_]
    expired: NDArray[np.bool_]
    """Whether the outcome was given up; it may have come later."""
    observed_at: NDArray[np.int64]
    """The number of the event that holds the outcome; 0 if none does."""
    seen: NDArray[np.object_]
    """What the step showed of the variables of a structure, as JSON; None where nothing is."""

    @property
    def ended(self) -> NDArray[np.bool_]:
        """Whether the outcome is known or was given up."""
        return self.expired | (self.observed_at > 0)

    def steps(self, space: StateActions, units: Units) -> Steps:
        """Return the steps for replay; the last one may not have ended."""
        last = space.n_states - 1
        states = as_integers(self.states, "state", low=0, high=last, error=JournalError)
        return Steps(
            states,
            self.learned,
            space.offsets[states] + self.actions,
            units.to_agent(self.rewards),
            self.next_states,
            [decode_seen(text) for text in self.seen] if self.seen.any() else None,
        )

    def select(self, chosen: Any) -> History:
        """Return some of the decisions, by an index of their arrays."""
        return History(*(column[chosen] for column in self))


class Pending(NamedTuple):
    """The decision that waits for its outcome."""

    id: int
    state: int
    action: int


@dataclass
class LiveAgent:
    """An agent at the end of its journal."""

    agent: Agent
    units: Units
    pending: Pending | None
    replayed: int
    """How many steps were replayed when it was last read."""


# Configurations and histories.


def agent_records(
    journal: Journal,
    makers: dict[str, AgentMaker] | None = None,
    *,
    until: int | None = None,
    agent: int | None = None,
) -> dict[str, AgentRecord]:
    """Return the configuration of every agent of a journal, or of one, at an event, by name.

    `makers` are those of agents whose functions are known; the others make what the journal knows.
    """
    records: dict[int, AgentRecord] = {}
    where = f"body IS NOT NULL AND kind IN ('{CREATED}', '{CONFIGURED}') AND n <= ?"
    values = [journal.n if until is None else until]
    if agent is not None:
        where, values = f"{where} AND agent = ?", [*values, agent]
    for event in journal.events(f"{where} ORDER BY n", *values):
        try:
            body = decode_body(event.body or "")
        except (msgspec.DecodeError, RecursionError) as err:
            raise damaged(journal.path, f"event {event.n} cannot be read ({err})") from None
        if isinstance(body, Created):
            maker = (makers or {}).get(body.name) or AgentMaker(None)
            records[event.agent] = AgentRecord(event.n, event.n, body, None, maker)
            continue
        old = records[event.agent]
        if isinstance(body, Made):
            old.maker.restore(body)
        else:
            records[event.agent] = AgentRecord(event.agent, event.n, old.created, body, old.maker)
    return {record.created.name: record for record in records.values()}


def named_record(records: dict[str, AgentRecord], name: str | None) -> AgentRecord:
    """Return one agent of a journal by its name; a single one needs none."""
    if name is not None:
        return records[as_choice(name, "name", records)]
    if len(records) > 1:
        first = ", ".join(map(repr, list(records)[:5]))
        raise InputError(
            f"the journal holds {len(records):,} agents",
            field="name",
            fix=f"say which (on the command line, --name): {first}{', ...' * (len(records) > 5)}",
        )
    return next(iter(records.values()))


def history(
    journal: Journal, agent: int, after: int, until: int, through: int | None = None
) -> History:
    """Return the decisions of an agent with after < id <= through, as known at event `until`."""
    journal.require_chain(after + 1)
    last = until if through is None else through
    rows = np.array(journal.all(_ROWS, agent, after, last, until), _ROW)
    decided, observed = rows[rows["kind"] == DECIDED], rows[rows["kind"] == OBSERVED]
    expired = rows[rows["kind"] == EXPIRED]
    ids = decided["step"].copy()
    past = History(
        ids=ids,
        states=decided["state"].copy(),
        advised=decided["action"].copy(),
        actions=decided["action"].copy(),
        rewards=np.zeros(ids.size),
        next_states=np.zeros(ids.size, np.int64),
        learned=np.full(ids.size, False),
        expired=np.full(ids.size, False),
        observed_at=np.zeros(ids.size, np.int64),
        seen=np.full(ids.size, None),
    )
    outcomes = np.searchsorted(ids, observed["step"])
    past.actions[outcomes], past.rewards[outcomes] = observed["action"], observed["reward"]
    past.next_states[outcomes], past.observed_at[outcomes] = observed["state"], observed["n"]
    past.learned[outcomes], past.seen[outcomes] = observed["used"], observed["seen"]
    past.expired[np.searchsorted(ids, expired["step"])] = True
    return past


# The agent that a history leads to.


def agent_at(
    journal: Journal,
    record: AgentRecord,
    kind: type[Agent] | None = None,
    until: int | None = None,
    through: int | None = None,
) -> LiveAgent:
    """Return an agent at the end of its journal, or at event `until`, by replay from a snapshot.

    `record` is its configuration at that event. Steps after decision `through` are left out.
    """
    last = journal.n if until is None else until
    snapshots = journal.all(
        "SELECT step, n, chain FROM snapshots WHERE agent = ? AND step >= ? AND step <= ? "
        "AND n <= ? ORDER BY step DESC",
        record.agent, record.n, last if through is None else through, last,
    )  # fmt: skip
    agent, since = None, record.n
    for step, n, chain in snapshots:
        if journal.chain_at(n) == chain:
            try:
                agent, since = _from_snapshot(journal, record, kind, step), step
            except StateError:
                continue  # a cache: an older one, or the whole history, leads to the same agent
            break
    if agent is None:
        agent = initial_agent(journal, record, kind)
    units = record.units
    return _replayed(agent, units, history(journal, record.agent, since, last, through))


def continued(journal: Journal, record: AgentRecord, live: LiveAgent, after: int) -> LiveAgent:
    """Return an agent that was replayed up to a decision after the replay of all that follow."""
    past = history(journal, record.agent, after, journal.n)
    return _replayed(live.agent, live.units, past)


def initial_agent(journal: Journal, record: AgentRecord, kind: type[Agent] | None = None) -> Agent:
    """Return an agent as it was right after its last configuration."""
    agent = record.revive(kind)
    if record.switched and record.switched.carried > 0:
        past = history(journal, record.agent, 0, record.n)
        preload(agent, past, record.units, record.switched.carried)
    return agent


def preload(agent: Agent, past: History, units: Units, samples: int) -> None:
    """Let a new agent learn from the last samples of a history, or live through them."""
    steps = past.select(np.flatnonzero(past.learned)[past.learned.sum() - samples :])
    lived = steps.steps(agent.space, units)
    if isinstance(agent, EpisodicAgent):
        agent.preload_all(lived.pairs, lived.rewards, lived.afters)
    elif hasattr(agent, "preload"):
        columns = lived.states, steps.actions, lived.rewards, lived.afters
        for i, step in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            seen = None if lived.seen is None else lived.seen[i]
            agent.preload(*step, *(() if seen is None else (seen,)))
    else:
        agent.replay(lived)


def _from_snapshot(
    journal: Journal, record: AgentRecord, kind: type[Agent] | None, step: int
) -> Agent:
    query = "SELECT state FROM snapshots WHERE agent = ? AND step = ?"
    ((state,),) = journal.all(query, record.agent, step)
    id_ = record.saved.agent
    if id_ == Doubling.id:
        return Doubling.from_state(state, make_agent=record.maker)
    return (kind if kind and kind.id == id_ else class_of(id_)).from_state(state)


def _replayed(agent: Agent, units: Units, past: History) -> LiveAgent:
    pending = None
    if past.ids.size and not past.ended[-1]:
        pending = Pending(int(past.ids[-1]), int(past.states[-1]), int(past.advised[-1]))
    steps = past.steps(agent.space, units)
    agent.replay(steps.part(0, -1 if pending else None))
    if pending:
        agent.act(pending.state)
    return LiveAgent(agent, units, pending, past.ids.size)


# Queries about one decision.


def as_decision(space: StateActions, event: Event) -> Decision:
    """Return the decision of a `decided` event."""
    assert event.state is not None
    assert event.action is not None
    name = space.action_name(event.state, event.action)
    return Decision(event.n, event.state, event.action, name, event.key)


def decision_by_key(
    journal: Journal, agent: int, space: StateActions, s: int, key: str
) -> Decision | None:
    """Return the decision that has a key already, if it was made in the same state."""
    events = journal.events("agent = ? AND key = ?", agent, key)
    if not events:
        return None
    known = as_decision(space, events[0])
    if known.state != s:
        raise InputError(
            f"{key!r} was used for {space.describe_state(known.state)}, now for "
            f"{space.describe_state(s)}",
            field="key",
            where=f"decision {known.id}",
            fix="use a key for one decision only",
        )
    return known


def decision_event(journal: Journal, agent: int, number: int) -> Event:
    """Return the event of a decision."""
    exists = 0 < number <= journal.n  # SQLite's integers have a largest
    where = "n = ? AND agent = ? AND kind = ?"
    events = journal.events(where, number, agent, DECIDED) if exists else []
    if not events:
        raise InputError(
            f"there is no decision {number}", field="id", fix="pass the id that decide() returned"
        )
    return events[0]


def pending_event(journal: Journal, agent: int) -> Event | None:
    """Return the decision of an agent that waits for its outcome, if one does."""
    last = journal.events("agent = ? AND kind = ? ORDER BY step DESC LIMIT 1", agent, DECIDED)
    if not last or journal.events("agent = ? AND step = ? AND n > step", agent, last[0].n):
        return None
    return last[0]


def not_pending(journal: Journal, agent: int, number: int) -> CallOrderError:
    """Return the error about a decision that exists and does not wait."""
    decision_event(journal, agent, number)
    return CallOrderError(
        "is not waiting for its outcome",
        field="expire",
        where=f"decision {number}",
        fix="give up the decision that is waiting: see pending",
    )


def outcome_event(journal: Journal, agent: int, number: int) -> Event | None:
    """Return the outcome of a decision, if it is known."""
    events = journal.events("agent = ? AND step = ? AND kind = ?", agent, number, OBSERVED)
    return events[0] if events else None


def require_same_outcome(
    known: Event, reward: float, next_state: int, action: int, seen: Mapping[str, Any] | None
) -> None:
    """Refuse another outcome than the one that is known."""
    old = known.reward, known.state, known.action, decode_seen(known.seen)
    new = reward, next_state, action, seen
    if old != new:
        words = [
            f"reward {r:g}, next state {s}, action {a}{f', seen {shown(v)}' if v else ''}"
            for r, s, a, v in (old, new)
        ]
        raise InputError(
            f"the outcome is known already: {'; now '.join(words)}",
            field="observe",
            where=f"decision {known.step}",
            fix="send each outcome once, or the same again",
        )


def can_learn_late(journal: Journal, record: AgentRecord, agent: Agent, number: int) -> bool:
    """Whether one more step can be learned from, at the place of a decision given up.

    All later steps move on by one: the last decision must still be within the horizon. Learners
    that weigh their own random choices, such as EXP3 and BORL, would draw others in the later steps
    than those that were made: there, a late reward stays out.
    """
    if number <= record.n or not agent._counted:
        return False
    ((later, learned),) = journal.all(
        "SELECT count(*), coalesce(max(step), 0) FROM events "
        "WHERE agent = ? AND step > ? AND kind = ? AND used = 1",
        record.agent, number, OBSERVED,
    )  # fmt: skip
    ((decided,),) = journal.all(
        "SELECT max(step) FROM events WHERE agent = ? AND kind = ?", record.agent, DECIDED
    )
    moved = int(decided > max(number, learned))  # made at time t, and not learned from
    return later < agent._counted and agent.t + moved <= agent.horizon


class Snapshots:
    """Schedule of the snapshots of one agent, so that opening its journal again is quick.

    A snapshot is a cache: without it, or with a damaged one, replay leads to the same agent.
    """

    def __init__(self) -> None:
        self._due = SNAPSHOT_STEPS

    def count(self, steps: int) -> None:
        """Count steps at whose end no snapshot is stored."""
        self._due -= steps

    def keep(self, journal: Writer, number: int, agent: Agent, step: int, steps: int = 1) -> None:
        """Count steps of agent `number`, the last of them `step`; store a snapshot if one is due.

        Old snapshots are dropped, but for those a late reward may need.
        """
        self._due -= steps
        if self._due > 0:
            return
        state = agent.state()
        self._due = max(SNAPSHOT_STEPS, len(state) // SNAPSHOT_BYTES)
        journal.keep_snapshot(number, step, state)
        query = "SELECT step FROM snapshots WHERE agent = ? ORDER BY step DESC"
        stored = [s for (s,) in journal.all(query, number)]
        counted = agent._counted
        needed = int(counted / self._due) + 2 if counted < math.inf else _KEPT
        if len(stored) > needed:
            journal.drop_snapshots(number, "< ?", stored[needed - 1])
