"""`windage.online.open`: a new journal, or the old one continued."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, overload

import msgspec

from windage.agents import Agent, Doubling
from windage.errors import InputError, JournalError
from windage.inputs import as_choice, as_name
from windage.online.answers import Fallback, as_fallback
from windage.online.events import CONFIGURED, CREATED
from windage.online.fleet import Fleet
from windage.online.history import Base, bases
from windage.online.session import Session
from windage.online.settings import Created, Makers, Saved, differences, save
from windage.online.units import as_units
from windage.online.writer import Writer

__all__ = ["open"]

MISSING = ("wait", "skip")
_ONLY = "agent"  # the name of an agent that is alone in its journal
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
    """Open a journal for an agent that decides for real, or for many of them.

    A journal that exists is continued where it stands; the agent that is passed then only says how
    it must have been made. Any other configuration is refused, with the difference.

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
        The policy to follow while the journal cannot be written: one action a state, or a function
        of the state. None: an error.
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
    as_choice(missing, "missing", MISSING)
    alone = not isinstance(agent, Mapping)
    made = {_ONLY: agent} if not isinstance(agent, Mapping) else dict(agent)
    if not made:
        raise InputError("there are no agents", field="agent", fix="pass at least one")
    wanted, now = {}, version("windage")
    for name, one in made.items():
        saved = save(one)
        units = as_units(reward_range, direction, one.reward_range)
        wanted[as_name(name, "name")] = Created(
            now, name, saved, missing, units.reward_range, units.direction
        )
    policies = {name: as_fallback(fallback, one.space) for name, one in made.items()}
    journal = Writer(path)
    try:
        sessions = _sessions(journal, made, wanted, policies)
        if alone:
            sessions[_ONLY].agent  # noqa: B018 - read now: what is wrong with it is said here
    except BaseException:
        journal.close()
        raise
    return sessions[_ONLY] if alone else Fleet(journal, sessions)


def _sessions(
    journal: Writer,
    made: dict[str, Agent],
    wanted: dict[str, Created],
    policies: dict[str, Fallback | None],
) -> dict[str, Session]:
    makers = {name: _makers(agent) for name, agent in made.items()}
    known = bases(journal, makers)
    if known and set(made) == {_ONLY} and _ONLY not in known:
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
                _create(journal, wanted[name], made[name], makers[name])
        known = bases(journal, makers)
    return {
        name: Session(journal, known[name], type(made[name]), made[name].space, policies[name])
        for name in wanted
    }


def _create(journal: Writer, created: Created, agent: Agent, makers: Makers) -> None:
    n = journal.append(0, CREATED, body=msgspec.json.encode(created).decode())
    if isinstance(agent, Doubling):
        makers(agent.first)  # it asks its first agent how it is made
        for made in makers.new():
            journal.append(n, CONFIGURED, body=msgspec.json.encode(made).decode())


def _makers(agent: Agent) -> Makers:
    return Makers(agent._make if isinstance(agent, Doubling) else None)


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
