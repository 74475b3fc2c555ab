"""What sets episodic learners apart: what they forget, when episodes end, how they plan."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from windage.agents.scale import Scale
from windage.confidence.evi import SWEEPS

if TYPE_CHECKING:
    from windage.kernels.rules import Rules

__all__ = ["Pace", "rules_of"]

_NONE: NDArray[np.int64] = np.empty(0, np.int64)
_FIXED: NDArray[np.float64] = np.empty((0, 2))
_NO_STEPS: NDArray[np.float64] = np.empty(0)


@dataclass(frozen=True)
class Pace:
    """What an agent forgets, and when an episode ends beside the doubling of visits.

    Attributes
    ----------
    width
        How many samples are remembered; None: all.
    period, phase
        A new episode starts at every t with t % period == phase; 0: at none.
    restarts
        Times at which everything older is forgotten and the learner's clock starts anew.
    grows
        Whether an episode may last only one step longer than the one before.
    """

    width: int | None = None
    period: int = 0
    phase: int = 0
    restarts: NDArray[np.int64] = field(default_factory=lambda: _NONE)
    grows: bool = False


def rules_of(key: NDArray[np.uint64], scale: Scale, pace: Pace, changed: dict[str, Any]) -> Rules:
    """Return the rules of the compiled learner: a plain optimist's, but for what is changed."""
    from windage.kernels.rules import Rules

    plain: dict[str, Any] = {
        "radii": np.zeros((2, 4)),
        "by_time": False,
        "boxes": False,
        "clip": True,
        "widenings": _FIXED,
        "ladder": _NO_STEPS,
        "most_span": math.inf,
        "drawn": False,
        "rounded": False,
        "prior": 1.0,
        "ties": 0,
        "slack": 0.0,
        "warm": True,
    }
    return Rules(
        key=key,
        **scale._asdict(),
        period=pace.period,
        phase=pace.phase,
        grows=pace.grows,
        sweeps=SWEEPS,
        **plain | changed,
    )
