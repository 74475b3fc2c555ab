"""Versions of the learner, frozen: each was run on the test set once, and its result is kept.

v0  the constants it was first written down with
v1  what was forgotten of a pair may count (`Weighing.strength`), c = 0.65: chosen on the tuning set
"""

from __future__ import annotations

import windage as wd
from benchmarks.protocol.configurations import Maker
from benchmarks.protocol.variants import variant
from windage.agents.thinker import Constants
from windage.learn.scales import Weighing

V0 = Constants(exploration=0.6, weighing=Weighing(strength=0.0))
V1 = Constants(exploration=0.65, weighing=Weighing(strength=32.0))
NEWEST = "multi-scale v1"
GUARDED = "multi-scale-guarded v1"


def _guarded(model: wd.DriftingMDP, seed: int) -> wd.agents.Agent:
    assert wd.MultiScaleGuarded.constants == V1
    return wd.MultiScaleGuarded(model.space, horizon=model.horizon, seed=seed)


VERSIONS: dict[str, Maker] = {
    "multi-scale v0": variant(V0),
    NEWEST: variant(V1),
    GUARDED: _guarded,
}
