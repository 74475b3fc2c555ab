"""How a live agent is doing, read from its journal: counts, what it hopes for and gets, drift."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from windage.agents import Agent, Doubling
from windage.errors import WindageError
from windage.live.alarms import Alarm, drift, stretch
from windage.live.events import DECIDED, EXPIRED, OBSERVED
from windage.live.head import writer_of
from windage.live.history import Base, History, bases, history, live_through, of_name
from windage.live.journal import Journal

__all__ = ["AgentStatus", "Status", "status"]

_SETTINGS = ("window", "widening", "radii", "ties", "horizon")


@dataclass(frozen=True)
class AgentStatus:
    """One agent of a journal. Rewards and gains are in the user's units.

    Attributes
    ----------
    name, agent, settings
        What it is called, its id, and the parameters that matter.
    t
        The time of its next decision.
    decisions, learned, given_up, late, unused, overridden
        Decisions; outcomes learned from, in time or late; steps dropped for good; outcomes that
        came late and were used, or were not; decisions after which something else was done.
    rejected, by_fallback, is_capped
        Outcomes that were refused; decisions the fallback made, as far as they could be noted
        afterwards; whether there were more: a journal keeps its last thousand remarks.
    pending
        The decision that waits, in words, and since when.
    mean, recent_mean, recent
        Mean reward of all, and of the last `recent` outcomes.
    gain
        What the agent hopes to get a step: the optimistic gain of its episode.
    vacuous
        Share of pairs of whose transitions it knows nothing.
    alarms
        Pairs whose outcomes have changed.
    trouble
        Why the agent itself could not be read; empty if it could.
    """

    name: str
    agent: str
    settings: dict[str, Any]
    direction: str
    t: int
    decisions: int
    learned: int
    given_up: int
    late: int
    unused: int
    overridden: int
    rejected: int
    by_fallback: int
    is_capped: bool
    pending: str
    pending_since: str
    mean: float | None
    recent_mean: float | None
    recent: int
    gain: float | None
    vacuous: float | None
    alarms: tuple[Alarm, ...]
    trouble: str


@dataclass(frozen=True)
class Status:
    """A journal and its agents."""

    path: Path
    events: int
    size: int
    first: str
    last: str
    writer: int | None
    agents: tuple[AgentStatus, ...]


def status(path: str | Path, name: str | None = None) -> Status:
    """Return how the agents of a journal are doing; its program is not disturbed.

    With a name only this one, which saves reading the others.
    """
    journal = Journal(path)
    try:
        known = bases(journal)
        chosen = [of_name(known, name)] if name is not None else list(known.values())
        (first,), (last,) = journal.all("SELECT at FROM events WHERE n IN (1, ?)", journal.n) * (
            2 if journal.n == 1 else 1
        )
        return Status(
            journal.path,
            journal.n,
            journal.path.stat().st_size,
            moment(first),
            moment(last),
            writer_of(journal.path),
            tuple(_of_agent(journal, base) for base in chosen),
        )
    finally:
        journal.close()


def moment(at: int) -> str:
    """Return a time as people read it, in UTC.

    >>> moment(0)
    '1970-01-01 00:00:00 UTC'
    """
    return datetime.fromtimestamp(at / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _of_agent(journal: Journal, base: Base) -> AgentStatus:
    agent, trouble = None, ""
    past = history(journal, base.agent, 0, journal.n)
    try:
        agent = live_through(journal, base).agent
    except WindageError as err:
        trouble = str(err)
    saved = base.switched.saved if base.switched else base.created.saved
    counts = dict(
        journal.all("SELECT kind, count(*) FROM events WHERE agent = ? GROUP BY kind", base.agent)
    )
    learned, observed = int(past.learned.sum()), counts.get(OBSERVED, 0)
    ((late,),) = journal.all(
        "SELECT count(*) FROM events AS told JOIN events AS lost ON lost.agent = told.agent "
        "AND lost.step = told.step AND lost.kind = ? WHERE told.agent = ? AND told.kind = ? "
        "AND told.used = 1",
        EXPIRED, base.agent, OBSERVED,
    )  # fmt: skip
    rewards = past.rewards[past.learned]
    recent = stretch(agent, rewards.size) if agent is not None else rewards.size // 2
    pending, since = _pending(journal, past, agent)
    rejected, fallback, is_capped = _remarks(journal, base.agent)
    return AgentStatus(
        name=base.created.name,
        agent=saved.agent,
        settings=_settings(agent) if agent is not None else {},
        direction=base.created.direction,
        t=agent.t if agent is not None else learned + 1,
        decisions=counts.get(DECIDED, 0),
        learned=learned,
        given_up=counts.get(EXPIRED, 0) - late,
        late=late,
        unused=observed - learned,
        overridden=int((past.learned & (past.actions != past.advised)).sum()),
        rejected=rejected,
        by_fallback=fallback,
        is_capped=is_capped,
        pending=pending,
        pending_since=since,
        mean=float(rewards.mean()) if rewards.size else None,
        recent_mean=float(rewards[-recent:].mean()) if recent else None,
        recent=recent,
        gain=_gain(agent, base),
        vacuous=_episode(agent, "vacuous"),
        alarms=tuple(_alarms(agent, base, past, recent)),
        trouble=trouble,
    )


def _alarms(agent: Agent | None, base: Base, past: History, recent: int) -> list[Alarm]:
    if agent is None or recent == 0:
        return []
    return drift(past, agent.space, base.created.units(agent), recent)


def _gain(agent: Agent | None, base: Base) -> float | None:
    gain = _episode(agent, "gain")
    return None if gain is None or agent is None else base.created.units(agent).hoped(gain)


def _episode(agent: Agent | None, field: str) -> float | None:
    episode = getattr(agent, "episode", None)
    return None if episode is None else float(getattr(episode, field))


def _settings(agent: Agent) -> dict[str, Any]:
    acting = agent.runner if isinstance(agent, Doubling) and agent.runner else agent
    found = {}
    for name in _SETTINGS:
        value = getattr(acting, name, None)
        value = getattr(value, "label", value)
        if isinstance(value, (int, float, str)):
            found[name] = value
    return found


def _pending(journal: Journal, past: History, agent: Agent | None) -> tuple[str, str]:
    if past.ids.size == 0 or past.ended[-1]:
        return "", ""
    number, s, a = int(past.ids[-1]), int(past.states[-1]), int(past.advised[-1])
    ((at,),) = journal.all("SELECT at FROM events WHERE n = ?", number)
    words = (
        f"{agent.space.action_name(s, a)} in {agent.space.state_name(s)}"
        if agent is not None
        else f"action {a} in state {s}"
    )
    return f"decision {number}: {words}", moment(at)


def _remarks(journal: Journal, agent: int) -> tuple[int, int, bool]:
    """Return how much feedback was refused, how often the fallback decided, and if that is all."""
    ((rejected, fallback),) = journal.all(
        "SELECT count(*) FILTER (WHERE what != 'fallback'), "
        "coalesce(sum(CAST(problem AS INTEGER)) FILTER (WHERE what = 'fallback'), 0) "
        "FROM rejected WHERE agent = ?",
        agent,
    )
    ((first,),) = journal.all("SELECT coalesce(min(id), 1) FROM rejected")
    return rejected, fallback, first > 1
