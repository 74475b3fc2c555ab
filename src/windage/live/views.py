"""Read-only views of a journal: status, performance over time, a table of decisions, a drift test.

*Drift test.* Recent outcomes of each state-action pair are tested against those before them. For
each pair the last W samples of the history are set against the W before them: the mean reward,
and the share of each next state. Two coins against one: the evidence is the logarithm of

    KT(x of n) KT(y of m) / max_p p^(x + y) (1 - p)^(n + m - x - y)

where KT is the probability of the outcomes under a coin drawn from Beta(1/2, 1/2). If both segments
have the same coin, the ratio is at most a martingale of mean 1, however the agent's choices depend
on the past, so it exceeds 1 / delta with probability at most delta; this holds for rewards in
[0, 1] too, by convexity. Delta is divided among all tests: one test of a stationary environment
gives a false alarm with probability at most delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, xlog1py, xlogy

from windage.agents.episodes import Planner
from windage.atomic_io import write_whole
from windage.confidence.radii import Radii
from windage.errors import WindageError
from windage.live.config import Units, class_of
from windage.live.history import (
    AgentRecord,
    History,
    agent_at,
    agent_records,
    history,
    initial_agent,
    named_record,
)
from windage.live.journal import Journal
from windage.live.lockfile import writer_of
from windage.live.schema import DECIDED, EXPIRED, OBSERVED
from windage.spaces import StateActions

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "DELTA",
    "AgentStatus",
    "Alarm",
    "Performance",
    "Status",
    "drift_alarms",
    "export",
    "performance",
    "status",
    "timestamp",
    "to_frame",
]

DELTA = 0.01


@dataclass(frozen=True)
class Alarm:
    """One pair whose outcomes have changed.

    Attributes
    ----------
    pair, state, action
        The pair, by number and by names.
    what
        "reward", "cost" where rewards are costs, or the name of the next state whose share has
        changed.
    before, now
        Its mean reward or cost, in the user's units, or its share of next states.
    size
        The change of the reward or cost, or the L1 distance of the two rows.
    samples
        How many there were before, and now.
    """

    pair: int
    state: str
    action: str
    what: str
    before: float
    now: float
    size: float
    samples: tuple[int, int]

    def __str__(self) -> str:
        n, m = self.samples
        if self.what in ("reward", "cost"):
            change = f"the mean {self.what} went from {self.before:.4g} to {self.now:.4g}"
        else:
            change = f"it leads to {self.what} in {self.before:.0%}, now in {self.now:.0%}"
        return (
            f"{self.action} in {self.state}: {change} (size {self.size:.3g}, {n} and {m} samples)"
        )


def drift_alarms(past: History, space: StateActions, units: Units, recent: int) -> list[Alarm]:
    """Return the pairs whose last outcomes differ from those before by more than chance."""
    learned = past.select(past.learned)
    pairs = space.offsets[learned.states] + learned.actions
    low, high = units.agent_range
    rewards = (units.to_agent(learned.rewards) - low) / (high - low)
    if not ((rewards >= 0.0) & (rewards <= 1.0)).all():
        rewards = np.zeros(rewards.size)  # no coins: their test would not be valid
    start, middle = max(pairs.size - 2 * recent, 0), pairs.size - recent
    parts = slice(start, middle), slice(middle, None)
    samples = np.stack([np.bincount(pairs[part], minlength=space.n_pairs) for part in parts])

    # a coin for each pair's reward, and for each next state that a pair has led to
    n_coins = 1 + space.n_states
    landed = pairs[start:] * n_coins + learned.next_states[start:]
    paid = pairs[start:] * n_coins + space.n_states
    known, coin = np.unique(np.concatenate([landed, paid]), return_inverse=True)
    is_new = np.tile(np.arange(start, pairs.size) >= middle, 2)
    heads = np.concatenate([np.ones(landed.size), rewards[start:]])
    sums: NDArray[np.float64] = np.stack([
        np.bincount(coin[part], heads[part], minlength=known.size) for part in (~is_new, is_new)
    ])  # fmt: skip
    pair_of, after = known // n_coins, known % n_coins
    n, m = samples[:, pair_of]
    evidence = np.where((n > 0) & (m > 0), _evidence(sums, n, m), -np.inf)
    threshold = math.log(space.n_pairs * n_coins / DELTA)

    alarms = []
    for pair in np.unique(pair_of[evidence > threshold]).tolist():
        s, a = int(space.state_of[pair]), int(space.action_of[pair])
        names = space.state_name(s), space.action_name(s, a)
        counted = (int(samples[0, pair]), int(samples[1, pair]))
        first, last = np.searchsorted(pair_of, [pair, pair + 1]).tolist()
        if evidence[last - 1] > threshold:  # its reward's coin comes last
            before, now = (float(learned.rewards[p][pairs[p] == pair].mean()) for p in parts)
            change = abs(now - before)
            alarms.append(Alarm(pair, *names, units.word, before, now, change, counted))
        best = int(np.argmax(evidence[first : last - 1]))
        if evidence[first + best] > threshold:
            rows = sums[:, first : last - 1] / np.reshape(counted, (2, 1))
            before, now = rows[:, best].tolist()
            to = space.state_name(int(after[first + best]))
            change = float(np.abs(rows[0] - rows[1]).sum())
            alarms.append(Alarm(pair, *names, to, before, now, change, counted))
    return sorted(alarms, key=lambda alarm: -alarm.size)


def _evidence(
    sums: NDArray[np.float64], old: NDArray[np.int64], new: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the evidence, column by column, that two segments are not of the same coin.

    >>> one = np.array([1])
    >>> np.exp(_evidence(np.array([[1.0], [1.0]]), one, one)).round(9).tolist()  # 1/2 * 1/2 / 1
    [0.25]
    """
    total, n = sums.sum(axis=0), old + new
    share = total / n
    one_coin = xlogy(total, share) + xlog1py(n - total, -share)
    return np.asarray(_kt(sums[0], old) + _kt(sums[1], new) - one_coin)


def _kt(sums: NDArray[np.float64], n: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the log-probability of outcomes under a coin drawn from Beta(1/2, 1/2)."""
    return np.asarray(betaln(0.5 + sums, 0.5 + n - sums) - betaln(0.5, 0.5))


_SETTINGS = ("window", "widening", "radii", "ties", "horizon")


@dataclass(frozen=True)
class AgentStatus:
    """One agent of a journal. Rewards and gains are in the user's units.

    Attributes
    ----------
    name, agent, settings
        Its name in the journal, its id, and the parameters that matter.
    t
        The time of its next decision.
    decisions, learned, given_up, late, unused, overridden
        Decisions; outcomes learned from, in time or late; steps dropped for good; outcomes that
        came late and were used, or were not; decisions after which another action was taken.
    rejected, by_fallback, is_capped
        Outcomes that were refused; decisions the fallback made, as far as they could be recorded
        afterwards; whether there were more: a journal keeps its last thousand remarks.
    pending
        The decision that waits, in words, and since when.
    mean, recent_mean, recent
        Mean reward of all, and of the last `recent` outcomes.
    gain, vacuous
        The optimistic gain of its episode, and the share of pairs of whose transitions it knows
        nothing; None of agents that do not plan, and of several that are looked at together.
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
    """Return the status of the agents of a journal, or of one; its program is not disturbed.

    Of several, all is told from events. Of one, the agent itself is read, for its optimistic gain.
    """
    with Journal(path) as journal:
        records = agent_records(journal)
        chosen = [named_record(records, name)] if name is not None else list(records.values())
        ends = journal.events("n IN (1, ?) ORDER BY n", journal.n)
        return Status(
            path=journal.path,
            events=journal.n,
            size=journal.path.stat().st_size,
            first=timestamp(ends[0].at),
            last=timestamp(ends[-1].at),
            writer=writer_of(journal.path),
            agents=tuple(_agent_status(journal, one, is_alone=len(chosen) == 1) for one in chosen),
        )


def timestamp(at: int) -> str:
    """Return the time of an event as people read it, in UTC.

    >>> timestamp(0)
    '1970-01-01 00:00:00 UTC'
    """
    return _utc(at).strftime("%Y-%m-%d %H:%M:%S UTC")


def _utc(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1e6, UTC)


def _agent_status(journal: Journal, record: AgentRecord, *, is_alone: bool) -> AgentStatus:
    episode, trouble = None, ""
    try:
        if is_alone:
            episode = getattr(agent_at(journal, record).agent, "episode", None)
        else:
            class_of(record.acting.agent)
    except WindageError as err:
        trouble = str(err)
    past = history(journal, record.agent, 0, journal.n)
    configuration, space, units = record.acting.configuration, record.space(), record.units
    rewards = past.rewards[past.learned]
    learned = rewards.size
    window = configuration.get("window")
    recent = min(window, learned // 2) if isinstance(window, int) else learned // 2
    pending, since = _pending(journal, past, space)
    rejected, by_fallback, is_capped = _remarks(journal, record.agent)
    return AgentStatus(
        name=record.created.name,
        agent=record.saved.agent,
        settings=_settings(configuration),
        direction=record.created.direction,
        t=(record.switched or record.saved).t + int(past.learned[past.ids > record.n].sum()),
        decisions=past.ids.size,
        learned=learned,
        given_up=int((past.expired & ~past.learned).sum()),
        late=int((past.expired & past.learned).sum()),
        unused=int(((past.observed_at > 0) & ~past.learned).sum()),
        overridden=int((past.learned & (past.actions != past.advised)).sum()),
        rejected=rejected,
        by_fallback=by_fallback,
        is_capped=is_capped,
        pending=pending,
        pending_since=since,
        mean=float(rewards.mean()) if rewards.size else None,
        recent_mean=float(rewards[-recent:].mean()) if recent else None,
        recent=recent,
        gain=units.optimistic(float(episode.gain)) if episode is not None else None,
        vacuous=float(episode.vacuous) if episode is not None else None,
        alarms=tuple(drift_alarms(past, space, units, recent) if recent else ()),
        trouble=trouble,
    )


def _settings(configuration: dict[str, Any]) -> dict[str, Any]:
    found = {name: configuration.get(name) for name in _SETTINGS}
    if isinstance(found["radii"], dict):
        found["radii"] = Radii.from_spec(found["radii"]).label
    return {name: value for name, value in found.items() if isinstance(value, (int, float, str))}


def _pending(journal: Journal, past: History, space: StateActions) -> tuple[str, str]:
    if past.ids.size == 0 or past.ended[-1]:
        return "", ""
    number, s, a = int(past.ids[-1]), int(past.states[-1]), int(past.advised[-1])
    (event,) = journal.events("n = ?", number)
    words = f"{space.action_name(s, a)} in {space.state_name(s)}"
    return f"decision {number}: {words}", timestamp(event.at)


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


@dataclass(frozen=True)
class Performance:
    """Rewards learned from, in the user's units and in the order of their steps.

    Attributes
    ----------
    rewards
        One per step.
    since
        The step from which the present configuration acts.
    starts, gains, vacuous
        Of each episode since then: its first step, its optimistic gain, and the share of pairs of
        whose transitions nothing was known. Empty for agents that do not plan.
    direction
        "profit" or "cost".
    """

    rewards: NDArray[np.float64]
    since: int
    starts: NDArray[np.int64]
    gains: NDArray[np.float64]
    vacuous: NDArray[np.float64]
    direction: str

    def smoothed(self, width: int) -> NDArray[np.float64]:
        """Return the mean of the last `width` rewards at every step, of all while there are fewer.

        >>> none = np.empty(0)
        >>> Performance(np.array([4.0, 0, 2]), 1, none, none, none, "cost").smoothed(2).tolist()
        [4.0, 2.0, 1.0]
        """
        sums = np.concatenate([[0.0], np.cumsum(self.rewards)])
        ends = np.arange(1, self.rewards.size + 1)
        first = np.maximum(ends - width, 0)
        return np.asarray((sums[ends] - sums[first]) / (ends - first))


def performance(path: str | Path, name: str | None = None) -> Performance:
    """Return the rewards and optimistic gains of an agent of a journal over time."""
    with Journal(path) as journal:
        record = named_record(agent_records(journal), name)
        past = history(journal, record.agent, 0, journal.n)
        agent = initial_agent(journal, record)
    units = record.units
    recent = past.select(past.ids > record.n)
    ended = int(recent.ended.sum())
    agent.replay(recent.steps(agent.space, units).part(0, ended))
    since = int(past.learned[past.ids <= record.n].sum()) + 1
    starts = np.empty(0, np.int64)
    gains = vacuous = np.empty(0)
    if isinstance(agent, Planner):
        episodes = agent.episode_rows(1)
        starts = episodes["start"] + since - 1
        gains, vacuous = np.asarray(units.to_user(episodes["gain"])), episodes["vacuous"]
    return Performance(
        past.rewards[past.learned], since, starts, gains, vacuous, record.created.direction
    )


def export(path: str | Path, target: str | Path, name: str | None = None) -> int:
    """Write the decisions of a journal to a Parquet file; returns how many."""
    frame = to_frame(path, name)
    write_whole(target, frame.write_parquet, make_folder=True)
    return frame.height


def to_frame(path: str | Path, name: str | None = None) -> pl.DataFrame:
    """Return the decisions of a journal, of all its agents or of one, as a data frame.

    `outcome` is learned, late, unused, given up or pending; rewards are in the user's units; `seen`
    is JSON.
    """
    import polars as pl

    with Journal(path) as journal:
        journal.require_chain(1)
        records = agent_records(journal)
        chosen = [named_record(records, name)] if name is not None else list(records.values())
        rows = [row for record in chosen for row in _rows(journal, record)]
    schema: dict[str, Any] = {
        "agent": pl.String, "id": pl.Int64, "key": pl.String,
        "decided_at": pl.Datetime("us", "UTC"), "state": pl.Int64,
        "state_name": pl.String, "advised": pl.Int64, "advised_name": pl.String,
        "played": pl.Int64, "played_name": pl.String, "reward": pl.Float64,
        "next_state": pl.Int64, "next_state_name": pl.String,
        "seen": pl.String, "observed_at": pl.Datetime("us", "UTC"), "outcome": pl.String,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row").sort("id")


def _rows(journal: Journal, record: AgentRecord) -> list[dict[str, Any]]:
    space = record.space()
    rows: list[dict[str, Any]] = []
    where = "agent = ? AND kind IN (?, ?, ?) ORDER BY step, n"
    for event in journal.events(where, record.agent, DECIDED, OBSERVED, EXPIRED):
        if event.kind == DECIDED:
            state, advised = event.state or 0, event.action or 0
            rows.append({
                "agent": record.created.name, "id": event.n, "key": event.key,
                "decided_at": _utc(event.at), "state": state,
                "state_name": space.state_name(state), "advised": advised,
                "advised_name": space.action_name(state, advised), "outcome": "pending",
            })  # fmt: skip
            continue
        row = rows[-1]
        if event.kind == EXPIRED:
            row["outcome"] = "given up"
            continue
        played, next_state = event.action or 0, event.state or 0
        in_time = "late" if row["outcome"] == "given up" else "learned"
        row |= {
            "played": played, "played_name": space.action_name(row["state"], played),
            "reward": event.reward, "next_state": next_state,
            "next_state_name": space.state_name(next_state), "seen": event.seen,
            "observed_at": _utc(event.at),
            "outcome": in_time if event.used else "unused",
        }  # fmt: skip
    return rows
