"""Multi-scale windows: cost of a step beside window PSRL's and SWUCRL2-CW's, in one run."""

from __future__ import annotations

import warnings

import windage as wd
from benchmarks.clock import cpu_seconds

T = 100_000
MODELS = {
    "two-state 2x2": lambda: wd.envs.make("two-state-cosine", horizon=T),
    "riverswim 6x2": lambda: wd.envs.make("riverswim", horizon=T),
    "random 20x4": lambda: wd.envs.make("random-drift", horizon=T, states=20, actions=4),
}
RIVALS = ("sw-psrl", "swucrl2-cw", "multi-scale-guarded")


def measure() -> dict[str, float]:
    """Ratios of CPU seconds of whole runs; microseconds a step of the learner itself."""
    warnings.simplefilter("ignore", wd.GuaranteeWarning)
    found: dict[str, float] = {}
    for name, make in MODELS.items():
        model = make()
        mine = _seconds(model, "multi-scale")
        found[f"{name}: multi-scale, microseconds a step"] = 1e6 * mine / T
        for rival in RIVALS:
            found[f"{name}: multi-scale / {rival}"] = mine / _seconds(model, rival)
    return found


def _seconds(model: wd.DriftingMDP, id: str) -> float:  # noqa: A002
    told = wd.agents.facts(id, model)
    agents = iter([wd.agents.make(id, model.space, horizon=T, **told) for _ in range(4)])
    return cpu_seconds(lambda: wd.run(model, next(agents), record="totals"), 3)
