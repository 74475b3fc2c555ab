"""`windage check-agent`: the contract checks of an agent, one by one."""

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
    seed: Annotated[int, typer.Option(help="Of the agent and of the environment.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the agent."),
    ] = None,
) -> None:
    """Run the contract checks on an agent; exit 1 if one fails."""
    from windage import agents
    from windage.testing import findings

    options = parse_settings(settings or [], "--set")
    agents.resolve(agent)  # what is not there is the caller's mistake, not a finding
    with Progress() as progress:
        found = findings(agent, horizon=horizon, seed=seed, options=options, before=progress)
    for one in found:
        mark = {True: "ok  ", False: "FAIL", None: "-   "}[one.passed]
        reason = f" ({one.message})" if one.passed is None else ""
        print_text(f"{mark} {one.check}{reason}")
        if one.passed is False:
            print_text(f"     {one.message}")
    broken = sum(one.passed is False for one in found)
    unseen = sum(one.message.startswith("not checked") for one in found if one.passed is None)
    if broken:
        rest = f"; {unseen} more were not checked" if unseen else ""
        print(f"{agent} fails {broken} of {len(found)} checks{rest}")
        raise typer.Exit(1)
    passed = sum(one.passed is True for one in found)
    missing = f"; {len(found) - passed} it does not offer" if passed < len(found) else ""
    print(f"{agent} passes all {passed} checks{missing}")
