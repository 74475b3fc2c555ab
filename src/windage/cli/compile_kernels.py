"""`windage compile`: kernels compiled into the cache, before anything waits for them."""

from __future__ import annotations

import os
import time
import warnings
from typing import Annotated

import typer

from windage.cli.terminal import Progress, say

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
