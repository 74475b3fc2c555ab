"""`windage agents`, `check-agent` and `compile`: what agents require, contract checks, kernels."""

from __future__ import annotations

import inspect
import os
import time
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from windage.cli.terminal import Progress, parse_settings, print_json, print_table, print_text, say

__all__ = ["agents", "check_agent", "listed", "summary_of"]

_STRUCTURE = "structure"


def agents(
    name: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="One agent, to see its parameters.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the agents and what each requires, or the parameters of one."""
    import windage as wd

    chosen = [name] if name else wd.agents.names()
    entries = [_entry(one) for one in chosen]
    if as_json:
        print_json(entries)
    elif name:
        _describe(entries[0])
    else:
        cells = [
            [entry["id"], listed(entry["told"]), _covered(entry["covers_drift"]), _claim(entry)]
            for entry in entries
        ]
        print_table(["id", "requires", "drift", "regret bound (source)"], cells)
        print_text(
            "drift: whether the bound covers models that drift; - if there is none. All require "
            "T; l: the number of changes, D: a bound on the diameter. Bounds leave out constants."
        )
        able = ", ".join(entry["id"] for entry in entries if _STRUCTURE in entry["parameters"])
        print_text(f"With a structure, of which they learn only the laws: {able}.")
        print_text("`windage agents ID` describes one and lists its parameters.")


def check_agent(
    agent: Annotated[
        str, typer.Argument(metavar="AGENT", help="module:Class, or the id of an agent.")
    ],
    horizon: Annotated[
        int, typer.Option("-T", "--horizon", metavar="N", help="How many steps to play.")
    ] = 2000,
    seed: Annotated[int, typer.Option(help="Of the agent and of the environment.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the agent."),
    ] = None,
) -> None:
    """Run the contract checks on an agent; exit 1 if one fails."""
    from windage import agents
    from windage.testing import findings

    options = parse_settings(settings or [], "--set")
    agents.resolve(agent)  # an id that does not exist is the caller's mistake, not a finding
    with Progress() as progress:
        checks = findings(agent, horizon=horizon, seed=seed, options=options, before=progress)
    for check in checks:
        mark = {True: "ok  ", False: "FAIL", None: "-   "}[check.passed]
        reason = f" ({check.message})" if check.passed is None else ""
        print_text(f"{mark} {check.check}{reason}")
        if check.passed is False:
            print_text(f"     {check.message}")
    failed = sum(check.passed is False for check in checks)
    skipped = [check for check in checks if check.passed is None]
    unseen = sum(check.message.startswith("not checked") for check in skipped)
    if failed:
        rest = f"; {unseen} more were not checked" if unseen else ""
        say(f"{agent} fails {failed} of {len(checks)} checks{rest}")
        raise typer.Exit(1)
    passed = len(checks) - len(skipped)
    missing = f"; {len(skipped)} it does not offer" if skipped else ""
    say(f"{agent} passes all {passed} checks{missing}")


def _entry(name: str) -> dict[str, Any]:
    import windage as wd

    kind = wd.agents.resolve(name)
    parameters = wd.agents.parameters(kind)
    return {
        "id": name,
        "summary": summary_of(kind),
        "told": list(getattr(kind, "requires", ())),
        "covers_drift": getattr(kind, "covers_drift", None),
        "bound": getattr(kind, "bound", "none"),
        "source": getattr(kind, "source", f"{kind.__module__}:{kind.__qualname__}"),
        "parameters": {
            option: _default(kind, option, parameter) for option, parameter in parameters.items()
        },
    }


def _describe(entry: dict[str, Any]) -> None:
    print_text(f"{entry['id']}: {entry['summary']}")
    say(f"Requires: {listed(entry['told'])}.")
    print_text(f"Regret: {_claim(entry)}.")
    covers = entry["covers_drift"]
    if covers is not None:
        say(f"Its guarantee {'covers' if covers else 'does not cover'} models that drift.")
    else:
        say("No guarantee is stated.")
    print_table(["parameter", "default"], list(entry["parameters"].items()))
    if _STRUCTURE in entry["parameters"]:
        print_text(
            "structure: what is known of next states and rewards; that of the environment is "
            '`--set structure=environment`, in a study structure = "environment".'
        )
    say(f"`windage try ENV {entry['id']} --set NAME=VALUE` runs it.")


def _default(kind: type[Any], name: str, parameter: inspect.Parameter) -> str:
    if name == "problem":
        return "the model"
    if name == "radii" and parameter.default is None:
        return str(getattr(kind, "default_radii", None))
    if parameter.default is not parameter.empty:
        return str(parameter.default)
    told = getattr(kind, "requires", ())
    return f"tuned to {' and '.join(told)}" if told else "must be set"


def _claim(entry: dict[str, Any]) -> str:
    source = f" ({entry['source']})" if entry["source"] else ""
    return f"{entry['bound']}{source}"


def summary_of(kind: type) -> str:
    """Return the first line of the docstring of a class."""
    return (inspect.getdoc(kind) or kind.__name__).splitlines()[0]


def listed(told: Sequence[str]) -> str:
    """Return prior knowledge as a line of text."""
    return ", ".join(told) or "nothing"


def _covered(covers: bool | None) -> str:
    return "-" if covers is None else "yes" if covers else "no"


_FIRST = ("multi-scale-guarded", "swucrl2-cw", "swucrl2-cw-practical", "ucrl2b", "sw-psrl")
"""Agents that take longest: begun first, so that none of them is left for the end."""


def compile_(
    agents: Annotated[
        list[str] | None, typer.Argument(metavar="[AGENT]...", help="All of them, if not given.")
    ] = None,
    workers: Annotated[
        int, typer.Option("-w", "--workers", min=1, help="Processes that compile side by side.")
    ] = min(4, os.cpu_count() or 1),
) -> None:
    """Compile the kernels of agents and of the oracle into the cache.

    Without it short runs are interpreted and long ones compile their kernels when they start,
    some seconds for each agent. The cache lies beside the package, or in the user's cache folder
    where that cannot be written; NUMBA_CACHE_DIR names another. It stays valid until windage or
    numba is updated.
    """
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    import windage as wd

    names = [wd.agents.get(name).id for name in agents] if agents else wd.agents.names()
    names.sort(key=lambda name: (name not in _FIRST, name))
    started = time.monotonic()
    with (
        ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool,
        Progress() as progress,
    ):
        jobs = {pool.submit(compile_agent, name): name for name in names}
        jobs[pool.submit(compile_oracle)] = "oracle"
        progress.count("compiling", 0, len(jobs))
        for done, job in enumerate(as_completed(jobs), 1):
            job.result()
            progress.count(f"compiled {jobs[job]}", done, len(jobs))
    say(f"compiled {len(names)} agents and the oracle in {time.monotonic() - started:.0f} s")


def compile_agent(name: str) -> None:
    """Let an agent play in a loop and decide by hand, everything compiled."""
    import windage as wd
    from windage.kernels import jit

    jit.PATIENCE = -1.0
    model = wd.envs.make("two-state-cosine", horizon=64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agent = wd.agents.make(
            name, model.space, horizon=model.horizon, **wd.agents.facts(name, model)
        )
        state = wd.run(model, agent, steps=60).final_state
        action = agent.act(state)
        agent.observe(state, action, 0.0, 0)


def compile_oracle() -> None:
    """Solve, bound and measure models that drift, everything compiled."""
    import windage as wd
    from windage.kernels import jit

    jit.PATIENCE = -1.0
    for name in ("riverswim", "inventory"):
        model = wd.envs.make(name, horizon=100)
        run = wd.run(model, wd.agents.make("random", model.space, horizon=100))
        wd.dynamic_regret(run, model)
        model.max_diameter()
        model.at(1).solve()
