"""Sessions, fleets and `windage.live.open`: agents whose calls return when the journal has them.

    d = live.decide(state)                      # the action, and a number to refer to it
    live.observe(d.id, reward, next_state)      # its outcome

An agent is kept in memory only while it agrees with the journal. If anything goes wrong in between,
it is dropped and read again.

A session, or all sessions of a fleet, share one connection to the journal: opened at once or, if a
fallback policy is set, when it can be. As long as it cannot be, every use of it tries again and
raises the reason.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self, overload

import msgspec

from windage.agents import Agent, Doubling
from windage.atomic_io import as_path
from windage.errors import (
    CallOrderError,
    HorizonReached,
    InputError,
    JournalError,
    WindageError,
)
from windage.live.config import (
    AgentMaker,
    Body,
    Created,
    Decision,
    Fallback,
    Receipt,
    SavedAgent,
    as_action,
    as_fallback,
    as_key,
    as_seen,
    as_state,
    as_units,
    differences,
    encode_body,
    encode_seen,
    require_units_of_structure,
    save,
)
from windage.live.history import (
    AgentRecord,
    LiveAgent,
    Pending,
    Snapshots,
    agent_at,
    agent_records,
    as_decision,
    can_learn_late,
    continued,
    decision_by_key,
    decision_event,
    named_record,
    not_pending,
    outcome_event,
    require_same_outcome,
)
from windage.live.journal import Journal, Resettable, Writer
from windage.live.maintenance import Rehearsal, rehearse, require_settled
from windage.live.schema import (
    CONFIGURED,
    CREATED,
    DECIDED,
    EXPIRED,
    OBSERVED,
    Event,
    UnwritableError,
)
from windage.spaces import StateActions
from windage.validation import as_choice, as_integer, as_name, shown

__all__ = ["SOLE_AGENT", "Fleet", "JournalClient", "JournalConnection", "Session", "open", "resume"]

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
        name = record.created.name
        switched = f" (it was switched at event {record.n})" if record.switched else ""
        raise JournalError(
            f"was made with another configuration{switched}: " + "; ".join(differing),
            field=str(journal.path),
            where="" if name == SOLE_AGENT else f"agent {name!r}",
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


class Session(JournalClient):
    """One agent of a journal; `windage.live.open` makes it."""

    def __init__(
        self,
        connection: JournalConnection,
        name: str,
        kind: type[Agent] | None,
        space: StateActions,
        fallback: Fallback | None = None,
    ) -> None:
        super().__init__(connection, self)
        self.name = name
        """The agent's name in the journal."""
        self._kind = kind
        self._fallback = fallback
        self._live: LiveAgent | None = None
        self.space = space
        """States and actions."""
        self.by_fallback = 0
        """How many decisions the fallback has made since the journal was opened."""
        self._recorded_fallbacks = [(0, 0)]  # a decision, and how many were recorded with it

    @property
    def record(self) -> AgentRecord:
        """The agent's current configuration."""
        self.journal  # noqa: B018 - opened, if it was not
        return self._connection.records[self.name]

    @property
    def pending(self) -> Decision | None:
        """The decision that waits for its outcome."""
        with self._connection.lock:
            pending = self._now().pending
            if pending is None:
                return None
            event = decision_event(self.journal, self.record.agent, pending.id)
            return as_decision(self.space, event)

    @property
    def agent(self) -> Agent:
        """The agent at the end of the journal; look at it, do not let it act."""
        with self._connection.lock:
            return self._now().agent

    def decide(self, state: int | str, key: str | None = None) -> Decision:
        """Return the action to take in a state; with the same key again, the same decision.

        Parameters
        ----------
        state
            Its number, or its name.
        key
            The caller's own name for the decision, such as a date or an order number.
        """
        with self._connection.lock, self._naming():
            try:
                return self._advise(state, key)
            except JournalError as err:
                return self._fall_back(state, key, err)

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Let errors name the agent, if it is not alone in its journal."""
        try:
            yield
        except WindageError as err:
            if self.name == SOLE_AGENT:
                raise
            where = ", ".join([f"agent {self.name!r}", *([err.where] if err.where else [])])
            raise type(err)(err.problem, field=err.field, where=where, fix=err.fix) from None

    def _advise(self, state: int | str, key: str | None = None) -> Decision:
        """Return the agent's decision in a state, without a fallback."""
        s, label = as_state(self.space, state, "state"), as_key(key)
        return self._known(s, label) or self._decide(s, label)

    def _advise_by_name(self, state: int | str, key: str | None) -> Decision:
        with self._naming():
            return self._advise(state, key)

    def _fall_back(self, state: int | str, key: str | None, err: JournalError) -> Decision:
        """Return the fallback's decision in a state, unless the key has a decision already."""
        if self._fallback is None:
            raise err
        s, label = as_state(self.space, state, "state"), as_key(key)
        if self._connection.is_open:
            with suppress(JournalError):  # it may be past reading, too
                if known := self._known(s, label):
                    return known
        action = self.space.check_action(s, self._fallback(s), "fallback")
        self.by_fallback += 1
        return Decision(0, s, action, self.space.action_name(s, action), label, fallback=str(err))

    def _known(self, s: int, key: str | None) -> Decision | None:
        """Return the decision that has a key already."""
        if key is None:
            return None
        return decision_by_key(self.journal, self.record.agent, self.space, s, key)

    def _decide(self, s: int, key: str | None) -> Decision:
        live, journal, record = self._now(), self.journal, self.record
        given_up = live.pending
        if given_up is not None and record.created.missing == "wait":
            raise self._still_pending(given_up)

        def decide() -> None:
            if given_up is not None:
                live.agent.withdraw()
            action = self._act(live.agent, s)
            if given_up is not None:
                journal.append(Event(agent=record.agent, kind=EXPIRED, step=given_up.id))
                self._snapshots.count(1)
            self._append_made()
            unrecorded = self.by_fallback - self._recorded_fallbacks[-1][1]
            if unrecorded:
                remark = f"{unrecorded} decisions were made by the fallback"
                journal.remark(record.agent, "fallback", remark)
            event = Event(agent=record.agent, kind=DECIDED, state=s, action=action, key=key)
            n = journal.append(event)
            live.pending = Pending(n, s, action)
            if unrecorded:
                self._recorded_fallbacks.append((n, self.by_fallback))

        self._change(live, decide)
        assert live.pending is not None
        n, _, action = live.pending
        return Decision(n, s, action, self.space.action_name(s, action), key)

    def _still_pending(self, pending: Pending) -> WindageError:
        """Return the error about a decision whose outcome did not come, or could not be written."""
        if self.journal.is_failing:
            return JournalError(
                f"could not be written when the outcome of decision {pending.id} came",
                field=str(self.journal.path),
                fix="make room, then send that outcome again",
            )
        return CallOrderError(
            f"decision {pending.id} in {self.space.describe_state(pending.state)} is waiting "
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
                fix=f"with wd.Doubling a journal needs no horizon; this one: {_longer(agent)}",
            ) from None

    def observe(
        self,
        id: int,  # noqa: A002
        reward: float,
        next_state: int | str,
        action: int | str | None = None,
        seen: Mapping[str, Any] | None = None,
    ) -> Receipt:
        """Learn from the outcome of a decision.

        Parameters
        ----------
        id
            The decision's number.
        reward
            In the units and the direction the journal was opened with.
        next_state
            Its number, or its name.
        action
            The action taken, if it was not the advised one.
        seen
            What the step showed of the variables of the agent's structure, by name: an outcome, or
            (lowest, highest).
        """
        with self._connection.lock, self._naming():
            try:
                return self._observe(id, reward, next_state, action, seen)
            except (InputError, CallOrderError) as err:
                with suppress(JournalError):  # the refusal itself is the error to raise
                    self.journal.reject(self.record.agent, f"observe({shown(id)})", str(err))
                raise

    def _observe(
        self,
        id: Any,  # noqa: A002
        reward: Any,
        next_state: Any,
        action: Any,
        seen: Any,
    ) -> Receipt:
        number = as_integer(id, "id", low=0)
        after = as_state(self.space, next_state, "next_state")
        told = as_seen(seen)
        if number == 0:
            created = self._connection.created(self.name)
            as_units(created.reward_range, created.direction, None).check(reward)
            return Receipt(0, "fallback")
        live, journal, record = self._now(), self.journal, self.record
        value = live.units.check(reward)
        scaled = live.units.to_agent(value)
        live.agent._check_reward(scaled)
        if live.pending is not None and live.pending.id == number:
            _, s, advised = live.pending
            played = advised if action is None else as_action(self.space, s, action)
            live.agent._check_seen(self.space.pair(s, played), scaled, after, told)

            def learn() -> None:
                live.agent.observe(s, played, scaled, after, *(() if told is None else (told,)))
                self._append_outcome(number, played, value, after, told, used=1)
                live.pending = None
                self._snapshots.keep(journal, record.agent, live.agent, number)

            self._change(live, learn)
            return Receipt(number, "learned")
        decided = decision_event(journal, record.agent, number)
        assert decided.state is not None
        assert decided.action is not None
        played = decided.action if action is None else as_action(self.space, decided.state, action)
        if known := outcome_event(journal, record.agent, number):
            require_same_outcome(known, value, after, played, told)
            return Receipt(number, "again")
        used = can_learn_late(journal, record, live.agent, number)
        if used:
            live.agent._check_seen(self.space.pair(decided.state, played), scaled, after, told)
        return self._observe_late(number, played, value, after, told, used=used)

    def _observe_late(
        self,
        number: int,
        played: int,
        value: float,
        after: int,
        seen: Mapping[str, Any] | None,
        *,
        used: bool,
    ) -> Receipt:
        """Record an outcome that comes after its step was given up; learn from it if possible."""
        with self.journal.writing(self):
            self._append_outcome(number, played, value, after, seen, used=int(used))
            if used:
                self.journal.drop_snapshots(self.record.agent, ">= ?", number)
                self.reset()
                self._read(number)  # with this step in its place, before it is acknowledged
                self._append_made()
        return Receipt(number, "late" if used else "unused")

    def expire(self, id: int) -> None:  # noqa: A002
        """Give up waiting for the outcome of a decision: its step is dropped and counted."""
        with self._connection.lock, self._naming():
            number = as_integer(id, "id", low=1)
            live = self._now()
            if live.pending is None or live.pending.id != number:
                raise not_pending(self.journal, self.record.agent, number)

            def give_up() -> None:
                live.agent.withdraw()
                event = Event(agent=self.record.agent, kind=EXPIRED, step=number)
                self.journal.append(event)
                live.pending = None
                self._snapshots.keep(self.journal, self.record.agent, live.agent, number)

            self._change(live, give_up)

    def switch(self, agent: Agent, *, dry_run: bool = False) -> Rehearsal:
        """Let another agent go on from here, after it was tried on the history.

        It starts with the last samples of the history, as many as it remembers. With `dry_run`
        nothing is changed.
        """
        with self._connection.lock, self._naming():
            if not dry_run:
                require_settled(self._now())
            rehearsal = rehearse(self.journal, self.record, self._now(), agent)
            if not dry_run:
                with self.journal.writing(self):
                    self._append_configured(rehearsal.event)
                    self.reset()
                self._kind = type(agent)
            return rehearsal

    def reset(self) -> None:
        """Discard what is not in the journal."""
        self._live = None
        while self._recorded_fallbacks[-1][0] > self.journal.n:
            self._recorded_fallbacks.pop()

    def close(self) -> None:
        """Close the journal; the agent goes on when it is opened again."""
        super().close()
        self._live = None

    def __repr__(self) -> str:
        if not self._connection.is_open:
            return f"Session({str(self._connection.path)!r}, {self.name!r}, not open yet)"
        return f"Session({str(self._connection.path)!r}, {self.name!r}, events={self.journal.n})"

    def _now(self) -> LiveAgent:
        """Return the agent at the end of the journal."""
        self.journal._connection()
        return self._live or self._read()

    def _read(self, late: int | None = None) -> LiveAgent:
        """Read the agent again, by replay.

        After the step of a `late` outcome a snapshot may be stored, so that the next late outcome
        need not be replayed from the beginning: it would drop any later snapshot.
        """
        journal, maker = self.journal, self.record.maker
        maker.clear()
        record = agent_records(journal, {self.name: maker}, agent=self.record.agent)[self.name]
        self._connection.records[self.name] = record
        self._snapshots = Snapshots()
        live = agent_at(journal, record, self._kind, through=late)
        if late is not None:
            self._snapshots.keep(journal, record.agent, live.agent, late, live.replayed)
            live = continued(journal, record, live, late)
        self._snapshots.count(live.replayed)
        self._live = live
        return live

    def _change(self, live: LiveAgent, work: Callable[[], None]) -> None:
        """Change the agent and the journal together; an agent is kept only if both succeed."""
        self._live = None
        self.journal.write(self, work)
        self._live = live

    def _append_outcome(
        self,
        number: int,
        played: int,
        value: float,
        after: int,
        seen: Mapping[str, Any] | None,
        *,
        used: int,
    ) -> None:
        self.journal.append(
            Event(agent=self.record.agent, kind=OBSERVED, step=number, state=after, action=played,
                  reward=value, used=used, seen=encode_seen(seen))
        )  # fmt: skip

    def _append_made(self) -> None:
        """Record the agents that a `Doubling` has made."""
        for made in self.record.maker.take_unrecorded():
            self._append_configured(made)

    def _append_configured(self, body: Body) -> None:
        event = Event(agent=self.record.agent, kind=CONFIGURED, body=encode_body(body))
        self.journal.append(event)


def _longer(agent: Agent) -> str:
    """Say how a journal gets a longer horizon, and what is kept."""
    switch = "`windage live switch JOURNAL --set horizon=T --apply`"
    if hasattr(agent, "preload"):
        return f"{switch} keeps all that the agent counts"
    if agent.off_policy:
        return f"{switch}, with T beyond the {agent.t - 1:,} steps it has seen, keeps them all"
    return (
        f"{switch} starts {agent.id} anew, `windage live switch JOURNAL --agent multi-scale "
        "--set horizon=T --apply` learns from all the outcomes there are"
    )


class Fleet(JournalClient, Mapping[str, Session]):
    """The agents of one journal by name; `windage.live.open` makes it from several agents."""

    def __init__(self, connection: JournalConnection, sessions: dict[str, Session]) -> None:
        super().__init__(connection)
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
        """Return the decision of each of some agents in its state, with one commit for all of them.

        A round is decided as a whole: if it cannot be written, the fallback decides all of it, but
        for keys that have a decision already.
        """
        _require_names(states, "states", "the state of each agent")
        _require_names({} if keys is None else keys, "keys", "the key of each decision")
        queries = [(self[name], s, (keys or {}).get(name)) for name, s in states.items()]
        with self._connection.lock:
            try:
                with self.batch():
                    return {one.name: one._advise_by_name(s, key) for one, s, key in queries}
            except JournalError as err:
                return {one.name: one._fall_back(s, key, err) for one, s, key in queries}

    def observe(self, outcomes: Mapping[str, tuple[Any, ...]]) -> dict[str, Receipt]:
        """Learn from (id, reward, next state[, action[, seen]]) of some agents, with one commit.

        An outcome that is refused does not keep the others out: the error about it is raised when
        they are in the journal. Outcomes of the fallback's decisions need no journal.
        """
        _require_names(outcomes, "outcomes", "the outcome of each agent's decision")
        receipts: dict[str, Receipt] = {}
        refused: list[WindageError] = []
        with self._connection.lock, self._round(outcomes):
            for name, outcome in outcomes.items():
                try:
                    receipts[name] = self[name].observe(*_as_outcome(name, outcome))
                except JournalError:
                    raise
                except WindageError as err:
                    refused.append(err)
        if refused:
            first = refused[0]
            more = f", {len(refused) - 1} more were refused" if len(refused) > 1 else ""
            raise type(first)(
                f"{first.problem}; {len(receipts)} other outcomes of the round were taken{more}",
                field=first.field,
                where=first.where,
                fix=first.fix,
            )
        return receipts

    def _round(self, outcomes: Mapping[str, Any]) -> AbstractContextManager[Any]:
        """Return one commit for all outcomes; those of the fallback's decisions need none."""
        needs_none = not self._connection.is_open and all(
            isinstance(one, (tuple, list)) and one[:1] in ((0,), [0]) for one in outcomes.values()
        )
        return nullcontext() if needs_none else self.batch()


def _as_outcome(name: str, outcome: object) -> Sequence[Any]:
    if not isinstance(outcome, (tuple, list)) or len(outcome) not in (3, 4, 5):
        raise InputError(
            f"{shown(outcome)} is no outcome",
            field="outcomes",
            where=f"agent {name!r}",
            fix="pass (id, reward, next state), then the action that was done instead, or None, "
            "and what was seen, if there is any",
        )
    return outcome


def _require_names(given: object, field: str, what: str) -> None:
    if not isinstance(given, Mapping):
        raise InputError(
            f"{shown(given)} names no agents",
            field=field,
            fix=f"pass {what} by its name, in a dict",
        )


_MISSING = ("wait", "skip")
_Policy = Callable[[int], int] | Sequence[int] | None


@overload
def open(  # noqa: A001
    path: str | Path, agent: Agent, missing: str = ..., fallback: _Policy = ..., *,
    reward_range: tuple[float, float] | None = ..., direction: str = ...,
) -> Session: ...  # fmt: skip
@overload
def open(  # noqa: A001
    path: str | Path, agent: Mapping[str, Agent], missing: str = ..., fallback: _Policy = ..., *,
    reward_range: tuple[float, float] | None = ..., direction: str = ...,
) -> Fleet: ...  # fmt: skip
def open(  # noqa: A001
    path: str | Path,
    agent: Agent | Mapping[str, Agent],
    missing: str = "wait",
    fallback: _Policy = None,
    *,
    reward_range: tuple[float, float] | None = None,
    direction: str = "profit",
) -> Session | Fleet:
    """Open a journal for an agent, or for many of them.

    A journal that exists is continued; the agent that is passed then only says which configuration
    it must have. Any other configuration is refused, with the difference.

    Parameters
    ----------
    path
        The journal's file. SQLite keeps a log beside it, and windage a head (`-head`).
    agent
        An agent, new or preloaded, or several by name.
    missing
        What to do when the next decision is asked for and an outcome is missing: "wait" refuses,
        "skip" drops the step and counts it.
    fallback
        The policy to follow while the journal cannot be written, or not even opened for want of
        room or permission: one action a state, or a function of the state. None: an error.
    reward_range
        (lowest, highest) in the user's own units; others are refused. None: rewards are passed to
        the agent as they are.
    direction
        "profit": more is better; "cost": less is.

    Examples
    --------
    >>> import tempfile, windage as wd
    >>> folder = tempfile.TemporaryDirectory()
    >>> agent = wd.UCRL2(wd.StateActions([2, 2]), horizon=1000)
    >>> with open(f"{folder.name}/a.journal", agent, reward_range=(0, 9), direction="cost") as live:
    ...     d = live.decide(0, key="monday")
    ...     live.observe(d.id, reward=3.5, next_state=1)
    Receipt(id=2, how='learned')
    >>> folder.cleanup()
    """
    as_choice(missing, "missing", _MISSING)
    members = dict(agent) if isinstance(agent, Mapping) else {SOLE_AGENT: agent}
    if not members:
        raise InputError("there are no agents", field="agent", fix="pass at least one")
    wanted, makers, installed = {}, {}, version("windage")
    names: dict[int, str] = {}
    for name, member in members.items():
        if (other := names.setdefault(id(member), name)) != name:
            raise InputError(
                f"is the same object as agent {other!r}: two agents would make the same draws",
                field="agent",
                where=repr(name),
                fix="make one for each name, with a seed of its own",
            )
        saved = save(member)
        units = as_units(reward_range, direction, member.reward_range)
        require_units_of_structure(member, units)
        wanted[as_name(name, "name")] = Created(
            installed, name, saved, missing, units.reward_range, units.direction
        )
        makers[name] = AgentMaker(member._make if isinstance(member, Doubling) else None)
    policies = {name: as_fallback(fallback, member.space) for name, member in members.items()}
    connection = JournalConnection(path, wanted, makers)
    spaces = {member.space: member.space for member in members.values()}  # equal ones are kept once
    sessions = {
        name: Session(connection, name, type(member), spaces[member.space], policies[name])
        for name, member in members.items()
    }
    fleet = Fleet(connection, sessions) if isinstance(agent, Mapping) else None
    try:
        if fleet is None:
            sessions[SOLE_AGENT].agent  # noqa: B018 - read now, so that its errors are raised here
        else:
            connection.journal  # noqa: B018 - opened now; each agent is read when it is first used
    except BaseException as err:
        if fallback is None or not isinstance(err, UnwritableError):
            connection.close()
            raise
    return sessions[SOLE_AGENT] if fleet is None else fleet


def resume(path: str | Path, name: str | None = None) -> Session:
    """Open a journal for one of its agents as recorded there, without the agent itself."""
    Journal(path).close()  # a writer would create what is not there
    connection = JournalConnection(path, {}, {})
    connection.journal  # noqa: B018 - opened now
    try:
        record = named_record(connection.records, name)
        return Session(connection, record.created.name, None, record.space())
    except BaseException:
        connection.close()
        raise
