"""`windage check`: whether a file holds a model that is fit for use, or what is wrong where."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windage.cli.rows import NO_GUARANTEE, apart, load, print_model, sizes, variation
from windage.errors import ModelError

if TYPE_CHECKING:
    from windage.models import Disconnection
    from windage.spaces import StateActions


def check(
    file: Annotated[Path, typer.Argument(help="A .npz file: a saved model, or arrays r and p.")],
) -> None:
    """Say whether a file holds a model that communicates at every t, or what is wrong where."""
    model = load(file)
    holes = model.disconnections()
    if holes:
        raise disconnected(str(file), model.space, holes)
    kind = f"a saved {model.name}" if model.name else "a drifting model"
    print(f"{file}: {kind}, fit for use")
    rows = [*sizes(model), *variation(model.budgets(), None), ["communicates", "at every t", ""]]
    print_model(rows, closed_forms=False)


def disconnected(name: str, space: StateActions, holes: list[Disconnection]) -> ModelError:
    """Return what to raise of a model that falls apart."""
    return ModelError(
        apart(holes, space),
        field=name,
        fix=f"give an action a way there with positive probability; {NO_GUARANTEE}",
    )
