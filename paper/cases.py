"""Runs that several results look at: worlds, windows, widenings and radii, each with a purpose."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import windage as wd
from paper.result import Effort
from windage import agents
from windage.agents.optimistic.swucrl2cw import SWUCRL2CW
from windage.confidence.radii import Radii
from windage.errors import listening
from windage.models import DriftingMDP
from windage.recording import Run

__all__ = ["CASES", "LONGEST", "Case", "learner", "make"]


def make(id: str, model: DriftingMDP, seed: int = 0, **options: Any) -> Any:  # noqa: A002
    """Return an agent that is told what it must be told of a model; it does not warn."""
    with listening():
        told = agents.facts(id, model, **options)
        return agents.make(id, model.space, horizon=model.horizon, seed=seed, **told | options)


def learner(model: DriftingMDP, seed: int = 0, **options: Any) -> SWUCRL2CW:
    """Return SWUCRL2-CW for a model: W* and eta* unless others are given."""
    made: SWUCRL2CW = make("swucrl2-cw", model, seed, **options)
    return made


@dataclass(frozen=True)
class Case:
    """A world and how SWUCRL2-CW is set in it.

    Attributes
    ----------
    name
        What tables call it.
    why
        Why it is among the cases.
    world, parameters
        An environment and its parameters beside the horizon.
    horizon
        T in the full form.
    options
        Of the agent; W* and eta* where nothing is said.
    """

    name: str
    why: str
    world: str
    horizon: int
    parameters: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    def model(self, effort: Effort) -> DriftingMDP:
        """Return the world."""
        T = effort.steps(self.horizon, quick=min(self.horizon, 2000))
        return wd.envs.make(f"{self.world}-v0", horizon=T, **self.parameters)

    def play(self, model: DriftingMDP, seed: int) -> Run:
        """Return a run, every step recorded."""
        return wd.run(model, learner(model, seed, **self.options), seed=seed)


_EXACT = Radii.laplace().scaled(0.03)  # of deterministic worlds, where any radius covers
_TIGHT = Radii.laplace().scaled(0.3)

CASES = (
    Case("two states", "as printed", "two-state-cosine", 5000),
    Case("two states, Laplace", "same guarantee, tighter", "two-state-cosine", 5000,
         options={"radii": "laplace"}),
    Case("two states, long", "a horizon at which sets say something", "two-state-cosine", 500_000,
         options={"radii": "laplace"}),
    Case("river", "as printed, D = 14.7", "riverswim", 20_000),
    Case("river, tight", "Laplace radii x0.3: E_r or E_p may fail", "riverswim", 20_000,
         options={"radii": _TIGHT}),
    Case("river, cold", "EVI from 0, sweep by sweep, as printed", "riverswim", 20_000,
         options={"radii": _TIGHT, "warm_start": False}),
    Case("river, long", "Laplace radii at a horizon where they bite", "riverswim", 500_000,
         options={"radii": "laplace"}),
    Case("random, tight", "five states, three actions", "random-drift", 20_000,
         options={"radii": _TIGHT}),
    Case("inventory, tight", "ragged action sets", "inventory", 20_000,
         options={"radii": _TIGHT}),
    Case("peril", "deterministic: Q_T is not empty", "peril", 10_000, {"tau": 50},
         {"window": 200, "widening": 0.3, "radii": _EXACT}),
    Case("peril, W < tau", "windows that drift leaves whole", "peril", 10_000, {"tau": 500},
         {"window": 100, "widening": 0.3, "radii": _EXACT}),
)  # fmt: skip
"""What `span`, `evi` and `regret` look at."""

LONGEST: int = max(case.options.get("window", 1) for case in CASES)
"""The longest of the windows that do not hang on T."""
