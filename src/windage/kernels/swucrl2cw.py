"""SWUCRL2-CW: sliding-window UCRL2 with confidence widening (the paper's Algorithm 1).

    act            if the episode is over, begin another; play pi~(s_t)          lines 3, 7, 8
    is_over        t is a multiple of W, or nu(s, pi~(s)) = N+_tau(s, pi~(s))    line 7 (E1)
    begin_episode  tau = t; the confidence sets; EVI                             lines 4, 5, 6
    observe        remember the sample; nu(s, a) += 1                            lines 8, 9

`windage.reference.swucrl2cw` is the same without what makes this one fast: sets change only where
counts changed (`confidence_sets`), the policy of a state is looked up when the episode first meets
it (`policy_of`), and where every state has an action with r~ = 1 there is nothing to plan: u = 0
passes the test of EVI's first sweep.

Parts are chosen by type: the window (dense or hashed), the sets (`Balls` or `Boxes`), the rule for
ties, that of planning (`Optimism`; `Ladder` and `Posterior` are in `windage.kernels.posterior`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.confidence import confidence_sets
from windage.kernels.evi import BOUND, VACUOUS, Balls, Boxes, estimate, prune, solve
from windage.kernels.jit import compiled, inlined, variants
from windage.kernels.policy import count_ties, fix_policy, policy_of
from windage.kernels.random import uniform
from windage.kernels.rollout import act, memory_counts, observe
from windage.kernels.window import Window, commit, contents, next_restart, origin, settle, take

GOING_ON, FIRST, BOUNDARY, VISITS, RESTART, LENGTH = 0, 1, 2, 3, 4, 5  # why an episode starts
_ROUNDED = np.int64(1) << np.int64(20)  # place of the draw that rounds a reward, beyond all others

RULES = np.dtype(
    [
        ("low", np.float64),  # rewards are taken from [low, low + width] to [0, 1]
        ("width", np.float64),
        ("rounded", np.bool_),  # and then to 0 or 1 at random, keeping their mean
        ("by_time", np.bool_),  # radii depend on tau
        ("clip", np.bool_),  # r~ <= 1
        ("grows", np.bool_),  # an episode lasts at most one step longer than the one before
        ("warm", np.bool_),  # start EVI from the last u and let it take short cuts
        ("ties", np.int64),
        ("slack", np.float64),
        ("period", np.int64),  # a new episode at every t with t % period == phase; 0: never
        ("phase", np.int64),
        ("sweeps", np.int64),  # EVI gives up after as many
    ],
    align=True,
)
EPISODE = np.dtype(
    [
        ("number", np.int64),  # m
        ("tau", np.int64),
        ("end", np.int64),  # the time at which it ends at the latest ...
        ("cause", np.int64),  # ... and why
        ("due", np.int64),  # why a new one is due, though the last plan may not have converged
        ("planned", np.bool_),  # whether there was anything to plan
        ("full", np.int64),  # states with an action of r~ = 1
        ("vacuous", np.int64),  # pairs whose set is the whole simplex
        ("tied", np.int64),  # states in which r~ is tied
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


class Optimism(NamedTuple):
    """Planning with the best plausible model, line 6 of Algorithm 1."""

    epsilon: float  # EVI's precision, times 1 / sqrt(tau)


class OptimisticLearner(NamedTuple):
    """Rules, window, sets and policy of one learner."""

    rules: NDArray[np.void]  # [1] RULES
    radii: NDArray[np.float64]  # [2, 4] of rewards and transitions, see kernels.confidence
    widenings: NDArray[np.float64]  # [restarts + 1, 2] lift and eta of every phase; [0, 2]: fixed
    key: NDArray[np.uint64]
    window: Window
    plan: Balls | Boxes
    planning: NamedTuple
    ties: NamedTuple
    sets: NDArray[np.void]  # [pairs] confidence.SETS
    policy: NDArray[np.void]  # [S] POLICY
    episode: NDArray[np.void]  # [1] EPISODE
    log: NDArray[np.void]  # LOG, episode m in row m % size


@variants
def make_plan(planning, learner, t, age):
    """Plan at time t, `age` steps after the last restart; returns whether it converged."""


@inlined
def cached_action(episodes, policy, sets, t, s):
    """Return pi~(s) as a pair where the episode goes on and knows it, else -1."""
    episode, own = episodes[0], policy[np.uint64(s)]
    if episode["due"] != GOING_ON or t == episode["end"] or own["episode"] != episode["number"]:
        return np.int64(-1)
    return own["pair"] if sets[np.uint64(own["pair"])]["visits_left"] > 0 else np.int64(-1)


@act.register(OptimisticLearner, forceinline=True)
def _act(learner, t, s):
    pair = cached_action(learner.episode, learner.policy, learner.sets, t, s)
    return pair if pair >= 0 else act_anew(learner, t, s)


@compiled
def act_anew(learner, t, s):
    """Return the pair to play at time t in state s; -1 if EVI did not converge."""
    episode = learner.episode[0]
    episode["due"] = is_over(learner, t, s)
    if episode["due"] != GOING_ON and not begin_episode(learner, t, episode["due"]):
        learner.plan.u[:] = 0.0  # asked again, it fails in the same way
        return np.int64(-1)
    episode["due"] = GOING_ON
    return policy_of(learner, s)  # line 8


@inlined
def is_over(learner, t, s):
    """Return why a new episode is due at time t in state s (lines 3 and 7, tested after a step)."""
    episode = learner.episode[0]
    if episode["due"] != GOING_ON:  # the first, or one whose plan did not converge
        return episode["due"]
    if t == episode["end"]:  # t is a multiple of W, or what else limits it
        return episode["cause"]
    left = learner.sets[policy_of(learner, s)]["visits_left"]
    return np.int64(VISITS) if left <= 0 else np.int64(GOING_ON)


@compiled
def begin_episode(learner, t, reason):
    """Start episode m + 1 at tau = t (lines 4 to 6); returns whether EVI converged."""
    episode, rules, window = learner.episode[0], learner.rules[0], learner.window
    commit(window)
    if reason in (FIRST, RESTART):  # counts may be restarted already
        _begin_phase(learner)
    age = t - origin(window)  # a restarted learner's own time
    confidence_sets(learner, age)  # line 5
    episode["planned"] = not rules["clip"] or episode["full"] < learner.policy.size
    if not make_plan(learner.planning, learner, t, age):  # line 6
        return False
    settle(window)
    row = learner.log[episode["number"] % learner.log.size]
    row["length"] = t - episode["tau"]
    row["reason"] = reason
    _set_end(learner, t, 1 if age == 1 else t - episode["tau"])
    episode["number"] += 1
    episode["tau"] = t  # line 4
    row, answer = learner.log[episode["number"] % learner.log.size], learner.plan.answer[0]
    planned = episode["planned"]
    row["start"] = t
    row["length"] = 0
    row["reason"] = GOING_ON
    row["sweeps"] = answer["sweeps"] if planned else 1
    row["ties"] = count_ties(learner) if planned else episode["tied"]
    row["gain"] = answer["gain"] if planned else 1.0
    row["span"] = answer["span"] if planned else 0.0
    row["vacuous"] = episode["vacuous"] / learner.sets.size
    fix_policy(learner.ties, learner, t, age)
    return True


@inlined
def _begin_phase(learner):
    """Forget the last bias, and take the widenings of the phase that the last restart began."""
    for s in range(learner.plan.u.size):
        learner.plan.u[s] = 0.0
    if learner.widenings.size > 0:
        phase = learner.window.clock[0]["restarts"]
        for p in range(learner.sets.size):
            learner.sets[p]["lift"] = learner.widenings[phase, 0]
            learner.sets[p]["eta"] = learner.widenings[phase, 1]


@inlined
def _set_end(learner, t, before):
    """Set when an episode that starts at t must end; the one before had so many steps."""
    episode, rules = learner.episode[0], learner.rules[0]
    end, cause = next_restart(learner.window), RESTART
    if rules["period"] > 0:
        boundary = t + rules["period"] - (t - rules["phase"]) % rules["period"]
        if boundary < end:
            end, cause = boundary, BOUNDARY
    if rules["grows"] and t + before + 1 < end:
        end, cause = t + before + 1, LENGTH
    episode["end"] = end
    episode["cause"] = cause


@make_plan.register(Optimism)
def _be_optimistic(planning, learner, t, age):  # noqa: ARG001
    return not learner.episode[0]["planned"] or evi(learner, planning.epsilon / math.sqrt(age))


@compiled
def evi(learner, epsilon):
    """Find the optimistic policy: pi~, rho~, gamma~ = EVI(H_r, H_p; epsilon) (line 6)."""
    plan, rules = learner.plan, learner.rules[0]
    for p in range(plan.pairs.size):
        plan.pairs[p]["kind"] = VACUOUS if learner.sets[p]["vacuous"] else BOUND
    prune(plan, rules["slack"])
    estimate(plan, learner.window)
    if not rules["warm"]:
        for s in range(plan.u.size):
            plan.u[s] = 0.0
    return solve(plan, epsilon, rules["warm"], rules["sweeps"])


@observe.register(OptimisticLearner, forceinline=True)
def _observe(learner, t, s, p, reward, after, seen):  # noqa: ARG001 - a pair has its state
    remember(learner.rules, learner.key, learner.window, learner.sets, t, p, reward, after)


@inlined
def remember(rules, key, window, sets, t, p, reward, after):
    """Remember a sample (line 8), nu(s, a) += 1 (line 9)."""
    scaled = reward - rules[0]["low"]
    if rules[0]["width"] != 1.0:  # nearly never, and a division is slow
        scaled /= rules[0]["width"]
    if rules[0]["rounded"]:
        scaled = 1.0 if uniform(key, t, _ROUNDED) < scaled else 0.0
    take(window, p, scaled, after)
    sets[np.uint64(p)]["visits_left"] -= 1


@memory_counts.register(OptimisticLearner)
def _memory_counts(learner, counts):
    contents(learner.window, counts)


@compiled
def remember_all(learner, t, pairs, rewards, afters):
    """Remember many samples, the first of them of time t."""
    rules, key, window, sets = learner.rules, learner.key, learner.window, learner.sets
    for i in range(pairs.size):
        remember(rules, key, window, sets, t + i, pairs[i], rewards[i], afters[i])
