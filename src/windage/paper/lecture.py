"""Proposition 3 as one page for a lecture: sliders for tau and eta, no files beside it.

The page computes with formulas of its own, so that sliders answer at once; dots on its chart are
computed here, along the trajectory, so that one can see that both agree.
"""

from __future__ import annotations

import json
from importlib import resources

from windage.confidence.radii import Radii
from windage.envs.proposition3 import peril_replay
from windage.paper.poison import best_diameter, empirical_diameter, poisoned

__all__ = ["computed_points", "lecture_page"]

TAUS = (10, 100, 1000, 10_000)
ETAS = (0.0, 0.1, 0.25, 0.5, 1.0)
_DATA = "/*DATA*/[]"


def computed_points() -> list[dict[str, float | str]]:
    """Return diameters by the library for some tau, eta and kinds of radii."""
    found: list[dict[str, float | str]] = []
    for tau in TAUS:
        replay = peril_replay(tau)
        average = empirical_diameter(replay)
        for kind in ("none", "paper", "proof", "laplace"):
            radii = None if kind == "none" else Radii(kind)
            for eta in ETAS:
                region = poisoned(replay, radii, eta)
                best = best_diameter(region)
                point = {"tau": tau, "eta": eta, "radii": kind, "average": average, "best": best}
                found.append(point)
    return found


def lecture_page() -> str:
    """Return the page as HTML."""
    template = resources.files("windage.paper").joinpath("lecture.html").read_text("utf-8")
    before, found, after = template.partition(_DATA)
    assert found, "the template has lost its place for data"
    return before + json.dumps(computed_points()) + after
