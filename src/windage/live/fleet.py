"""Many agents in one journal: one file, one writer, one commit for a whole round of decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from windage.errors import InputError, JournalError
from windage.live.answers import Decision, Receipt
from windage.live.door import Door, Holder
from windage.live.session import Session
from windage.validation import shown

__all__ = ["Fleet"]


class Fleet(Holder, Mapping[str, Session]):
    """The agents of one journal by name; `windage.live.open` makes it from several agents."""

    def __init__(self, door: Door, sessions: dict[str, Session]) -> None:
        super().__init__(door)
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
        _require_names(states, "states", "the state of each agent")
        _require_names({} if keys is None else keys, "keys", "the key of each decision")
        asked = {name: (s, (keys or {}).get(name)) for name, s in states.items()}
        with self._door.lock:
            try:
                with self.batch():
                    return {name: self[name]._advise(s, key) for name, (s, key) in asked.items()}
            except JournalError as err:
                return {
                    name: self[name]._fall_back(s, key, err) for name, (s, key) in asked.items()
                }

    def observe(self, outcomes: Mapping[str, tuple[Any, ...]]) -> dict[str, Receipt]:
        """Take in (id, reward, next state[, action]) for some agents, with one commit for all.

        What came of decisions of the fallback needs no journal.
        """
        _require_names(outcomes, "outcomes", "what came of each agent's decision")
        for name, told in outcomes.items():
            if not isinstance(told, (tuple, list)) or len(told) not in (3, 4):
                raise InputError(
                    f"{shown(told)} is no outcome",
                    field="outcomes",
                    where=f"agent {name!r}",
                    fix="pass (id, reward, next state), or with the action that was done instead",
                )
        with self._door.lock:
            if not self._door.is_open and all(told[0] == 0 for told in outcomes.values()):
                return {name: self[name].observe(*told) for name, told in outcomes.items()}
            with self.batch():
                return {name: self[name].observe(*told) for name, told in outcomes.items()}


def _require_names(given: object, field: str, what: str) -> None:
    if not isinstance(given, Mapping):
        raise InputError(
            f"{shown(given)} names no agents",
            field=field,
            fix=f"pass {what} by its name, in a dict",
        )
