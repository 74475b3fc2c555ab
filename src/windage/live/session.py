"""One agent that decides for real: each call returns when the journal has it.

    d = live.decide(state)                      # what to do, and a number to speak of it
    live.observe(d.id, reward, next_state)      # what came of it

An agent is kept in memory only while it is what the journal says. Whatever goes wrong in between,
it is dropped and read again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from windage.agents import Agent
from windage.errors import (
    CallOrderError,
    HorizonReached,
    InputError,
    JournalError,
    WindageError,
)
from windage.live.answers import Decision, Fallback, Receipt, as_action, as_key, as_state
from windage.live.decisions import (
    as_decision,
    by_key,
    by_number,
    has_place,
    not_waiting,
    outcome_of,
    require_same,
)
from windage.live.door import Door, Holder
from windage.live.events import CONFIGURED, DECIDED, EXPIRED, OBSERVED
from windage.live.history import Base, Life, Pending, bases, live_on, live_through
from windage.live.snapshots import Snapshots
from windage.live.switch import Rehearsal, rehearse, require_settled
from windage.live.units import as_units
from windage.spaces import StateActions
from windage.validation import as_integer, shown

__all__ = ["Session"]


class Session(Holder):
    """One agent of a journal; `windage.live.open` makes it."""

    def __init__(
        self,
        door: Door,
        name: str,
        kind: type[Agent] | None,
        space: StateActions,
        fallback: Fallback | None = None,
    ) -> None:
        super().__init__(door, self)
        self.name = name
        """The agent's name in the journal."""
        self._kind = kind
        self._fallback = fallback
        self._life: Life | None = None
        self.space = space
        """States and actions."""
        self.by_fallback = 0
        """How many decisions the fallback has made since the journal was opened."""
        self._noted = [(0, 0)]  # which decision noted how many of them

    @property
    def base(self) -> Base:
        """What the agent was told last."""
        self.journal  # noqa: B018 - opened, if it was not
        return self._door.bases[self.name]

    @property
    def pending(self) -> Decision | None:
        """The decision that waits for its outcome."""
        with self._door.lock:
            waiting = self._now().pending
            if waiting is None:
                return None
            event = by_number(self.journal, self.base.agent, waiting.id)
            return as_decision(self.space, event)

    @property
    def agent(self) -> Agent:
        """The agent where the journal stands; look at it, do not let it act."""
        with self._door.lock:
            return self._now().agent

    def decide(self, state: int | str, key: str | None = None) -> Decision:
        """Return what to do in a state; asked again with the same key, the same decision.

        Parameters
        ----------
        state
            Its number, or its name.
        key
            The caller's own name for the decision, such as a date or an order number.
        """
        with self._door.lock:
            try:
                return self._advise(state, key)
            except JournalError as err:
                return self._fall_back(state, key, err)

    def _advise(self, state: int | str, key: str | None = None) -> Decision:
        """Return what the agent does in a state, without a fallback."""
        s, label = as_state(self.space, state, "state"), as_key(key)
        return self._known(s, label) or self._decide(s, label)

    def _fall_back(self, state: int | str, key: str | None, why: JournalError) -> Decision:
        """Return what the fallback does in a state, as long as the key has no decision yet."""
        if self._fallback is None:
            raise why
        s, label = as_state(self.space, state, "state"), as_key(key)
        if self._door.is_open:
            with suppress(JournalError):  # it may be past reading, too
                if found := self._known(s, label):
                    return found
        action = self.space.check_action(s, self._fallback(s), "fallback")
        self.by_fallback += 1
        return Decision(0, s, action, self.space.action_name(s, action), label, fallback=str(why))

    def _known(self, s: int, key: str | None) -> Decision | None:
        """Return the decision that has a key already."""
        if key is None:
            return None
        return by_key(self.journal, self.base.agent, self.space, s, key)

    def _decide(self, s: int, key: str | None) -> Decision:
        life, journal, base = self._now(), self.journal, self.base
        given_up = life.pending
        if given_up is not None and base.created.missing == "wait":
            raise self._waiting(given_up)

        def decided() -> None:
            if given_up is not None:
                life.agent.withdraw()
            action = self._act(life.agent, s)
            if given_up is not None:
                journal.append(base.agent, EXPIRED, step=given_up.id)
                self._snapshots.pass_by(1)
            self._note_makers()
            unnoted = self.by_fallback - self._noted[-1][1]
            if unnoted:
                more = f"{unnoted} decisions were made by the fallback"
                journal.remark(base.agent, "fallback", more)
            n = journal.append(base.agent, DECIDED, state=s, action=action, key=key)
            life.pending = Pending(n, s, action)
            if unnoted:
                self._noted.append((n, self.by_fallback))

        self._change(life, decided)
        assert life.pending is not None
        n, _, action = life.pending
        return Decision(n, s, action, self.space.action_name(s, action), key)

    def _waiting(self, given: Pending) -> WindageError:
        """Return why there is no decision while another waits: nobody told, or nobody could."""
        if self.journal.is_failing:
            return JournalError(
                f"could not be written when the outcome of decision {given.id} came",
                field=str(self.journal.path),
                fix="make room, then send that outcome again",
            )
        return CallOrderError(
            f"decision {given.id} in {self.space.describe_state(given.state)} is waiting "
            "for its outcome",
            field="decide",
            fix='observe it, give it up with expire(), or open the journal with missing="skip"',
        )

    def _act(self, agent: Agent, s: int) -> int:
        try:
            return agent.act(s)
        except HorizonReached as err:
            raise HorizonReached(
                err.problem,
                field=str(self.journal.path),
                fix="switch to a larger horizon: `windage live switch JOURNAL --set horizon=T "
                "--apply`; with wd.Doubling there is none",
            ) from None

    def observe(
        self,
        id: int,  # noqa: A002
        reward: float,
        next_state: int | str,
        action: int | str | None = None,
    ) -> Receipt:
        """Take in what came of a decision.

        Parameters
        ----------
        id
            The decision's number.
        reward
            In the units and the direction the journal was opened with.
        next_state
            Its number, or its name.
        action
            What was done instead, if it was not what was advised.
        """
        with self._door.lock:
            try:
                return self._observe(id, reward, next_state, action)
            except (InputError, CallOrderError) as err:
                with suppress(JournalError):  # the refusal itself is what the caller must hear of
                    self.journal.reject(self.base.agent, f"observe({shown(id)})", str(err))
                raise

    def _observe(self, id: Any, reward: Any, next_state: Any, action: Any) -> Receipt:  # noqa: A002
        number = as_integer(id, "id", low=0)
        after = as_state(self.space, next_state, "next_state")
        if number == 0:
            made = self._door.created(self.name)
            as_units(made.reward_range, made.direction, None).check(reward)
            return Receipt(0, "fallback")
        life, journal, base = self._now(), self.journal, self.base
        value = life.units.check(reward)
        told = life.units.inward(value)
        life.agent._check_reward(told)
        if life.pending is not None and life.pending.id == number:
            _, s, advised = life.pending
            played = advised if action is None else as_action(self.space, s, action)

            def learned() -> None:
                life.agent.observe(s, played, told, after)
                self._append_outcome(number, played, value, after, used=1)
                life.pending = None
                self._snapshots.keep(journal, base.agent, life.agent, number)

            self._change(life, learned)
            return Receipt(number, "learned")
        decided = by_number(journal, base.agent, number)
        assert decided.state is not None
        assert decided.action is not None
        played = decided.action if action is None else as_action(self.space, decided.state, action)
        if known := outcome_of(journal, base.agent, number):
            require_same(known, (value, after, played))
            return Receipt(number, "again")
        return self._observe_late(life, number, played, value, after)

    def _observe_late(
        self, life: Life, number: int, played: int, value: float, after: int
    ) -> Receipt:
        """Take in an outcome that comes after its step was given up."""
        used = has_place(self.journal, self.base, life.agent, number)
        with self.journal.writing(self):
            self._append_outcome(number, played, value, after, used=int(used))
            if used:
                self.journal.drop(self.base.agent, ">= ?", number)
                self.reset()
                self._read(number)  # with this step in its place, before it is acknowledged
                self._note_makers()
        return Receipt(number, "late" if used else "unused")

    def expire(self, id: int) -> None:  # noqa: A002
        """Give up waiting for the outcome of a decision: its step is dropped and counted."""
        with self._door.lock:
            number = as_integer(id, "id", low=1)
            life = self._now()
            if life.pending is None or life.pending.id != number:
                raise not_waiting(self.journal, self.base.agent, number)

            def given_up() -> None:
                life.agent.withdraw()
                self.journal.append(self.base.agent, EXPIRED, step=number)
                life.pending = None
                self._snapshots.keep(self.journal, self.base.agent, life.agent, number)

            self._change(life, given_up)

    def switch(self, agent: Agent, *, dry_run: bool = False) -> Rehearsal:
        """Let another agent go on from here, after it was tried on the history.

        It starts with the last samples of the history, as many as it remembers. With `dry_run`
        nothing is changed.
        """
        with self._door.lock:
            if not dry_run:
                require_settled(self._now())
            found = rehearse(self.journal, self.base, self._now(), agent)
            if not dry_run:
                with self.journal.writing(self):
                    body = msgspec.json.encode(found.event).decode()
                    self.journal.append(self.base.agent, CONFIGURED, body=body)
                    self.reset()
                self._kind = type(agent)
            return found

    def reset(self) -> None:
        """Forget what is not in the journal."""
        self._life = None
        while self._noted[-1][0] > self.journal.n:
            self._noted.pop()

    def close(self) -> None:
        """Close the journal; the agent goes on when it is opened again."""
        super().close()
        self._life = None

    def __repr__(self) -> str:
        if not self._door.is_open:
            return f"Session({str(self._door.path)!r}, {self.name!r}, not open yet)"
        return f"Session({str(self._door.path)!r}, {self.name!r}, events={self.journal.n})"

    def _now(self) -> Life:
        """Return the agent where the journal stands."""
        self.journal._connection()
        return self._life or self._read()

    def _read(self, place: int | None = None) -> Life:
        """Read the agent again.

        The place is that of a step whose outcome has come late. There it may be kept, so that the
        next one that is late need not be read from the beginning: what is kept after it would be
        dropped by the next.
        """
        journal, makers = self.journal, self.base.makers
        makers.forget()
        base = bases(journal, {self.name: makers}, agent=self.base.agent)[self.name]
        self._door.bases[self.name] = base
        self._snapshots = Snapshots()
        life = live_through(journal, base, self._kind, through=place)
        if place is not None:
            self._snapshots.keep(journal, base.agent, life.agent, place, life.replayed)
            life = live_on(journal, base, life, place)
        self._snapshots.pass_by(life.replayed)
        self._life = life
        return life

    def _change(self, life: Life, work: Callable[[], None]) -> None:
        """Change the agent and the journal together: while it lasts, the agent is nobody's."""
        self._life = None
        self.journal.write(self, work)
        self._life = life

    def _append_outcome(
        self, number: int, played: int, value: float, after: int, used: int
    ) -> None:
        self.journal.append(
            self.base.agent, OBSERVED, step=number, state=after, action=played, reward=value,
            used=used,
        )  # fmt: skip

    def _note_makers(self) -> None:
        for made in self.base.makers.new():
            body = msgspec.json.encode(made).decode()
            self.journal.append(self.base.agent, CONFIGURED, body=body)
