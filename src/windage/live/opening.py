"""`windage.live.open`: a new journal, or the old one continued."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import overload

from windage.agents import Agent, Doubling
from windage.errors import InputError
from windage.live.answers import as_fallback
from windage.live.door import ONLY, Door
from windage.live.failures import UnwritableError
from windage.live.fleet import Fleet
from windage.live.history import of_name
from windage.live.journal import Journal
from windage.live.session import Session
from windage.live.settings import Created, Makers, save
from windage.live.units import as_units
from windage.validation import as_choice, as_name

__all__ = ["open", "resumed"]

MISSING = ("wait", "skip")
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
    as_choice(missing, "missing", MISSING)
    alone = not isinstance(agent, Mapping)
    made = {ONLY: agent} if not isinstance(agent, Mapping) else dict(agent)
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
    makers = {
        name: Makers(one._make if isinstance(one, Doubling) else None) for name, one in made.items()
    }
    door = Door(path, wanted, makers)
    spaces = {one.space: one.space for one in made.values()}  # equal ones are kept once
    sessions = {
        name: Session(door, name, type(one), spaces[one.space], policies[name])
        for name, one in made.items()
    }
    try:
        if alone:
            sessions[ONLY].agent  # noqa: B018 - read now: what is wrong with it is said here
        else:
            door.journal  # noqa: B018 - opened now; each agent is read when it is first used
    except BaseException as err:
        if fallback is None or not isinstance(err, UnwritableError):
            door.close()
            raise
    return sessions[ONLY] if alone else Fleet(door, sessions)


def resumed(path: str | Path, name: str | None = None) -> Session:
    """Open a journal for one of its agents as it stands there, whoever made it."""
    Journal(path).close()  # a writer would make what is not there
    door = Door(path, {}, {})
    door.journal  # noqa: B018 - opened now
    try:
        base = of_name(door.bases, name)
        return Session(door, base.created.name, None, base.space())
    except BaseException:
        door.close()
        raise
