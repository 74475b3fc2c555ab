"""`windage agents`: what agents there are, and what each of them must be told."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from windage.cli.tables import print_table, print_text

__all__ = ["agents", "listed", "summary_of"]


def agents(
    name: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="One agent, to see its parameters.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the agents and what each must be told, or the parameters of one."""
    import windage as wd

    chosen = [name] if name else wd.agents.names()
    entries = [_entry(one) for one in chosen]
    if as_json:
        print(json.dumps(entries, indent=2))
    elif name:
        _tell(entries[0])
    else:
        cells = [
            [entry["id"], listed(entry["told"]), _covered(entry["covers_drift"]), _claim(entry)]
            for entry in entries
        ]
        print_table(["id", "is told", "drift", "bound of the regret (source)"], cells)
        print_text(
            "drift: whether the bound covers models that drift; - if there is none. All are told "
            "T; l: the number of changes, D: a bound on the diameter. Bounds leave out constants."
        )
        print_text("`windage agents ID` says what one is and lists its parameters.")


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


def _tell(entry: dict[str, Any]) -> None:
    print_text(f"{entry['id']}: {entry['summary']}")
    print(f"It is told: {listed(entry['told'])}.")
    print_text(f"Regret: {_claim(entry)}.")
    covers = entry["covers_drift"]
    if covers is not None:
        print(f"Its guarantee {'covers' if covers else 'does not cover'} models that drift.")
    else:
        print("No guarantee is stated.")
    print_table(["parameter", "default"], list(entry["parameters"].items()))
    print(f"`windage try ENV {entry['id']} --set NAME=VALUE` runs it.")


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
    """Return the first line on a class."""
    return (inspect.getdoc(kind) or kind.__name__).splitlines()[0]


def listed(told: Sequence[str]) -> str:
    """Return what an agent is told, in a line."""
    return ", ".join(told) or "nothing"


def _covered(covers: bool | None) -> str:
    return "-" if covers is None else "yes" if covers else "no"
