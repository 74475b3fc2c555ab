"""Another agent for a running journal: tried on its history first, then recorded as an event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from windage.agents import Agent, Doubling
from windage.agents.optimistic.base import OptimisticAgent
from windage.agents.optimistic.episodic import EpisodicAgent
from windage.agents.replay import replay
from windage.errors import CallOrderError, InputError
from windage.live.history import Base, History, Life, carry, history
from windage.live.journal import Journal
from windage.live.settings import Switched, differences, save

__all__ = ["Rehearsal", "rehearse", "require_settled"]


@dataclass(frozen=True)
class Rehearsal:
    """How another agent would have done, as far as a history can tell.

    Attributes
    ----------
    changes
        What would change in the configuration.
    steps, agreed
        Steps of the history it lived through, and the share in which it would have done what was
        done. What would have followed from other actions, no history knows.
    carried
        Samples it would start with.
    gain, vacuous
        What it hopes for a step after its rehearsal, in the user's units, and the share of pairs of
        whose transitions it knows nothing; the agent that acts now first, then the new one.
    policy
        States in which it would now act otherwise: state, action of now, action of then.
    """

    changes: tuple[str, ...]
    steps: int
    agreed: float
    carried: int
    gain: tuple[float | None, float | None]
    vacuous: tuple[float | None, float | None]
    policy: tuple[tuple[str, str, str], ...]
    event: Switched


def require_settled(life: Life) -> None:
    """Refuse to switch while a decision waits for an outcome that nobody would learn from."""
    if life.pending is not None:
        raise CallOrderError(
            f"decision {life.pending.id} is waiting for its outcome",
            field="switch",
            fix="observe it, or give it up, first; a dry run needs neither",
        )


def rehearse(journal: Journal, base: Base, life: Life, agent: Agent) -> Rehearsal:
    """Let another agent live through the history of the one that acts; nothing is changed."""
    saved = save(agent)
    if isinstance(agent, Doubling):
        raise InputError(
            "a running journal cannot be switched to Doubling",
            field="agent",
            fix="start another journal with it",
        )
    if agent.space != life.agent.space:
        raise InputError(
            f"has other states or actions: {agent.space!r}",
            field="agent",
            fix="keep those of the journal, or start another",
        )
    past = history(journal, base.agent, 0, journal.n)
    units = base.created.units(agent)
    carried = _carried(agent, past) if saved.state is None else 0
    actor = saved.revive(type(agent), base.makers)
    carry(actor, past, units, carried)
    tried = past.part(np.flatnonzero(past.learned)[-agent.horizon :])
    steps = tried.steps(agent.space, units)
    new = saved.revive(type(agent), base.makers)
    advised = replay(new, steps)
    old = base.switched.saved if base.switched else base.created.saved
    return Rehearsal(
        changes=tuple(differences(_plain(old.agent, old.configuration),
                                  _plain(saved.agent, saved.configuration))),
        steps=tried.ids.size,
        agreed=float((advised == steps.pairs).mean()) if tried.ids.size else 1.0,
        carried=carried,
        gain=(_hope(life.agent, base), _hope(new, base)),
        vacuous=(_vacuous(life.agent), _vacuous(new)),
        policy=_policy(life.agent, actor),
        event=Switched(saved, carried),
    )  # fmt: skip


def _carried(agent: Agent, past: History) -> int:
    """Return how many of the last samples a new agent starts with: what its memory holds."""
    if not isinstance(agent, EpisodicAgent):
        return 0
    learned = int(past.learned.sum())
    return learned if agent._width is None else min(learned, agent._width)


def _plain(name: str, configuration: dict[str, Any]) -> dict[str, Any]:
    return {"agent": name, **configuration}


def _hope(agent: Agent, base: Base) -> float | None:
    episode = getattr(agent, "episode", None)
    return None if episode is None else base.created.units(agent).hoped(float(episode.gain))


def _vacuous(agent: Agent) -> float | None:
    episode = getattr(agent, "episode", None)
    return None if episode is None else float(episode.vacuous)


def _policy(old: Agent, new: Agent) -> tuple[tuple[str, str, str], ...]:
    """Return where the two would now act differently; only planners have a policy to compare."""
    acting = old.runner if isinstance(old, Doubling) else old
    if not isinstance(acting, OptimisticAgent) or not isinstance(new, OptimisticAgent):
        return ()
    if acting.episode is None:
        return ()
    space = new.space
    new.act(acting.last_state or 0)
    found = []
    for s in range(space.n_states):
        before, after = (int(space.action_of[one._played(s)]) for one in (acting, new))
        if before != after:
            names = (space.action_name(s, before), space.action_name(s, after))
            found.append((space.state_name(s), *names))
    return tuple(found)
