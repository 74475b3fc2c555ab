"""`windage show`: a model, its drift, and what is optimal at every t."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windage.cli.models import (
    communication,
    file_named,
    load,
    print_model,
    reason_to_skip_steps,
    sizes,
    variation,
)
from windage.cli.options import parse_settings, require_writable
from windage.cli.terminal import Progress, number, say
from windage.errors import InputError, NotConverged

if TYPE_CHECKING:
    from windage.envs import Facts
    from windage.models import DriftingMDP
    from windage.report import Truth
    from windage.simulate import Run

_MOST_STATES = 200  # up to here models are solved in compiled loops
_MOST_STEPS = 1_000_000
_MOST_WORK = 120_000  # (S + 8) T of drift that is no blend: some 20 seconds
_MOST_MYOPIC_STEPS = 100_000  # it looks at the model of every t
_RECORDED = 1_000_000  # steps of a path that a picture is made of
_DIAMETERS = ("diameter", "max_diameter")  # the fields of errors that speak of these
_MORE_TOLERANCE = "in Python, model.max_diameter(tol) takes a larger tol"
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
            help="The picture: .png, .svg or .pdf; default: a .png in the folder out.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Names the noise of the sampled paths.")] = 0,
    oracle: Annotated[
        bool | None,
        typer.Option(
            "--oracle/--no-oracle",
            help="Optimal gains, diameters and policies: in any case, or not at all. By default "
            "they are left out where they would take long.",
        ),
    ] = None,
) -> None:
    """Print the sizes and budgets of a model, and draw its drift and what is optimal when."""
    from windage.report import drift_figure, oracle_figure, picture_kind, save_figure
    from windage.validation import as_seed

    given = [] if horizon is None else [f"horizon={horizon}"]
    parameters = parse_settings([*given, *(settings or [])])
    as_seed(seed)
    if output is not None:
        picture_kind(output)
        require_writable(output)
    with Progress() as progress:
        progress("the model")
        model, facts, title, summary = _find(env, parameters)
        target = output or Path("out") / f"{Path(title).stem if facts is None else title}.png"
        if output is None:
            require_writable(target)
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
    if summary:
        say(summary)
    print_model(table, closed_forms=facts is not None)
    for line in [*remarks, *(f"picture: {picture}" for picture in pictures)]:
        say(line)


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
    summary = f"{model.name}: {wd.envs.get(env).summary}"
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


# --- the oracle ----------------------------------------------------------------------------------


def reason_to_skip(model: DriftingMDP) -> str:
    """Return why the oracle would take long; empty if it would not."""
    S, T = model.space.n_states, model.horizon
    if S > _MOST_STATES:
        return f"{S:,} states are more than {_MOST_STATES}"
    if T > _MOST_STEPS:
        return f"{T:,} steps are more than {_MOST_STEPS:,}"
    if not _is_blend(model) and (S + 8) * T > _MOST_WORK:
        return f"this drift is no blend, all {T:,} models would be solved one by one"
    return ""


def reason_to_skip_myopic(model: DriftingMDP) -> str:
    """Return why the myopic agent would take long; empty if it would not."""
    if model.horizon <= _MOST_MYOPIC_STEPS:
        return ""
    return f"{model.horizon:,} steps are more than {_MOST_MYOPIC_STEPS:,}"


def run_agent(name: str, model: DriftingMDP, seed: int) -> Run:
    """Let an agent act in a model, recorded finely enough for a picture."""
    import windage as wd

    given: dict[str, Any] = {"problem": model} if name == "myopic" else {}
    agent = wd.agents.make(name, model.space, horizon=model.horizon, seed=seed, **given)
    every = -(-model.horizon // _RECORDED)
    return wd.run(model, agent, seed=seed, record="full" if every == 1 else every)


def ask(
    model: DriftingMDP, progress: Callable[[str], None], remarks: list[str] | None = None
) -> Truth:
    """Return the oracle's quantities; an error says how to go on without them.

    With `remarks` to add to, diameters too long for floating point do not keep back the rest.
    """
    from windage.report import truth_of

    try:
        return truth_of(model, progress=progress)
    except NotConverged as err:
        if remarks is not None and err.field in _DIAMETERS:
            remarks.append(f"D: left out, {err.problem}; {_MORE_TOLERANCE}")
            return _without_diameters(model, progress)
        fix = f"{err.fix}, or leave the oracle out with --no-oracle"
        raise NotConverged(err.problem, field=err.field, where=err.where, fix=fix) from None


def _without_diameters(model: DriftingMDP, progress: Callable[[str], None]) -> Truth:
    """Return the oracle's quantities without diameters, which are not known."""
    import numpy as np

    from windage.models.diameters import DiameterBound
    from windage.report import Truth
    from windage.report.truth import policy_course

    progress("the optimal gain of every t, without diameters")
    gains = model.optimal_gains()
    none, unknown = np.empty(0), DiameterBound(math.nan, math.inf, 1, 0)
    times = none.astype(np.int64)
    return Truth(gains, gains.sum(), times, none, unknown, [], policy_course(model))


def oracle_rows(truth: Truth, runs: dict[str, Run]) -> list[list[str]]:
    """Return the rows of optimal gains, diameters, policies and agents."""
    from windage.report import share
    from windage.report.figures.style import upwards

    largest = truth.largest
    low, high = number(largest.lower), number(largest.upper)
    bracket = f"{low if low == high else f'{low} to {high}'} at t={largest.t:,}"
    rows = [
        ["mean rho*", f"{number(truth.mean_gain)} +- {upwards(truth.gains.error)}", ""],
        ["D max", bracket if largest.lower == largest.lower else "not known", ""],
        ["policy changes", f"{truth.policies.changes:,} seen", ""],
    ]
    for name, run in runs.items():
        part = share(run, truth)
        earned = f"{part:.1%} of the optimal gain" if part == part else "nothing is to be earned"
        rows.append([f"{name} earns", earned, ""])
    return rows


def oracle_target(target: Path) -> Path:
    """Return the path of the oracle's picture, beside the other.

    >>> oracle_target(Path("out/river.png")).as_posix()
    'out/river-oracle.png'
    """
    return target.with_name(f"{target.stem}-oracle{target.suffix}")


def _is_blend(model: DriftingMDP) -> bool:
    """Return whether the cost of the oracle does not grow with T."""
    from windage.models import Blend

    source = model.source
    if not isinstance(source, Blend):
        return False
    schedules = (source.rewards.schedule, source.kernels.schedule)
    return all(schedule.stops(model.horizon) is not None for schedule in schedules)
