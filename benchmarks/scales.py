"""Multi-scale windows: a step's cost beside other learners', and with a structure, in one run."""

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
STRUCTURED = (
    "inventory", "queue", "bidding", "ride", "replacement", "wireless", "assortment", "treatment",
)  # fmt: skip


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
    for name in STRUCTURED:
        model = wd.envs.make(name, horizon=T)
        mine = _seconds(model, "multi-scale", structure=model.structure)
        found[f"{name}: with its structure / without"] = mine / _seconds(model, "multi-scale")
    return found


def _seconds(model: wd.DriftingMDP, id: str, **options: object) -> float:  # noqa: A002
    told = wd.agents.facts(id, model) | options
    agents = iter([wd.agents.make(id, model.space, horizon=T, **told) for _ in range(4)])
    return cpu_seconds(lambda: wd.run(model, next(agents), record="totals"), 3)
