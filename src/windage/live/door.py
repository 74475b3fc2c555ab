"""The way to a journal: opened for its agents at once or, where a fallback may decide, when it can.

A session, or all sessions of a fleet, share one door. As long as it cannot be opened, whoever needs
the journal is told why, and every call tries again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from windage.agents import Doubling
from windage.atomic_io import as_path
from windage.errors import JournalError
from windage.live.events import CONFIGURED, CREATED
from windage.live.history import Base, bases
from windage.live.settings import Created, Makers, Saved, differences
from windage.live.writer import Touched, Writer

__all__ = ["ONLY", "Door", "Holder"]

ONLY = "agent"  # the name of an agent that is alone in its journal


class Door:
    """A journal that is open, or will be.

    Parameters
    ----------
    path
        The journal.
    wanted
        How each agent must have been made, or is made now. None at all: whoever is there.
    makers
        What makes the agents of a `Doubling`, by name.
    """

    def __init__(
        self, path: str | Path, wanted: dict[str, Created], makers: dict[str, Makers]
    ) -> None:
        self.path = as_path(path)
        self.lock = threading.RLock()
        self.bases: dict[str, Base] = {}
        """What every agent was told last, once the journal is open."""
        self._wanted = wanted
        self._makers = makers
        self._journal: Writer | None = None
        self._is_closed = False

    @property
    def is_open(self) -> bool:
        """Whether there is a journal to ask."""
        return self._journal is not None

    @property
    def journal(self) -> Writer:
        """The journal; opened now, if it could not be before."""
        return self._journal or self._opened()

    def _opened(self) -> Writer:
        with self.lock:
            if self._is_closed:
                raise JournalError("is closed", field=str(self.path), fix="open it again")
            if self._journal is None:
                journal = Writer(self.path, self.lock)
                try:
                    self.bases = self._met(journal)
                except BaseException:
                    journal.close()
                    raise
                self._journal, self._wanted = journal, {}
            return self._journal

    def created(self, name: str) -> Created:
        """Return how an agent was made, or will be."""
        return self.bases[name].created if self.bases else self._wanted[name]

    def close(self) -> None:
        """Close the journal; nobody opens it again through this door."""
        with self.lock:
            self._is_closed = True
            if self._journal is not None:
                self._journal.close()

    def _met(self, journal: Writer) -> dict[str, Base]:
        """Return what the journal knows of the agents; those it does not know are written down."""
        wanted = self._wanted
        for one in self._makers.values():
            one.forget()  # what an attempt before this one could not write
        known = bases(journal, self._makers)
        if known and set(wanted) == {ONLY} and ONLY not in known:
            raise JournalError(
                "holds several agents: " + ", ".join(list(known)[:5]),
                field=str(journal.path),
                fix="pass them by name, as a dict",
            )
        for name in wanted.keys() & known.keys():
            _require_same(journal, known[name], wanted[name])
        if new := wanted.keys() - known.keys():
            with journal.writing():
                for name in (name for name in wanted if name in new):
                    _create(journal, wanted[name], self._makers[name])
            known = bases(journal, self._makers)
        return {name: known[name] for name in wanted or known}


class Holder:
    """What a session and a fleet have in common: a journal, batches, and an end."""

    def __init__(self, door: Door, touched: Touched | None = None) -> None:
        self._door = door
        self._touched = touched

    @property
    def journal(self) -> Writer:
        """The journal; an error if it cannot be opened yet."""
        return self._door.journal

    @contextmanager
    def batch(self) -> Iterator[Self]:
        """Make all calls inside durable together, at the end: one commit for all of them.

        Nothing inside counts as acknowledged before the block has ended without an error. A
        fallback cannot help here: if the end cannot be written the block raises `JournalError`,
        and none of its decisions, those of the fallback included, is one to act on.
        """
        with self.journal.writing(self._touched):
            yield self

    def close(self) -> None:
        """Close the journal; its agents go on when it is opened again."""
        self._door.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _create(journal: Writer, created: Created, makers: Makers) -> None:
    n = journal.append(0, CREATED, body=msgspec.json.encode(created).decode())
    if created.saved.agent == Doubling.id:
        makers(created.saved.configuration["first"])  # its first agent says how it is made
        for made in makers.new():
            journal.append(n, CONFIGURED, body=msgspec.json.encode(made).decode())


def _require_same(journal: Writer, base: Base, wanted: Created) -> None:
    """Refuse to continue a journal with another configuration, and say what differs."""
    old, new = _settings(base.created), _settings(wanted)
    if base.switched is not None:
        old["agent"] = _agent(base.switched.saved)
    differing = differences(old, new)
    if differing:
        switched = f" (it was switched at event {base.n})" if base.switched else ""
        raise JournalError(
            f"was made with another configuration{switched}: " + "; ".join(differing),
            field=str(journal.path),
            fix="pass the same, switch it with `windage live switch`, or start another journal",
        )


def _settings(created: Created) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(created)
    return {
        "agent": _agent(created.saved),
        "missing": created.missing,
        "reward_range": plain["reward_range"] and list(plain["reward_range"]),
        "direction": created.direction,
    }


def _agent(saved: Saved) -> dict[str, Any]:
    return {"id": saved.agent, **saved.configuration}
