"""What a learner is: its rules, its memory, the sets and the policy of its episode."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.memory import Memory
from windage.kernels.plan import Plan

LOWEST, RANDOM, PREVIOUS, SAMPLED = 0, 1, 2, 3  # how ties are broken
GOING_ON, FIRST, BOUNDARY, VISITS, RESTART, LENGTH = 0, 1, 2, 3, 4, 5  # why an episode starts
PLAYED, NOT_CONVERGED, OUT_OF_RANGE = 0, 1, 2  # how `play` ended

# places in Learner.now
EPISODE, TAU, NEXT, DUE, PLANNED, FULL, SATURATED, TIED, CAUSE = 0, 1, 2, 3, 4, 5, 6, 7, 8

SETS = np.dtype(
    [
        ("lift", np.float64),  # widening of the rewards
        ("eta", np.float64),  # and of the transitions
        ("state", np.int64),
        ("visits", np.int64),  # N_tau
        ("mean", np.float64),  # r_hat
        ("left", np.int64),  # N+_tau - nu
        ("saturated", np.int64),  # whether H_p is the whole simplex
        ("spread", np.float64),  # radius of the rewards, if the sets are boxes
    ],
    align=True,
)
LOOK = np.dtype(
    [
        ("best", np.float64),  # max_a r~
        ("tied", np.int64),  # whether several actions have r~ within the slack of it
        ("met", np.int64),  # the episode that last looked its policy up
        ("pair", np.int64),  # pi~(s)
    ],
    align=True,
)
LOG = np.dtype(
    [
        ("start", np.int64), ("length", np.int64), ("reason", np.int64), ("sweeps", np.int64),
        ("ties", np.int64), ("gain", np.float64), ("span", np.float64), ("vacuous", np.float64),
    ],
    align=True,
)  # fmt: skip


class Rules(NamedTuple):
    """What distinguishes one learner from another."""

    radii: NDArray[np.float64]  # [2, 4], see kernels.radii
    key: NDArray[np.uint64]
    by_time: bool  # radii depend on tau
    boxes: bool  # sets are boxes of Bernstein's bounds
    clip: bool  # r~ <= 1
    low: float  # rewards are taken from [low, low + width] to [0, 1]
    width: float
    least: float  # smallest and largest reward that is accepted
    most: float
    period: int  # a new episode at every t with t % period == phase; 0: never
    phase: int
    grows: bool  # an episode lasts at most one step longer than the one before
    widenings: NDArray[np.float64]  # [restarts + 1, 2] lift and eta of every phase; [0, 2]: fixed
    ladder: NDArray[np.float64]  # rising widenings to try, the last always; none: a fixed one
    most_span: float  # ... until span(gamma~) is at most this
    drawn: bool  # plans with a model drawn from the posterior instead of the best plausible one
    rounded: bool  # rewards are rounded to 0 or 1 at random, keeping their mean
    prior: float  # pseudo-counts of a row of transitions
    ties: int
    slack: float
    warm: bool  # start EVI from the last u and let it take short cuts
    sweeps: int  # EVI gives up after as many


class Learner(NamedTuple):
    """Rules, memory, the sets and the policy of the current episode."""

    rules: Rules
    memory: Memory
    plan: Plan
    drawn: Plan  # workspace of the posterior draw; without room unless ties are sampled
    sets: NDArray[np.void]  # [pairs]
    looks: NDArray[np.void]  # [S]
    # episode, tau, when the next is due, why one is due now, planned, full states, saturated, tied,
    # why the next is due
    now: NDArray[np.int64]
    log: NDArray[np.void]  # episode m in row m % size
