"""`windage envs`, `windage show` and `windage check`: what models there are, and what one is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windage.cli.tables import number, print_table
from windage.errors import InputError, ModelError

if TYPE_CHECKING:
    from windage.drift import Budgets, Disconnection, DriftingMDP
    from windage.envs import Environment, Facts
    from windage.spaces import StateActions

_RECORDED = 1_000_000  # steps of a path that a picture is made of
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
                f"{entry['states']} x {_range(entry['actions'])} ({entry['pairs']})",
                number(entry["horizon"]),
                f"{entry['reward_budget']:.4g}",
                f"{entry['transition_budget']:.4g}",
                "-" if entry["diameter_bound"] is None else f"{entry['diameter_bound']:.4g}",
                entry["summary"],
            ]
            for entry in entries
        ],
    )


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
    seed: Annotated[int, typer.Option(help="Names the noise of the sampled path.")] = 0,
) -> None:
    """Print what a model is, and draw how it drifts and a path of the random agent."""
    import windage as wd
    from windage.report import picture_kind

    parameters = _parameters(horizon, settings or [])
    if output is not None:
        picture_kind(output)  # better now than after the work
    if "." in env or "/" in env:  # no id has either
        if parameters:
            raise InputError(
                f"a file has no parameters, {', '.join(parameters)} cannot be set",
                field=env,
                fix="leave out -T and --set, or name an environment",
            )
        model, facts = _load(Path(env)), None
        title, target = Path(env).name, f"{Path(env).stem}.png"
    else:
        model = wd.envs.make(env, **parameters)
        facts = wd.envs.facts(env, **parameters)
        title, target = str(model.name), f"{model.name}.png"
        print(f"{model.name}: {wd.envs.get(env).summary}")
    budgets = model.budgets()
    rows = _sizes(model) + _variation(budgets, facts)
    rows.append(["communicates", _communication(model), ""])
    if not facts:
        rows = [row[:2] for row in rows]
    print_table(["", "computed", "closed form"][: 3 if facts else 2], rows)
    print(f"picture: {_draw(model, title, seed, output or Path('out') / target)}")


def check(
    file: Annotated[Path, typer.Argument(help="A .npz file: a saved model, or arrays r and p.")],
) -> None:
    """Say whether a file holds a model that communicates at every t, or what is wrong where."""
    model = _load(file)
    holes = model.disconnections()
    if holes:
        raise _disconnected(file, model.space, holes)
    kind = f"a saved {model.name}" if model.name else "a drifting model"
    print(f"{file}: {kind}, fit for use")
    rows = [*_sizes(model), *_variation(model.budgets(), None), ["communicates", "at every t", ""]]
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


def _range(actions: list[int]) -> str:
    low, high = min(actions), max(actions)
    return str(low) if low == high else f"{low}-{high}"


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


def _load(file: Path) -> DriftingMDP:
    import windage as wd

    try:
        return wd.load(file)
    except wd.WindageError as err:
        if err.field.startswith(str(file)):
            raise
        field = f"{file}: {err.field}" if err.field else str(file)
        raise type(err)(err.problem, field=field, where=err.where, fix=err.fix) from None


def _sizes(model: DriftingMDP) -> list[list[str]]:
    space = model.space
    return [
        ["states", number(space.n_states), ""],
        ["actions a state", _range(space.counts.tolist()), ""],
        ["pairs", number(space.n_pairs), ""],
        ["T", number(model.horizon), ""],
        ["noise", repr(model.noise).removeprefix("Noise.").removesuffix("()"), ""],
    ]


def _variation(budgets: Budgets, facts: Facts | None) -> list[list[str]]:
    reward_step, transition_step = budgets.largest_steps
    known = facts or (None, None, None)
    rows = [
        ["B_r", number(budgets.reward), number(known[0])],
        ["B_p", number(budgets.transition), number(known[1])],
        ["changes", number(budgets.changes), ""],
        ["largest step of r", number(reward_step), ""],
        ["largest step of p", number(transition_step), ""],
    ]
    if facts:
        rows.append(["D at most", "", number(known[2])])
    return rows


def _communication(model: DriftingMDP) -> str:
    holes = model.disconnections()
    if not holes:
        return "at every t"
    more = f", and in {len(holes) - 1} more stretches" if len(holes) > 1 else ""
    return f"not {_stretch(holes[0], model.space)}{more}"


def _stretch(hole: Disconnection, space: StateActions) -> str:
    when = f"t={hole.first}" + (f"..{hole.last}" if hole.last > hole.first else "")
    origin, target = space.describe_state(hole.origin), space.describe_state(hole.target)
    return f"at {when}: no policy leads from {origin} to {target}"


def _disconnected(file: Path, space: StateActions, holes: list[Disconnection]) -> ModelError:
    stretches = [_stretch(hole, space) for hole in holes[:_STRETCHES]]
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


def _draw(model: DriftingMDP, title: str, seed: int, target: Path) -> Path:
    import windage as wd
    from windage.report import drift_figure, save_figure

    agent = wd.agents.make("random", model.space, horizon=model.horizon, seed=seed)
    every = -(-model.horizon // _RECORDED)
    run = wd.run(model, agent, seed=seed, record="full" if every == 1 else every)
    save_figure(drift_figure(model, run, title, agent="random"), target)
    return target
