"""The learner with one part changed at a time: what each part is worth, on the tuning set."""

from __future__ import annotations

from dataclasses import replace

import windage as wd
from benchmarks.protocol.configurations import Maker
from windage.agents.multiscale.learner import Constants
from windage.agents.multiscale.multiscale import MultiScale
from windage.agents.multiscale.windows import Weighing


def variant(constants: Constants) -> Maker:
    """Return who makes the learner with other constants; its draws are those of the learner."""
    kind = type("Variant", (MultiScale,), {"constants": constants})

    def make(model: wd.DriftingMDP, seed: int) -> wd.agents.Agent:
        agent: wd.agents.Agent = kind(model.space, horizon=model.horizon, seed=seed)
        return agent

    return make


def _weighing(**changes: object) -> Maker:
    return variant(replace(Constants(), weighing=replace(Weighing(), **changes)))


def _other(**changes: object) -> Maker:
    return variant(replace(Constants(), **changes))


VARIANTS: dict[str, Maker] = {
    "as it is": variant(Constants()),
    "weights of the world only": _weighing(by_pair=False),
    "weights of pairs only": _weighing(by_overall=False),
    "one weight for rewards and transitions": _weighing(apart=False),
    "one window, all history": _other(base=1 << 40),
    "windows a factor 4 apart": _other(base=4),
    "prior in favour of long windows, beta = .25": _weighing(tilt=0.25),
    "share alpha = 1e-2": _weighing(share=1e-2),
    "share alpha = 1e-3": _weighing(share=1e-3),
    "share alpha = 1e-4": _weighing(share=1e-4),
    "nothing forgotten counts, m = 0": _weighing(strength=0.0),
    "m = 8": _weighing(strength=8.0),
    "m = 128": _weighing(strength=128.0),
    "no payback factor": _other(payback=0.0),
    "no random factor": _other(spread=0.0),
    "standard deviations, not Wilson's bound": _other(gaussian=True),
    "no hope, c = 0": _other(exploration=0.0),
    "c = 0.3": _other(exploration=0.3),
    "c = 0.5": _other(exploration=0.5),
    "c = 0.8": _other(exploration=0.8),
    "c = 1.2": _other(exploration=1.2),
    "one pseudo-count for the next state": _other(unseen=1.0),
    "a tenth of a pseudo-count": _other(unseen=0.1),
    "plan every step": _other(pace=1, patience=0.0),
    "plan every min(8, SA/4) steps": _other(patience=0.0),
    "plan every 8 steps": _other(pace=8, patience=0.0),
    "plan at epochs only": _other(pace=1 << 40),
}
