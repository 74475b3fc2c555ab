"""`windage envs`: the list of environments, and the description of one."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windage.cli.models import action_range, print_model, sizes, variation
from windage.cli.terminal import number, print_json, print_table, say

if TYPE_CHECKING:
    from windage.envs import Environment

_WIDEST = 100  # columns: longer lines of prose are hard to follow


def envs(
    name: Annotated[
        str | None, typer.Argument(metavar="ID", help="One environment, to describe it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the environments, or describe one."""
    import windage as wd

    chosen = [wd.envs.get(one) for one in ([name] if name else wd.envs.names())]
    if as_json:
        print_json([_entry(one) for one in chosen])
    elif name:
        _describe(chosen[0])
    elif sys.stdout.isatty():
        rows = [_cells(one, short=True) for one in chosen]
        print_table(["id", "S", "A", "summary"], rows)
        say("S states, A actions per state. `windage envs ID` describes one.")
    else:
        header = ["id", "S x A (pairs)", "T", "B_r", "B_p", "D <=", "summary"]
        print_table(header, [_cells(one, short=False) for one in chosen])


def _cells(environment: Environment, *, short: bool) -> list[str]:
    entry = _entry(environment)
    states, actions = number(entry["states"]), action_range(entry["actions"])
    if short:
        return [entry["id"], states, actions, entry["summary"]]
    bound = entry["diameter_bound"]
    return [
        entry["id"],
        f"{states} x {actions} ({entry['pairs']})",
        number(entry["horizon"]),
        f"{entry['reward_budget']:.4g}",
        f"{entry['transition_budget']:.4g}",
        "-" if bound is None else f"{bound:.4g}",
        entry["summary"],
    ]


def _describe(environment: Environment) -> None:
    """Print the description, the sizes, and the parameters with their defaults."""
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    say(textwrap.fill(f"{environment.id}: {environment.summary}", width))
    for line in _prose(environment, width):
        say(line)
    say()
    model = environment.build()
    print_model(sizes(model) + variation(model.budgets(), environment.facts()), closed_forms=True)
    say()
    parameters = [[name, f"{default}"] for name, default in _parameters(environment).items()]
    print_table(["parameter", "default"], parameters)
    say(f"`windage show {environment.name} --set NAME=VALUE` draws it.")


def _prose(environment: Environment, width: int) -> list[str]:
    """Return the sections of an environment's description, in lines of this width."""
    body = textwrap.dedent((environment.build.__doc__ or "").partition("\n")[2]).strip("\n")
    lines: list[str] = []
    words: list[str] = []
    for line in [*body.splitlines(), ""]:
        if line.startswith(" "):
            words += line.split()
            continue
        lines += textwrap.wrap(
            " ".join(words), width, initial_indent="    ", subsequent_indent="    "
        )
        words = []
        lines += [line] if line else []
    return lines


def _parameters(environment: Environment) -> dict[str, Any]:
    return {
        name: default if isinstance(default, (int, float, str, type(None))) else str(default)
        for name, default in environment.parameters.items()
    }


def _entry(environment: Environment) -> dict[str, Any]:
    model, facts = environment.build(), environment.facts()
    budgets = model.budgets()
    return {
        "id": environment.id,
        "summary": environment.summary,
        "states": model.space.n_states,
        "actions": model.space.counts.tolist(),
        "pairs": model.space.n_pairs,
        "horizon": model.horizon,
        "reward_budget": budgets.reward,
        "transition_budget": budgets.transition,
        "diameter_bound": facts.diameter_bound,
        "parameters": _parameters(environment),
    }
