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

from windage.kernels import learner as anchors
from windage.kernels import multiscale
from windage.kernels.evi import bar
from windage.kernels.jit import compiled, inlined
from windage.kernels.multiscale import MultiScale
from windage.kernels.plan import SPAN
from windage.kernels.rules import (
    CAUSE,
    DUE,
    EPISODE,
    GOING_ON,
    NEXT,
    NOT_CONVERGED,
    OUT_OF_RANGE,
    PLANNED,
    PLAYED,
    VISITS,
    Learner,
)
from windage.kernels.sets import value
from windage.kernels.world import step

FAILED, SAME, OTHER = 0, 1, 2  # how an anchor episode began


class Guarded(NamedTuple):
    """Who decides, and who admits."""

    anchor: Learner
    thinker: MultiScale
    rate: float


@inlined
def slack(guarded):
    """Return xi_m of the current anchor episode."""
    anchor = guarded.anchor
    span = anchor.plan.answer[SPAN] if anchor.now[PLANNED] else 0.0
    return guarded.rate * (1.0 + span)


@compiled
def _admit(guarded):
    """Admit the actions within xi_m of the most hopeful one; returns whether that is a change."""
    anchor, pairs, xi = guarded.anchor, guarded.thinker.belief.pairs, slack(guarded)
    several, changed = 0, False
    for s in range(anchor.looks.size):
        first, last = anchor.plan.states[s]["first"], anchor.plan.states[s]["last"]
        best, among = -np.inf, 0
        for p in range(first, last):
            best = max(best, value(anchor, p))
        for p in range(first, last):
            allowed = 1 if value(anchor, p) >= bar(best, xi) else 0
            changed = changed or allowed != pairs[p]["allowed"]
            pairs[p]["allowed"] = allowed
            among += allowed
        several += among > 1
    anchor.log[anchor.now[EPISODE] % anchor.log.size]["ties"] = several
    return changed


@inlined
def _begin(guarded, t, reason):
    """Start an anchor episode; returns SAME or OTHER actions admitted, FAILED if EVI was."""
    anchor = guarded.anchor
    anchor.now[DUE] = reason
    if anchors.begin(anchor, t, reason):
        anchor.now[DUE] = GOING_ON
        return OTHER if _admit(guarded) else SAME
    for s in range(anchor.plan.u.size):
        anchor.plan.u[s] = 0.0  # asked again, it fails in the same way
    return FAILED


@inlined
def decide(guarded, t, clock, s):
    """Return the pair to play in state s, -1 if EVI did not converge.

    t is the time of the anchor, in its block; `clock` that of the whole run.
    """
    anchor, thinker = guarded.anchor, guarded.thinker
    reason = anchor.now[DUE]  # the first, or one whose plan did not converge
    if reason == GOING_ON and t == anchor.now[NEXT]:
        reason = anchor.now[CAUSE]
    admitted = SAME if reason == GOING_ON else _begin(guarded, t, reason)
    if admitted == FAILED:
        return np.int64(-1)
    why = multiscale.is_over(thinker, clock, s)
    if admitted == OTHER or why != GOING_ON or multiscale.is_old(thinker, clock, s):
        multiscale.replan(thinker, clock, why)
    p = thinker.policy[np.uint64(s)]
    if anchor.sets[np.uint64(p)]["left"] <= 0:
        admitted = _begin(guarded, t, VISITS)
        if admitted == FAILED:
            return np.int64(-1)
        if admitted == OTHER:
            multiscale.replan(thinker, clock, GOING_ON)
            p = thinker.policy[np.uint64(s)]
    return p


@inlined
def learn(guarded, t, p, reward, after):
    """Let both take in one step."""
    anchors.learn(guarded.anchor, t, p, reward, after)
    multiscale.learn(guarded.thinker, p, reward, after)


@compiled
def act(guarded, t, clock, s):
    """`decide`, for callers outside the loop."""
    return decide(guarded, t, clock, s)


@compiled
def observe(guarded, t, p, reward, after):
    """`learn`, for callers outside the loop."""
    learn(guarded, t, p, reward, after)


@compiled
def play(guarded, world, state, t, clock, states, pairs, rewards, means):
    """Act, observe, learn; returns the last state, the steps played and how it ended."""
    rules = guarded.anchor.rules
    for i in range(states.size):
        p = decide(guarded, t, clock, state)
        if p < 0:
            return state, i, NOT_CONVERGED
        states[i] = state
        pairs[i] = p
        means[i], rewards[i], after = step(world, t, p)
        if not rules.least <= rewards[i] <= rules.most:
            return state, i, OUT_OF_RANGE
        learn(guarded, t, p, rewards[i], after)
        state = after
        t += 1
        clock += 1
    return state, states.size, PLAYED
