"""Confidence sets (line 5 of Algorithm 1; Eqs. (4), (5)), and which actions are tied in them.

One shape of radius serves all. With N = max(1, n) visits a radius is

    scale * sqrt((a + b ln(N + 1) + c log_t) * (1 + 1/N if b > 0 else 1) / N)

and a rule is the row (a, b, c, scale). The paper's radii have b = c = 0, the Laplace radii b > 0,
those of UCRL2 c > 0 (`windage.confidence.radii` has the numbers).

Two roundings before the root would already cost more than an ulp, so everything after the rounding
of a and of the logarithms is carried in two words, high + low: what is left is half an ulp of the
inputs and half an ulp of the result.
"""

from __future__ import annotations

import math

import numpy as np

from windage.kernels.evi import Balls, Boxes, tie_bar
from windage.kernels.jit import compiled, inlined, variants
from windage.kernels.window import r_hat, variance

SETS = np.dtype(
    [
        ("lift", np.float64),  # widening of the rewards
        ("eta", np.float64),  # and of the transitions
        ("state", np.int64),
        ("visits", np.int64),  # N_tau
        ("r_hat", np.float64),
        ("visits_left", np.int64),  # N+_tau - nu
        ("vacuous", np.int64),  # whether H_p is the whole simplex
        ("spread", np.float64),  # radius of the rewards, if the sets are boxes
    ],
    align=True,
)
_SPLITTER = 134217729.0  # 2^27 + 1, Veltkamp: halves of 26 bits, whose products are exact


@inlined
def _product(x, y):
    """Return x * y as high + low, exactly (Dekker)."""
    high = x * y
    bits = _SPLITTER * x
    x_high = bits - (bits - x)
    x_low = x - x_high
    bits = _SPLITTER * y
    y_high = bits - (bits - y)
    y_low = y - y_high
    low = ((x_high * y_high - high) + x_high * y_low + x_low * y_high) + x_low * y_low
    return high, low


@inlined
def _sum(x, y):
    """Return x + y as high + low, exactly (Knuth)."""
    high = x + y
    part = high - x
    return high, (x - (high - part)) + (y - part)


@inlined
def _quotient(high, low, n):
    """Return (high + low) / n as high + low."""
    whole = high / n
    back, rest = _product(whole, n)
    return whole, ((high - back) - rest + low) / n


@inlined
def radius(rule, n, log_t):
    """Return the radius after n visits; `log_t` is the logarithm of the time, if c > 0."""
    N = max(1.0, float(n))
    high, low = rule[0], 0.0
    if rule[1] > 0.0:
        more, rest = _product(rule[1], math.log(N + 1.0))
        high, error = _sum(high, more)
        low = error + rest
    if rule[2] > 0.0:
        more, rest = _product(rule[2], log_t)
        high, error = _sum(high, more)
        low += error + rest
    high, low = _quotient(high, low, N)
    if rule[1] > 0.0:
        more, rest = _quotient(high, low, N)
        high, error = _sum(high, more)
        low += error + rest
    root = math.sqrt(high)
    square, rest = _product(root, root)
    correction = ((high - square) - rest + low) / (2.0 * root) if root > 0.0 else 0.0
    high, low = _product(rule[3], root)
    return high + (low + rule[3] * correction)


@inlined
def bernstein(rule, n):
    """Return what a Bernstein radius is made of: with variance v it is root sqrt(v) + rest.

    root = 2 scale sqrt(l / N), rest = 6 scale l / N, l = a + ln N (UCRL2B).
    """
    N = max(1.0, float(n))
    rate = (rule[0] + math.log(N)) / N
    return 2.0 * rule[3] * math.sqrt(rate), 6.0 * rule[3] * rate


@compiled
def fill(rule, visits, log_t, out):
    """Write the radius after each of `visits` to `out`."""
    for i in range(visits.size):
        out[i] = radius(rule, visits[i], log_t)


@compiled
def fill_bernstein(rule, visits, variance, out):
    """Write the Bernstein radius after each of `visits`, for the same variance, to `out`."""
    for i in range(visits.size):
        root, rest = bernstein(rule, visits[i])
        out[i] = root * math.sqrt(variance) + rest


@variants
def refresh_pair(plan, rules, radii, sets, p, count, log_t):
    """Renew the sets of one pair from its counts: r~, and where its kernels may lie."""


@refresh_pair.register(Balls)
def _refresh_ball(plan, rules, radii, sets, p, count, log_t):
    reward = r_hat(count) + radius(radii[0], count["visits"], log_t)
    width = radius(radii[1], count["visits"], log_t) + sets["eta"]
    set_pair(plan.pairs[p], rules, sets, count, reward, width, width >= 2.0)


@refresh_pair.register(Boxes)
def _refresh_box(plan, rules, radii, sets, p, count, log_t):  # noqa: ARG001 - none grows with t
    pair = plan.pairs[p]
    root, rest = bernstein(radii[0], count["visits"])
    sets["spread"] = root * math.sqrt(variance(count)) + rest
    pair["root"], pair["rest"] = bernstein(radii[1], count["visits"])
    # vacuous if even a state never seen may get all the mass
    vacuous = pair["rest"] + 0.5 * sets["eta"] >= 1.0
    set_pair(pair, rules, sets, count, r_hat(count) + sets["spread"], sets["eta"], vacuous)


@inlined
def set_pair(pair, rules, sets, count, reward, width, vacuous):
    """Set what sets of every shape have; `width` is that of the transitions, or their widening."""
    n = count["visits"]
    sets["visits"] = n
    sets["visits_left"] = n if n > 1 else 1
    sets["r_hat"] = r_hat(count)
    reward += sets["lift"]
    if rules["clip"]:
        reward = reward if reward < 1.0 else 1.0
        reward = reward if reward > 0.0 else 0.0
        reward = reward if n > 0 else 1.0  # never seen: anything (E8)
    pair["reward"] = reward
    pair["half"] = 0.5 * width
    sets["vacuous"] = 1 if n == 0 or vacuous else 0


@compiled
def best_reward(plan, s, slack):
    """Return max_a r~(s, a), and whether several actions are tied with it."""
    state, best, tied = plan.states[s], -np.inf, 0
    for p in range(state["first"], state["last"]):
        best = plan.pairs[p]["reward"] if plan.pairs[p]["reward"] > best else best
    for p in range(state["first"], state["last"]):
        tied += plan.pairs[p]["reward"] >= tie_bar(best, slack)
    return best, tied > 1


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
