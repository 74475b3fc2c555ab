"""A multi-scale learner that only plays what optimism admits (docs/paper/guarded.md).

The anchor is SWUCRL2-CW as it is: window, sets, EVI, episodes. At the start of an anchor episode m,
EVI gives every pair its optimistic value Upsilon(s, a) = r~ + max q.gamma~; an action is admitted
in this episode if Upsilon(s, a) >= max_b Upsilon(s, b) - xi_m, with

    xi_m = rate (1 + span(gamma~_m)),     rate = kappa (eta + S sqrt(A L / W))

Among the admitted actions the multi-scale learner decides. The order of the tests matters: the
doubling rule of the anchor is about the action that is about to be played, which a new plan may
change. So: a limit of time first, then the plan, then the doubling rule; if that ends the episode,
a new one, a new plan, and then the action: an episode that has just begun has room for any. A new
plan is only needed where other actions are admitted than before: as long as all are, this is the
multi-scale learner itself, step by step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windage.kernels.evi import tie_bar
from windage.kernels.jit import compiled, inlined
from windage.kernels.multiscale import MultiScaleLearner, is_old, learn, replan
from windage.kernels.multiscale import is_over as is_epoch_over
from windage.kernels.policy import optimistic_value
from windage.kernels.rollout import act, observe
from windage.kernels.swucrl2cw import (
    GOING_ON,
    VISITS,
    OptimisticLearner,
    begin_episode,
)

FAILED, SAME, OTHER = 0, 1, 2  # how an anchor episode began


class GuardedLearner(NamedTuple):
    """A multi-scale learner that chooses, and an anchor that admits."""

    anchor: OptimisticLearner
    chooser: MultiScaleLearner
    rate: float
    ahead: int  # by how much the time of the whole run is ahead of that of the anchor's block


@inlined
def slack(guarded):
    """Return xi_m of the current anchor episode."""
    anchor = guarded.anchor
    span = anchor.plan.answer[0]["span"] if anchor.episode[0]["planned"] else 0.0
    return guarded.rate * (1.0 + span)


@compiled
def _admit(guarded):
    """Admit the actions within xi_m of the largest optimistic value; returns if they changed."""
    anchor, pairs, xi = guarded.anchor, guarded.chooser.estimate.pairs, slack(guarded)
    several, changed = 0, False
    for s in range(anchor.policy.size):
        first, last = anchor.plan.states[s]["first"], anchor.plan.states[s]["last"]
        best, among = -np.inf, 0
        for p in range(first, last):
            best = max(best, optimistic_value(anchor, p))
        for p in range(first, last):
            allowed = 1 if optimistic_value(anchor, p) >= tie_bar(best, xi) else 0
            changed = changed or allowed != pairs[p]["allowed"]
            pairs[p]["allowed"] = allowed
            among += allowed
        several += among > 1
    anchor.log[anchor.episode[0]["number"] % anchor.log.size]["ties"] = several
    return changed


@compiled
def _begin(guarded, t, reason):
    """Start an anchor episode; returns SAME or OTHER actions admitted, FAILED if EVI was."""
    anchor = guarded.anchor
    anchor.episode[0]["due"] = reason
    if begin_episode(anchor, t, reason):
        anchor.episode[0]["due"] = GOING_ON
        return OTHER if _admit(guarded) else SAME
    for s in range(anchor.plan.u.size):
        anchor.plan.u[s] = 0.0  # asked again, it fails in the same way
    return FAILED


@act.register(GuardedLearner)
def _act(guarded, t, s):
    """Return the pair to play; t is the time of the anchor, in its block."""
    anchor, chooser, clock = guarded.anchor, guarded.chooser, t + guarded.ahead
    reason = anchor.episode[0]["due"]  # the first, or one whose plan did not converge
    if reason == GOING_ON and t == anchor.episode[0]["end"]:
        reason = anchor.episode[0]["cause"]
    admitted = SAME if reason == GOING_ON else _begin(guarded, t, reason)
    if admitted == FAILED:
        return np.int64(-1)
    why = np.int64(is_epoch_over(chooser, clock, s))
    if admitted == OTHER or why != GOING_ON or is_old(chooser, clock, s):
        replan(chooser, clock, why)
    p = chooser.policy[np.uint64(s)]
    if anchor.sets[np.uint64(p)]["visits_left"] <= 0:
        admitted = _begin(guarded, t, np.int64(VISITS))
        if admitted == FAILED:
            return np.int64(-1)
        if admitted == OTHER:
            replan(chooser, clock, np.int64(GOING_ON))
            p = chooser.policy[np.uint64(s)]
    return p


@observe.register(GuardedLearner, forceinline=True)
def _observe(guarded, t, s, p, reward, after, seen):
    observe(guarded.anchor, t, s, p, reward, after, seen)
    learn(guarded.chooser, p, reward, after, seen)


@compiled
def xi(guarded):
    """`slack`, called from Python."""
    return slack(guarded)
