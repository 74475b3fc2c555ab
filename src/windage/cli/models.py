"""`windage envs` and `windage check`: what models there are, and whether one is fit for use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windage.cli.rows import action_range, load, sizes, stretch, variation
from windage.cli.tables import number, print_table
from windage.errors import ModelError

if TYPE_CHECKING:
    from windage.drift import Disconnection
    from windage.envs import Environment
    from windage.spaces import StateActions

_STRETCHES = 5


def envs(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the environments with their sizes and budgets."""
    import windage as wd

    entries = [_entry(wd.envs.get(name)) for name in wd.envs.names()]
    if as_json:
        import json

        print(json.dumps(entries, indent=2))
        return
    print_table(
        ["id", "S x A (pairs)", "T", "B_r", "B_p", "D <=", "what it is"],
        [
            [
                entry["id"],
                f"{entry['states']} x {action_range(entry['actions'])} ({entry['pairs']})",
                number(entry["horizon"]),
                f"{entry['reward_budget']:.4g}",
                f"{entry['transition_budget']:.4g}",
                "-" if entry["diameter_bound"] is None else f"{entry['diameter_bound']:.4g}",
                entry["summary"],
            ]
            for entry in entries
        ],
    )


def check(
    file: Annotated[Path, typer.Argument(help="A .npz file: a saved model, or arrays r and p.")],
) -> None:
    """Say whether a file holds a model that communicates at every t, or what is wrong where."""
    model = load(file)
    holes = model.disconnections()
    if holes:
        raise _disconnected(file, model.space, holes)
    kind = f"a saved {model.name}" if model.name else "a drifting model"
    print(f"{file}: {kind}, fit for use")
    rows = [*sizes(model), *variation(model.budgets(), None), ["communicates", "at every t", ""]]
    print_table(["", "computed"], [row[:2] for row in rows])


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
        "parameters": {
            name: default if isinstance(default, (int, float, str, type(None))) else str(default)
            for name, default in environment.parameters.items()
        },
    }


def _disconnected(file: Path, space: StateActions, holes: list[Disconnection]) -> ModelError:
    stretches = [stretch(hole, space) for hole in holes[:_STRETCHES]]
    if len(holes) == 1:
        problem = f"does not communicate {stretches[0]}"
    else:
        if len(holes) > _STRETCHES:
            stretches.append(f"and {len(holes) - _STRETCHES} more")
        problem = f"does not communicate in {len(holes)} stretches of time, {'; '.join(stretches)}"
    return ModelError(
        problem,
        field=str(file),
        fix="give an action a way there with positive probability; agents may still run, but no "
        "guarantee speaks of such a model",
    )
