"""Whether a journal is what was written, and whether its agents come out of it again."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from windage.agents import Agent
from windage.agents.replay import replay
from windage.atomic_io import as_path
from windage.errors import JournalError, WindageError
from windage.live.failures import UnknownAgentError, damaged
from windage.live.head import head_path, read_note, sealed
from windage.live.history import Base, History, bases, history, started
from windage.live.journal import Journal

__all__ = ["Verification", "verify"]


@dataclass
class Verification:
    """What was found: problems, if any, and what could not be checked."""

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
        """Whether nothing is wrong."""
        return not self.problems


def verify(path: str | Path) -> Verification:
    """Check every event, replay every agent from its first, and compare all snapshots.

    Nothing is written; a program that writes to the journal is not disturbed.
    """
    found = Verification(as_path(path))
    try:
        journal = Journal(path)
    except JournalError as err:
        found.problems.append(err.problem)
        found.fix = err.fix
        return found
    try:
        found.events = journal.n
        for check in (_check_chain, _check_tables, _check_agents, _check_head):
            try:
                check(journal, found)
            except WindageError as err:
                found.problems.append(err.problem)
    finally:
        journal.close()
    if found.problems:
        found.fix = damaged(found.path, "").fix
    return found


def _check_chain(journal: Journal, _: Verification) -> None:
    journal.require_chain(1)


def _check_tables(journal: Journal, found: Verification) -> None:
    with journal.reading() as con:
        for (line,) in con.execute("PRAGMA integrity_check"):
            if line != "ok":
                found.problems.append(f"SQLite: {line}")


def _check_agents(journal: Journal, found: Verification) -> None:
    if found.problems:
        return  # what comes out of a damaged history says nothing
    for base in bases(journal).values():
        found.agents += 1
        try:
            _check_agent(journal, base, found)
        except UnknownAgentError as err:
            found.remarks.append(
                f"agent {base.created.name!r}: {err.problem}; its decisions were not replayed"
            )
        except WindageError as err:
            found.problems.append(f"agent {base.created.name!r}: {err.problem}")


def _check_head(journal: Journal, found: Verification) -> None:
    """See whether the end is where the writer left it, and the file as it was closed."""
    note = read_note(journal.path)
    if note is None:
        if head_path(journal.path).is_file():
            found.problems.append("its head is damaged: whether the end was cut cannot be told")
        else:
            found.remarks.append("it has no head: whether the end was cut cannot be told")
    elif not note.seal:
        found.remarks.append(
            f"it is open in process {note.pid}, or was not closed in order: bytes that hold no "
            "event cannot be checked"
        )
    elif note.n == journal.n and sealed(journal.path) != note.seal:
        found.problems.append("the file is not as it was closed")


def _check_agent(journal: Journal, base: Base, found: Verification) -> None:
    past = history(journal, base.agent, 0, journal.n)
    found.decisions += past.ids.size
    if base.switched is not None:
        past = past.part(past.ids > base.n)
    agent = started(journal, base)
    steps = past.steps(agent.space, base.created.units(agent))
    ended = int(past.ended.sum()) if past.ids.size else 0
    snapshots = journal.all(
        "SELECT step, n, chain, state FROM snapshots WHERE agent = ? ORDER BY step", base.agent
    )
    advised, done = [], 0
    for step, n, chain, state in [*snapshots, (journal.n, 0, b"", b"")]:
        last = min(int(np.searchsorted(past.ids, step, side="right")), ended)
        advised.append(replay(agent, steps.part(done, last)))
        done = last
        if state:
            found.snapshots += 1
            _check_snapshot(journal, agent, step, n, chain, state, found)
    if ended < past.ids.size:
        action = agent.act(int(past.states[-1]))
        advised.append(agent.space.offsets[past.states[-1:]] + action)
    _check_advice(agent, past, np.concatenate(advised), found)


def _check_snapshot(
    journal: Journal, agent: Agent, step: int, n: int, chain: bytes, state: bytes,
    found: Verification,
) -> None:  # fmt: skip
    if journal.chain_at(n) != chain:
        found.problems.append(f"the snapshot of decision {step} belongs to another history")
    elif agent.state() != state:
        found.problems.append(f"the snapshot of decision {step} is not what replay leads to")


def _check_advice(agent: Agent, past: History, advised: np.ndarray, found: Verification) -> None:
    """Compare what was advised with what replay would advise.

    A decision made before a late reward was told of an earlier step had less to go by; it is not
    compared.
    """
    wanted = agent.space.offsets[past.states] + past.advised
    told = np.where(past.learned, past.arrived, 0)
    before = np.concatenate([[0], np.maximum.accumulate(told)])[:-1]
    wrong = np.flatnonzero((wanted != advised) & (before < past.ids))
    if wrong.size:
        first = int(past.ids[wrong[0]])
        found.problems.append(
            f"{wrong.size} decisions, the first of them {first}, are not what the agent would "
            "advise here: another machine, or another version of windage, made them"
        )
