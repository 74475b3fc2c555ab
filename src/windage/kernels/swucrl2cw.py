"""SWUCRL2-CW: sliding-window UCRL2 with confidence widening (the paper's Algorithm 1).

    act            if the episode is over, begin another; play pi~(s_t)          lines 3, 7, 8
    is_over        t is a multiple of W, or nu(s, pi~(s)) = N+_tau(s, pi~(s))    line 7 (E1)
    begin_episode  tau = t; the confidence sets; EVI                             lines 4, 5, 6
    observe        remember the sample; nu(s, a) += 1                            lines 8, 9

`windage.reference.swucrl2cw` is the same without what makes this one fast: what an episode was
planned with changes only where counts changed (`confidence_sets`), the policy of a state is looked
up when the episode first meets it (`policy_of`), and where every state has an action with r~ = 1
there is nothing to plan, since u = 0 passes the test of EVI's first sweep. So an episode costs what
its steps cost, not what the model costs, unless there is something to plan.

The rest of the family differs in parts that are chosen by their type: the window (dense or hashed),
the sets (`Balls` or `Boxes`), the planning rule (`Optimism` here; `Ladder` and `Posterior` in
`windage.kernels.posterior`) and the rule for ties.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.confidence import best_reward, refresh_pair
from windage.kernels.evi import BOUND, VACUOUS, Balls, Boxes, arrange, gather, prune, solve, tie_bar
from windage.kernels.jit import compiled, inlined, variants
from windage.kernels.random import uniform
from windage.kernels.rollout import act, memory_counts, observe
from windage.kernels.window import Window, commit, contents, next_restart, origin, settle, take

LOWEST, RANDOM, PREVIOUS, SAMPLED = 0, 1, 2, 3  # how ties are broken
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
POLICY = np.dtype(
    [
        ("best", np.float64),  # max_a r~
        ("tied", np.int64),  # whether several actions have r~ within the slack of it
        ("episode", np.int64),  # the one that last looked its action up
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


class Optimism(NamedTuple):
    """Planning with the best plausible model, line 6 of Algorithm 1."""

    epsilon: float  # EVI's precision, times 1 / sqrt(tau)


class TieRule(NamedTuple):
    """The lowest, a random or the previous action of those tied, by `RULES["ties"]`."""

    code: int


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


@variants
def fix_policy(ties, learner, t, age):
    """Fix the policy of a new episode, where it is not looked up state by state."""


@inlined
def cached_action(episode, policy, sets, t, s):
    """Return pi~(s) as a pair where the episode goes on and knows it, else -1: nearly every step.

    It reads three arrays only.
    """
    own = policy[np.uint64(s)]
    if episode["due"] != GOING_ON or t == episode["end"] or own["episode"] != episode["number"]:
        return np.int64(-1)
    return own["pair"] if sets[np.uint64(own["pair"])]["visits_left"] > 0 else np.int64(-1)


@act.register(OptimisticLearner, forceinline=True)
def _act(learner, t, s):
    pair = cached_action(learner.episode[0], learner.policy, learner.sets, t, s)
    return pair if pair >= 0 else act_anew(learner, t, s)


@compiled
def act_anew(learner, t, s):
    """Return the pair to play at time t in state s; -1 if EVI did not converge."""
    episode = learner.episode[0]
    episode["due"] = is_over(learner, t, s)
    if episode["due"] != GOING_ON and not begin_episode(learner, t, episode["due"]):
        for state in range(learner.plan.u.size):
            learner.plan.u[state] = 0.0  # asked again, it fails in the same way
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


@compiled
def confidence_sets(learner, age):
    """Renew H_r and H_p (line 5, Eqs. (4), (5)) of the pairs whose counts changed, or of all."""
    episode, window = learner.episode[0], learner.window
    some = episode["number"] > 0 and not learner.rules[0]["by_time"]
    n = window.clock[0]["changed"] if some else learner.sets.size
    log_t = math.log(age)
    for i in range(n):
        renew(learner, np.int64(window.changed[i]) if some else i, log_t)
    for i in range(n if some else learner.policy.size):
        s = learner.sets[window.changed[i]]["state"] if some else i
        policy = learner.policy[s]
        best, tied = best_reward(learner.plan, s, learner.rules[0]["slack"])
        episode["full"] += (1 if best == 1.0 else 0) - (1 if policy["best"] == 1.0 else 0)
        episode["tied"] += (1 if tied else 0) - policy["tied"]
        policy["best"] = best
        policy["tied"] = 1 if tied else 0


@inlined
def renew(learner, p, log_t):
    """Renew the sets of one pair."""
    sets, count = learner.sets[p], learner.window.counts[p]
    learner.episode[0]["vacuous"] -= sets["vacuous"]
    refresh_pair(learner.plan, learner.rules[0], learner.radii, sets, p, count, log_t)
    learner.episode[0]["vacuous"] += sets["vacuous"]


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
    arrange(plan, gather(learner.window, plan))
    if not rules["warm"]:
        for s in range(plan.u.size):
            plan.u[s] = 0.0
    return solve(plan, epsilon, rules["warm"], rules["sweeps"])


@inlined
def optimistic_value(learner, p):
    """Return the optimistic value of a pair; without a plan u = 0 and it is r~."""
    pair = learner.plan.pairs[p]
    return pair["value"] if learner.episode[0]["planned"] else pair["reward"]


@compiled
def tied_from(learner, s):
    """Return the value from which on an action of a state is tied with the best."""
    state, best = learner.plan.states[s], -np.inf
    for p in range(state["first"], state["last"]):
        value = optimistic_value(learner, p)
        best = value if value > best else best
    return tie_bar(best, learner.rules[0]["slack"])


@compiled
def n_tied(learner, s, least):
    """Return how many actions of a state reach a value."""
    n = 0
    for p in range(learner.plan.states[s]["first"], learner.plan.states[s]["last"]):
        n += optimistic_value(learner, p) >= least
    return n


@compiled
def count_ties(learner):
    """Return in how many states several actions are tied."""
    n = 0
    for s in range(learner.policy.size):
        n += n_tied(learner, s, tied_from(learner, s)) > 1
    return n


@fix_policy.register(TieRule)
def _look_up_later(_ties, _learner, _t, _age):
    """Leave it to `policy_of`."""


@inlined
def policy_of(learner, s):
    """Return pi~(s) as a pair (line 8), looked up when the episode first meets the state."""
    if learner.policy[np.uint64(s)]["episode"] != learner.episode[0]["number"]:
        _look_up(learner, s)
    return learner.policy[np.uint64(s)]["pair"]


@compiled
def _look_up(learner, s):
    rules, own, least = learner.rules[0], learner.policy[s], tied_from(learner, s)
    known = own["episode"] > 0
    own["episode"] = learner.episode[0]["number"]
    if rules["ties"] == PREVIOUS and known and optimistic_value(learner, own["pair"]) >= least:
        return
    skip = 0
    if rules["ties"] == RANDOM:
        draw = uniform(learner.key, learner.episode[0]["tau"], s)
        skip = int(draw * n_tied(learner, s, least))
    for p in range(learner.plan.states[s]["first"], learner.plan.states[s]["last"]):
        if optimistic_value(learner, p) >= least:
            if skip == 0:
                own["pair"] = p
                return
            skip -= 1


@observe.register(OptimisticLearner, forceinline=True)
def _observe(learner, t, s, p, reward, after):  # noqa: ARG001 - a pair has its state
    remember(learner.rules[0], learner.key, learner.window, learner.sets, t, p, reward, after)


@inlined
def remember(rules, key, window, sets, t, p, reward, after):
    """Remember a sample (line 8), nu(s, a) += 1 (line 9)."""
    scaled = (reward - rules["low"]) / rules["width"]
    if rules["rounded"]:
        scaled = 1.0 if uniform(key, t, _ROUNDED) < scaled else 0.0
    take(window, p, scaled, after)
    sets[np.uint64(p)]["visits_left"] -= 1


@memory_counts.register(OptimisticLearner)
def _memory_counts(learner, counts):
    contents(learner.window, counts)


@compiled
def known_action(episode, policy, sets, t, s):
    """`cached_action`, called from Python: `act_anew` is asked if it is -1."""
    return cached_action(episode[0], policy, sets, t, s)


@compiled
def remember_one(rules, key, window, sets, t, pair, reward, after):
    """`remember`, called from Python with what it needs and no more."""
    remember(rules[0], key, window, sets, t, pair, reward, after)


@compiled
def remember_all(learner, t, pairs, rewards, afters):
    """Remember many samples, the first of them of time t."""
    for i in range(pairs.size):
        observe(learner, t + i, 0, pairs[i], rewards[i], afters[i])
