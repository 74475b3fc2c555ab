"""The plausible sets of an episode (line 5 of Algorithm 1), and which actions are tied in them."""

from __future__ import annotations

import math

import numpy as np

from windage.kernels.evi import bar
from windage.kernels.jit import inlined
from windage.kernels.memory import CHANGED, mean, variance
from windage.kernels.radii import bernstein, radius
from windage.kernels.rules import EPISODE, FULL, PLANNED, SATURATED, TIED


@inlined
def refresh(learner, t):
    """Renew H_r and H_p (line 5) of the pairs whose counts changed, or of all."""
    memory, states = learner.memory, learner.plan.states
    some = learner.now[EPISODE] > 0 and not learner.rules.by_time
    n = memory.clock[CHANGED] if some else learner.sets.size
    log_t = math.log(t)
    for i in range(n):
        p = np.int64(memory.changed[i]) if some else i
        refresh_pair(learner, p, log_t)
    if some:
        for i in range(n):
            refresh_state(learner, learner.sets[memory.changed[i]]["state"])
    else:
        for s in range(states.size):
            refresh_state(learner, s)


@inlined
def refresh_pair(learner, p, log_t):
    """Renew the sets of one pair from its counts."""
    rules, sets, pair = learner.rules, learner.sets[p], learner.plan.pairs[p]
    n = learner.memory.counts[p]["visits"]
    sets["visits"] = n
    sets["left"] = max(1, n)
    sets["mean"] = mean(learner.memory, p)
    if rules.boxes:
        root, rest = bernstein(rules.radii[0], n)
        sets["spread"] = root * math.sqrt(variance(learner.memory, p)) + rest
        reward = sets["mean"] + sets["spread"]
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
def refresh_state(learner, s):
    """Renew what is known of a state's largest r~ from its pairs."""
    look, state, pairs = learner.looks[s], learner.plan.states[s], learner.plan.pairs
    best, among = -np.inf, 0
    for p in range(state["first"], state["last"]):
        best = max(best, pairs[p]["reward"])
    for p in range(state["first"], state["last"]):
        among += pairs[p]["reward"] >= bar(best, learner.rules.slack)
    tied = 1 if among > 1 else 0
    learner.now[FULL] += (1 if best == 1.0 else 0) - (1 if look["best"] == 1.0 else 0)
    learner.now[TIED] += tied - look["tied"]
    look["best"] = best
    look["tied"] = tied


@inlined
def value(learner, p):
    """Return the optimistic value of a pair; without a plan u = 0 and it is r~."""
    pair = learner.plan.pairs[p]
    return pair["value"] if learner.now[PLANNED] else pair["reward"]


@inlined
def bar_of(learner, s):
    """Return the value from which on an action of a state is tied with the best."""
    best = -np.inf
    for p in range(learner.plan.states[s]["first"], learner.plan.states[s]["last"]):
        best = max(best, value(learner, p))
    return bar(best, learner.rules.slack)


@inlined
def ties(learner, s, least):
    """Return how many actions of a state reach a value."""
    n = 0
    for p in range(learner.plan.states[s]["first"], learner.plan.states[s]["last"]):
        n += value(learner, p) >= least
    return n


@inlined
def count_ties(learner):
    """Return in how many states several actions are tied."""
    n = 0
    for s in range(learner.looks.size):
        n += ties(learner, s, bar_of(learner, s)) > 1
    return n
