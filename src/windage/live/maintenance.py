"""Maintenance of a journal: verify it by replay, and switch its agent after a rehearsal."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windage.agents import Agent, Doubling
from windage.agents.optimistic.episodic import EpisodicAgent
from windage.atomic_io import as_path
from windage.errors import CallOrderError, InputError, JournalError, WindageError
from windage.live.config import Switched, differences, require_units_of_structure, save
from windage.live.history import (
    AgentRecord,
    History,
    LiveAgent,
    agent_records,
    history,
    initial_agent,
    preload,
)
from windage.live.journal import Journal
from windage.live.lockfile import digest_of, head_path, read_head, writer_of
from windage.live.schema import UnknownAgentError, damaged

__all__ = ["Rehearsal", "Verification", "rehearse", "require_settled", "verify"]


@dataclass
class Verification:
    """Problems of a journal, if any, and remarks on what could not be checked.

    `agents` are those that could be replayed, `decisions` theirs; `snapshots` were compared.
    """

    path: Path
    events: int = 0
    agents: int = 0
    decisions: int = 0
    snapshots: int = 0
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    fix: str = ""
    """What to do about the problems."""

    @property
    def is_sound(self) -> bool:
        """Whether there are no problems."""
        return not self.problems


def verify(path: str | Path) -> Verification:
    """Check every event, replay every agent from its first, and compare all snapshots.

    Nothing is written; a program that writes to the journal is not disturbed.
    """
    report = Verification(as_path(path))
    try:
        journal = Journal(path)
    except JournalError as err:
        report.problems.append(err.problem)
        report.fix = err.fix
        return report
    with journal:
        report.events = journal.n
        for check in (_check_chain, _check_tables, _check_agents, _check_head):
            try:
                check(journal, report)
            except WindageError as err:
                report.problems.append(err.problem)
    if report.problems:
        report.fix = damaged(report.path, "").fix
    return report


def _check_chain(journal: Journal, _: Verification) -> None:
    journal.require_chain(1)


def _check_tables(journal: Journal, report: Verification) -> None:
    with journal.reading() as con:
        for (line,) in con.execute("PRAGMA integrity_check"):
            if line != "ok":
                report.problems.append(f"SQLite: {line}")


def _check_agents(journal: Journal, report: Verification) -> None:
    if report.problems:
        return  # a replay of a damaged history proves nothing
    for record in agent_records(journal).values():
        try:
            _check_agent(journal, record, report)
        except UnknownAgentError as err:
            report.remarks.append(
                f"agent {record.created.name!r}: {err.problem}; its decisions were not replayed"
            )
        except WindageError as err:
            report.problems.append(f"agent {record.created.name!r}: {err.problem}")


def _check_head(journal: Journal, report: Verification) -> None:
    """Check that the end is the acknowledged one, and that the file is as it was closed."""
    head = read_head(journal.path)
    if head is None:
        if head_path(journal.path).is_file():
            report.problems.append("its head is damaged: whether the end was cut cannot be told")
        else:
            report.remarks.append("it has no head: whether the end was cut cannot be told")
    elif not head.seal:
        pid = writer_of(journal.path)
        why = "was not closed in order" if pid is None else f"is open in process {pid}"
        report.remarks.append(f"it {why}: bytes that hold no event cannot be checked")
    elif head.n == journal.n and digest_of(journal.path) != head.seal:
        report.problems.append("the file is not as it was closed")


def _check_agent(journal: Journal, record: AgentRecord, report: Verification) -> None:
    past = history(journal, record.agent, 0, journal.n)
    decisions = past.ids.size
    if record.switched is not None:
        past = past.select(past.ids > record.n)
    agent = initial_agent(journal, record)
    steps = past.steps(agent.space, record.units)
    ended = int(past.ended.sum()) if past.ids.size else 0
    snapshots = journal.all(  # those of an agent before a switch are never used again
        "SELECT step, n, chain, state FROM snapshots WHERE agent = ? AND step >= ? ORDER BY step",
        record.agent, record.n,
    )  # fmt: skip
    advised, replayed = [], 0
    for step, n, chain, state in snapshots:
        last = min(int(np.searchsorted(past.ids, step, side="right")), ended)
        advised.append(agent.replay(steps.part(replayed, last)))
        replayed = last
        report.snapshots += 1
        if journal.chain_at(n) != chain:
            report.problems.append(f"the snapshot of decision {step} belongs to another history")
        elif agent.state() != state:
            report.problems.append(f"the snapshot of decision {step} is not what replay leads to")
    advised.append(agent.replay(steps.part(replayed, ended)))
    if ended < past.ids.size:
        action = agent.act(int(past.states[-1]))
        advised.append(agent.space.offsets[past.states[-1:]] + action)
    _check_advice(agent, past, np.concatenate(advised), report)
    report.decisions += decisions
    report.agents += 1


def _check_advice(
    agent: Agent, past: History, advised: NDArray[np.int64], report: Verification
) -> None:
    """Compare the recorded advice with that of the replay.

    A decision made before the late reward of an earlier step came was based on less data; it is not
    compared.
    """
    recorded = agent.space.offsets[past.states] + past.advised
    learned_at = np.where(past.learned, past.observed_at, 0)
    earlier = np.concatenate([[0], np.maximum.accumulate(learned_at)])[:-1]
    differing = np.flatnonzero((recorded != advised) & (earlier < past.ids))
    if differing.size:
        first = int(past.ids[differing[0]])
        report.problems.append(
            f"{differing.size} decisions, the first of them {first}, are not what the agent would "
            "advise here: another machine, or another version of windage, made them"
        )


@dataclass(frozen=True)
class Rehearsal:
    """Comparison of another agent with the current one on a history.

    Attributes
    ----------
    changes
        What would change in the configuration.
    steps, agreed
        Steps of the history that were replayed, and the share in which it would have done what was
        done. What would have followed from other actions is unknown.
    carried
        Samples it would start with.
    gain, vacuous
        The optimistic gain, in the user's units, and the share of pairs of whose transitions
        nothing is known: of the current agent, and of the new one where it would start.
    policy
        States in which it would now act otherwise: state, current action, new action.
    """

    changes: tuple[str, ...]
    steps: int
    agreed: float
    carried: int
    gain: tuple[float | None, float | None]
    vacuous: tuple[float | None, float | None]
    policy: tuple[tuple[str, str, str], ...]
    event: Switched


def require_settled(live: LiveAgent) -> None:
    """Refuse to switch while a decision waits: the new agent could not learn its outcome."""
    if live.pending is not None:
        raise CallOrderError(
            f"decision {live.pending.id} is waiting for its outcome",
            field="switch",
            fix="observe it, or give it up, first; a dry run needs neither",
        )


def rehearse(journal: Journal, record: AgentRecord, live: LiveAgent, agent: Agent) -> Rehearsal:
    """Replay the history of the current agent with another one; nothing is changed."""
    saved = save(agent)
    if isinstance(agent, Doubling):
        raise InputError(
            "a running journal cannot be switched to Doubling",
            field="agent",
            fix="start another journal with it",
        )
    if agent.space != live.agent.space:
        raise InputError(
            f"has other states or actions: {agent.space!r}",
            field="agent",
            fix="keep those of the journal, or start another",
        )
    past = history(journal, record.agent, 0, journal.n)
    units = record.created.units(agent.reward_range)
    require_units_of_structure(agent, units)
    carried = _samples_carried(agent, past) if saved.state is None else 0
    successor = saved.revive(type(agent), record.maker)
    preload(successor, past, units, carried)
    event = Switched(saved, carried, successor.t)
    successor.act(live.agent.last_state or 0)
    tried = past.select(np.flatnonzero(past.learned)[-agent.horizon :])
    steps = tried.steps(agent.space, units)
    rehearsed = saved.revive(type(agent), record.maker)
    advised = rehearsed.replay(steps)
    old = record.saved
    changes = differences(
        {"agent": old.agent, **old.configuration}, {"agent": saved.agent, **saved.configuration}
    )
    gain, vacuous = _episode(live.agent, record)
    new_gain, new_vacuous = _episode(successor, record)
    return Rehearsal(
        changes=tuple(changes),
        steps=tried.ids.size,
        agreed=float((advised == steps.pairs).mean()) if tried.ids.size else 1.0,
        carried=carried,
        gain=(gain, new_gain),
        vacuous=(vacuous, new_vacuous),
        policy=_policy_changes(live.agent, successor),
        event=event,
    )


def _samples_carried(agent: Agent, past: History) -> int:
    """Return how many of the last samples a new agent starts with: as many as its memory holds.

    One that cannot be preloaded lives through them, if it can learn from what others decided.
    """
    learned = int(past.learned.sum())
    if not hasattr(agent, "preload"):
        if agent.off_policy and learned >= agent.horizon:
            raise InputError(
                f"{agent.id!r} learns {learned:,} outcomes in as many steps of its own, and has "
                f"{agent.horizon:,}",
                field="horizon",
                fix=f"make it larger than {learned:,}: those steps and the ones to come",
            )
        return learned if agent.off_policy else 0
    window = agent._width if isinstance(agent, EpisodicAgent) else getattr(agent, "window", None)
    return min(learned, window or learned)


def _episode(agent: Agent, record: AgentRecord) -> tuple[float | None, float | None]:
    """Return optimistic gain and share of vacuous pairs of an agent's episode, if it has one."""
    episode: Any = getattr(agent, "episode", None)
    if episode is None:
        return None, None
    units = record.created.units(agent.reward_range)
    return units.optimistic(float(episode.gain)), float(episode.vacuous)


def _policy_changes(old: Agent, new: Any) -> tuple[tuple[str, str, str], ...]:
    """Return where two agents would now act differently; only planners have a policy to compare."""
    acting: Any = old.runner if isinstance(old, Doubling) else old
    if not (hasattr(acting, "_played") and hasattr(new, "_played")) or acting.episode is None:
        return ()
    space = new.space
    changes = []
    for s in range(space.n_states):
        before, after = (int(space.action_of[agent._played(s)]) for agent in (acting, new))
        if before != after:
            names = (space.action_name(s, before), space.action_name(s, after))
            changes.append((space.state_name(s), *names))
    return tuple(changes)
