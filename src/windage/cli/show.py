"""`windage show`: what a model is, how it drifts, and what is true of it at every t."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windage.cli.oracle import (
    ask,
    oracle_rows,
    oracle_target,
    reason_to_skip,
    reason_to_skip_myopic,
    run_agent,
)
from windage.cli.places import require_place
from windage.cli.progress import Progress
from windage.cli.rows import (
    communication,
    file_named,
    load,
    print_model,
    reason_to_skip_steps,
    sizes,
    variation,
)
from windage.cli.settings import parse_settings
from windage.errors import InputError

if TYPE_CHECKING:
    from windage.envs import Facts
    from windage.models import DriftingMDP

_FORCE = "pass --oracle to have it all the same"
_IN_PYTHON = "in Python, model.budgets() has them"


def show(
    env: Annotated[str, typer.Argument(help="An environment, or the path of a .npz model.")],
    horizon: Annotated[
        int | None, typer.Option("-T", "--horizon", metavar="N", help="The number of steps, T.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A parameter of the environment; may be given several times.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="The picture: .png, .svg or .pdf; if not said, a .png in the folder out.",
        ),
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
    from windage.validation import as_seed

    given = [] if horizon is None else [f"horizon={horizon}"]
    parameters = parse_settings([*given, *(settings or [])])
    as_seed(seed)
    if output is not None:
        picture_kind(output)
        require_place(output)
    with Progress() as progress:
        progress("the model")
        model, facts, title, summary = _find(env, parameters)
        target = output or Path("out") / f"{Path(title).stem if facts is None else title}.png"
        if output is None:
            require_place(target)
        T = f"{model.horizon:,}"
        agents, remarks = _agents(model, oracle)
        progress(f"the variation budgets of {T} steps")
        each_step = reason_to_skip_steps(model)
        if each_step:
            remarks.insert(0, f"changes and largest steps: left out, {each_step}; {_IN_PYTHON}")
        table = sizes(model) + variation(model.budgets(), facts, each_step=not each_step)
        progress("whether it communicates at every t")
        table.append(["communicates", communication(model), ""])
        progress(f"{T} steps of the random agent")
        runs = {"random": run_agent("random", model, seed)}
        progress("the picture of the drift")
        save_figure(drift_figure(model, runs["random"], title, agent="random"), target)
        pictures = [target]
        if agents is not None:
            truth = ask(model, progress, remarks)
            for name in agents:
                progress(f"{T} steps of the {name} agent")
                runs[name] = run_agent(name, model, seed)
            progress("the picture of the oracle")
            pictures.append(oracle_target(target))
            save_figure(oracle_figure(model, truth, runs, title), pictures[-1])
            table += oracle_rows(truth, runs)
    print(summary, end="")
    print_model(table, closed_forms=facts is not None)
    for line in [*remarks, *(f"picture: {picture}" for picture in pictures)]:
        print(line)


def _find(env: str, parameters: dict[str, Any]) -> tuple[DriftingMDP, Facts | None, str, str]:
    """Return a model, its closed forms, what to call it, and a line on what it is."""
    import windage as wd

    file = file_named(env)
    if file is not None:
        if parameters:
            raise InputError(
                f"a file has no parameters, {', '.join(parameters)} cannot be set",
                field=env,
                fix="leave out -T and --set, or name an environment",
            )
        return load(file), None, file.name, ""
    model = wd.envs.make(env, **parameters)
    summary = f"{model.name}: {wd.envs.get(env).summary}\n"
    return model, wd.envs.facts(env, **parameters), str(model.name), summary


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
