"""Which agents make a kernel compile again: `python -m tests.unit.kernels.signatures` prints JSON.

In a process of its own, so that nothing else has compiled a kernel for other types. Every agent is
made, run, asked and told twice: with floats and plain ints, and with what users pass for them.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import warnings
from typing import Any

import numpy as np

import windage as wd
from windage import kernels
from windage.kernels.jit import Kernel
from windage.simulate import Simulator

T = 60
FORMS: dict[str, tuple[Any, Any]] = {
    "horizon": (T, np.int64(T)),
    "seed": (1, np.int64(1)),
    "reward_range": ((0.0, 1.0), (0, 1)),
    "window": (20, np.int64(20)),
    "widening": (1.0, 1),
    "slack": (0.0, 0),
    "diameter": (5.0, 5),
    "block_length": (20, np.int64(20)),
    "arms": ([(20, 1.0)], [(np.int64(20), 1)]),
    "restarts": ([20, 40], np.array([20, 40])),
}
"""Arguments as they are annotated, and what counts as the same."""


def kernels_of_windage() -> dict[str, Kernel]:
    found = {}
    for module in pkgutil.iter_modules(kernels.__path__, "windage.kernels."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, Kernel) and value.py_func.__module__ == module.name:
                found[f"{module.name.rpartition('.')[2]}.{name}"] = value
    return found


def compiled_forms(all_kernels: dict[str, Kernel]) -> set[tuple[str, str]]:
    """Return each kernel with each signature it has, as a program or as a part of one."""
    return {
        (name, str(signature))
        for name, kernel in all_kernels.items()
        for overloads in (kernel.overloads, kernel.part.overloads)
        for signature in overloads
    }


def play(name: str, model: wd.DriftingMDP, form: int) -> None:
    """Run an agent for half of the steps, and lead it by hand through the others."""
    taken = set(wd.agents.parameters(wd.agents.resolve(name)))
    if "reward_variation" in taken:
        taken.remove("restarts")  # all that its phases are told, or none of it
    given = {key: forms[form] for key, forms in FORMS.items() if key in taken or key == "horizon"}
    agent = wd.agents.make(name, model.space, **wd.agents.facts(name, model, **given) | given)
    state = wd.run(model, agent, seed=1, steps=T // 2).final_state
    whole, reward = (int, float) if form == 0 else (np.int64, int)
    for t in range(T // 2, T):
        action = agent.act(whole(state))
        agent.observe(whole(state), whole(action), reward(t % 2), whole((state + t) % 2))
        state = (state + t) % 2


def play_by_law(name: str, model: wd.DriftingMDP, form: int) -> None:
    """The same with a structure: the outcomes that were seen come as ints or NumPy's."""
    whole = int if form == 0 else np.int64
    taken = set(wd.agents.parameters(name))
    given = {key: forms[form] for key, forms in FORMS.items() if key in taken or key == "horizon"}
    given |= {"structure": model.structure, "reward_range": None}
    for by_hand in (False, True):
        agent = wd.agents.make(name, model.space, **wd.agents.facts(name, model, **given) | given)
        if not by_hand:
            wd.run(model, agent, seed=1, steps=T // 2)
            continue
        world = Simulator(model, 1)
        for _ in range(T // 2):
            s = world.state
            a = agent.act(whole(s))
            reward, after = world.step(a)
            seen = {k: whole(v) for k, v in world.seen.items() if not isinstance(v, tuple)}
            agent.observe(whole(s), whole(a), reward, whole(after), seen=world.seen | seen)


def main() -> None:
    models = {
        play: wd.envs.make("two-state-cosine", horizon=T),
        play_by_law: wd.envs.make("inventory", horizon=T, capacity=3),
    }
    known, again = kernels_of_windage(), {}
    for name in wd.agents.names():
        for lead, model in models.items():
            if lead is play_by_law and "structure" not in wd.agents.parameters(name):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                lead(name, model, 0)
                before = compiled_forms(known)
                lead(name, model, 1)
            if more := compiled_forms(known) - before:
                again[f"{name}: {lead.__name__}"] = sorted(more)
    print(json.dumps({"kernels": len(known), "compiled": len(compiled_forms(known)),
                      "again": again}))  # fmt: skip


if __name__ == "__main__":
    main()
