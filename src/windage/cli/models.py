"""`windage check`: whether a file holds a model that is fit for use, or what is wrong where."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windage.cli.rows import load, print_model, sizes, stretch, variation
from windage.errors import ModelError

if TYPE_CHECKING:
    from windage.drift import Disconnection
    from windage.spaces import StateActions

_STRETCHES = 5


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
    print_model(rows, closed_forms=False)


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
