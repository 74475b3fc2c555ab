"""Why this action: a decision of a journal in words, by names and in the units of its user."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from windage.agents import Agent, Doubling
from windage.agents.meta.delegating import Relay
from windage.agents.optimistic.explanation import ActionReport, Explanation
from windage.errors import InputError
from windage.live.decisions import by_number
from windage.live.events import DECIDED, Event
from windage.live.history import bases, live_through, of_name
from windage.live.journal import Journal
from windage.live.status import moment
from windage.live.units import Units
from windage.validation import as_integer

__all__ = ["LEGEND", "Part", "Reason", "explain"]


@dataclass(frozen=True)
class Part:
    """An action and what its value is made of, as the agent counts.

    `sizes` are the mean reward, what may be added to it, what good transitions may add without the
    widening, and what the widening adds.
    """

    action: str
    sizes: tuple[float, float, float, float]


@dataclass(frozen=True)
class Reason:
    """A decision and why it was made.

    `sentences` say it in words; `columns` and `rows` are the numbers behind them, in the user's
    units; `parts` are those numbers for a picture; `details` is what an agent of another kind says
    of itself.
    """

    id: int
    state: str
    action: str
    sentences: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    parts: tuple[Part, ...]
    details: str

    def __str__(self) -> str:
        return "\n".join([*self.sentences, *([self.details] if self.details else [])])


LEGEND = (
    "mean, radius, at best: the reward a step, how far off its mean may be, the best it may be; "
    "p radius: how far off the transitions may be, 2 is any; optimism: what hoping for good "
    "transitions adds, and the part of it that is due to eta; value: the best reward and what "
    "follows it; behind: how much worse than the advised action"
)
_COLUMNS = (
    "action", "visits", "mean", "radius", "at best", "p radius", "optimism", "of eta", "value",
    "behind",
)  # fmt: skip


def explain(path: str | Path, decision: int | None = None, name: str | None = None) -> Reason:
    """Say why a decision was made, from what was known then; None: the last one.

    The journal is only read, and its program is not disturbed.
    """
    journal = Journal(path)
    try:
        agent_number = of_name(bases(journal), name).agent
        if decision is None:
            event = _last(journal, agent_number)
        else:
            event = by_number(journal, agent_number, as_integer(decision, "decision"))
        base = next(
            one for one in bases(journal, until=event.n).values() if one.agent == agent_number
        )
        life = live_through(journal, base, until=event.n)
        assert life.pending is not None
        head = f"Decision {event.n}, {moment(event.at)}" + (
            f", key {event.key}" if event.key else ""
        )
        return _reason(life.agent, life.pending.id, life.pending.state, life.pending.action,
                       life.units, head)  # fmt: skip
    finally:
        journal.close()


def _last(journal: Journal, agent: int) -> Event:
    """Return the last decision of an agent."""
    which = "n = (SELECT max(n) FROM events WHERE agent = ? AND kind = ?)"
    found = journal.events(which, agent, DECIDED)
    if not found:
        raise InputError(
            "nothing was decided yet", field=str(journal.path), fix="look again after a decision"
        )
    return found[0]


def _reason(agent: Agent, number: int, s: int, advised: int, units: Units, head: str) -> Reason:
    space = agent.space
    state, action = space.state_name(s), space.action_name(s, advised)
    told = f"{head}: in {state} the advice was {action} (t = {agent.t}, {agent.id})."
    acting = agent.runner if isinstance(agent, Doubling) and agent.runner else agent
    tell = getattr(acting, "explain", None)
    said = tell(s) if tell is not None else None
    if not isinstance(said, Explanation):
        details = str(said) if said is not None else "This kind of agent does not explain itself."
        return Reason(number, state, action, (told,), (), (), (), details)
    chosen = said.actions[advised]
    ahead = agent._since - 1 if isinstance(agent, Relay) else 0  # a runner has its own clock
    sentences = [
        told,
        _hope(said, units, ahead),
        *_knowledge(chosen, units),
        *_rivals(said, chosen, units),
    ]
    rows = tuple(_row(one, chosen, units) for one in said.actions)
    parts = tuple(_part(one, units) for one in said.actions)
    return Reason(number, state, action, tuple(sentences), _COLUMNS, rows, parts, "")


def _hope(said: Explanation, units: Units, ahead: int) -> str:
    word = "cost" if units.direction == "cost" else "reward"
    return (
        f"Its plan was made at t = {said.start + ahead} (episode {said.episode}, {said.radii} "
        f"radii) and hopes for a {word} of {units.hoped(said.gain):.4g} a step."
    )


def _knowledge(chosen: ActionReport, units: Units) -> list[str]:
    """Say what is known of the chosen action, and how much of its value is optimism."""
    scale = units.scale
    if chosen.visits == 0:
        found = [f"{chosen.name} was not tried there within its memory: everything is possible."]
    else:
        found = [
            f"{chosen.name} was tried there {chosen.visits} times within its memory, with a mean "
            f"of {units.outward(chosen.mean_reward):.4g}; the mean may be as good as "
            f"{units.outward(chosen.optimistic_reward):.4g}."
        ]
    if chosen.vacuous:
        found.append("Of where it leads nothing is known yet: any state is thought possible.")
    optimism, of_eta = scale * chosen.bonus, scale * chosen.bonus_from_widening
    found.append(
        f"Hoping for good transitions adds {optimism:.4g} to its value, {of_eta:.4g} of it due to "
        f"the widening (eta = {chosen.widening:.3g})."
    )
    return found


def _rivals(said: Explanation, chosen: ActionReport, units: Units) -> list[str]:
    others = [one for one in said.actions if one.action != chosen.action]
    if not others:
        return ["It is the only action there."]
    tied = [one.name for one in others if one.tied]
    if chosen.tied and len(tied) == len(others) and not any(one.visits for one in others):
        return [f"Nothing is known of the others either: {', '.join(tied)}."]
    if chosen.tied and tied:
        return [f"As hopeful: {', '.join(tied)}; of ties a {said.ties} one is played."
                if said.ties == "random" else
                f"As hopeful: {', '.join(tied)}; ties are broken by {said.ties!r}."]  # fmt: skip
    best = max(others, key=lambda one: one.value)
    gap = units.scale * (chosen.value - best.value)
    return [f"The next best, {best.name}, is {gap:.4g} behind."]


def _row(one: ActionReport, chosen: ActionReport, units: Units) -> tuple[str, ...]:
    scale, way = units.scale, -1.0 if units.direction == "cost" else 1.0
    return (
        one.name + (" *" if one.action == chosen.action else ""),
        str(one.visits),
        f"{units.outward(one.mean_reward):.4g}" if one.visits else "-",
        f"{scale * one.reward_radius:.3g}",
        f"{units.outward(one.optimistic_reward):.4g}",
        "any" if one.vacuous else f"{one.transition_radius:.3g}",
        f"{scale * one.bonus:.3g}",
        f"{scale * one.bonus_from_widening:.3g}",
        f"{units.outward(one.optimistic_reward) + way * scale * (one.expected + one.bonus):.4g}",
        f"{scale * (chosen.value - one.value):.4g}",
    )


def _part(one: ActionReport, units: Units) -> Part:
    low, high = units.inside  # bars start at the least reward
    mean = max(one.mean_reward - low, 0.0) / (high - low) if one.visits else 0.0
    best = (one.optimistic_reward - low) / (high - low)
    bonus, of_eta = one.bonus / (high - low), one.bonus_from_widening / (high - low)
    return Part(one.name, (mean, max(best - mean, 0.0), bonus - of_eta, of_eta))
