"""`windage live status|explain|export`: how an agent that decides for real is doing, and why."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windage.cli.places import require_place
from windage.cli.progress import Progress
from windage.cli.tables import print_table, print_text

if TYPE_CHECKING:
    from windage.live.reasons import Reason
    from windage.live.status import AgentStatus, Status

Journal = Annotated[Path, typer.Argument(metavar="JOURNAL", help="The journal of a live agent.")]
Name = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="One agent of a journal of several.")
]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write a page.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

_SHOWN = 50  # agents of a fleet in one table


def status(journal: Journal, name: Name = None, html: Html = None, as_json: AsJson = False) -> None:
    """Say how a live agent is doing: what it hopes for and gets, what is missing, what drifts."""
    from windage.live.status import status as look

    if html is not None:
        require_place(html)
    with Progress() as progress:
        progress("reading the journal")
        found = look(journal, name)
    if as_json:
        print(json.dumps(dataclasses.asdict(found), indent=2, default=str))
    elif len(found.agents) == 1:
        _print_one(found, found.agents[0])
    else:
        _print_many(found)
    if html is not None:
        _page(found, journal, html)
        print(f"page: {html}")


def explain(
    journal: Journal,
    decision: Annotated[
        int | None, typer.Option("--decision", metavar="ID", help="Which; the last if not said.")
    ] = None,
    name: Name = None,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """Say why a decision was made, from what was known then."""
    from windage.live.reasons import LEGEND
    from windage.live.reasons import explain as look

    if html is not None:
        require_place(html)
    found = look(journal, decision, name)
    if as_json:
        print(json.dumps(dataclasses.asdict(found), indent=2))
    else:
        for sentence in found.sentences:
            print_text(sentence)
        if found.rows:
            print_table(found.columns, found.rows)
            print_text(LEGEND)
        if found.details:
            print(found.details)
    if html is not None:
        _explain_page(found, html)
        print(f"page: {html}")


def export(
    journal: Journal,
    output: Annotated[Path, typer.Option("-o", "--output", help="A .parquet file.")],
    name: Name = None,
) -> None:
    """Write all decisions and outcomes to a Parquet file, one row a decision."""
    from windage.errors import InputError
    from windage.live.export import export as write

    if output.suffix != ".parquet":
        raise InputError(
            f"{output.name!r} is no Parquet file", field="-o", fix="name a file ending in .parquet"
        )
    require_place(output)
    with Progress() as progress:
        progress("checking and reading the journal")
        rows = write(journal, output, name)
    print(f"{rows:,} decisions written to {output}")


def facts(found: Status, one: AgentStatus) -> list[list[str]]:
    """Return what there is to say of one agent, in rows."""
    word = "cost" if one.direction == "cost" else "reward"
    writer = f"process {found.writer}" if found.writer else "nobody: the program is not running"
    settings = ", ".join(f"{name} {_short(value)}" for name, value in one.settings.items())
    least = "at least " if one.is_capped else ""
    rows = [
        ["journal", f"{found.path}, {found.events:,} events"],
        ["first and last event", f"{found.first}, {found.last}"],
        ["written by", writer],
        ["agent", f"{one.agent} ({settings})" if settings else one.agent],
        ["next step", f"t = {one.t:,}"],
        ["decisions", f"{one.decisions:,}"],
        ["waiting for its outcome", _waiting(one)],
        ["learned from", f"{one.learned:,}" + (f", {one.late:,} of them late" if one.late else "")],
        ["dropped", f"{one.given_up:,} steps without an outcome"],
        ["too late to be used", f"{one.unused:,}"],
        ["refused outcomes", f"{least}{one.rejected:,}"],
        ["something else was done", f"{one.overridden:,} times"],
        ["decided by the fallback", f"{least}{one.by_fallback:,}"],
        [f"mean {word}", _mean(one.mean)],
        [f"mean {word}, last {one.recent:,}", _mean(one.recent_mean)],
        [f"hoped-for {word}", _mean(one.gain)],
    ]
    if one.vacuous is not None:
        rows.append(["pairs nothing is known of", f"{one.vacuous:.0%}"])
    return rows


def _print_one(found: Status, one: AgentStatus) -> None:
    print_table(["", one.name], facts(found, one))
    if one.trouble:
        print_text(f"The agent itself cannot be read: {one.trouble}")
    _print_alarms(one)


def _print_alarms(one: AgentStatus) -> None:
    from windage.live.alarms import DELTA

    if not one.alarms:
        print("no drift beyond chance in the last outcomes of any pair")
        return
    print(
        f"drift alarms (a look at a world that stands still shows one with probability {DELTA:g}):"
    )
    for alarm in one.alarms:
        print(f"  {alarm}")


def _print_many(found: Status) -> None:
    print(f"{found.path}: {len(found.agents):,} agents, {found.events:,} events")
    cells = [
        [one.name, f"{one.decisions:,}", f"{one.learned:,}", one.pending or "-",
         _mean(one.recent_mean), _mean(one.gain), str(len(one.alarms)), one.trouble]
        for one in found.agents[:_SHOWN]
    ]  # fmt: skip
    print_table(
        ["agent", "decisions", "learned", "waiting", "recent mean", "hoped for", "alarms", ""],
        cells,
    )
    if len(found.agents) > _SHOWN:
        print(f"and {len(found.agents) - _SHOWN:,} more; --name shows one")


def _waiting(one: AgentStatus) -> str:
    return f"{one.pending}, since {one.pending_since}" if one.pending else "none"


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _mean(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _page(found: Status, journal: Path, target: Path) -> None:
    from windage.live.course import course
    from windage.report.live import course_figure
    from windage.report.live_page import Section, write_page

    sections = []
    for one in found.agents[:_SHOWN]:
        picture = None if one.trouble else course_figure(course(journal, one.name), one)
        alarms = [str(alarm) for alarm in one.alarms] or ["no drift beyond chance"]
        sections.append(Section(one.name, rows=facts(found, one)))
        sections.append(Section("Drift alarms", alarms, figure=picture))
    write_page(target, f"Live agents of {journal.name}", sections)


def _explain_page(found: Reason, target: Path) -> None:
    from windage.live.reasons import LEGEND
    from windage.report.live import reason_figure
    from windage.report.live_page import Section, write_page

    texts = [*found.sentences, *([found.details] if found.details else [])]
    sections = [Section("", texts, found.columns, found.rows)]
    if found.parts:
        sections.append(Section("", [LEGEND], figure=reason_figure(found)))
    write_page(target, f"Why decision {found.id} was {found.action}", sections)
