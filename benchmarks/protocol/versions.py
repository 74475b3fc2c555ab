"""Versions of the learner, frozen: each was run on the test set once, and its result is kept.

v0  the constants it was first written down with
v1  what was forgotten of a pair may count (`Weighing.strength`), c = 0.65: chosen on the tuning set
v2  half a pseudo-count for the next state (`unseen`), plans that last longer where more is known
    (`patience`): chosen on the tuning set with its breaks, the second for speed
v3  no prior in favour of long windows, alpha = 2e-3: likewise
"""

from __future__ import annotations

from dataclasses import replace

import windage as wd
from benchmarks.protocol.configurations import Maker
from benchmarks.protocol.variants import variant
from windage.agents.multiscale.learner import Constants
from windage.agents.multiscale.windows import Weighing

_TILTED = Weighing(share=1e-3, tilt=0.25, strength=0.0)
V0 = Constants(exploration=0.6, unseen=1.0, patience=0.0, weighing=_TILTED)
V1 = replace(V0, exploration=0.65, weighing=replace(_TILTED, strength=32.0))
V2 = replace(V1, unseen=0.5, patience=32.0)
V3 = replace(V2, weighing=Weighing(share=2e-3, tilt=0.0, strength=32.0))
NEWEST = "multi-scale v3"
GUARDED = "multi-scale-guarded v3"


def _guarded(constants: Constants) -> Maker:
    kind = type("Variant", (wd.MultiScaleGuarded,), {"constants": constants})

    def make(model: wd.DriftingMDP, seed: int) -> wd.agents.Agent:
        agent: wd.agents.Agent = kind(model.space, horizon=model.horizon, seed=seed)
        return agent

    return make


assert Constants() == V3 == wd.MultiScaleGuarded.constants  # what is shipped is what was measured
VERSIONS: dict[str, Maker] = {
    "multi-scale v0": variant(V0),
    "multi-scale v1": variant(V1),
    "multi-scale-guarded v1": _guarded(V1),
    "multi-scale v2": variant(V2),
    "multi-scale-guarded v2": _guarded(V2),
    NEWEST: variant(V3),
    GUARDED: _guarded(V3),
}
