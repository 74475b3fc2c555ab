"""`windage live`: inspect, check and repair the journals of live agents."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windage.cli.terminal import (
    Progress,
    parse_settings,
    print_json,
    print_table,
    print_text,
    require_writable,
    say,
)
from windage.errors import CallOrderError, InputError, JournalError

if TYPE_CHECKING:
    from windage.agents import Agent
    from windage.live.explain import Reason
    from windage.live.history import AgentRecord
    from windage.live.maintenance import Rehearsal
    from windage.live.salvage import Recovery
    from windage.live.views import AgentStatus, Status

Journal = Annotated[Path, typer.Argument(metavar="JOURNAL", help="The journal of a live agent.")]
Name = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="One agent of a journal of several.")
]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write a page.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

_SHOWN = 50  # agents of a fleet in one table


def status(journal: Journal, name: Name = None, html: Html = None, as_json: AsJson = False) -> None:
    """Show the status of a live agent: optimistic and actual rewards, what is missing, drift."""
    from windage.live import status as read

    if html is not None:
        require_writable(html)
    with Progress() as progress:
        progress("reading the journal")
        report = read(journal, name)
    if as_json:
        print_json(dataclasses.asdict(report), default=str)
    elif len(report.agents) == 1:
        _print_agent(report, report.agents[0])
    else:
        _print_fleet(report)
    if html is not None:
        _status_page(report, journal, html)
        say(f"page: {html}")


def explain(
    journal: Journal,
    decision: Annotated[
        int | None, typer.Option("--decision", metavar="ID", help="Which; default: the last.")
    ] = None,
    name: Name = None,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """Explain a decision, from what was known when it was made."""
    from windage.live import explain as explained

    if html is not None:
        require_writable(html)
    reason = explained(journal, decision, name)
    if as_json:
        print_json(dataclasses.asdict(reason))
    else:
        for sentence in reason.sentences:
            print_text(sentence)
        if reason.rows:
            print_table(reason.columns, reason.rows)
            print_text(reason.legend)
        if reason.details:
            say(reason.details)
    if html is not None:
        _explain_page(reason, html)
        say(f"page: {html}")


def export(
    journal: Journal,
    output: Annotated[Path, typer.Option("-o", "--output", help="A .parquet file.")],
    name: Name = None,
) -> None:
    """Write all decisions and outcomes to a Parquet file, one row per decision."""
    from windage.live import export as write

    if output.suffix != ".parquet":
        raise InputError(
            f"{output.name!r} is no Parquet file", field="-o", fix="name a file ending in .parquet"
        )
    require_writable(output)
    with Progress() as progress:
        progress("checking and reading the journal")
        rows = write(journal, output, name)
    say(f"{rows:,} decisions written to {output}")


def _status_rows(report: Status, agent: AgentStatus) -> list[list[str]]:
    """Return the status of an agent as rows of a table."""
    word = "cost" if agent.direction == "cost" else "reward"
    writer = f"process {report.writer}" if report.writer else "none: the program is not running"
    settings = ", ".join(f"{name} {_short(value)}" for name, value in agent.settings.items())
    least = "at least " if agent.is_capped else ""
    rows = [
        ["journal", f"{report.path}, {report.events:,} events"],
        ["first and last event", f"{report.first}, {report.last}"],
        ["written by", writer],
        ["agent", f"{agent.agent} ({settings})" if settings else agent.agent],
        ["next step", f"t = {agent.t:,}"],
        ["decisions", f"{agent.decisions:,}"],
        ["waiting for its outcome", _waiting(agent)],
        [
            "learned from",
            f"{agent.learned:,}" + (f", {agent.late:,} of them late" if agent.late else ""),
        ],
        ["dropped", f"{agent.given_up:,} steps without an outcome"],
        ["too late to be used", f"{agent.unused:,}"],
        ["refused outcomes", f"{least}{agent.rejected:,}"],
        ["another action was taken", f"{agent.overridden:,} times"],
        ["decided by the fallback", f"{least}{agent.by_fallback:,}"],
        [f"mean {word}", _mean(agent.mean)],
        [f"mean {word}, last {agent.recent:,}", _mean(agent.recent_mean)],
        [f"optimistic {word}", _mean(agent.gain)],
    ]
    if agent.vacuous is not None:
        rows.append(["pairs with unknown transitions", f"{agent.vacuous:.0%}"])
    return rows


def _print_agent(report: Status, agent: AgentStatus) -> None:
    print_table(["", agent.name], _status_rows(report, agent))
    if agent.trouble:
        print_text(f"The agent itself cannot be read: {agent.trouble}")
    _print_alarms(agent)


def _print_alarms(agent: AgentStatus) -> None:
    from windage.live.views import DELTA

    if not agent.alarms:
        say("no drift beyond chance in the last outcomes of any pair")
        return
    say(f"drift alarms (a stationary environment shows one with probability {DELTA:g}):")
    for alarm in agent.alarms:
        say(f"  {alarm}")


def _print_fleet(report: Status) -> None:
    say(f"{report.path}: {len(report.agents):,} agents, {report.events:,} events")
    cells = [
        [agent.name, f"{agent.decisions:,}", f"{agent.learned:,}", agent.pending or "-",
         _mean(agent.recent_mean), str(len(agent.alarms)), agent.trouble]
        for agent in report.agents[:_SHOWN]
    ]  # fmt: skip
    print_table(["agent", "decisions", "learned", "waiting", "recent mean", "alarms", ""], cells)
    more = len(report.agents) - _SHOWN
    say(f"and {more:,} more; " * (more > 0) + "--name shows one, with its optimistic gain")


def _waiting(agent: AgentStatus) -> str:
    return f"{agent.pending}, since {agent.pending_since}" if agent.pending else "none"


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _mean(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _status_page(report: Status, journal: Path, target: Path) -> None:
    from windage.live.views import performance
    from windage.report.figures.live import performance_figure
    from windage.report.html import Section, write_page

    sections = []
    for agent in report.agents[:_SHOWN]:
        figure = (
            None if agent.trouble else performance_figure(performance(journal, agent.name), agent)
        )
        alarms = [str(alarm) for alarm in agent.alarms] or ["no drift beyond chance"]
        sections.append(Section(agent.name, rows=_status_rows(report, agent)))
        sections.append(Section(f"Drift alarms of {agent.name}", alarms, figure=figure))
    write_page(target, f"Live agents of {journal.name}", sections)


def _explain_page(reason: Reason, target: Path) -> None:
    from windage.report.figures.live import reason_figure
    from windage.report.html import Section, write_page

    texts = [*reason.sentences, *([reason.details] if reason.details else [])]
    sections = [Section("", texts, reason.columns, reason.rows)]
    if reason.parts:
        sections.append(
            Section("Values of the actions", [reason.legend], figure=reason_figure(reason))
        )
    write_page(target, f"Why decision {reason.id} was {reason.action}", sections)


def verify(journal: Journal) -> None:
    """Check the chain of all events, replay every agent, compare every snapshot."""
    from windage.live import verify as check

    with Progress() as progress:
        progress("replaying the journal")
        report = check(journal)
    for remark in report.remarks:
        print_text(f"note: {remark}")
    if not report.is_sound:
        first, more = report.problems[0], len(report.problems) - 1
        raise JournalError(
            first + (f", and {more} more problems" if more else ""),
            field=str(journal),
            fix=report.fix,
        )
    replayed = (
        f"{report.decisions:,} decisions of {report.agents:,} agent{'s' * (report.agents != 1)} "
        f"replayed, {report.snapshots:,} snapshots compared"
    )
    say(
        f"{journal}: sound. {report.events:,} events in one chain, "
        f"{replayed if report.agents else 'nothing replayed'}"
    )


def recover(
    journal: Journal,
    output: Annotated[Path, typer.Option("-o", "--output", help="The new journal.")],
) -> None:
    """Save the longest sound beginning of a damaged journal into a new one."""
    from windage.live import recover as save

    with Progress() as progress:
        progress("reading every page")
        recovery = save(journal, output)
    print_text(f"{output}: {recovery.events:,} events saved, each as it was written")
    print_text(_missing(recovery))
    if recovery.pending:
        listed = ", ".join(map(str, recovery.pending[:10]))
        print_text(f"waiting for their outcomes: decision {listed}; send them again")


def _missing(recovery: Recovery) -> str:
    """Return in words which events are missing."""
    if recovery.missing is None:
        head = (
            "there was no head that could be read"
            if recovery.acknowledged is None
            else f"all {recovery.acknowledged:,} events that the head knows of are there"
        )
        more = (
            f"the log is damaged, and traces of {recovery.doubtful:,} later rows may be of events "
            "or of a batch that was rolled back"
            if recovery.doubtful
            else "there was no trace of more"
        )
        return f"whether anything is missing is unknown: {head}, {more}"
    if recovery.missing == 0:
        return f"nothing is missing: the head knows of {recovery.acknowledged:,} events"
    known = (
        f"{recovery.acknowledged:,} were acknowledged"
        if recovery.acknowledged is not None
        else "there was no head that could be read to say how many there were"
    )
    traces = f"; traces of {len(recovery.seen):,} later rows were found" if recovery.seen else ""
    return (
        f"missing: event {recovery.events + 1:,} and all after it, {recovery.missing:,} at least "
        f"({known}{traces})"
    )


def expire(
    journal: Journal,
    decision: Annotated[
        int | None,
        typer.Option("--decision", metavar="ID", help="Which; default: the one that waits."),
    ] = None,
    name: Name = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Do it. Without, it only says what would be given up.")
    ] = False,
) -> None:
    """Give up a decision whose outcome will never come: its step is dropped and counted."""
    from windage.live import history
    from windage.live.journal import Journal as Reader
    from windage.live.session import resume
    from windage.live.views import timestamp

    with Reader(journal) as reader:
        record = history.named_record(history.agent_records(reader), name)
        event = history.pending_event(reader, record.agent)
        if event is None and decision is None:
            raise CallOrderError(
                "no decision is waiting", field="expire", fix="see `windage live status`"
            )
        if event is None or decision not in (None, event.n):
            raise history.not_pending(reader, record.agent, decision or 0)
    space = record.space()
    pending, since = history.as_decision(space, event), timestamp(event.at)
    where = space.state_name(pending.state)
    if apply:
        with resume(journal, name) as live:
            live.expire(pending.id)
    print_text(f"decision {pending.id}: {pending.action_name} in {where}, waits since {since}")
    if apply:
        print_text("done: its step is dropped and counted; an outcome that comes later is late")
    else:
        say("nothing was changed; --apply gives it up")


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
    from windage.live.history import agent_at, agent_records, named_record
    from windage.live.journal import Journal as Reader
    from windage.live.maintenance import rehearse
    from windage.live.session import resume

    options = parse_settings(settings or [], "--set")
    if not options and agent is None:
        raise InputError(
            "nothing would change", field="switch", fix="give --set NAME=VALUE or --agent ID"
        )
    if apply:
        with resume(journal, name) as live:
            new = _successor(live.record, agent, options)
            _print_rehearsal(live.switch(new))
        print_text(
            f"done: from here on the journal goes on with {new.id}. Change your program to match "
            "before you start it again; it is refused otherwise."
        )
    else:
        with Reader(journal) as reader:
            record = named_record(agent_records(reader), name)
            new = _successor(record, agent, options)
            _print_rehearsal(rehearse(reader, record, agent_at(reader, record), new))
        say("nothing was changed; --apply does it")


def _successor(record: AgentRecord, agent: str | None, options: dict[str, Any]) -> Agent:
    """Return the agent of a journal with other parameters, or another agent."""
    import windage as wd
    from windage.validation import require_parameter

    saved = record.saved
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
        if "structure" in configuration and "structure" in wd.agents.parameters(kind):
            shared["structure"] = configuration["structure"]
        return wd.agents.make(agent, record.space(), **(shared | options))
    for option in options:
        require_parameter(option, configuration.keys() - {"space"}, saved.agent)
    given = configuration | options | {"space": record.space()}
    return kind(given.pop("space"), **given)


def _print_rehearsal(rehearsal: Rehearsal) -> None:
    for change in rehearsal.changes:
        say(change.replace(" in the journal", "").replace(" now", "").replace(", ", " -> "))
    (gain, gain_then), (vacuous, vacuous_then) = rehearsal.gain, rehearsal.vacuous
    print_table(
        ["", "now", "then"],
        [
            ["optimistic gain per step", _mean(gain), _mean(gain_then)],
            ["pairs with unknown transitions", _share(vacuous), _share(vacuous_then)],
        ],
    )
    print_text(
        f"On the {rehearsal.steps:,} steps of the history it would have done what was done in "
        f"{rehearsal.agreed:.0%}; it would start with the last {rehearsal.carried:,} samples."
    )
    for state, before, after in rehearsal.policy[:20]:
        say(f"  in {state}: {before} -> {after}")
    if len(rehearsal.policy) > 20:
        say(f"  and in {len(rehearsal.policy) - 20:,} more states")


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
