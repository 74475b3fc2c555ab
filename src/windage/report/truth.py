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
from windage.oracle import gain
from windage.report.figures.sampling import sample_times

if TYPE_CHECKING:
    from windage.models.diameters import DiameterBound
    from windage.models.gains import GainCurve

__all__ = ["PolicyCourse", "Truth", "policy_course", "time_shares", "truth_of"]

Times = NDArray[np.int64]
Reals = NDArray[np.float64]

_LOOKS, _LOOKS_LARGE, _LARGE = (200, 4), (30, 2), 50  # bins, and turns a bin
Actions = NDArray[np.int64]

_POLICY_BINS = 300
_POLICY_STOPS = ((10, 256), (50, 64))  # up to so many states, so many turns of the drift a bin
_POLICY_STOPS_LARGE = 4
_CELLS_AT_ONCE = 1 << 21  # of transition rows: 16 MB
_TOL = 1e-6  # of a gain; the policy is improved until nothing is better, whatever this is
_SHARE_TIMES = 40


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
        All intervals in which the model does not communicate.
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


@dataclass(frozen=True, eq=False)
class PolicyCourse:
    """An optimal policy of M_t for t = 1..T, as far as it was looked at.

    Attributes
    ----------
    starts
        When each policy begins to be used; the first is 1. Each holds until the next begins.
    actions
        `actions[k, s]`, the action of policy k in state s.
    solves
        How many models were solved for it.
    """

    starts: Times
    actions: Actions
    solves: int

    @property
    def changes(self) -> int:
        """How often the policy was seen to change."""
        return self.starts.size - 1

    def at(self, t: int) -> Actions:
        """Return the policy of time t."""
        found: Actions = self.actions[np.searchsorted(self.starts, t, side="right") - 1]
        return found

    def of_state(self, s: int) -> tuple[Times, Actions]:
        """Return when state s begins to use another action, and which."""
        actions = self.actions[:, s]
        new = np.concatenate([[True], actions[1:] != actions[:-1]])
        return self.starts[new], actions[new]


def policy_course(model: DriftingMDP) -> PolicyCourse:
    """Follow the optimal policy: a grid of times and all jumps, then every change to its step.

    A policy is kept for as long as it is optimal; so where several are, none is changed for
    another. A change that is undone before the next look is not seen.

    Examples
    --------
    >>> import windage as wd
    >>> course = policy_course(wd.envs.make("riverswim", horizon=2000))
    >>> course.starts.tolist(), course.actions[:, 3].tolist()
    ([1, 501, 1001, 1501], [1, 0, 1, 0])
    """
    fits = (stops for states, stops in _POLICY_STOPS if model.space.n_states <= states)
    times = sample_times(model, _POLICY_BINS, next(fits, _POLICY_STOPS_LARGE))
    actions = _policies(model, times)
    while True:
        differs = (actions[1:] != actions[:-1]).any(axis=1)
        gaps = np.flatnonzero(differs & (np.diff(times) > 1))
        if not gaps.size:
            break
        middles = (times[gaps] + times[gaps + 1]) // 2
        found = [_policies(model, middles[[k]], warm=actions[gap])[0] for k, gap in enumerate(gaps)]
        times = np.insert(times, gaps + 1, middles)
        actions = np.insert(actions, gaps + 1, np.stack(found), axis=0)
    new = np.concatenate([[True], (actions[1:] != actions[:-1]).any(axis=1)])
    return PolicyCourse(times[new], actions[new], times.size)


def time_shares(model: DriftingMDP, course: PolicyCourse) -> Reals:
    """Return about what share of its time the optimal policy spends in each state.

    The policy is looked at a few times. Between two looks it is followed for a random time of
    geometric law instead of a fixed one: one linear system, whatever classes the chain has.
    """
    from scipy.sparse import csr_array, eye_array
    from scipy.sparse.linalg import spsolve

    S, T = model.space.n_states, model.horizon
    looks = np.unique(np.linspace(1, T, _SHARE_TIMES).astype(np.int64))
    leave = min(1.0, looks.size / T)
    here, shares = np.eye(1, S)[0], np.zeros(S)
    for t in looks:
        pairs = model.space.offsets[:-1] + course.at(int(t))
        chain = csr_array(model.at(int(t)).transitions[pairs])
        here = spsolve((eye_array(S) - (1.0 - leave) * chain.T).tocsc(), leave * here)
        shares += np.atleast_1d(here)
    return shares / looks.size


def _policies(model: DriftingMDP, times: Times, warm: Actions | None = None) -> Actions:
    """Return an optimal policy of each time, each found from the one before."""
    found: list[Actions] = []
    chunk = max(1, _CELLS_AT_ONCE // (model.space.n_pairs * model.space.n_states))
    for first in range(0, times.size, chunk):
        models = [model.at(int(t)) for t in times[first : first + chunk]]
        kernels = [one.transitions for one in models]
        solutions = gain.solve_many(
            model.space,
            np.array([one.rewards for one in models]),
            np.array(kernels) if isinstance(kernels[0], np.ndarray) else kernels,
            tol=_TOL,
            warm=warm,
        )
        found += [solution.policy for solution in solutions]
        warm = found[-1]
    return np.stack(found)
