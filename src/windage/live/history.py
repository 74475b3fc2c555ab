"""The corrected history of one agent, and the agent that comes out of it.

Events are read in the order of the steps they belong to, so a reward that came late stands where it
would have stood in time. An agent is what its last configuration, or a snapshot after it, becomes
by living through the steps that follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from windage.agents import Agent, Doubling
from windage.agents.optimistic.episodic import EpisodicAgent
from windage.agents.replay import Steps, replay
from windage.errors import StateError
from windage.live.events import CONFIGURED, CREATED
from windage.live.failures import damaged
from windage.live.journal import Journal
from windage.live.settings import Created, Made, Makers, Switched, kind_of
from windage.live.units import Units
from windage.spaces import StateActions
from windage.validation import as_choice

__all__ = [
    "Base",
    "History",
    "Life",
    "Pending",
    "bases",
    "history",
    "live_on",
    "live_through",
    "of_name",
    "reach",
]

_READ = (
    "SELECT n, (kind = 'decided') + 2 * (kind = 'observed') + 3 * (kind = 'expired'), step, "
    "coalesce(state, 0), coalesce(action, 0), coalesce(reward, 0.0), coalesce(used, 0) "
    "FROM events WHERE agent = ? AND step > ? AND step <= ? AND n <= ? ORDER BY step, n"
)
_IS_DECIDED, _IS_OBSERVED, _IS_EXPIRED = 1, 2, 3


class Pending(NamedTuple):
    """The decision that waits for its outcome."""

    id: int
    state: int
    action: int


@dataclass(frozen=True)
class Base:
    """What an agent of a journal was told last: event `n`, and all before it that still counts."""

    agent: int
    n: int
    created: Created
    switched: Switched | None
    makers: Makers

    def fresh(self, kind: type[Agent] | None = None) -> Agent:
        """Return the agent as it was at event n, before it learned from carried samples."""
        saved = self.switched.saved if self.switched else self.created.saved
        return saved.revive(kind if kind and kind.id == saved.agent else None, self.makers)

    def space(self) -> StateActions:
        """Return its states and actions, without making the agent."""
        configuration = self.created.saved.configuration
        if "space" not in configuration:
            configuration = self.makers.first().configuration
        return StateActions(**configuration["space"])


class History(NamedTuple):
    """Decisions in order, in columns; rewards in the user's units."""

    ids: NDArray[np.int64]
    states: NDArray[np.int64]
    advised: NDArray[np.int64]
    actions: NDArray[np.int64]
    rewards: NDArray[np.float64]
    afters: NDArray[np.int64]
    learned: NDArray[np.bool_]
    ended: NDArray[np.bool_]
    """Whether the outcome is known or was given up."""
    arrived: NDArray[np.int64]
    """The event that told the outcome; 0 if none did."""

    def steps(self, space: StateActions, units: Units) -> Steps:
        """Return the steps as an agent lives through them; the last one may not have ended."""
        return Steps(
            self.states,
            self.learned,
            space.offsets[self.states] + self.actions,
            units.inward(self.rewards),
            self.afters,
        )

    def part(self, chosen: Any) -> History:
        """Return some of it."""
        return History(*(column[chosen] for column in self))


@dataclass
class Life:
    """An agent where its journal stands."""

    agent: Agent
    units: Units
    pending: Pending | None
    replayed: int
    """How many steps it was led through when it was last read."""


def bases(
    journal: Journal,
    makers: dict[str, Makers] | None = None,
    *,
    until: int | None = None,
    agent: int | None = None,
) -> dict[str, Base]:
    """Return what every agent of a journal, or one, was told last, up to an event, by its name.

    `makers` are those of agents whose functions are known; the others make what the journal knows.
    """
    found: dict[int, Base] = {}
    last = journal.n if until is None else until
    which = f"body IS NOT NULL AND kind IN ('{CREATED}', '{CONFIGURED}') AND n <= ?"
    if agent is None:
        rows = journal.events(f"{which} ORDER BY n", last)
    else:
        rows = journal.events(f"{which} AND agent = ? ORDER BY n", last, agent)
    for event in rows:
        try:
            body = msgspec.json.decode(event.body or "", type=Created | Switched | Made)
        except msgspec.DecodeError as err:
            raise damaged(journal.path, f"event {event.n} cannot be read ({err})") from None
        if isinstance(body, Created):
            made = (makers or {}).get(body.name) or Makers(None)
            found[event.agent] = Base(event.n, event.n, body, None, made)
            continue
        old = found[event.agent]
        if isinstance(body, Made):
            old.makers.recall(body)
        else:
            found[event.agent] = Base(event.agent, event.n, old.created, body, old.makers)
    return {base.created.name: base for base in found.values()}


def of_name(known: dict[str, Base], name: str | None) -> Base:
    """Return one agent of a journal by its name; the only one needs none."""
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    return known[as_choice(name or "", "--name", known)]


def history(
    journal: Journal, agent: int, after: int, until: int, through: int | None = None
) -> History:
    """Return the decisions of an agent with after < id <= through, as known at event `until`."""
    journal.require_chain(after + 1)
    last = until if through is None else through
    table = np.array(journal.all(_READ, agent, after, last, until), np.float64).reshape(-1, 7)
    n, step, state, action = (table[:, k].astype(np.int64) for k in (0, 2, 3, 4))
    kind, reward, used = table[:, 1], table[:, 5], table[:, 6].astype(bool)
    decided, observed = kind == _IS_DECIDED, kind == _IS_OBSERVED
    ids = step[decided]
    found = History(
        ids, state[decided], action[decided], action[decided], np.zeros(ids.size),
        np.zeros(ids.size, np.int64), np.full(ids.size, False), np.full(ids.size, False),
        np.zeros(ids.size, np.int64),
    )  # fmt: skip
    outcomes = np.searchsorted(ids, step[observed])
    found.actions[outcomes], found.rewards[outcomes] = action[observed], reward[observed]
    found.afters[outcomes], found.arrived[outcomes] = state[observed], n[observed]
    found.learned[outcomes] = used[observed]
    found.ended[outcomes] = True
    found.ended[np.searchsorted(ids, step[kind == _IS_EXPIRED])] = True
    return found


def live_through(
    journal: Journal,
    base: Base,
    kind: type[Agent] | None = None,
    until: int | None = None,
    through: int | None = None,
) -> Life:
    """Return an agent where its journal stands, or stood at an event: a snapshot and what followed.

    `base` is what it was told up to there. Steps after decision `through` are left out.
    """
    last = journal.n if until is None else until
    snapshots = journal.all(
        "SELECT step, n, chain FROM snapshots WHERE agent = ? AND step >= ? AND step <= ? "
        "AND n <= ? ORDER BY step DESC",
        base.agent, base.n, last if through is None else through, last,
    )  # fmt: skip
    agent, since = None, base.n
    for step, n, chain in snapshots:
        if journal.chain_at(n) == chain:
            try:
                agent, since = _resumed(journal, base, kind, step), step
            except StateError:
                continue  # a cache: an older one, or the whole history, says the same
            break
    if agent is None:
        agent = started(journal, base, kind)
    units = base.created.units(agent)
    return _continued(agent, units, history(journal, base.agent, since, last, through))


def live_on(journal: Journal, base: Base, life: Life, after: int) -> Life:
    """Return an agent that has lived through all steps up to one after all that follow it."""
    return _continued(life.agent, life.units, history(journal, base.agent, after, journal.n))


def started(journal: Journal, base: Base, kind: type[Agent] | None = None) -> Agent:
    """Return an agent as it was right after its last configuration."""
    agent = base.fresh(kind)
    if base.switched and base.switched.carried > 0:
        past = history(journal, base.agent, 0, base.n)
        carry(agent, past, base.created.units(agent), base.switched.carried)
    return agent


def carry(agent: Agent, past: History, units: Units, samples: int) -> None:
    """Let a new agent learn from the last samples of a history, if it is of a kind that can."""
    if samples > 0:
        assert isinstance(agent, EpisodicAgent)
        recent = past.part(np.flatnonzero(past.learned)[-samples:])
        pairs = agent.space.offsets[recent.states] + recent.actions
        agent.preload_all(pairs, units.inward(recent.rewards), recent.afters)


def _resumed(journal: Journal, base: Base, kind: type[Agent] | None, step: int) -> Agent:
    """Return the agent as it was kept after a step."""
    query = "SELECT state FROM snapshots WHERE agent = ? AND step = ?"
    ((state,),) = journal.all(query, base.agent, step)
    fresh = base.switched.saved.agent if base.switched else base.created.saved.agent
    if fresh == Doubling.id:
        return Doubling.from_state(state, make_agent=base.makers)
    return (kind if kind and kind.id == fresh else kind_of(fresh)).from_state(state)


def _continued(agent: Agent, units: Units, past: History) -> Life:
    pending = None
    if past.ids.size and not past.ended[-1]:
        pending = Pending(int(past.ids[-1]), int(past.states[-1]), int(past.advised[-1]))
    steps = past.steps(agent.space, units)
    replay(agent, steps.part(0, -1 if pending else None))
    if pending:
        agent.act(pending.state)
    return Life(agent, units, pending, past.ids.size)


def reach(agent: Agent) -> float:
    """Return how many of the last samples an agent still counts; 0 if a late one cannot be placed.

    Learners that count samples can count one more at its place. For the others the order in which
    they learned is part of what they know, and of the chances they took: a late reward stays out.
    """
    if isinstance(agent, Doubling):
        return reach(agent.runner) if agent.runner is not None else 0
    if not isinstance(agent, EpisodicAgent):
        return 0
    return min(agent._window.width or np.inf, agent.t - agent._origin(agent.t))
