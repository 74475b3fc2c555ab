"""Compile what tests run before their workers start: `python -m tests.warm`.

Each worker would compile all of it for itself, at the same time as the others. Here two processes
share the agents, and find afterwards in the cache what the other has compiled. With a warm cache
it takes a few seconds.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import windage as wd
from windage.testing import check_agent

FIRST = ("swucrl2-cw", "multi-scale-guarded", "borl", "sw-psrl", "multi-scale", "master")
"""Agents that take longest to compile: begun first, so that none of them is left for the end."""


def agent(id: str) -> None:
    """Play all that windage asks of an agent, in a small model and in one with few next states."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_agent(id, horizon=60)
        check_agent(id, horizon=60, problem=wd.envs.make("riverswim", horizon=60))


def oracle() -> None:
    """Solve models that drift and models that stand, in every way an oracle has."""
    for name in ("riverswim", "two-state-cosine", "inventory"):
        model = wd.envs.make(name, horizon=200)
        run = wd.run(model, wd.agents.make("random", model.space, horizon=200))
        wd.dynamic_regret(run, model)
        model.max_diameter()
        model.at(1).solve()


def tasks() -> list[Callable[[], None]]:
    later = [id for id in wd.agents.names() if id not in FIRST]
    return [*(partial(agent, id) for id in FIRST), oracle, *(partial(agent, id) for id in later)]


def main() -> int:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for done in [pool.submit(task) for task in tasks()]:
            done.result()
    return 0


if __name__ == "__main__":
    sys.exit(main())
