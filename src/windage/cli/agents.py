"""`windage agents` and `windage check-agent`: the agents, what they require, contract checks."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from windage.cli.options import parse_settings
from windage.cli.terminal import Progress, print_json, print_table, print_text, say

__all__ = ["agents", "check_agent", "listed", "summary_of"]


def agents(
    name: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="One agent, to see its parameters.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the agents and what each requires, or the parameters of one."""
    import windage as wd

    chosen = [name] if name else wd.agents.names()
    entries = [_entry(one) for one in chosen]
    if as_json:
        print_json(entries)
    elif name:
        _describe(entries[0])
    else:
        cells = [
            [entry["id"], listed(entry["told"]), _covered(entry["covers_drift"]), _claim(entry)]
            for entry in entries
        ]
        print_table(["id", "requires", "drift", "regret bound (source)"], cells)
        print_text(
            "drift: whether the bound covers models that drift; - if there is none. All require "
            "T; l: the number of changes, D: a bound on the diameter. Bounds leave out constants."
        )
        print_text("`windage agents ID` describes one and lists its parameters.")


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
    agents.resolve(agent)  # an id that does not exist is the caller's mistake, not a finding
    with Progress() as progress:
        checks = findings(agent, horizon=horizon, seed=seed, options=options, before=progress)
    for check in checks:
        mark = {True: "ok  ", False: "FAIL", None: "-   "}[check.passed]
        reason = f" ({check.message})" if check.passed is None else ""
        print_text(f"{mark} {check.check}{reason}")
        if check.passed is False:
            print_text(f"     {check.message}")
    failed = sum(check.passed is False for check in checks)
    skipped = [check for check in checks if check.passed is None]
    unseen = sum(check.message.startswith("not checked") for check in skipped)
    if failed:
        rest = f"; {unseen} more were not checked" if unseen else ""
        say(f"{agent} fails {failed} of {len(checks)} checks{rest}")
        raise typer.Exit(1)
    passed = len(checks) - len(skipped)
    missing = f"; {len(skipped)} it does not offer" if skipped else ""
    say(f"{agent} passes all {passed} checks{missing}")


def _entry(name: str) -> dict[str, Any]:
    import windage as wd

    kind = wd.agents.resolve(name)
    parameters = wd.agents.parameters(kind)
    return {
        "id": name,
        "summary": summary_of(kind),
        "told": list(getattr(kind, "requires", ())),
        "covers_drift": getattr(kind, "covers_drift", None),
        "bound": getattr(kind, "bound", "none"),
        "source": getattr(kind, "source", f"{kind.__module__}:{kind.__qualname__}"),
        "parameters": {
            option: _default(kind, option, parameter) for option, parameter in parameters.items()
        },
    }


def _describe(entry: dict[str, Any]) -> None:
    print_text(f"{entry['id']}: {entry['summary']}")
    say(f"Requires: {listed(entry['told'])}.")
    print_text(f"Regret: {_claim(entry)}.")
    covers = entry["covers_drift"]
    if covers is not None:
        say(f"Its guarantee {'covers' if covers else 'does not cover'} models that drift.")
    else:
        say("No guarantee is stated.")
    print_table(["parameter", "default"], list(entry["parameters"].items()))
    say(f"`windage try ENV {entry['id']} --set NAME=VALUE` runs it.")


def _default(kind: type[Any], name: str, parameter: inspect.Parameter) -> str:
    if name == "problem":
        return "the model"
    if name == "radii" and parameter.default is None:
        return str(getattr(kind, "default_radii", None))
    if parameter.default is not parameter.empty:
        return str(parameter.default)
    told = getattr(kind, "requires", ())
    return f"tuned to {' and '.join(told)}" if told else "must be set"


def _claim(entry: dict[str, Any]) -> str:
    source = f" ({entry['source']})" if entry["source"] else ""
    return f"{entry['bound']}{source}"


def summary_of(kind: type) -> str:
    """Return the first line of the docstring of a class."""
    return (inspect.getdoc(kind) or kind.__name__).splitlines()[0]


def listed(told: Sequence[str]) -> str:
    """Return prior knowledge as a line of text."""
    return ", ".join(told) or "nothing"


def _covered(covers: bool | None) -> str:
    return "-" if covers is None else "yes" if covers else "no"
