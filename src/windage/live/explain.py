"""Explanation of a decision of a journal: in words, by names and in the units of its user."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from windage.agents import Doubling
from windage.agents.meta.delegating import Relay
from windage.agents.multiscale.explanation import GuardedExplanation, MultiScaleExplanation
from windage.agents.optimistic.base import ActionReport, Explanation
from windage.errors import InputError
from windage.live.config import Units
from windage.live.history import LiveAgent, agent_at, agent_records, decision_event, named_record
from windage.live.journal import Journal
from windage.live.schema import DECIDED, Event
from windage.live.views import timestamp
from windage.validation import as_integer

__all__ = ["Reason", "ValueParts", "explain"]


@dataclass(frozen=True)
class ValueParts:
    """An action and the parts of its optimistic value, in the agent's units.

    `sizes` are the mean reward, the optimism about it, the bonus of optimistic transitions without
    the widening, and the part of the bonus due to the widening.
    """

    action: str
    sizes: tuple[float, float, float, float]


@dataclass(frozen=True)
class Reason:
    """A decision and the reasons for it.

    `sentences` are for people; `columns` and `rows` are the numbers behind them, in the user's
    units, explained by `legend`; `parts` are those numbers for a chart; `details` is the own
    explanation of an agent of another kind.
    """

    id: int
    state: str
    action: str
    sentences: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    parts: tuple[ValueParts, ...]
    details: str
    legend: str = ""

    def __str__(self) -> str:
        return "\n".join([*self.sentences, *([self.details] if self.details else [])])


_LEGEND = (
    "mean, radius, at best: the reward per step, how far off its mean may be, the best it may be; "
    "p radius: how far off the transitions may be, 2 is any; optimism: the bonus of optimistic "
    "transitions, and the part of it that is due to eta; value: the best reward and what "
    "follows it; behind: how much worse than the advised action"
)
_COLUMNS = (
    "action", "visits", "mean", "radius", "at best", "p radius", "optimism", "of eta", "value",
    "behind",
)  # fmt: skip
_BELIEVED_LEGEND = (
    "p memory, r memory: how many of the last steps count for transitions, for rewards; p samples, "
    "r samples: how many of the action's own that leaves; mean: the reward per step; bonus: how "
    "much better it may be than is known; value: mean, bonus, and what follows; behind: how much "
    "worse than the advised action"
)
_BELIEVED_COLUMNS = (
    "action", "visits", "p memory", "r memory", "p samples", "r samples", "mean", "bonus", "value",
    "behind",
)  # fmt: skip


def explain(path: str | Path, decision: int | None = None, name: str | None = None) -> Reason:
    """Explain a decision, from what was known when it was made; None: the last one.

    The journal is only read, and its program is not disturbed.
    """
    with Journal(path) as journal:
        number = named_record(agent_records(journal), name).agent
        if decision is None:
            event = _last_decision(journal, number)
        else:
            event = decision_event(journal, number, as_integer(decision, "decision"))
        records = agent_records(journal, until=event.n, agent=number)
        (record,) = records.values()
        live = agent_at(journal, record, until=event.n)
    key = f", key {event.key}" if event.key else ""
    return _reason(live, event, f"Decision {event.n}, {timestamp(event.at)}{key}")


def _last_decision(journal: Journal, agent: int) -> Event:
    where = "n = (SELECT max(n) FROM events WHERE agent = ? AND kind = ?)"
    events = journal.events(where, agent, DECIDED)
    if not events:
        raise InputError(
            "nothing was decided yet", field=str(journal.path), fix="look again after a decision"
        )
    return events[0]


def _reason(live: LiveAgent, event: Event, heading: str) -> Reason:
    agent, units = live.agent, live.units
    assert live.pending is not None
    _, s, advised = live.pending
    space = agent.space
    state, action = space.state_name(s), space.action_name(s, advised)
    summary = f"{heading}: in {state} the advice was {action} (t = {agent.t}, {agent.id})."
    acting = agent.runner if isinstance(agent, Doubling) and agent.runner else agent
    explain_state = getattr(acting, "explain", None)
    explanation = explain_state(s) if explain_state is not None else None
    if isinstance(explanation, (MultiScaleExplanation, GuardedExplanation)):
        return _belief(explanation, units, event.n, action, summary)
    if not isinstance(explanation, Explanation):
        details = "This kind of agent does not explain itself."
        if explanation is not None:
            low, high = units.agent_range
            own = f"In the agent's own units, rewards from {low:g} to {high:g}, more is better:\n"
            details = f"{own if units.reward_range else ''}{explanation}"
        return Reason(event.n, state, action, (summary,), (), (), (), details)
    chosen = explanation.actions[advised]
    ahead = agent._since - 1 if isinstance(agent, Relay) else 0  # a runner has its own clock
    sentences = [
        summary,
        f"Its plan was made at t = {explanation.start + ahead} (episode {explanation.episode}, "
        f"{explanation.radii} radii), with an optimistic {units.word} of "
        f"{units.optimistic(explanation.gain):.4g} per step.",
        *_knowledge(chosen, units),
        *_rivals(explanation, chosen, units),
    ]
    rows = tuple(_row(report, chosen, units) for report in explanation.actions)
    parts = tuple(_value_parts(report, units) for report in explanation.actions)
    return Reason(event.n, state, action, tuple(sentences), _COLUMNS, rows, parts, "", _LEGEND)


def _belief(
    explanation: MultiScaleExplanation | GuardedExplanation,
    units: Units,
    decision: int,
    advised: str,
    summary: str,
) -> Reason:
    """Return the reasons of a multi-scale learner, in the user's units."""
    scale, guard = units.scale, []
    if isinstance(explanation, GuardedExplanation):
        guard = replace(explanation, slack=scale * explanation.slack).guard.splitlines()
        explanation = explanation.decision
    chosen = next(action for action in explanation.actions if action.chosen)
    scaled = [replace(a, hope=scale * a.hope, value=scale * a.value) for a in explanation.actions]
    reason = replace(explanation, actions=tuple(scaled)).reason  # which is about differences
    sentences = (
        summary,
        f"Its plan was made at t = {explanation.start} (epoch {explanation.epoch}), with an "
        f"expected {units.word} of {units.to_user(explanation.gain):.4g} per step.",
        f"{reason}.",
        *guard,
    )
    rows = tuple(
        (
            a.name + (" *" if a.chosen else ""), str(a.visits), f"{a.transition_memory:.0f}",
            f"{a.reward_memory:.0f}", f"{a.transition_samples:.1f}", f"{a.reward_samples:.1f}",
            f"{units.to_user(a.mean_reward):.4g}", f"{scale * a.hope:.3g}",
            f"{units.to_user(a.value):.4g}", f"{scale * (chosen.value - a.value):.4g}",
        )
        for a in explanation.actions
    )  # fmt: skip
    return Reason(
        decision, explanation.state_name, advised, sentences, _BELIEVED_COLUMNS, rows, (), "",
        _BELIEVED_LEGEND,
    )  # fmt: skip


def _knowledge(chosen: ActionReport, units: Units) -> list[str]:
    """Describe the data on the chosen action, and how much of its value is optimism."""
    scale = units.scale
    if chosen.visits == 0:
        sentences = [
            f"{chosen.name} was not tried there within its memory: everything is possible."
        ]
    else:
        sentences = [
            f"{chosen.name} was tried there {chosen.visits} times within its memory, with a mean "
            f"of {units.to_user(chosen.mean_reward):.4g}; the mean may be as good as "
            f"{units.to_user(chosen.optimistic_reward):.4g}."
        ]
    if chosen.vacuous:
        sentences.append("Too little is known of its transitions: any next state is possible.")
    bonus, of_eta = scale * chosen.bonus, scale * chosen.bonus_from_widening
    sentences.append(
        f"Optimism about transitions adds {bonus:.4g} to its value, {of_eta:.4g} of it due to "
        f"the widening (eta = {chosen.widening:.3g})."
    )
    return sentences


def _rivals(explanation: Explanation, chosen: ActionReport, units: Units) -> list[str]:
    others = [report for report in explanation.actions if report.action != chosen.action]
    if not others:
        return ["It is the only action there."]
    tied, ties = [report.name for report in others if report.tied], explanation.ties
    if chosen.tied and len(tied) == len(others) and not any(report.visits for report in others):
        return [f"Nothing is known of the others either: {', '.join(tied)}."]
    if chosen.tied and tied:
        rule = "a random one of them is played" if ties == "random" else f"broken by {ties!r}"
        return [f"Tied with {', '.join(tied)}; ties: {rule}."]
    best = max(others, key=lambda report: report.value)
    gap = units.scale * (chosen.value - best.value)
    return [f"The next best, {best.name}, is {gap:.4g} behind."]


def _row(report: ActionReport, chosen: ActionReport, units: Units) -> tuple[str, ...]:
    scale, sign = units.scale, -1.0 if units.direction == "cost" else 1.0
    optimistic_reward = units.to_user(report.optimistic_reward)
    return (
        report.name + (" *" if report.action == chosen.action else ""),
        str(report.visits),
        f"{units.to_user(report.mean_reward):.4g}" if report.visits else "-",
        f"{scale * report.reward_radius:.3g}",
        f"{optimistic_reward:.4g}",
        "any" if report.vacuous else f"{report.transition_radius:.3g}",
        f"{scale * report.bonus:.3g}",
        f"{scale * report.bonus_from_widening:.3g}",
        f"{optimistic_reward + sign * scale * (report.expected + report.bonus):.4g}",
        f"{scale * (chosen.value - report.value):.4g}",
    )


def _value_parts(report: ActionReport, units: Units) -> ValueParts:
    low, high = units.agent_range  # bars start at the least reward
    mean = max(report.mean_reward - low, 0.0) / (high - low) if report.visits else 0.0
    best = (report.optimistic_reward - low) / (high - low)
    bonus, of_eta = report.bonus / (high - low), report.bonus_from_widening / (high - low)
    return ValueParts(report.name, (mean, max(best - mean, 0.0), bonus - of_eta, of_eta))
