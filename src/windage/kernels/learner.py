"""Algorithm 1, SWUCRL2-CW, as one compiled learner; UCRL2 and the rest differ in parameters only.

They differ in what they remember (a window, everything, everything since a restart), in their sets
(balls or boxes, widened or not), in what they plan with (the best plausible model, or one drawn
from the posterior) and in when an episode ends.

The line numbers are those of Algorithm 1. `begin` starts an episode (lines 4 to 6), `decide` gives
the action (line 8), `learn` takes in what followed (lines 8 and 9), `is_over` is the test of line 7
after a step (E1). Acting online calls these one by one; `play` is the loop around them.

What an episode was planned with changes only where counts changed: `begin` touches the pairs that
were played or forgotten since the last episode, and the policy of a state is looked up the first
time the episode meets it. So an episode costs what its steps cost, not what the model costs, unless
there is something to plan.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels import evi
from windage.kernels.compiled import compiled, inlined
from windage.kernels.memory import (
    CHANGED,
    RESTARTS,
    Memory,
    commit,
    gather,
    gather_boxes,
    mean,
    next_restart,
    origin,
    settle,
    take,
    variance,
)  # fmt: skip
from windage.kernels.posterior import draw_policy
from windage.kernels.radii import bernstein, radius
from windage.kernels.random import uniform
from windage.kernels.world import step

LOWEST, RANDOM, PREVIOUS, SAMPLED = 0, 1, 2, 3  # how ties are broken
GOING_ON, FIRST, BOUNDARY, VISITS, RESTART, LENGTH = 0, 1, 2, 3, 4, 5  # why an episode starts
PLAYED, NOT_CONVERGED, OUT_OF_RANGE = 0, 1, 2  # how `play` ended

# places in Learner.now
EPISODE, TAU, NEXT, DUE, PLANNED, FULL, SATURATED, TIED, CAUSE = 0, 1, 2, 3, 4, 5, 6, 7, 8
_ROUNDED = np.int64(1) << np.int64(20)  # place of the draw that rounds a reward, beyond all others

SETS = np.dtype(
    [
        ("lift", np.float64),  # widening of the rewards
        ("eta", np.float64),  # and of the transitions
        ("state", np.int64),
        ("visits", np.int64),  # N_tau
        ("mean", np.float64),  # r_hat
        ("left", np.int64),  # N+_tau - nu
        ("saturated", np.int64),  # whether H_p is the whole simplex
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
    plan: evi.Plan
    drawn: evi.Plan  # workspace of the posterior draw; without room unless ties are sampled
    sets: NDArray[np.void]  # [pairs]
    looks: NDArray[np.void]  # [S]
    # episode, tau, when the next is due, why one is due now, planned, full states, saturated, tied,
    # why the next is due
    now: NDArray[np.int64]
    log: NDArray[np.void]  # episode m in row m % size


@inlined
def is_over(learner, t, s):
    """Return why a new episode starts at time t in state s, 0 if the old one goes on (line 7)."""
    if learner.now[DUE] != GOING_ON:  # the first, or one whose plan did not converge
        return learner.now[DUE]
    if t == learner.now[NEXT]:
        return learner.now[CAUSE]
    return VISITS if learner.sets[np.uint64(decide(learner, s))]["left"] <= 0 else GOING_ON


@compiled
def begin(learner, t, reason):
    """Start episode m + 1 at tau = t (lines 4 to 6); returns whether EVI converged."""
    now, rules, memory = learner.now, learner.rules, learner.memory
    restarts = memory.clock[RESTARTS]
    commit(memory)
    if memory.clock[RESTARTS] > restarts or now[EPISODE] == 0:
        set_widening(learner)
    clock = t - origin(memory)  # a restarted learner's own time
    _refresh(learner, clock)
    # where every state has an action with r~ = 1, u = 0 passes the test of EVI's first sweep
    now[PLANNED] = rules.drawn or not rules.clip or now[FULL] < learner.looks.size
    if rules.drawn:
        for p in range(learner.plan.pairs.size):
            learner.plan.pairs[p]["kind"] = evi.BOUND
        draw_policy(memory, learner.plan, rules.key, t, clock, rules.prior)
    elif now[PLANNED] and not _plan(learner, 1.0 / math.sqrt(clock)):
        return False
    settle(memory)
    row = learner.log[now[EPISODE] % learner.log.size]
    row["length"] = t - now[TAU]
    row["reason"] = reason
    now[EPISODE] += 1
    _set_limit(learner, t, np.int64(1) if clock == 1 else t - now[TAU])
    now[TAU] = t
    answer = learner.plan.answer
    row = learner.log[now[EPISODE] % learner.log.size]
    row["start"] = t
    row["length"] = 0
    row["reason"] = GOING_ON
    row["sweeps"] = answer[evi.SWEEPS] if now[PLANNED] else 1
    row["ties"] = _count_ties(learner) if now[PLANNED] else now[TIED]
    row["gain"] = answer[evi.GAIN] if now[PLANNED] else 1.0
    row["span"] = answer[evi.SPAN] if now[PLANNED] else 0.0
    row["vacuous"] = now[SATURATED] / learner.sets.size
    if rules.drawn:
        for s in range(learner.looks.size):
            learner.looks[s]["pair"] = learner.plan.states[s]["greedy"]
            learner.looks[s]["met"] = now[EPISODE]
    elif rules.ties == SAMPLED:
        _sample_policy(learner, t, clock)
    return True


@inlined
def set_widening(learner):
    """Give all sets the widenings of the phase that the last restart has begun."""
    rules = learner.rules
    if rules.widenings.size > 0:
        phase = learner.memory.clock[RESTARTS]
        for p in range(learner.sets.size):
            learner.sets[p]["lift"] = rules.widenings[phase, 0]
            learner.sets[p]["eta"] = rules.widenings[phase, 1]


@compiled
def put_widening(learner):
    """`set_widening`, for callers outside the loop."""
    set_widening(learner)


@inlined
def _set_limit(learner, t, before):
    """Find out when an episode that starts at t must end; the one before had so many steps."""
    now, rules = learner.now, learner.rules
    now[NEXT], now[CAUSE] = next_restart(learner.memory), RESTART
    if rules.period > 0:
        boundary = t + rules.period - (t - rules.phase) % rules.period
        if boundary < now[NEXT]:
            now[NEXT], now[CAUSE] = boundary, BOUNDARY
    if rules.grows and t + before + 1 < now[NEXT]:
        now[NEXT], now[CAUSE] = t + before + 1, LENGTH


@inlined
def _refresh(learner, t):
    """Renew H_r and H_p (line 5) of the pairs whose counts changed, or of all."""
    memory, states = learner.memory, learner.plan.states
    some = learner.now[EPISODE] > 0 and not learner.rules.by_time
    n = memory.clock[CHANGED] if some else learner.sets.size
    log_t = math.log(t)
    for i in range(n):
        p = np.int64(memory.changed[i]) if some else i
        _refresh_pair(learner, p, log_t)
    if some:
        for i in range(n):
            _refresh_state(learner, learner.sets[memory.changed[i]]["state"])
    else:
        for s in range(states.size):
            _refresh_state(learner, s)


@inlined
def _refresh_pair(learner, p, log_t):
    rules, sets, pair = learner.rules, learner.sets[p], learner.plan.pairs[p]
    n = learner.memory.counts[p]["visits"]
    sets["visits"] = n
    sets["left"] = max(1, n)
    sets["mean"] = mean(learner.memory, p)
    if rules.boxes:
        root, rest = bernstein(rules.radii[0], n)
        reward = sets["mean"] + root * math.sqrt(variance(learner.memory, p)) + rest
        pair["root"], pair["rest"] = bernstein(rules.radii[1], n)
        width = sets["eta"]
        whole = pair["rest"] + 0.5 * width >= 1.0  # even a state never seen may get all the mass
    else:
        reward = sets["mean"] + radius(rules.radii[0], n, log_t)
        width = radius(rules.radii[1], n, log_t) + sets["eta"]
        whole = width >= 2.0
    reward += sets["lift"]
    if rules.clip:
        reward = max(0.0, min(1.0, reward)) if n > 0 else 1.0  # never seen: anything (E8)
    pair["reward"] = reward
    pair["half"] = 0.5 * width
    saturated = 1 if n == 0 or whole else 0
    learner.now[SATURATED] += saturated - sets["saturated"]
    sets["saturated"] = saturated


@inlined
def _refresh_state(learner, s):
    look, state, pairs = learner.looks[s], learner.plan.states[s], learner.plan.pairs
    best, among = -np.inf, 0
    for p in range(state["first"], state["last"]):
        best = max(best, pairs[p]["reward"])
    for p in range(state["first"], state["last"]):
        among += pairs[p]["reward"] >= evi.bar(best, learner.rules.slack)
    tied = 1 if among > 1 else 0
    learner.now[FULL] += (1 if best == 1.0 else 0) - (1 if look["best"] == 1.0 else 0)
    learner.now[TIED] += tied - look["tied"]
    look["best"] = best
    look["tied"] = tied


@inlined
def _plan(learner, epsilon):
    """Find the optimistic policy: pi~, rho~, gamma~ = EVI(H_r, H_p; epsilon) (line 6)."""
    plan = learner.plan
    known = evi.BOX if learner.rules.boxes else evi.BOUND
    for p in range(plan.pairs.size):
        plan.pairs[p]["kind"] = evi.FREE if learner.sets[p]["saturated"] else known
    evi.prune(plan, learner.rules.slack)
    gather(learner.memory, plan)
    if learner.rules.boxes:
        gather_boxes(learner.memory, plan)
    if not learner.rules.warm:
        for s in range(plan.u.size):
            plan.u[s] = 0.0
    return evi.solve(plan, epsilon, learner.rules.warm, learner.rules.sweeps)


@inlined
def _value(learner, p):
    """Return the optimistic value of a pair; without a plan u = 0 and it is r~."""
    pair = learner.plan.pairs[p]
    return pair["value"] if learner.now[PLANNED] else pair["reward"]


@inlined
def _bar(learner, s):
    """Return the value from which on an action of a state is tied with the best."""
    best = -np.inf
    for p in range(learner.plan.states[s]["first"], learner.plan.states[s]["last"]):
        best = max(best, _value(learner, p))
    return evi.bar(best, learner.rules.slack)


@inlined
def _ties(learner, s, bar):
    n = 0
    for p in range(learner.plan.states[s]["first"], learner.plan.states[s]["last"]):
        n += _value(learner, p) >= bar
    return n


@inlined
def _count_ties(learner):
    n = 0
    for s in range(learner.looks.size):
        n += _ties(learner, s, _bar(learner, s)) > 1
    return n


@compiled
def _sample_policy(learner, t, clock):
    """Play of the tied actions the one that is best in a model drawn from the posterior."""
    drawn = learner.drawn
    for p in range(drawn.pairs.size):
        drawn.pairs[p]["kind"] = evi.BOUND
    draw_policy(learner.memory, drawn, learner.rules.key, t, clock, learner.rules.prior)
    for s in range(learner.looks.size):
        bar, best = _bar(learner, s), -np.inf
        for p in range(drawn.states[s]["first"], drawn.states[s]["last"]):
            if _value(learner, p) >= bar and drawn.pairs[p]["value"] > best:
                best = drawn.pairs[p]["value"]
                learner.looks[s]["pair"] = p
        learner.looks[s]["met"] = learner.now[EPISODE]


@inlined
def decide(learner, s):
    """Return pi~(s) as a pair (line 8), looked up when the episode first meets the state."""
    look = learner.looks[np.uint64(s)]
    if look["met"] != learner.now[EPISODE]:
        _look_up(learner, s)
    return look["pair"]


@compiled
def _look_up(learner, s):
    rules, look = learner.rules, learner.looks[s]
    bar = _bar(learner, s)
    keep = rules.ties == PREVIOUS and look["met"] > 0 and _value(learner, look["pair"]) >= bar
    look["met"] = learner.now[EPISODE]
    if keep:
        return
    skip = 0
    if rules.ties == RANDOM:
        skip = int(uniform(rules.key, learner.now[TAU], s) * _ties(learner, s, bar))
    for p in range(learner.plan.states[s]["first"], learner.plan.states[s]["last"]):
        if _value(learner, p) >= bar:
            if skip == 0:
                look["pair"] = p
                return
            skip -= 1


@inlined
def learn(learner, t, p, reward, after):
    """Take in one step (lines 8 and 9): remember it, nu(s, a) += 1."""
    scaled = (reward - learner.rules.low) / learner.rules.width
    if learner.rules.rounded:
        scaled = 1.0 if uniform(learner.rules.key, t, _ROUNDED) < scaled else 0.0
    take(learner.memory, p, scaled, after)
    learner.sets[np.uint64(p)]["left"] -= 1


@compiled
def observe(learner, t, p, reward, after):
    """`learn`, for callers outside the loop."""
    learn(learner, t, p, reward, after)


@compiled
def choice(learner, s):
    """`decide`, for callers outside the loop."""
    return decide(learner, s)


@inlined
def is_planned(learner, t, s):
    """Start a new episode if one is due; returns whether there is a policy for time t."""
    reason = is_over(learner, t, s)
    learner.now[DUE] = reason
    if reason == GOING_ON or begin(learner, t, reason):
        learner.now[DUE] = GOING_ON
        return True
    for state in range(learner.plan.u.size):
        learner.plan.u[state] = 0.0  # asked again, it fails in the same way
    return False


@compiled
def act(learner, t, s):
    """Return the pair to play at time t in state s, -1 if EVI did not converge."""
    return decide(learner, s) if is_planned(learner, t, s) else -1


@compiled
def play(learner, world, state, t, states, pairs, rewards, means):
    """Act, observe, learn; returns the last state, the steps played and how it ended."""
    for i in range(states.size):
        if not is_planned(learner, t, state):
            return state, i, NOT_CONVERGED
        p = decide(learner, state)
        states[i] = state
        pairs[i] = p
        means[i], rewards[i], after = step(world, t, p)
        if not learner.rules.least <= rewards[i] <= learner.rules.most:
            return state, i, OUT_OF_RANGE
        learn(learner, t, p, rewards[i], after)
        state = after
        t += 1
    return state, states.size, PLAYED
