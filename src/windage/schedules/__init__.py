"""Weights that change with t: the shape of a drift, apart from what drifts.

A schedule says how much of each base model there is at time t of a horizon T: `weights(t, T)` is a
point of the simplex. Most move between two models; `position` is then the weight of model 1, and
`stops` lists times between which it is monotone, which makes variations telescope. Anything with a
method `weights(t, T)` is a schedule; with `weights_many(times, T)` it is a fast one.
"""

import warnings
from typing import Any

from windage.schedules.base import Custom, Schedule, TwoModelSchedule, as_schedule
from windage.schedules.smooth import Burst, Cosine, Linear, RandomWalk
from windage.schedules.steps import Knots, Steps

__all__ = [
    "Burst",
    "Cosine",
    "Custom",
    "Knots",
    "Linear",
    "RandomWalk",
    "Schedule",
    "Steps",
    "TwoModelSchedule",
    "as_schedule",
]


def __getattr__(name: str) -> Any:
    if name == "Walk":
        warnings.warn(
            "windage.schedules.Walk is now windage.schedules.RandomWalk",
            DeprecationWarning,
            stacklevel=2,
        )
        return RandomWalk
    raise AttributeError(f"module 'windage.schedules' has no attribute {name!r}")
