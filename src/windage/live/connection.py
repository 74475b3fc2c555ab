"""Connection to a journal: opened at once or, if a fallback policy is set, when it can be.

A session, or all sessions of a fleet, share one connection. As long as the journal cannot be
opened, every use of it tries again and raises the reason.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec

from windage.agents import Doubling
from windage.atomic_io import as_path
from windage.errors import JournalError
from windage.live.config import AgentMaker, Created, SavedAgent, differences, encode_body
from windage.live.history import AgentRecord, agent_records
from windage.live.journal import Resettable, Writer
from windage.live.schema import CONFIGURED, CREATED, Event

__all__ = ["SOLE_AGENT", "JournalClient", "JournalConnection"]

SOLE_AGENT = "agent"  # the name of an agent that is alone in its journal


class JournalConnection:
    """A journal that is open, or will be.

    Parameters
    ----------
    path
        The journal.
    wanted
        The configuration that each agent must have, or is created with; empty: take the agents of
        the journal as they are.
    makers
        The makers of the agents of a `Doubling`, by name.
    """

    def __init__(
        self, path: str | Path, wanted: dict[str, Created], makers: dict[str, AgentMaker]
    ) -> None:
        self.path = as_path(path)
        self.lock = threading.RLock()
        self.records: dict[str, AgentRecord] = {}
        """The current configuration of every agent, once the journal is open."""
        self._wanted = wanted
        self._makers = makers
        self._journal: Writer | None = None
        self._is_closed = False

    @property
    def is_open(self) -> bool:
        """Whether the journal has been opened."""
        return self._journal is not None

    @property
    def journal(self) -> Writer:
        """The journal; opened now, if it could not be before."""
        return self._journal or self._open()

    def _open(self) -> Writer:
        with self.lock:
            if self._is_closed:
                raise JournalError("is closed", field=str(self.path), fix="open it again")
            if self._journal is None:
                journal = Writer(self.path, self.lock)
                try:
                    self.records = self._matched(journal)
                except BaseException:
                    journal.close()
                    raise
                self._journal, self._wanted = journal, {}
            return self._journal

    def created(self, name: str) -> Created:
        """Return the configuration an agent was, or will be, created with."""
        return self.records[name].created if self.records else self._wanted[name]

    def close(self) -> None:
        """Close the journal for good."""
        with self.lock:
            self._is_closed = True
            if self._journal is not None:
                self._journal.close()

    def _matched(self, journal: Writer) -> dict[str, AgentRecord]:
        """Return the records of the wanted agents; those not in the journal are created in it."""
        wanted = self._wanted
        for maker in self._makers.values():
            maker.clear()  # what an attempt before this one could not write
        known = agent_records(journal, self._makers)
        if known and set(wanted) == {SOLE_AGENT} and SOLE_AGENT not in known:
            raise JournalError(
                "holds several agents: " + ", ".join(list(known)[:5]),
                field=str(journal.path),
                fix="pass them by name, as a dict",
            )
        for name in wanted.keys() & known.keys():
            _require_same(journal, known[name], wanted[name])
        if new := [name for name in wanted if name not in known]:
            with journal.writing():
                for name in new:
                    _create(journal, wanted[name], self._makers[name])
            known = agent_records(journal, self._makers)
        return {name: known[name] for name in wanted or known}


class JournalClient:
    """Base of sessions and fleets: a journal, batches, and closing."""

    def __init__(self, connection: JournalConnection, owner: Resettable | None = None) -> None:
        self._connection = connection
        self._owner = owner

    @property
    def journal(self) -> Writer:
        """The journal; an error if it cannot be opened yet."""
        return self._connection.journal

    @contextmanager
    def batch(self) -> Iterator[Self]:
        """Make all calls inside durable together, at the end: one commit for all of them.

        Nothing inside counts as acknowledged before the block has ended without an error. A
        fallback cannot help here: if the end cannot be written the block raises `JournalError`,
        and none of its decisions, those of the fallback included, is one to act on.
        """
        with self.journal.writing(self._owner):
            yield self

    def close(self) -> None:
        """Close the journal; its agents go on when it is opened again."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _create(journal: Writer, created: Created, maker: AgentMaker) -> None:
    n = journal.append(Event(kind=CREATED, body=encode_body(created)))
    if created.saved.agent == Doubling.id:
        maker(created.saved.configuration["first"])  # its first agent is part of how it is made
        for made in maker.take_unrecorded():
            journal.append(Event(agent=n, kind=CONFIGURED, body=encode_body(made)))


def _require_same(journal: Writer, record: AgentRecord, wanted: Created) -> None:
    """Refuse to continue a journal with another configuration, and name the differences."""
    old, new = _plain(record.created), _plain(wanted)
    if record.switched is not None:
        old["agent"] = _plain_agent(record.switched.saved)
    differing = differences(old, new)
    if differing:
        switched = f" (it was switched at event {record.n})" if record.switched else ""
        raise JournalError(
            f"was made with another configuration{switched}: " + "; ".join(differing),
            field=str(journal.path),
            fix="pass the same, switch it with `windage live switch`, or start another journal",
        )


def _plain(created: Created) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(created)
    return {
        "agent": _plain_agent(created.saved),
        "missing": created.missing,
        "reward_range": plain["reward_range"] and list(plain["reward_range"]),
        "direction": created.direction,
    }


def _plain_agent(saved: SavedAgent) -> dict[str, Any]:
    return {"id": saved.agent, **saved.configuration}
