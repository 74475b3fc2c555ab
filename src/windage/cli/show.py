"""`windage show`: what a model is, how it drifts, and what is true of it at every t."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windage.cli import rows
from windage.cli.oracle import (
    ask,
    oracle_rows,
    oracle_target,
    reason_to_skip,
    reason_to_skip_myopic,
    run_agent,
)
from windage.cli.progress import Progress
from windage.cli.tables import print_table
from windage.errors import InputError

if TYPE_CHECKING:
    from windage.drift import DriftingMDP
    from windage.envs import Facts

_FORCE = "pass --oracle to have it all the same"


def show(
    env: Annotated[str, typer.Argument(help="An environment, or the path of a .npz model.")],
    horizon: Annotated[
        int | None, typer.Option("-T", "--horizon", metavar="N", help="The number of steps.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the environment."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The picture: .png, .svg or .pdf."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Names the noise of the sampled paths.")] = 0,
    oracle: Annotated[
        bool | None,
        typer.Option(
            "--oracle/--no-oracle",
            help="Optimal gains, diameters and policies: in any case, or not at all. If not said, "
            "they are left out where they would take long.",
        ),
    ] = None,
) -> None:
    """Print what a model is, and draw how it drifts and what is optimal when."""
    from windage.report import drift_figure, oracle_figure, picture_kind, save_figure

    parameters = _parameters(horizon, settings or [])
    if output is not None:
        picture_kind(output)  # better now than after the work
    model, facts, title = _find(env, parameters)
    target = output or Path("out") / f"{Path(title).stem if facts is None else title}.png"
    table = rows.sizes(model) + rows.variation(model.budgets(), facts)
    table.append(["communicates", rows.communication(model), ""])
    random = run_agent("random", model, seed)
    save_figure(drift_figure(model, random, title, agent="random"), target)
    pictures = [target]
    agents, remarks = _agents(model, oracle)
    if agents is not None:
        with Progress() as progress:
            truth = ask(model, progress)
            runs = {"random": random}
            for name in agents:
                progress(f"the {name} agent")
                runs[name] = run_agent(name, model, seed)
            progress("drawing")
            pictures.append(oracle_target(target))
            save_figure(oracle_figure(model, truth, runs, title), pictures[-1])
        table += oracle_rows(truth, runs)
    columns = 3 if facts else 2
    print_table(["", "computed", "closed form"][:columns], [row[:columns] for row in table])
    for line in [*remarks, *(f"picture: {picture}" for picture in pictures)]:
        print(line)


def _find(env: str, parameters: dict[str, Any]) -> tuple[DriftingMDP, Facts | None, str]:
    """Return a model, what is known of it in closed form, and what to call it."""
    import windage as wd

    if "." in env or "/" in env:  # no id has either
        if parameters:
            raise InputError(
                f"a file has no parameters, {', '.join(parameters)} cannot be set",
                field=env,
                fix="leave out -T and --set, or name an environment",
            )
        return rows.load(Path(env)), None, Path(env).name
    model = wd.envs.make(env, **parameters)
    print(f"{model.name}: {wd.envs.get(env).summary}")
    return model, wd.envs.facts(env, **parameters), str(model.name)


def _agents(model: DriftingMDP, wanted: bool | None) -> tuple[list[str] | None, list[str]]:
    """Return the agents to set beside the oracle and the random one, and what is left out.

    None if the oracle is not to be asked.
    """
    if wanted is False:
        return None, []
    why = reason_to_skip(model)
    if why and not wanted:
        return None, [f"oracle: left out, {why}; {_FORCE}"]
    why = reason_to_skip_myopic(model)
    if why and not wanted:
        return [], [f"myopic agent: left out, {why}; {_FORCE}"]
    return ["myopic"], []


def _parameters(horizon: int | None, settings: list[str]) -> dict[str, Any]:
    """Return what -T and --set say, as ints and floats where they read as such."""
    parameters: dict[str, Any] = {} if horizon is None else {"horizon": horizon}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not name or not equals:
            raise InputError(
                f"{setting!r} sets nothing", field="--set", fix="write --set name=value"
            )
        if name in parameters:
            raise InputError(f"{name!r} is given twice", field="--set", fix="give it once")
        parameters[name] = _value(value)
    return parameters


def _value(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
