"""What is true of a drifting model at every t, looked at as finely as a picture or a table needs.

The optimal gain is certified for every t, the largest diameter over all of them. Diameters and
optimal policies are solved at some times: a grid, and wherever the drift turns or jumps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from windage.models import Disconnection, DriftingMDP
from windage.report.policies import PolicyCourse, policy_course
from windage.report.traces import sample_times

if TYPE_CHECKING:
    from windage.models.diameters import DiameterBound
    from windage.models.gains import GainCurve

__all__ = ["Truth", "truth_of"]

Times = NDArray[np.int64]
Reals = NDArray[np.float64]

_LOOKS, _LOOKS_LARGE, _LARGE = (200, 4), (30, 2), 50  # bins, and turns a bin


@dataclass(frozen=True, eq=False)
class Truth:
    """The optimal gains, diameters and policies of a drifting model.

    Attributes
    ----------
    gains
        rho*_t, certified.
    gain_sum
        The sum of rho*_t over the horizon.
    times, diameters
        Some times, and D(p_t) there; inf where the model does not communicate.
    largest
        The largest diameter over all t, with its bracket.
    holes
        All stretches in which the model does not communicate.
    policies
        The optimal policy over time.
    """

    gains: GainCurve
    gain_sum: float
    times: Times
    diameters: Reals
    largest: DiameterBound
    holes: list[Disconnection]
    policies: PolicyCourse

    @property
    def mean_gain(self) -> float:
        """The mean of rho*_t over the horizon; `gains.error` bounds its error too."""
        return self.gain_sum / self.gains.horizon


def truth_of(
    model: DriftingMDP, tol: float = 1e-6, progress: Callable[[str], None] | None = None
) -> Truth:
    """Return what is true of a model.

    Parameters
    ----------
    model
        What drifts.
    tol
        How far a gain may be from the truth.
    progress
        Called with what is about to be computed.

    Examples
    --------
    >>> import windage as wd
    >>> truth = truth_of(wd.envs.make("riverswim", horizon=2000))
    >>> round(truth.mean_gain, 4), round(truth.largest.lower, 4), truth.policies.changes
    (0.5548, 14.7223, 3)
    """
    say = progress or _quiet
    say("the optimal gain of every t")
    gains = model.optimal_gains(tol)
    total = gains.sum()
    say("the largest diameter")
    largest = model.max_diameter()
    say("diameters over time")
    bins, turns = _LOOKS if model.space.n_states <= _LARGE else _LOOKS_LARGE
    times = sample_times(model, bins, turns)
    diameters = model.diameters(times)
    holes = model.disconnections() if np.isinf(largest.lower) else []
    say("the optimal policy over time")
    return Truth(gains, total, times, diameters, largest, holes, policy_course(model))


def _quiet(stage: str) -> None:
    del stage
