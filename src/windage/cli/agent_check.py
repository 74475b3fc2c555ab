"""`windage check-agent`: the promises of an agent of one's own, checked one by one."""

from __future__ import annotations

from typing import Annotated

import typer

from windage.cli.progress import Progress
from windage.cli.settings import parse_settings
from windage.cli.tables import print_text


def check_agent(
    agent: Annotated[
        str, typer.Argument(metavar="AGENT", help="module:Class, or the id of an agent.")
    ],
    horizon: Annotated[
        int, typer.Option("-T", "--horizon", metavar="N", help="How many steps to play.")
    ] = 2000,
    seed: Annotated[int, typer.Option(help="Of the agent and of the world.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the agent."),
    ] = None,
) -> None:
    """Check that an agent keeps what windage asks of every agent; exit 1 if it does not."""
    from windage import agents
    from windage.testing import findings

    options = parse_settings(settings or [], "--set")
    agents.resolve(agent)  # what is not there is the caller's mistake, not a finding
    with Progress() as progress:
        found = findings(agent, horizon=horizon, seed=seed, options=options, before=progress)
    for one in found:
        mark = {True: "ok  ", False: "FAIL", None: "-   "}[one.kept]
        reason = f" ({one.found})" if one.kept is None else ""
        print_text(f"{mark} {one.promise}{reason}")
        if one.kept is False:
            print_text(f"     {one.found}")
    broken = sum(one.kept is False for one in found)
    unseen = sum(one.found.startswith("not checked") for one in found if one.kept is None)
    if broken:
        rest = f"; {unseen} more were not checked" if unseen else ""
        print(f"{agent} breaks {broken} of {len(found)} promises{rest}")
        raise typer.Exit(1)
    kept = sum(one.kept is True for one in found)
    missing = f"; {len(found) - kept} it does not offer" if kept < len(found) else ""
    print(f"{agent} keeps all {kept} promises{missing}")
