"""Multi-scale windows, as one compiled learner: estimate, plan with bonuses, play, weigh windows.

    act        replan every few steps, the more of them the better is known what is about to be
               played (`is_old`); an epoch ends when the action about to be played was played in it
               as often as was known before it, or when it has become one step longer than the epoch
               before (as in TSDE)
    replan     estimate the model, add bonuses, find the best policy
    observe    weigh every window by how likely it held the sample, count it   (window_experts)

The model is the average of the windows' counts, each window weighted as it has earned for that pair
(omega, its overall weight times that for the pair), with mu = 1/2 pseudo-counts spread over the
next states and two over the rewards:

    N_p = mu + sum_k omega_k N_k,      p(s') = (mu/S + sum_k omega_k n_k(s')) / N_p
    N_r = 2 + sum_k omega'_k N_k,      q = (1 + sum_k omega'_k S_k) / N_r

To both come the samples that were forgotten, as far as they count (`window_experts.Discarded`).

The bonus is what a sample of r + p.u from the posterior would add by chance, as large as is worth
paying for (`_add_bonus`): Wilson's bound for the reward, the standard deviation of p.u for the
transitions, both growing with the logarithm of how rarely the action was tried among those of its
state, times a payback factor: how many steps are left to profit, over the effective memory. A
random factor of each pair, drawn anew each epoch, keeps two bonuses from standing in a draw.

The plan is modified policy iteration on the model as it is (no sets), from where the last plan left
off: a sweep over all actions,

    v(s, a) = r(s, a) + sum p(s') u(s'),    stop when span(max_a v - u) <= eps,

then a few evaluations of the greedy policy, u <- u + d (v - u) with d = .95, which a periodic model
cannot fool. Estimates change little between two plans, so one or two sweeps mostly do. A plan that
takes too many is left as it is: the next one goes on from there.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.evi import rebase
from windage.kernels.jit import compiled, inlined, variants
from windage.kernels.random import uniform
from windage.kernels.rollout import act, observe
from windage.kernels.swucrl2cw import FIRST, GOING_ON, LENGTH, VISITS
from windage.kernels.window_experts import NONE, Experts, kept, take

NEGLIGIBLE = 1e-4  # windows with less weight for a pair are left out of its transitions

PAIR = np.dtype(
    [
        ("p_mass", np.float64),  # N_p
        ("r_mass", np.float64),  # N_r
        ("mean", np.float64),  # q
        ("bonus", np.float64),  # what is added to it
        ("reward", np.float64),  # q + bonus
        ("factor", np.float64),  # zeta
        ("limit", np.float64),  # as many plays end the epoch
        ("plays", np.float64),  # nu, in this epoch
        ("row", np.int64),  # where its entries start
        ("entries", np.int64),
        ("allowed", np.int64),
    ],
    align=True,
)


class Estimate(NamedTuple):
    """The averaged model, and the bias it was last planned with."""

    experts: Experts
    horizon: int
    unseen: float  # mu: pseudo-counts spread over the next states
    exploration: float  # c
    payback: float  # the largest payback factor; 0: always 1
    gaussian: bool  # hope for rewards by standard deviations instead of Wilson's bound
    offsets: NDArray[np.int64]  # [S + 1]
    pairs: NDArray[np.void]  # [pairs] PAIR
    rows: NDArray[np.void]  # plan.ENTRY: next states and their probabilities, but for mu / (S N_p)
    u: NDArray[np.float64]  # [S]
    omega: NDArray[np.float64]  # [K] workspace


@variants
def form(estimate):
    """Average the counts and add the bonuses, under the bias of the last plan."""


@variants
def take_in(estimate, p, reward, after, seen):
    """Learn from one step, its reward in [0, 1]."""


@variants
def open_epoch(estimate):
    """Say for how many plays the new epoch may last, by what was just formed."""


@variants
def is_full(estimate, p):
    """Return whether a pair was played in this epoch as often as it may be."""


@variants
def is_vacuous(estimate, p):
    """Return whether nothing is known of the next states of a pair."""


@form.register(Estimate)
def _form(estimate):
    experts = estimate.experts
    n = np.int64(0)
    for p in range(estimate.pairs.size):
        estimate.pairs[p]["row"] = n
        n = _average(experts, estimate, p, n)
    payback = payback_factor(estimate)
    even, even_square, top = _moments(estimate.u)
    even, even_square = estimate.unseen * even, estimate.unseen * even_square
    for s in range(estimate.u.size):
        first, last = estimate.offsets[s], estimate.offsets[s + 1]
        p_mass, r_mass = 0.0, 0.0
        for p in range(first, last):
            p_mass += estimate.pairs[p]["p_mass"]
            r_mass += estimate.pairs[p]["r_mass"]
        p_mass *= payback / (last - first)
        r_mass *= payback / (last - first)
        for p in range(first, last):
            _add_bonus(estimate, p, p_mass, r_mass, even, even_square, top)


@inlined
def _average(experts, estimate, p, n):
    """Average the counts of one pair; its row starts at entry n, the next one at the result."""
    pair = estimate.pairs[p]
    pair["r_mass"], pair["mean"] = mean_reward(experts, p)
    pair["p_mass"], after = average_law(
        experts, p, estimate.unseen, estimate.omega, estimate.rows, n
    )
    pair["entries"] = after - n
    return after


@inlined
def mean_reward(experts, p):
    """Return N_r and q of a pair."""
    at, last, weights = np.uint64(p), np.uint64(experts.windows.size - 1), experts.of_rewards
    visits, sums = experts.tried[at, last], experts.sums[at, last]
    if visits == 0.0:
        return 2.0, 0.5
    mass, recent, total = 0.0, 0.0, 0.0
    for k in range(np.uint64(experts.windows.size)):
        omega = weights.overall[k] * weights.own[at, k]
        mass += omega
        recent += omega * experts.tried[at, k]
        total += omega * experts.sums[at, k]
    recent /= mass
    total /= mass
    forgotten = visits - recent if visits > recent else 0.0
    share = kept(experts.strength, weights, p, forgotten)
    r_mass = 2.0 + recent + share * forgotten
    return r_mass, (1.0 + total + share * (sums - total if sums > total else 0.0)) / r_mass


@inlined
def average_law(experts, law, unseen, omega, rows, n):
    """Average the counts of a law, as entries from number n on; returns its mass, the next number.

    The mass is mu and the samples that count. An entry is an outcome and its share of the mass; mu
    is in no entry. `omega` is room for weights.
    """
    at, K = np.uint64(law), experts.windows.size
    last, weights = np.uint64(K - 1), experts.of_laws
    visits = experts.visits[at, last]
    if visits == 0.0:
        return unseen, n
    total = 0.0
    for k in range(np.uint64(K)):
        omega[k] = weights.overall[k] * weights.own[at, k]
        total += omega[k]
    recent, first = 0.0, K - 1  # the shortest window that counts
    for k in range(K - 1, -1, -1):
        if omega[np.uint64(k)] < NEGLIGIBLE * total:
            omega[np.uint64(k)] = 0.0
        else:
            recent += omega[np.uint64(k)] * experts.visits[at, np.uint64(k)]
            first = k
    recent /= total
    forgotten = visits - recent if visits > recent else 0.0
    share = kept(experts.strength, weights, law, forgotten)
    mass = unseen + recent + share * forgotten
    scale = (1.0 - share) / (total * mass)
    for k in range(np.uint64(first), np.uint64(K)):
        omega[k] *= scale
    omega[last] += share / mass  # all history, less what is remembered of it
    cell = np.int64(experts.cells.newest[at])
    while cell != NONE:
        c = np.uint64(cell)
        part = 0.0
        for k in range(np.uint64(first), np.uint64(K)):
            part += omega[k] * experts.cells.counts[c, k]
        if part > 0.0:
            rows[n]["index"] = experts.cells.outcome[c]
            rows[n]["probability"] = part
            n += 1
        cell = np.int64(experts.cells.older[c])
    return mass, n


@take_in.register(Estimate, forceinline=True)
def _take_in(estimate, p, reward, after, seen):  # noqa: ARG001 - nothing is known of variables
    estimate.pairs[np.uint64(p)]["plays"] += 1.0
    take(estimate.experts, p, reward, after)


@open_epoch.register(Estimate)
def _open_epoch(estimate):
    for p in range(estimate.pairs.size):
        pair = estimate.pairs[p]
        pair["plays"] = 0.0
        known = min(pair["p_mass"] - estimate.unseen, pair["r_mass"] - 2.0)
        pair["limit"] = max(1.0, known)


@is_full.register(Estimate, forceinline=True)
def _is_full(estimate, p):
    pair = estimate.pairs[np.uint64(p)]
    return pair["plays"] >= pair["limit"]


@is_vacuous.register(Estimate, forceinline=True)
def _is_vacuous(estimate, p):
    return estimate.pairs[p]["entries"] == 0


@inlined
def payback_factor(estimate):
    """Return how many steps are left to profit over how many the world remembers, within limits."""
    if estimate.payback == 0.0:
        return 1.0
    experts = estimate.experts
    memory, taken, last = 0.0, experts.clock[0]["taken"], experts.windows.size - 1
    for k in range(experts.windows.size):
        # all history is longer than the horizon if the agent was preloaded
        reach = max(experts.windows[k], taken) if k == last else experts.windows[k]
        weight = experts.of_laws.overall[k] + experts.of_rewards.overall[k]
        memory += 0.5 * weight * reach
    left = estimate.horizon - (taken - experts.clock[0]["ahead"])
    return min(estimate.payback, min(left, memory) / max(1.0, min(np.float64(taken), memory)))


@inlined
def _moments(u):
    """Return the mean of u, of its squares, and its maximum."""
    even, square, top = 0.0, 0.0, u[0]
    for s in range(u.size):
        even += u[s]
        square += u[s] * u[s]
        top = max(top, u[s])
    return even / u.size, square / u.size, top


@inlined
def wilson(mean, variance, v, m):
    """Return by how much Wilson's upper bound, sqrt(v) deviations up, is above the mean."""
    root = math.sqrt(variance / m + v / (4.0 * m * m))
    return (mean + v / (2.0 * m) + math.sqrt(v) * root) / (1.0 + v / m) - mean


@inlined
def _add_bonus(estimate, p, p_mass, r_mass, even, even_square, top):
    """Say how much more than is known a pair may be worth; `even` and its like are times mu."""
    pair = estimate.pairs[p]
    q, m = pair["mean"], pair["r_mass"] + 1.0
    c = estimate.exploration * pair["factor"]
    v = c * c * math.log(1.0 + r_mass / pair["r_mass"])
    if estimate.gaussian:
        of_reward = math.sqrt(v) * math.sqrt(q * (1.0 - q) / m)
    else:
        of_reward = wilson(q, q * (1.0 - q), v, m)
    mean, square = even, even_square
    for i in range(pair["row"], pair["row"] + pair["entries"]):
        entry = estimate.rows[np.uint64(i)]
        ahead = estimate.u[np.uint64(entry["index"])]
        mean += pair["p_mass"] * entry["probability"] * ahead
        square += pair["p_mass"] * entry["probability"] * ahead * ahead
    mean /= pair["p_mass"]
    variance = max(0.0, square / pair["p_mass"] - mean * mean)
    of_next = c * math.sqrt(
        math.log(1.0 + p_mass / pair["p_mass"]) * variance / (pair["p_mass"] + 1.0)
    )
    of_next = min(of_next, max(0.0, top - mean))  # no next state is better than the best
    pair["bonus"] = math.sqrt(of_reward * of_reward + of_next * of_next)
    pair["reward"] = q + pair["bonus"]


DAMPING = 0.95
EVALUATIONS = 5
EPSILON = 0.01
MOST = 200


@inlined
def value(estimate, p, even):
    """Return r + p.u of a pair; `even` is the mean of u, times mu."""
    pair, u = estimate.pairs[np.uint64(p)], estimate.u
    total = even / pair["p_mass"]
    for i in range(np.uint64(pair["row"]), np.uint64(pair["row"] + pair["entries"])):
        entry = estimate.rows[i]
        total += entry["probability"] * u[np.uint64(entry["index"])]
    return pair["reward"] + total


@inlined
def spread_evenly(estimate):
    """Return what the pseudo-counts of next states expect: the mean of u, times mu."""
    total = 0.0
    for s in range(estimate.u.size):
        total += estimate.u[s]
    return estimate.unseen * total / estimate.u.size


@compiled
def improve(estimate, policy, swept, answer):
    """Plan from `estimate.u` on; fills policy (as pairs), `swept` (a workspace) and the answer."""
    u = estimate.u
    sweeps, low, high = 0, 0.0, np.inf
    while True:
        even, low, high = spread_evenly(estimate), np.inf, -np.inf
        for s in range(u.size):
            best, greedy = -np.inf, np.int64(-1)
            for p in range(estimate.offsets[s], estimate.offsets[s + 1]):
                if estimate.pairs[np.uint64(p)]["allowed"] != 0:
                    v = value(estimate, p, even)
                    if v > best:
                        best, greedy = v, np.int64(p)
            policy[s] = greedy
            swept[s] = best
            low = min(low, best - u[s])
            high = max(high, best - u[s])
        sweeps += 1
        if high - low <= EPSILON or sweeps == MOST:
            break
        for s in range(u.size):
            u[s] += DAMPING * (swept[s] - u[s])
        for _ in range(EVALUATIONS):
            even = spread_evenly(estimate)
            for s in range(u.size):
                swept[s] = value(estimate, policy[s], even)
            for s in range(u.size):
                u[s] += DAMPING * (swept[s] - u[s])
        rebase(u)
    answer[0]["gain"] = 0.5 * (low + high)
    answer[0]["span"] = rebase(u)
    answer[0]["gap"] = high - low
    answer[0]["sweeps"] = sweeps


EPOCH = np.dtype(
    [
        ("number", np.int64),
        ("start", np.int64),
        ("before", np.int64),  # the length of the epoch before
        ("planned", np.int64),  # the time of the last plan
        ("n_samples", np.int64),  # of the weights, for `forgetting`
        ("sample_due", np.int64),
    ],
    align=True,
)
LONGEST = 8  # steps a plan of a small model lasts


class MultiScaleLearner(NamedTuple):
    """Estimate, policy, epoch; `windage.agents.multiscale.multiscale` makes one."""

    estimate: Estimate
    policy: NDArray[np.int64]  # [S] as pairs
    swept: NDArray[np.float64]  # [S] workspace
    answer: NDArray[np.void]  # [1] evi.ANSWER
    epoch: NDArray[np.void]  # [1] EPOCH
    log: NDArray[np.void]  # swucrl2cw.LOG, epoch m in row m % size
    samples: NDArray[np.float64]  # [rows, 2, K] the overall weights, as they were ...
    times: NDArray[np.int64]  # [rows] ... at these times
    every: int  # as many steps apart, and up to the next plan
    key: NDArray[np.uint64]
    pace: int  # steps between two plans, at least
    patience: float  # a plan lasts as long as it takes to learn one part in so many; 0: no longer
    spread: float  # random factors are from 1 - spread to 1 + spread
    grows: bool  # whether an epoch lasts at most one step longer than the one before
    low: float  # rewards are taken from [low, high] to [0, 1]
    high: float


@inlined
def is_over(learner, t, s):
    """Return why a new epoch starts at time t in state s, 0 if the old one goes on."""
    epoch = learner.epoch[0]
    if epoch["number"] == 0:
        return FIRST
    if is_full(learner.estimate, learner.policy[np.uint64(s)]):
        return VISITS
    too_long = learner.grows and t - epoch["start"] > epoch["before"]
    return LENGTH if too_long else GOING_ON


@compiled
def replan(learner, t, reason):
    """Form the estimate anew and plan with it; a reason starts a new epoch."""
    epoch, estimate = learner.epoch[0], learner.estimate
    if reason != GOING_ON:
        for p in range(estimate.pairs.size):
            draw = uniform(learner.key, t, p)
            estimate.pairs[p]["factor"] = 1.0 + learner.spread * (2.0 * draw - 1.0)
    form(estimate)
    improve(estimate, learner.policy, learner.swept, learner.answer)
    epoch["planned"] = t
    if reason != GOING_ON:
        open_epoch(estimate)
        _turn_page(learner, t, reason)
    if t >= epoch["sample_due"]:
        _sample_weights(learner, t)


@inlined
def _turn_page(learner, t, reason):
    """Close the row of the last epoch and open the next."""
    epoch = learner.epoch[0]
    row = learner.log[epoch["number"] % learner.log.size]
    row["length"] = t - epoch["start"]
    row["reason"] = reason
    epoch["before"] = t - epoch["start"] if epoch["number"] > 0 else 0
    epoch["number"] += 1
    epoch["start"] = t
    row = learner.log[epoch["number"] % learner.log.size]
    row["start"] = t
    row["length"] = 0
    row["reason"] = GOING_ON
    row["sweeps"] = learner.answer[0]["sweeps"]
    row["ties"] = 0
    row["gain"] = learner.answer[0]["gain"]
    row["span"] = learner.answer[0]["span"]
    unseen = 0
    for p in range(learner.estimate.pairs.size):
        unseen += is_vacuous(learner.estimate, p)
    row["vacuous"] = unseen / learner.estimate.pairs.size


@inlined
def _sample_weights(learner, t):
    """Record the overall weights: the effective memory, as `forgetting` shows it."""
    epoch, experts = learner.epoch[0], learner.estimate.experts
    row = epoch["n_samples"]
    learner.times[row] = t
    for k in range(experts.windows.size):
        learner.samples[row, 0, k] = experts.of_laws.overall[k]
        learner.samples[row, 1, k] = experts.of_rewards.overall[k]
    epoch["n_samples"] = row + 1
    epoch["sample_due"] = t + learner.every


@inlined
def is_old(learner, t, s):
    """Return whether the plan is too old to be played in state s.

    A few steps hardly change what is known of a pair with many samples: a plan lasts for one part
    in `patience` of them, as they were at the start of the epoch.
    """
    age = t - learner.epoch[0]["planned"]
    if age < learner.pace:
        return False
    if age >= LONGEST or learner.patience == 0.0:
        return True
    pair = learner.estimate.pairs[np.uint64(learner.policy[np.uint64(s)])]
    return age * learner.patience >= pair["limit"]


@inlined
def prepare(learner, t, s):
    """Replan if a new epoch is due, or the plan has become old."""
    reason = is_over(learner, t, s)
    if reason != GOING_ON or is_old(learner, t, s):
        replan(learner, t, reason)


@inlined
def learn(learner, p, reward, after, seen):
    """Take in one step."""
    scaled = (reward - learner.low) / (learner.high - learner.low)
    take_in(learner.estimate, p, scaled, after, seen)


@act.register(MultiScaleLearner, forceinline=True)
def _act(learner, t, s):
    prepare(learner, t, s)
    return learner.policy[np.uint64(s)]


@observe.register(MultiScaleLearner, forceinline=True)
def _observe(learner, t, s, p, reward, after, seen):  # noqa: ARG001 - a pair has its state
    learn(learner, p, reward, after, seen)
