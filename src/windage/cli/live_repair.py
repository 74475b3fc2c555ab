"""`windage live verify|recover|expire|switch`: whether a journal is sound, and how to go on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windage.cli.live import Journal, Name
from windage.cli.progress import Progress
from windage.cli.settings import parse_settings
from windage.cli.tables import print_table, print_text
from windage.errors import CallOrderError, InputError, JournalError

if TYPE_CHECKING:
    from windage.agents import Agent
    from windage.live.history import Base
    from windage.live.recover import Recovery
    from windage.live.switch import Rehearsal


def verify(journal: Journal) -> None:
    """Check the chain of all events, replay every agent, compare every snapshot."""
    from windage.live.verify import verify as check

    with Progress() as progress:
        progress("replaying the journal")
        found = check(journal)
    for remark in found.remarks:
        print_text(f"note: {remark}")
    if not found.is_sound:
        first, more = found.problems[0], len(found.problems) - 1
        raise JournalError(
            first + (f", and {more} more problems" if more else ""),
            field=str(journal),
            fix=found.fix,
        )
    print(
        f"{journal}: sound. {found.events:,} events in one chain, {found.decisions:,} decisions of "
        f"{found.agents:,} agent{'s' if found.agents != 1 else ''} replayed, "
        f"{found.snapshots:,} snapshots compared"
    )


def recover(
    journal: Journal,
    output: Annotated[Path, typer.Option("-o", "--output", help="The new journal.")],
) -> None:
    """Save the longest sound beginning of a damaged journal into a new one."""
    from windage.live.recover import recover as save

    with Progress() as progress:
        progress("looking at every page")
        found = save(journal, output)
    print_text(f"{output}: {found.events:,} events saved, each as it was written")
    print_text(_missing(found))
    if found.pending:
        listed = ", ".join(map(str, found.pending[:10]))
        print_text(f"waiting for their outcomes: decision {listed}; send them again")


def _missing(found: Recovery) -> str:
    """Say what is missing."""
    if found.missing is None:
        head = (
            "there was no head that could be read"
            if found.acknowledged is None
            else f"all {found.acknowledged:,} events that the head knows of are there"
        )
        more = (
            f"the log is damaged, and traces of {found.doubtful:,} later rows may be of events or "
            "of a batch that was taken back"
            if found.doubtful
            else "there was no trace of more"
        )
        return f"whether anything is missing nobody knows: {head}, {more}"
    if found.missing == 0:
        return f"nothing is missing: the head knows of {found.acknowledged:,} events"
    known = (
        f"{found.acknowledged:,} were acknowledged"
        if found.acknowledged is not None
        else "there was no head that could be read to say how many there were"
    )
    traces = f"; traces of {len(found.seen):,} later rows were found" if found.seen else ""
    return (
        f"missing: event {found.events + 1:,} and all after it, {found.missing:,} at least "
        f"({known}{traces})"
    )


def expire(
    journal: Journal,
    decision: Annotated[
        int | None,
        typer.Option("--decision", metavar="ID", help="Which; the one that waits if not said."),
    ] = None,
    name: Name = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Do it. Without, it only says what would be given up.")
    ] = False,
) -> None:
    """Give up a decision whose outcome will never come: its step is dropped and counted."""
    from windage.live.decisions import as_decision, not_waiting, waiting
    from windage.live.history import bases, of_name
    from windage.live.journal import Journal as Reader
    from windage.live.opening import resumed
    from windage.live.status import moment

    reader = Reader(journal)
    try:
        base = of_name(bases(reader), name)
        found = waiting(reader, base.agent)
        if found is None and decision is None:
            raise CallOrderError(
                "no decision is waiting", field="expire", fix="see `windage live status`"
            )
        if found is None or decision not in (None, found.n):
            raise not_waiting(reader, base.agent, decision or 0)
    finally:
        reader.close()
    one = as_decision(base.space(), found)
    where = base.space().state_name(one.state)
    if apply:
        with resumed(journal, name) as live:
            live.expire(one.id)
    print_text(f"decision {one.id}: {one.action_name} in {where}, waits since {moment(found.at)}")
    if apply:
        print_text("done: its step is dropped and counted; an outcome that comes later is late")
    else:
        print("nothing was changed; --apply gives it up")


def switch(
    journal: Journal,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="ID", help="Another kind of agent.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the agent."),
    ] = None,
    name: Name = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Do it. Without, it is only tried on the history.")
    ] = False,
) -> None:
    """Try another window, widening or agent on a journal's history, and let it go on from there."""
    from windage.live.history import bases, live_through, of_name
    from windage.live.journal import Journal as Reader
    from windage.live.opening import resumed
    from windage.live.switch import rehearse

    options = parse_settings(settings or [], "--set")
    if not options and agent is None:
        raise InputError(
            "nothing would change", field="switch", fix="give --set NAME=VALUE or --agent ID"
        )
    if apply:
        with resumed(journal, name) as live:
            new = _made(live.base, agent, options)
            _print(live.switch(new))
    else:
        reader = Reader(journal)
        try:
            base = of_name(bases(reader), name)
            new = _made(base, agent, options)
            _print(rehearse(reader, base, live_through(reader, base), new))
        finally:
            reader.close()
    if apply:
        print_text(
            f"done: from here on the journal goes on with {new.id}. Change your program to match "
            "before you start it again; it is refused otherwise."
        )
    else:
        print("nothing was changed; --apply does it")


def _made(base: Base, agent: str | None, options: dict[str, Any]) -> Agent:
    """Return the agent of a journal with other parameters, or another agent."""
    import windage as wd
    from windage.validation import require_parameter

    saved = base.switched.saved if base.switched else base.created.saved
    if saved.agent == wd.Doubling.id:
        raise InputError(
            "this journal's agent is Doubling, which has no parameters to set here",
            field="switch",
            fix="in the program: live.switch(AGENT, dry_run=True), then without dry_run",
        )
    kind = wd.agents.get(agent or saved.agent)
    configuration = dict(saved.configuration)
    if agent is not None and agent != saved.agent:
        shared = {name: configuration[name] for name in ("horizon", "seed", "reward_range")}
        return wd.agents.make(agent, base.space(), **(shared | options))
    for option in options:
        require_parameter(option, configuration.keys() - {"space"}, saved.agent)
    given = kind._options(configuration | options)
    given.pop("space")
    return kind(base.space(), **given)


def _print(found: Rehearsal) -> None:
    for change in found.changes:
        print(change.replace(" in the journal", "").replace(" now", "").replace(", ", " -> "))
    (gain, gain_then), (vacuous, vacuous_then) = found.gain, found.vacuous
    print_table(
        ["", "now", "then"],
        [
            ["hoped for a step", _number(gain), _number(gain_then)],
            ["pairs nothing is known of", _share(vacuous), _share(vacuous_then)],
        ],
    )
    print_text(
        f"On the {found.steps:,} steps of the history it would have done what was done in "
        f"{found.agreed:.0%}; it would start with the last {found.carried:,} samples."
    )
    for state, before, after in found.policy[:20]:
        print(f"  in {state}: {before} -> {after}")
    if len(found.policy) > 20:
        print(f"  and in {len(found.policy) - 20:,} more states")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
