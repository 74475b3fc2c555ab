"""`windage explain`: why a run took an action at a time t."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windage.cli.terminal import (
    Progress,
    find_own_classes,
    print_json,
    print_table,
    print_text,
    say,
)

if TYPE_CHECKING:
    from windage.agents.optimistic.base import ActionReport, Explanation
    from windage.study.replay import Moment
    from windage.study.store import Manifest

__all__ = ["explain"]

_MOST_LISTED = 60


def explain(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `windage run -o` wrote.")],
    run: Annotated[
        str | None,
        typer.Option(
            "--run", metavar="K", help="Its number, or the start of its key; without it, a list."
        ),
    ] = None,
    t: Annotated[
        int | None, typer.Option("--t", metavar="T", help="The time; default: the last step.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Explain a decision of a run of a study: counts, radii, values, ties, optimism."""
    from windage.study.store import Store

    if run is None:
        _list(Store.found(folder).manifest(), folder)
        return
    from windage.study.replay import follow, replay
    from windage.study.task import failing_in_words

    find_own_classes(Path.cwd())
    with Progress() as progress:
        progress("playing the run again")
        moment = replay(folder, run, t)
        with failing_in_words():
            action = int(moment.agent.act(moment.state))
            known = moment.agent.explain(moment.state) if hasattr(moment.agent, "explain") else None
        memory = _memory(moment)
        truth = _truth(moment)
        after = follow(moment)
    if as_json:
        print_json(_data(moment, action, known, truth, after))
        return
    _describe(moment, action)
    if known is None:
        _describe_briefly(moment, memory)
    else:
        say()
        say(str(known))
        say()
        learner = _learner(known)
        if learner is not None:
            for sentence in _reasons(learner):
                print_text(sentence)
    for sentence in _compared(moment, action, truth):
        print_text(sentence)
    if after is not None:
        space = moment.environment.space
        print_text(f"Outcome: reward {after[1]:g}, and {_state(space, after[2])} next.")


def _list(manifest: Manifest, folder: Path) -> None:
    """Print the runs, one line per agent and environment."""
    groups: dict[tuple[str, int, str], list[tuple[int, int]]] = {}
    for number, planned in enumerate(manifest.runs, 1):
        place = (planned.environment, planned.horizon, planned.agent)
        groups.setdefault(place, []).append((number, planned.seed))
    rows = [
        [environment, f"{horizon:,}", agent, _span(*zip(*runs, strict=True))]
        for (environment, horizon, agent), runs in groups.items()
    ]
    print_table(["environment", "T", "agent", "runs (seeds)"], rows[:_MOST_LISTED])
    if len(rows) > _MOST_LISTED:
        print_text(f"and {len(rows) - _MOST_LISTED:,} more lines")
    print_text(f"`windage explain {folder} --run K --t T` explains what run K did at time T.")


def _span(numbers: tuple[int, ...], seeds: tuple[int, ...]) -> str:
    if len(numbers) == 1:
        return f"{numbers[0]:,} ({seeds[0]})"
    return f"{numbers[0]:,} to {numbers[-1]:,} ({min(seeds)} to {max(seeds)})"


def _describe(moment: Moment, action: int) -> None:
    planned, space = moment.planned, moment.environment.space
    print_text(f"Run {moment.number:,}: {planned} (key {planned.key[:12]}).")
    print_text(
        f"At t = {moment.t:,} it stands in {_state(space, moment.state)} and plays "
        f"{_action(space, moment.state, action)}."
    )


def _describe_briefly(moment: Moment, memory: list[int]) -> None:
    """Print what is known of an agent without explanations."""
    kind = type(moment.agent)
    summary = (inspect.getdoc(kind) or kind.__name__).splitlines()[0]
    print_text(f"This kind of agent does not explain itself. It is: {summary}")
    episode = getattr(moment.agent, "episode", None)
    if episode is not None:
        print_text(
            f"It plays the plan of t = {episode.start:,}, whose gain is {episode.gain:.4g} and "
            f"whose span is {episode.span:.4g}."
        )
    if memory:
        space, s = moment.environment.space, moment.state
        names = [_action(space, s, a) for a in range(len(memory))]
        print_table(
            ["action", "samples in memory"],
            [[name, f"{n:,}"] for name, n in zip(names, memory, strict=True)],
        )


def _memory(moment: Moment) -> list[int]:
    """Return the memory counts of the actions of the state."""
    counts = getattr(moment.agent, "in_memory", None)
    first, last = moment.environment.space.offsets[moment.state : moment.state + 2]
    return [] if counts is None or not counts.size else counts[first:last].tolist()


def _learner(known: Any) -> Explanation | None:
    """Return the explanation of the acting learner; that of a master is inside its own."""
    from windage.agents.optimistic.base import Explanation

    while known is not None and not isinstance(known, Explanation):
        known = getattr(known, "learner", None)
    return known


def _reasons(known: Explanation) -> list[str]:
    """Return the table in words: the best action, its margin, and its bonus."""
    played = next(a for a in known.actions if a.chosen)
    tied = [a for a in known.actions if a.tied]
    others = [a for a in known.actions if not a.chosen]
    said = []
    if len(known.actions) == 1:
        return ["There is no other action here."]
    if len(tied) > 1 and played.tied:
        slack = f" within the slack of {known.slack:g}" if known.slack else ""
        names = ", ".join(a.name for a in tied)
        said.append(
            f"Why: {len(tied)} actions are as good{slack} ({names}); the tie rule {known.ties!r} "
            f"chose {played.name}."
        )
    else:
        second = max(others, key=lambda a: a.value)
        said.append(
            f"Why: with the best model it holds for possible, {played.name} is worth "
            f"{played.value:.4g}, the next best, {second.name}, {second.value:.4g}."
        )
    said.append(_bonus_in_words(played))
    vacuous = [a.name for a in known.actions if a.vacuous]
    if vacuous:
        what = "action" if len(vacuous) == 1 else "actions"
        said.append(
            f"Its set of transitions is vacuous for {what} {', '.join(vacuous)}: any next state is "
            f"possible, and what was seen of {played.name} says nothing yet of where it leads."
            if played.vacuous
            else f"Vacuous sets, where any next state is possible: {', '.join(vacuous)}."
        )
    return said


def _bonus_in_words(played: ActionReport) -> str:
    reward = played.optimistic_reward - played.mean_reward
    total = reward + played.bonus
    said = (
        f"Of the value of {played.name}, {total:.4g} is bonus: {reward:.4g} for its reward (seen "
        f"{played.visits:,} times, mean {played.mean_reward:.4g}, radius "
        f"{played.reward_radius:.4g}) and {played.bonus:.4g} for its transitions"
    )
    if played.widening <= 0:
        return said + "; there is no widening."
    share = played.bonus_from_widening / played.bonus if played.bonus > 0 else 0.0
    return said + (
        f", {played.bonus_from_widening:.4g} of that ({share:.0%}) due to the widening "
        f"eta = {played.widening:.4g}."
    )


def _truth(moment: Moment) -> dict[str, Any] | None:
    """Return the optimal gain at t, and the loss of each action in the state."""
    from windage.errors import NotConverged
    from windage.models import DriftingMDP

    if not isinstance(moment.environment, DriftingMDP):
        return None
    frozen = moment.environment.at(moment.t)
    try:
        solved = frozen.solve()
    except NotConverged:
        return None
    space, s = moment.environment.space, moment.state
    first, last = (int(x) for x in space.offsets[s : s + 2])
    moves = frozen.transitions[first:last]
    rewards = [float(x) for x in frozen.rewards[first:last]]
    values = [r + float(x) for r, x in zip(rewards, moves @ solved.bias, strict=True)]
    return {
        "gain": float(solved.gain),
        "best": int(solved.policy[s]),
        "rewards": rewards,
        "losses": [max(values) - value for value in values],
    }


def _compared(moment: Moment, action: int, truth: dict[str, Any] | None) -> list[str]:
    if truth is None:
        return []
    space, s = moment.environment.space, moment.state
    best = _action(space, s, truth["best"])
    if truth["losses"][action] <= 1e-9:
        return [f"The oracle agrees: at this t {_action(space, s, action)} is optimal."]
    played = _action(space, s, action)
    return [
        f"The oracle would play {best}: in the model of this t, {played} "
        f"costs {truth['losses'][action]:.4g} against it, where the optimal gain is "
        f"{truth['gain']:.4g}."
    ]


def _data(
    moment: Moment,
    action: int,
    known: Any,
    truth: dict[str, Any] | None,
    after: tuple[int, float, int] | None,
) -> dict[str, Any]:
    planned = moment.planned
    return {
        "run": moment.number,
        "key": planned.key,
        "environment": planned.environment,
        "agent": planned.agent,
        "horizon": planned.horizon,
        "seed": planned.seed,
        "t": moment.t,
        "state": moment.state,
        "action": action,
        "explanation": None if known is None else dataclasses.asdict(known),
        "oracle": truth,
        "reward": after[1] if after else None,
        "next_state": after[2] if after else None,
    }


def _state(space: Any, s: int) -> str:
    return f"state {space.state_name(s)}"


def _action(space: Any, s: int, a: int) -> str:
    return str(space.action_name(s, a))
