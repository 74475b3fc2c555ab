"""`windage plan`: the theory's numbers for a problem, before a step is spent."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windage.cli.models import disconnected, file_named, load
from windage.cli.terminal import number, print_json, print_table, say
from windage.errors import InputError

if TYPE_CHECKING:
    from windage.models import DriftingMDP
    from windage.spaces import StateActions
    from windage.theory import Plan

_WIDTH = 80


def plan(
    states: Annotated[int | None, typer.Option(metavar="S", help="The number of states.")] = None,
    actions: Annotated[
        str | None,
        typer.Option(metavar="A", help="Actions of every state, or one number a state: 2,3,1."),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option("-T", "--horizon", metavar="N", help="The number of steps.")
    ] = None,
    delta: Annotated[float, typer.Option(help="How often the guarantee may fail.")] = 0.05,
    reward_budget: Annotated[
        float | None, typer.Option("--Br", metavar="B", help="How much mean rewards drift.")
    ] = None,
    transition_budget: Annotated[
        float | None, typer.Option("--Bp", metavar="B", help="How much transitions drift.")
    ] = None,
    diameter: Annotated[
        float | None, typer.Option(metavar="D", help="A bound of the diameter, if one is known.")
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Take what is not given from this environment or .npz model."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Print the theory's numbers for a problem, before a step is spent."""
    import windage as wd

    given = {
        "horizon": horizon,
        "reward_budget": reward_budget,
        "transition_budget": transition_budget,
        "diameter": diameter,
    }
    if env is not None:
        space, known = _from_environment(env, states, actions, given)
    else:
        space, known = _from_options(states, actions, given)
    found = wd.plan(space, delta=delta, **known)
    if as_json:
        print_json(found.as_dict())
    else:
        _print(found)


def _from_options(
    states: int | None, actions: str | None, given: dict[str, Any]
) -> tuple[StateActions, dict[str, Any]]:
    asked = {"--states": states, "--actions": actions, "--horizon": given["horizon"]}
    asked |= {"--Br": given["reward_budget"], "--Bp": given["transition_budget"]}
    missing = [option for option, value in asked.items() if value is None]
    if missing or states is None or actions is None:
        raise InputError(
            f"{', '.join(missing)} not given",
            field="plan",
            fix="give the sizes and budgets, or --env NAME to take them from an environment",
        )
    return _space(states, actions), given


def _space(states: int, actions: str) -> StateActions:
    import windage as wd

    try:
        counts = [int(count) for count in actions.split(",")]
    except ValueError:
        raise InputError(
            f"{actions!r} is no number of actions", field="--actions", fix="write 4, or 2,3,1"
        ) from None
    if len(counts) == 1:
        return wd.StateActions.uniform(states, counts[0])
    if len(counts) != states:
        raise InputError(
            f"{len(counts)} numbers for {states} states",
            field="--actions",
            fix="give one number for all states, or one a state",
        )
    return wd.StateActions(counts)


def _from_environment(
    name: str, states: int | None, actions: str | None, given: dict[str, Any]
) -> tuple[StateActions, dict[str, Any]]:
    """Return the space of an environment and its facts; given values take precedence."""
    if states is not None or actions is not None:
        raise InputError(
            "an environment has its own states and actions",
            field="--env",
            fix="leave out --states and --actions, or --env",
        )
    model = _model(name, given["horizon"])
    budgets = model.budgets()
    known = {
        "horizon": model.horizon,
        "reward_budget": budgets.reward,
        "transition_budget": budgets.transition,
    }
    known |= {name: value for name, value in given.items() if value is not None}
    if "diameter" not in known:
        if holes := model.disconnections():
            raise disconnected(name, model.space, holes)
        known["diameter"] = model.max_diameter().upper
    return model.space, known


def _model(name: str, horizon: int | None) -> DriftingMDP:
    import windage as wd

    file = file_named(name)
    if file is None:
        return wd.envs.make(name, **({} if horizon is None else {"horizon": horizon}))
    if horizon is not None:
        raise InputError("a file has its own horizon", field=name, fix="leave out -T")
    return load(file)


def _print(found: Plan) -> None:
    from windage.theory import FORMULAS
    from windage.validation import bytes_in_words

    diameter = "D not given" if found.diameter is None else f"D = {found.diameter:.6g}"
    given = (
        f"S = {found.states:,}, SA = {found.pairs:,}, T = {found.horizon:,}, "
        f"delta = {found.delta:g}, B_r = {found.reward_budget:.6g}, "
        f"B_p = {found.transition_budget:.6g}, {diameter}"
    )
    say(textwrap.fill(given, _WIDTH) + "\n")
    borl, bound, (quick, slow) = found.borl, found.bound, found.seconds
    W, eta = ("W*", "eta*") if found.states > 1 else ("W of the bandit remark", "eta")
    rows = [
        [W, f"{found.window:,}", _real(found.window_real, found.window, ",.1f")],
        [eta, f"{found.widening:.3f}", _real(found.widening_real, found.widening, ".3f")],
        ["visits per pair in W", f"{found.visits_expected:.4g}", "on average"],
        ["BORL's blocks", number(borl.blocks), f"of {borl.block_length:,} steps"],
        ["BORL's arms", number(borl.arms), ""],
        ["BORL's gamma", f"{borl.gamma:.2f}", "> 1: uniform choice" if borl.gamma > 1 else ""],
        ["gamma <= 1", f"{borl.adapts_first:.3g}", "the first such T"],
        ["", f"{borl.adapts_from:.3g}", "T from which it stays so"],
        ["an agent holds", bytes_in_words(found.memory), "about"],
        ["a run takes", f"{quick:.2g} to {slow:.2g} s", "roughly, once compiled"],
    ]
    print_table(["", "value", "remark"], rows)
    say("\nVisits per pair from which its sets are not vacuous")
    print_table(
        ["radii", "transitions", "with eta", "rewards", "in [0, 1]"],
        [
            [kind, *("never" if n is None else number(n) for n in needed)]
            for kind, needed in found.visits_needed.items()
        ],
    )
    say(f"\nTheorem 1, constants 1, no logarithms, D = {bound.diameter:.6g}")
    terms = [
        [FORMULAS[name], f"{value:,.0f}", f"{value / found.horizon:.3f}"]
        for name, value in bound.terms.items()
    ]
    total = ["all", f"{bound.total:,.0f}", f"{bound.total / found.horizon:.3f}"]
    print_table(["term", "regret", "over T"], [*terms, total])
    say(f"below T from T = {bound.below_from:.3g}")
    say("\nWhat follows")
    for text in found.advice:
        say(textwrap.fill(text, _WIDTH, initial_indent="- ", subsequent_indent="  "))


def _real(real: float, used: float, form: str) -> str:
    """Return the exact value, if rounding or the cap changed it."""
    return (
        "" if real == used else f"exactly {real:{form}}" if used != 2.0 else f"capped, {real:.2f}"
    )
