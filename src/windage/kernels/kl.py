"""Kullback-Leibler balls around p_hat, the sets of KL-UCRL (Filippi, Cappe, Garivier 2010).

The ball of radius e holds the rows q with KL(p, q) <= e, p = p_hat. By weak duality, for every
nu >= max u and every such q,

    q.u <= D(nu) = nu - exp(sum p_i ln(nu - u_i) - e),

and the least D is attained. D is convex, and D' = 1 - exp(f(nu) - e) with

    f(nu) = sum p_i ln(nu - u_i) + ln sum p_i / (nu - u_i),    falling in nu on (top, inf),

where top = max u over the support of p. So the least D is at nu = max u if f is at most e there,
else where f = e, and the row q_i = exp(f - e) p_i / (nu - u_i) / sum p / (nu - u), with the rest on
the best state, attains it (the paper's Algorithm 2, whose two cases these are). A search that stops
early returns a D that is still an upper bound: optimism does not hang on its precision.

The search is for y = ln(nu - top), with gaps top - u_i >= 0: nu - u_i = gap + exp(y) is never the
difference of two numbers that are nearly equal. In y, f falls like a line and then like exp(-2y):
Newton's method finds the end of the line on f and what is beyond it on ln f, inside a bracket.

With a widening eta the value is min(max u, D + eta / 2 span(u)): no row within an L1 distance of
eta of the ball has more.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.confidence import radius, refresh_pair, set_pair
from windage.kernels.evi import (
    BOUND,
    EVALUATIONS,
    estimate,
    evaluate,
    fill_values,
    rebase,
    to_rows,
)
from windage.kernels.jit import compiled, inlined
from windage.kernels.window import r_hat

TOLERANCE = 1e-7  # of y; D is flat at its minimum, so it is off by the square of that
STEPS = 100  # never needed: halving the bracket alone takes half as many
DEEPEST = 650.0  # y stays above ln(span) less this: closer to top, nothing is left elsewhere
LEAST = -700.0  # and above this, where exp(y) is still a normal number
SMALLEST = 1e-30  # a smaller radius moves values by less than rounding does


class KLBalls(NamedTuple):
    """KL balls and the workspace to plan in them; `agents.optimistic.kl_ucrl` makes one."""

    pairs: NDArray[np.void]
    states: NDArray[np.void]
    u: NDArray[np.float64]
    rows: NDArray[np.void]  # p_hat by pair, next states in rising order
    answer: NDArray[np.void]
    kernel: NDArray[np.float64]  # q of the entries of a row; a pair's `left` is on the best state
    log_gap: NDArray[np.float64]  # [pairs] y of the last search, where the next one starts


@refresh_pair.register(KLBalls)
def _refresh(plan, rules, radii, sets, p, count, log_t):
    n = count["visits"]
    reward = r_hat(count) + radius(radii[0], n, log_t)
    plan.pairs[p]["rest"] = radii[1, 3] * radii[1, 0] / (n if n > 1 else 1)
    # 1 - exp(-e) of any row's mass may go to the best state: all of it, where that is rounded to 1
    vacuous = sets["eta"] >= 2.0 or 1.0 - math.exp(-plan.pairs[p]["rest"]) == 1.0
    set_pair(plan.pairs[p], rules, sets, count, reward, sets["eta"], vacuous)


@estimate.register(KLBalls)
def _estimate(plan, window):
    """Put rows in order of next states, so that no sum depends on how counts are stored."""
    to_rows(window, plan)
    for p in range(plan.pairs.size):
        plan.log_gap[p] = np.inf
        first = plan.pairs[p]["row"]
        for i in range(first + 1, first + plan.pairs[p]["entries"]):
            s, probability = plan.rows[i]["index"], plan.rows[i]["probability"]
            j = i
            while j > first and plan.rows[j - 1]["index"] > s:
                plan.rows[j]["index"] = plan.rows[j - 1]["index"]
                plan.rows[j]["probability"] = plan.rows[j - 1]["probability"]
                j -= 1
            plan.rows[j]["index"] = s
            plan.rows[j]["probability"] = probability


@fill_values.register(KLBalls)
def _fill(plan, best):
    most = plan.u[best]
    span = most - plan.u[plan.states[0]["order"]]
    for p in range(plan.pairs.size):
        pair, value = plan.pairs[p], most
        if pair["kind"] == BOUND:
            bound = maximum(plan, p, most)[0] + pair["half"] * span
            value = bound if bound < most else most
        pair["value"] = pair["reward"] + value


@compiled
def maximum(plan, p, most):
    """Return max q.u over the ball of a pair, and how much mass stays on its support.

    `most` is max u. The place of the optimum is left in `log_gap`.
    """
    u, rows, pair = plan.u, plan.rows, plan.pairs[p]
    first, last = pair["row"], pair["row"] + pair["entries"]
    top, least, mean = -np.inf, np.inf, 0.0
    for i in range(first, last):
        height = u[rows[i]["index"]]
        top = height if height > top else top
        least = height if height < least else least
    e = pair["rest"] if pair["rest"] > SMALLEST else SMALLEST
    beyond, span = most - top, top - least
    if span == 0.0:  # nothing can be moved inside the support
        plan.log_gap[p] = 0.0
        return top - beyond * math.expm1(-e), math.exp(-e)
    for i in range(first, last):
        mean += rows[i]["probability"] * (top - u[rows[i]["index"]])
    log_span, log_e = math.log(span), math.log(e)
    low = max(log_span - DEEPEST, LEAST) if beyond == 0.0 else math.log(beyond)
    high = max(low, min(log_span - log_e, -LEAST))  # f <= span / exp(y)
    edge, is_open = low, True  # whether f at `low` is not known to be above e
    y = min(max(plan.log_gap[p], low), high)
    value, f = most, 0.0
    for _ in range(STEPS):
        x = beyond if y == edge and beyond > 0.0 else math.exp(y)
        f, slope, log_mean = _dual(plan, first, last, top, mean, span, x, y)
        value = top - mean - (mean + x) * math.expm1(log_mean - e)
        if f > e:
            low, is_open = y, False
        elif y == edge:
            break
        else:
            high = y
        after = np.nan
        if f > 1.0:
            after = y + (e - f) / slope
        elif f > 0.0:
            after = y + (log_e - math.log(f)) * f / slope
        if abs(after - y) <= TOLERANCE:
            y = min(max(after, low), high)  # the row, unlike D, is off by as much as y is
            break
        if high - low <= TOLERANCE and not is_open:  # at an edge, D is not flat
            break
        if is_open and after <= edge:
            after = edge
        elif not low < after < high:  # or no number
            after = 0.5 * (low + high)
        y = after
    plan.log_gap[p] = y
    return value, math.exp(f - e) if y == edge and f < e else 1.0


@inlined
def _dual(plan, first, last, top, mean, span, x, y):
    """Return f, its derivative in y, and sum p ln((gap + x) / (mean gap + x)), at x = exp(y).

    Far from the support all ratios are nearly 1, near to it some are nearly 0: two ways to sum.
    """
    u, rows = plan.u, plan.rows
    a, log_mean, one, two = mean + x, 0.0, 0.0, 0.0
    if x > span:
        for i in range(first, last):
            share = rows[i]["probability"]
            off = (top - u[rows[i]["index"]] - mean) / a
            less = -off / (1.0 + off)
            log_mean += share * math.log1p(off)
            one += share * less
            two += share * less * less
        return log_mean + math.log1p(one), x / a * (one * one - two) / (1.0 + one), log_mean
    for i in range(first, last):
        share = rows[i]["probability"]
        gap = top - u[rows[i]["index"]] + x
        log_mean += share * math.log(gap / a)
        one += share * (x / gap)
        two += share * (x / gap) * (x / gap)
    return log_mean + math.log(a) - y + math.log(one), one - two / one, log_mean


@compiled
def best_kernel(plan, p, best, span):
    """Write the row that is best for u into `kernel`, and into `left` what it adds to a state.

    `best` is that state, the best of all, and `span` that of u. Row and value are those of a sweep.
    """
    u, rows, pair, most = plan.u, plan.rows, plan.pairs[p], plan.u[best]
    first, last = pair["row"], pair["row"] + pair["entries"]
    pair["left"] = 1.0
    if pair["kind"] != BOUND:
        return
    value, kept = maximum(plan, p, most)
    share = 0.0  # of the row that the widening moves to the best state
    if pair["half"] > 0.0:
        short, moved = most - value, pair["half"] * span
        share = moved / short if moved < short else 1.0
    top, total = -np.inf, 0.0
    for i in range(first, last):
        top = u[rows[i]["index"]] if u[rows[i]["index"]] > top else top
    x = math.exp(plan.log_gap[p])
    for i in range(first, last):
        plan.kernel[i] = rows[i]["probability"] / (top - u[rows[i]["index"]] + x)
        total += plan.kernel[i]
    for i in range(first, last):
        plan.kernel[i] *= (1.0 - share) * kept / total
    pair["left"] = share + (1.0 - share) * (1.0 - kept)


@evaluate.register(KLBalls)
def _evaluate(plan, _first):
    u, best, least = plan.u, np.int64(0), plan.u[0]
    for s in range(u.size):
        least = u[s] if u[s] < least else least
        if u[s] >= u[best]:
            best = np.int64(s)
    span = u[best] - least
    for s in range(u.size):
        best_kernel(plan, plan.states[s]["greedy"], best, span)
    for _ in range(EVALUATIONS):
        for s in range(u.size):
            pair = plan.pairs[plan.states[s]["greedy"]]
            total = pair["reward"] + pair["left"] * u[best]
            for i in range(pair["row"], pair["row"] + pair["entries"]):
                total += plan.kernel[i] * u[plan.rows[i]["index"]]
            plan.states[s]["swept"] = total
        for s in range(u.size):
            u[s] = plan.states[s]["swept"]
        rebase(u)
