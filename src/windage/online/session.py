"""One agent that decides for real: each call returns when the journal has it.

    d = live.decide(state)                      # what to do, and a number to speak of it
    live.observe(d.id, reward, next_state)      # what came of it

An agent is kept in memory only while it is what the journal says. Whatever goes wrong in between,
it is dropped and read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self

import msgspec

from windage.agents import Agent
from windage.errors import CallOrderError, HorizonReached, InputError, JournalError
from windage.inputs import as_integer, shown
from windage.online.answers import Decision, Fallback, Receipt, as_action, as_key, as_state
from windage.online.events import CONFIGURED, DECIDED, EXPIRED, OBSERVED, Event
from windage.online.history import Base, Life, Pending, bases, live_through, reach
from windage.online.snapshots import Snapshots
from windage.online.switch import Rehearsal, rehearse, require_settled
from windage.online.writer import Writer
from windage.spaces import StateActions

__all__ = ["Session"]


class Session:
    """One agent of a journal; `windage.online.open` makes it."""

    def __init__(
        self,
        journal: Writer,
        base: Base,
        kind: type[Agent],
        space: StateActions,
        fallback: Fallback | None = None,
    ) -> None:
        self.journal = journal
        self.base = base
        self._kind = kind
        self._fallback = fallback
        self._life: Life | None = None
        self.space = space
        """States and actions."""
        self.by_fallback = 0
        """How many decisions the fallback has made since the journal was opened."""
        self._noted = [(0, 0)]  # which decision noted how many of them

    @property
    def name(self) -> str:
        """The agent's name in the journal."""
        return self.base.created.name

    @property
    def pending(self) -> Decision | None:
        """The decision that waits for its outcome."""
        with self.journal.lock:
            waiting = self._now().pending
            return None if waiting is None else self._decision(self._event(waiting.id))

    @property
    def agent(self) -> Agent:
        """The agent where the journal stands; look at it, do not let it act."""
        with self.journal.lock:
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
        with self.journal.lock:
            try:
                return self._advise(state, key)
            except JournalError as err:
                return self._fall_back(state, key, err)

    def _advise(self, state: int | str, key: str | None = None) -> Decision:
        """Return what the agent does in a state, without a fallback."""
        with self.journal.lock:
            s, label = as_state(self.space, state, "state"), as_key(key)
            return self._known(s, label) or self._decide(s, label)

    def _fall_back(self, state: int | str, key: str | None, why: JournalError) -> Decision:
        """Return what the fallback does in a state, as long as the key has no decision yet."""
        if self._fallback is None:
            raise why
        s, label = as_state(self.space, state, "state"), as_key(key)
        with suppress(JournalError):  # it may be past reading, too
            if found := self._known(s, label):
                return found
        action = self.space.check_action(s, self._fallback(s), "fallback")
        self.by_fallback += 1
        return Decision(0, s, action, self.space.action_name(s, action), label, fallback=str(why))

    def _decide(self, s: int, key: str | None) -> Decision:
        life = self._now()
        given_up = life.pending
        if given_up is not None and self.base.created.missing == "wait":
            if self.journal.is_failing:
                raise JournalError(
                    f"could not be written when the outcome of decision {given_up.id} came",
                    field=str(self.journal.path),
                    fix="make room, then send that outcome again",
                )
            raise CallOrderError(
                f"decision {given_up.id} in {self.space.describe_state(given_up.state)} is waiting "
                "for its outcome",
                field="decide",
                fix='observe it, give it up with expire(), or open the journal with missing="skip"',
            )

        def decided() -> None:
            if given_up is not None:
                life.agent.withdraw()
            action = self._act(life.agent, s)
            if given_up is not None:
                self.journal.append(self.base.agent, EXPIRED, step=given_up.id)
            self._note_makers()
            unnoted = self.by_fallback - self._noted[-1][1]
            if unnoted:
                more = f"{unnoted} decisions were made by the fallback"
                self.journal.reject(self.base.agent, "fallback", more)
            n = self.journal.append(self.base.agent, DECIDED, state=s, action=action, key=key)
            life.pending = Pending(n, s, action)
            if unnoted:
                self._noted.append((n, self.by_fallback))

        self._change(life, decided)
        assert life.pending is not None
        n, _, action = life.pending
        return Decision(n, s, action, self.space.action_name(s, action), key)

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
        with self.journal.lock:
            try:
                return self._observe(id, reward, next_state, action)
            except (InputError, CallOrderError) as err:
                with suppress(JournalError):  # the refusal itself is what the caller must hear of
                    self.journal.reject(self.base.agent, f"observe({shown(id)})", str(err))
                raise

    def _observe(self, id: Any, reward: Any, next_state: Any, action: Any) -> Receipt:  # noqa: A002
        number = as_integer(id, "id", low=0)
        life = self._now()
        after, value = as_state(self.space, next_state, "next_state"), life.units.check(reward)
        if number == 0:
            return Receipt(0, "fallback")
        life.agent._check_reward(life.units.inward(value))
        if life.pending is not None and life.pending.id == number:
            _, s, advised = life.pending
            played = advised if action is None else as_action(self.space, s, action)

            def learned() -> None:
                life.agent.observe(s, played, life.units.inward(value), after)
                self._append_outcome(number, played, value, after, used=1)
                life.pending = None
                self._snapshots.keep(self.journal, self.base.agent, life.agent, number)

            self._change(life, learned)
            return Receipt(number, "learned")
        decided = self._event(number)
        assert decided.state is not None
        assert decided.action is not None
        played = decided.action if action is None else as_action(self.space, decided.state, action)
        known = self.journal.events(
            "agent = ? AND step = ? AND kind = ?", self.base.agent, number, OBSERVED
        )
        if known:
            self._require_same(known[0], (value, after, played))
            return Receipt(number, "again")
        return self._observe_late(life, number, played, value, after)

    def _require_same(self, known: Event, told: tuple[Any, ...]) -> None:
        if (known.reward, known.state, known.action) != told:
            raise InputError(
                f"the outcome is known already: reward {known.reward:g}, next state "
                f"{known.state}, action {known.action}; now reward {told[0]:g}, next state "
                f"{told[1]}, action {told[2]}",
                field="observe",
                where=f"decision {known.step}",
                fix="send each outcome once, or the same again",
            )

    def _observe_late(
        self, life: Life, number: int, played: int | None, value: float, after: int
    ) -> Receipt:
        """Take in an outcome that comes after its step was given up."""
        used = number > self.base.n and self._has_place(life.agent, number)
        with self.journal.writing(self):
            self._append_outcome(number, played, value, after, used=int(used))
            if used:
                self.journal.drop(self.base.agent, ">= ?", number)
                self.reset()
                self._now()  # read again with this step in its place, before it is acknowledged
                self._note_makers()
        return Receipt(number, "late" if used else "unused")

    def _has_place(self, agent: Agent, number: int) -> bool:
        """Whether one more step can be learned from, at the place of a decision given up.

        All later steps move on by one: the last decision must still be within the horizon.
        """
        ((later, learned),) = self.journal.all(
            "SELECT count(*), coalesce(max(step), 0) FROM events "
            "WHERE agent = ? AND step > ? AND kind = ? AND used = 1",
            self.base.agent, number, OBSERVED,
        )  # fmt: skip
        ((decided,),) = self.journal.all(
            "SELECT max(step) FROM events WHERE agent = ? AND kind = ?", self.base.agent, DECIDED
        )
        moved = int(decided > max(number, learned))  # made at time t, and not learned from
        return later < reach(agent) and agent.t + moved <= agent.horizon

    def expire(self, id: int) -> None:  # noqa: A002
        """Give up waiting for the outcome of a decision: its step is dropped and counted."""
        with self.journal.lock:
            number = as_integer(id, "id", low=1)
            life = self._now()
            if life.pending is None or life.pending.id != number:
                self._event(number)
                raise CallOrderError(
                    "is not waiting for its outcome",
                    field="expire",
                    where=f"decision {number}",
                    fix="give up the decision that is waiting: see pending",
                )

            def given_up() -> None:
                life.agent.withdraw()
                self.journal.append(self.base.agent, EXPIRED, step=number)
                life.pending = None

            self._change(life, given_up)

    def switch(self, agent: Agent, *, dry_run: bool = False) -> Rehearsal:
        """Let another agent go on from here, after it was tried on the history.

        It starts with the last samples of the history, as many as it remembers. With `dry_run`
        nothing is changed.
        """
        with self.journal.lock:
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

    @contextmanager
    def batch(self) -> Iterator[Self]:
        """Make all calls inside durable together, at the end: one commit for all of them.

        Nothing inside counts as acknowledged before the block has ended without an error. A
        fallback cannot help here: if the end cannot be written the block raises `JournalError`,
        and none of its decisions, those of the fallback included, is one to act on.
        """
        with self.journal.writing(self):
            yield self

    def reset(self) -> None:
        """Forget what is not in the journal."""
        self._life = None
        while self._noted[-1][0] > self.journal.n:
            self._noted.pop()

    def close(self) -> None:
        """Close the journal; the agent goes on when it is opened again."""
        self.journal.close()
        self._life = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session({str(self.journal.path)!r}, {self.name!r}, events={self.journal.n})"

    def _now(self) -> Life:
        """Return the agent where the journal stands."""
        self.journal._connection()
        if self._life is None:
            name, makers = self.name, self.base.makers
            makers.forget()
            self.base = bases(self.journal, {name: makers}, agent=self.base.agent)[name]
            self._life = live_through(self.journal, self.base, self._kind)
            self._snapshots = Snapshots(self._life.replayed)
        return self._life

    def _change(self, life: Life, work: Callable[[], None]) -> None:
        """Change the agent and the journal together: while it lasts, the agent is nobody's."""
        self._life = None
        self.journal.write(self, work)
        self._life = life

    def _append_outcome(
        self, number: int, played: int | None, value: float, after: int, used: int
    ) -> None:
        self.journal.append(
            self.base.agent, OBSERVED, step=number, state=after, action=played, reward=value,
            used=used,
        )  # fmt: skip

    def _note_makers(self) -> None:
        for made in self.base.makers.new():
            body = msgspec.json.encode(made).decode()
            self.journal.append(self.base.agent, CONFIGURED, body=body)

    def _known(self, s: int, key: str | None) -> Decision | None:
        """Return the decision that has a key already, if it was made in the same state."""
        if key is None:
            return None
        found = self.journal.events("agent = ? AND key = ?", self.base.agent, key)
        if not found:
            return None
        known = self._decision(found[0])
        if known.state != s:
            raise InputError(
                f"{key!r} was used for {self.space.describe_state(known.state)}, now for "
                f"{self.space.describe_state(s)}",
                field="key",
                where=f"decision {known.id}",
                fix="use a key for one decision only",
            )
        return known

    def _event(self, number: int) -> Event:
        found = self.journal.events(
            "n = ? AND agent = ? AND kind = ?", number, self.base.agent, DECIDED
        )
        if not found:
            raise InputError(
                f"there is no decision {number}",
                field="id",
                fix="pass the id that decide() returned",
            )
        return found[0]

    def _decision(self, event: Event) -> Decision:
        assert event.state is not None
        assert event.action is not None
        name = self.space.action_name(event.state, event.action)
        return Decision(event.n, event.state, event.action, name, event.key)
