"""Multi-scale windows, as one compiled learner: believe, hope, replan, play, score the windows.

It replans every few steps, the more of them the better it knows what it is about to play
(`is_old`), with the hopes of its epoch: an epoch ends when the action about to be
played has been played in it as often as was known before it, or when it has become one step longer
than the epoch before (as in TSDE). Acting online calls `act` and `observe` one by one; `play` is
the loop around the same functions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.belief import Belief, form
from windage.kernels.jit import compiled, inlined
from windage.kernels.plan import GAIN, SPAN, SWEEPS
from windage.kernels.random import uniform
from windage.kernels.replan import improve
from windage.kernels.rules import FIRST, GOING_ON, LENGTH, VISITS
from windage.kernels.scales import take
from windage.kernels.world import step

EPOCH, START, BEFORE, PLANNED, LOOKS, LOOK = 0, 1, 2, 3, 4, 5  # places in MultiScale.now


LONGEST = 8  # steps a plan of a small model lasts


class MultiScale(NamedTuple):
    """Belief, policy, epoch; `windage.agents.multiscale.multiscale` makes one."""

    belief: Belief
    policy: NDArray[np.int64]  # [S] as pairs
    swept: NDArray[np.float64]  # [S] workspace
    answer: NDArray[np.float64]  # see kernels.plan
    # epoch, its start, the length of the one before, last plan, looks taken, when the next is due
    now: NDArray[np.int64]
    log: NDArray[np.void]  # rules.LOG, epoch m in row m % size
    looks: NDArray[np.float64]  # [rows, 2, K] the world's weights, as they were ...
    times: NDArray[np.int64]  # [rows] ... at these times
    every: int  # as many steps apart, and up to the next plan
    key: NDArray[np.uint64]
    pace: int  # steps between two plans, at least
    patience: float  # a plan lasts as long as it takes to learn one part in so many; 0: no longer
    spread: float  # random factors are from 1 - spread to 1 + spread
    low: float  # rewards are taken from [low, high] to [0, 1]
    high: float


@inlined
def is_over(learner, t, s):
    """Return why a new epoch starts at time t in state s, 0 if the old one goes on."""
    now = learner.now
    if now[EPOCH] == 0:
        return FIRST
    pair = learner.belief.pairs[np.uint64(learner.policy[np.uint64(s)])]
    if pair["plays"] >= pair["limit"]:
        return VISITS
    return LENGTH if t - now[START] > now[BEFORE] else GOING_ON


@compiled
def replan(learner, t, reason):
    """Form the belief anew and plan with it; a reason starts a new epoch."""
    now, belief = learner.now, learner.belief
    if reason != GOING_ON:
        for p in range(belief.pairs.size):
            draw = uniform(learner.key, t, p)
            belief.pairs[p]["factor"] = 1.0 + learner.spread * (2.0 * draw - 1.0)
            belief.pairs[p]["plays"] = 0.0
    form(belief)
    improve(belief, learner.policy, learner.swept, learner.answer)
    now[PLANNED] = t
    if reason != GOING_ON:
        for p in range(belief.pairs.size):
            pair = belief.pairs[p]
            known = min(pair["p_mass"] - belief.unseen, pair["r_mass"] - 2.0)
            pair["limit"] = max(1.0, known)
        _turn_page(learner, t, reason)
    if t >= now[LOOK]:
        _look(learner, t)


@inlined
def _turn_page(learner, t, reason):
    """Close the row of the last epoch and open the next."""
    now = learner.now
    row = learner.log[now[EPOCH] % learner.log.size]
    row["length"] = t - now[START]
    row["reason"] = reason
    now[BEFORE] = t - now[START] if now[EPOCH] > 0 else 0
    now[EPOCH] += 1
    now[START] = t
    row = learner.log[now[EPOCH] % learner.log.size]
    row["start"] = t
    row["length"] = 0
    row["reason"] = GOING_ON
    row["sweeps"] = np.int64(learner.answer[SWEEPS])
    row["ties"] = 0
    row["gain"] = learner.answer[GAIN]
    row["span"] = learner.answer[SPAN]
    unseen = 0
    for p in range(learner.belief.pairs.size):
        unseen += learner.belief.pairs[p]["entries"] == 0
    row["vacuous"] = unseen / learner.belief.pairs.size


@inlined
def _look(learner, t):
    """Remember the world's weights, for whoever wants to see how fast the world forgets."""
    now, world = learner.now, learner.belief.scales.world
    row = now[LOOKS]
    learner.times[row] = t
    for k in range(world.shape[1]):
        learner.looks[row, 0, k] = world[0, k]
        learner.looks[row, 1, k] = world[1, k]
    now[LOOKS] = row + 1
    now[LOOK] = t + learner.every


@inlined
def is_old(learner, t, s):
    """Return whether the plan is too old to be played in state s.

    A few steps hardly change what is known of a pair with many samples: a plan lasts for one part
    in `patience` of them, as they were at the start of the epoch.
    """
    age = t - learner.now[PLANNED]
    if age < learner.pace:
        return False
    if age >= LONGEST or learner.patience == 0.0:
        return True
    pair = learner.belief.pairs[np.uint64(learner.policy[np.uint64(s)])]
    return age * learner.patience >= pair["limit"]


@inlined
def prepare(learner, t, s):
    """Replan if a new epoch is due, or the plan has become old."""
    reason = is_over(learner, t, s)
    if reason != GOING_ON or is_old(learner, t, s):
        replan(learner, t, reason)


@inlined
def learn(learner, p, reward, after):
    """Take in one step."""
    learner.belief.pairs[np.uint64(p)]["plays"] += 1.0
    scaled = (reward - learner.low) / (learner.high - learner.low)
    take(learner.belief.scales, p, scaled, after)


@compiled
def act(learner, t, s):
    """Return the pair to play at time t in state s."""
    prepare(learner, t, s)
    return learner.policy[s]


@compiled
def observe(learner, p, reward, after):
    """`learn`, for callers outside the loop."""
    learn(learner, p, reward, after)


@compiled
def play(learner, world, state, t, states, pairs, rewards, means):
    """Act, observe, learn; returns the last state and the steps played.

    It ends before a reward that is not accepted, which it leaves in `rewards`.
    """
    for i in range(states.size):
        prepare(learner, t, state)
        p = learner.policy[np.uint64(state)]
        states[i] = state
        pairs[i] = p
        means[i], rewards[i], after = step(world, t, p)
        if not learner.low <= rewards[i] <= learner.high:
            return state, i
        learn(learner, p, rewards[i], after)
        state = after
        t += 1
    return state, states.size
