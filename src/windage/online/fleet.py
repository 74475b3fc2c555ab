"""Many agents in one journal: one file, one writer, one commit for a whole round of decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from windage.errors import InputError, JournalError
from windage.online.answers import Decision, Receipt
from windage.online.session import Session
from windage.online.writer import Writer

__all__ = ["Fleet"]


class Fleet(Mapping[str, Session]):
    """The agents of one journal by name; `windage.online.open` makes it from several agents."""

    def __init__(self, journal: Writer, sessions: dict[str, Session]) -> None:
        self.journal = journal
        self._sessions = sessions

    def __getitem__(self, name: str) -> Session:
        if name not in self._sessions:
            raise InputError(
                f"there is no agent {name!r}", field="name", fix="open the journal with it"
            )
        return self._sessions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sessions)

    def __len__(self) -> int:
        return len(self._sessions)

    def decide(
        self, states: Mapping[str, int | str], keys: Mapping[str, str] | None = None
    ) -> dict[str, Decision]:
        """Return what each of some agents does in its state, with one commit for all of them.

        A round is decided as a whole: if it cannot be written, the fallback decides all of it, but
        for keys that have a decision already.
        """
        asked = {name: (s, (keys or {}).get(name)) for name, s in states.items()}
        with self.journal.lock:
            try:
                with self.batch():
                    return {name: self[name]._advise(s, key) for name, (s, key) in asked.items()}
            except JournalError as err:
                return {
                    name: self[name]._fall_back(s, key, err) for name, (s, key) in asked.items()
                }

    def observe(self, outcomes: Mapping[str, tuple[Any, ...]]) -> dict[str, Receipt]:
        """Take in (id, reward, next state[, action]) for some agents, with one commit for all."""
        with self.batch():
            return {name: self[name].observe(*told) for name, told in outcomes.items()}

    @contextmanager
    def batch(self) -> Iterator[Self]:
        """Make all calls inside durable together, at the end; until then nothing is.

        If the end cannot be written the block raises `JournalError`, with a fallback too: then no
        decision made inside is one to act on.
        """
        with self.journal.writing():
            yield self

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
