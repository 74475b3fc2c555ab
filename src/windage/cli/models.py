"""`windage envs` and `check`, and what verbs about models share: files, the table of one."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windage.cli.terminal import line_width, number, print_json, print_table, print_text, say
from windage.errors import ModelError

if TYPE_CHECKING:
    from windage.envs import Environment, Facts
    from windage.models import Budgets, Disconnection, DriftingMDP
    from windage.spaces import StateActions

__all__ = [
    "NO_GUARANTEE",
    "action_range",
    "apart",
    "check",
    "communication",
    "disconnected",
    "file_named",
    "load",
    "print_model",
    "reason_to_skip_steps",
    "sizes",
    "variation",
]

NO_GUARANTEE = "agents may still run, but no guarantee applies to such a model"

_MOST_STEPS = 2_000_000  # looked at one by one: some three seconds
_MOST_INTERVALS = 5


def check(
    file: Annotated[Path, typer.Argument(help="A .npz file: a saved model, or arrays r and p.")],
) -> None:
    """Check that a file holds a model that communicates at every t, or name what is wrong where."""
    model = load(file)
    holes = model.disconnections()
    if holes:
        raise disconnected(str(file), model.space, holes)
    kind = f"a saved {model.name}" if model.name else "a drifting model"
    say(f"{file}: {kind}, fit for use")
    rows = [*sizes(model), *variation(model.budgets(), None), ["communicates", "at every t", ""]]
    print_model(rows, closed_forms=False)


def file_named(env: str) -> Path | None:
    """Return the path of a model's file; None for the id of an environment, without . and /."""
    return Path(env) if "." in env or "/" in env else None


def load(file: Path) -> DriftingMDP:
    """Read a model; an error names the file."""
    import windage as wd

    try:
        return wd.load(file)
    except wd.WindageError as err:
        if err.field.startswith(str(file)):
            raise
        field = f"{file}: {err.field}" if err.field else str(file)
        raise type(err)(err.problem, field=field, where=err.where, fix=err.fix) from None


def sizes(model: DriftingMDP) -> list[list[str]]:
    """Return the rows of states, actions, steps and noise."""
    space = model.space
    return [
        ["states", number(space.n_states), ""],
        ["actions per state", action_range(space.counts.tolist()), ""],
        ["pairs", number(space.n_pairs), ""],
        ["T", number(model.horizon), ""],
        ["noise", repr(model.noise).removeprefix("Noise.").removesuffix("()"), ""],
    ]


def reason_to_skip_steps(model: DriftingMDP) -> str:
    """Return why looking at every single step would take long; empty if it would not."""
    if model.horizon <= _MOST_STEPS:
        return ""
    return f"{model.horizon:,} steps are more than {_MOST_STEPS:,}"


def variation(budgets: Budgets, facts: Facts | None, *, each_step: bool = True) -> list[list[str]]:
    """Return the rows of the budgets, beside their closed forms.

    Changes and largest steps are found by looking at each step, unless that is not wanted.
    """
    known = facts or (None, None, None)
    rows = [
        ["B_r", number(budgets.reward), number(known[0])],
        ["B_p", number(budgets.transition), number(known[1])],
    ]
    if budgets._laws is not None:
        rows.append(["B_q", number(budgets.law), ""])
    if each_step:
        reward_step, transition_step = budgets.largest_steps
        rows += [
            ["changes", number(budgets.changes), ""],
            ["largest step of r", number(reward_step), ""],
            ["largest step of p", number(transition_step), ""],
        ]
    if facts:
        rows.append(["D at most", "", number(known[2])])
    return rows


def communication(model: DriftingMDP) -> str:
    """Return when the model communicates, in words."""
    holes = model.disconnections()
    if not holes:
        return "at every t"
    more = f", and in {len(holes) - 1} more intervals" if len(holes) > 1 else ""
    return f"not {_interval(holes[0], model.space)}{more}"


def _interval(hole: Disconnection, space: StateActions) -> str:
    """Return an interval of t and the two states of which one cannot be reached in it."""
    when = f"t={hole.first}" + (f"..{hole.last}" if hole.last > hole.first else "")
    origin, target = space.describe_state(hole.origin), space.describe_state(hole.target)
    return f"at {when}: no policy leads from {origin} to {target}"


def apart(holes: list[Disconnection], space: StateActions) -> str:
    """Return when a model does not communicate, and between which states."""
    intervals = [_interval(hole, space) for hole in holes[:_MOST_INTERVALS]]
    if len(holes) == 1:
        return f"does not communicate {intervals[0]}"
    if len(holes) > _MOST_INTERVALS:
        intervals.append(f"and {len(holes) - _MOST_INTERVALS} more")
    return f"does not communicate in {len(holes)} intervals, {'; '.join(intervals)}"


def action_range(actions: list[int]) -> str:
    """Return the least and the largest number of actions, or the one there is."""
    low, high = min(actions), max(actions)
    return str(low) if low == high else f"{low}-{high}"


def print_model(rows: list[list[str]], *, closed_forms: bool) -> None:
    """Print the rows of a model's table, with or without the column of closed forms."""
    columns = 3 if closed_forms else 2
    print_table(["", "computed", "closed form"][:columns], [row[:columns] for row in rows])


def disconnected(name: str, space: StateActions, holes: list[Disconnection]) -> ModelError:
    """Return the error for a model that does not communicate at every t."""
    return ModelError(
        apart(holes, space),
        field=name,
        fix=f"give an action a way there with positive probability; {NO_GUARANTEE}",
    )


def envs(
    name: Annotated[
        str | None, typer.Argument(metavar="ID", help="One environment, to describe it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the environments, or describe one."""
    import windage as wd

    chosen = [wd.envs.get(one) for one in ([name] if name else wd.envs.names())]
    if name and not as_json:
        _describe(chosen[0])
        return
    entries = [_entry(one) for one in chosen]
    if as_json:
        print_json(entries)
        return
    short = sys.stdout.isatty()
    header = ["id", "S x A (pairs)", "T", "B_r", "B_p", "D <=", "summary"]
    print_table(
        ["id", "S", "A", "summary"] if short else header,
        [_cells(one, short=short) for one in entries],
    )
    if short:
        able = ", ".join(one["id"] for one in entries if one["structure"])
        print_text(f"With a structure, for agents that learn laws: {able}.")
        say("S states, A actions per state. `windage envs ID` describes one.")


def _cells(entry: dict[str, Any], *, short: bool) -> list[str]:
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
    width = line_width()
    say(textwrap.fill(f"{environment.id}: {environment.summary}", width))
    for line in _prose(environment, width):
        say(line)
    say()
    model = environment.build()
    print_model(sizes(model) + variation(model.budgets(), environment.facts()), closed_forms=True)
    say()
    parameters = [[name, f"{default}"] for name, default in _parameters(environment).items()]
    print_table(["parameter", "default"], parameters)
    if model.structure is not None:
        say("structure, for agents that learn laws:")
        for line in model.structure.describe().splitlines():
            say(textwrap.fill(line, width, initial_indent="  ", subsequent_indent="    "))
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
        "structure": model.structure is not None,
        "parameters": _parameters(environment),
    }
