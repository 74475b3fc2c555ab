"""UCRL3 (Bourel, Maillard, Talebi 2020): an interval for each next state, EVI on reduced supports.

With n visits, k of them followed by s', the interval of (s, a, s') has every q that is near enough
to k / n (`deviation`). Both of its conditions hold on an interval around k / n, since the square
root of a concave function is concave; so each end is found by bisection. It depends on (k, n)
alone and is remembered by them.

    l_n = 1.12 ln(ln(1.12 n) ln(1.12^2 n) / (ln(1.12)^2 delta'))

    q is plausible if |q - k/n| <= sqrt(2 q (1 - q) l_n / n) + l_n / (3 n), and
                      |q - k/n| <= sqrt(2 g(q) (1 + 1/n) ln(2 sqrt(n + 1) / delta') / n),
    g(q) = (1/2 - q) / ln(1/q - 1); q (1 - q) where k/n < q >= 1/2

Under drift k / n estimates the average of the rows of a window, and the exponents of the two
inequalities must not depend on it: both are peeled over the sum of variances (or of proxies g),

    |q - k/n| <= sqrt(2 max(q (1 - q), 1/n) l_n / n) + l_n / (3 n), and
    |q - k/n| <= sqrt(2 max(g(q), 1/n) l_n / n),
    l_n = 1.12 ln(j (j + 1) / delta'), j = 1 + max(0, ceil(ln(n / 4) / ln 1.12)).

NOSS. With f = u - min u, F(B) is the largest sum of f q over the states of B, q within the
intervals and of mass 1 at most. The support of a pair starts with the states seen and the best one;
the best state outside joins it until

    F(outside) <= min(kappa, F(support)), kappa = 10 span(u) (states seen) / (most visits)^(2/3).

What is left out is worth kappa at most. In the paper the support is chosen anew in every sweep; it
then depends on u by jumps, and EVI may go round in circles for ever. Here supports only grow while
one EVI lasts. After S SA growths at most they stay, the operator is monotone, and EVI converges as
it does with boxes; the rule above holds in the last sweep.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.confidence import radius, refresh_pair, set_pair
from windage.kernels.evi import (
    BOUND,
    estimate,
    evaluate,
    fill_values,
    put_boxes_in_order,
    to_rows,
)
from windage.kernels.jit import compiled, inlined
from windage.kernels.random import mix
from windage.kernels.window import r_hat, variance

PEELING = 1.12  # ratio of two slices, the paper's eta
HALVINGS = 60  # from there on the ends differ by less than rounding

INTERVAL = np.dtype(
    [("hits", np.int64), ("visits", np.int64), ("lower", np.float64), ("upper", np.float64)],
    align=True,
)
REST = np.dtype(
    [
        ("upper", np.float64),  # upper bound of a next state that was never seen
        ("kappa", np.float64),  # what may be left out, as a share of span(u)
    ],
    align=True,
)


class Supports(NamedTuple):
    """Intervals on supports that grow while an EVI lasts, and the workspace to plan in them."""

    pairs: NDArray[np.void]
    states: NDArray[np.void]
    u: NDArray[np.float64]
    rows: NDArray[np.void]  # lower bounds by pair
    answer: NDArray[np.void]
    rooms: NDArray[np.float64]  # upper less lower bound of each entry of a row
    rest: NDArray[np.void]  # [pairs] REST
    inside: NDArray[np.uint8]  # [pairs, S] whether a state is in the support of a pair
    known: NDArray[np.void]  # INTERVAL, a hash table; the last of those that share a place
    log_level: float  # ln(1 / delta')
    drift: bool  # whether intervals are for averages over a window of a model that drifts


@inlined
def _peeled(plan, n):
    """Return l_n / n."""
    if plan.drift:
        slices = 1.0 + max(0.0, math.ceil(math.log(n / 4.0) / math.log(PEELING)))
        weight = slices * (slices + 1.0)
    else:
        width = math.log(PEELING)
        weight = math.log(PEELING * n) * math.log(PEELING * PEELING * n) / (width * width)
    return PEELING * (math.log(weight) + plan.log_level) / n


@inlined
def _laplace(plan, n):
    """Return 2 (1 + 1/n) ln(2 sqrt(n + 1) / delta') / n; under drift 2 l_n / n stands for it."""
    if plan.drift:
        return 2.0 * _peeled(plan, n)
    return (1.0 + 1.0 / n) * (2.0 * (math.log(2.0) + plan.log_level) + math.log(n + 1.0)) / n


@inlined
def _proxy(q):
    """Return g(q), the sub-Gaussian variance proxy of a Bernoulli law."""
    if q <= 0.0 or q >= 1.0:
        return 0.0
    return 0.25 if q == 0.5 else (0.5 - q) / math.log(1.0 / q - 1.0)


@inlined
def deviation(q, floor, peeled, laplace, above):
    """Return how far an average may be from q; `above`: q is not below it.

    `floor` is 1 / n under drift, else 0.
    """
    spread = q * (1.0 - q)
    proxy = spread if above and q >= 0.5 else _proxy(q)
    bernstein = math.sqrt(2.0 * max(spread, floor) * peeled) + peeled / 3.0
    return min(bernstein, math.sqrt(max(proxy, floor) * laplace))


@inlined
def _end(plan, hits, n, end):
    """Return the largest plausible q of an interval if `end` is 1, the least if it is 0."""
    peeled, laplace, floor = _peeled(plan, n), _laplace(plan, n), 1.0 / n if plan.drift else 0.0
    share, above = hits / n, end > 0.5
    inside, outside = share, end
    if abs(end - share) <= deviation(end, floor, peeled, laplace, above):
        return end
    for _ in range(HALVINGS):
        middle = 0.5 * (inside + outside)
        if abs(middle - share) <= deviation(middle, floor, peeled, laplace, above):
            inside = middle
        else:
            outside = middle
    return inside


@compiled
def interval(plan, hits, n):
    """Return the place in the table of the interval after `hits` in n > 0 visits."""
    slot = mix(mix(np.uint64(hits)) + np.uint64(n)) & np.uint64(plan.known.size - 1)
    known = plan.known[slot]
    if known["hits"] != hits or known["visits"] != n:
        known["hits"] = hits
        known["visits"] = n
        known["lower"] = _end(plan, hits, float(n), 0.0)
        known["upper"] = _end(plan, hits, float(n), 1.0)
    return slot


@compiled
def fill_intervals(plan, hits, visits, lower, upper):
    """Write the ends of the intervals after `hits` in so many visits, arrays all."""
    for i in range(hits.size):
        known = plan.known[interval(plan, hits[i], visits[i])]
        lower[i] = known["lower"]
        upper[i] = known["upper"]


@refresh_pair.register(Supports)
def _refresh_supports(plan, rules, radii, sets, p, count, log_t):
    n = max(1.0, float(count["visits"]))
    sets["spread"] = radius(radii[0], count["visits"], log_t)  # Laplace's, in both forms
    if not plan.drift:
        peeled = _peeled(plan, n)
        bernstein = math.sqrt(2.0 * variance(count) * peeled) + 7.0 * peeled / 3.0
        sets["spread"] = min(sets["spread"], bernstein)
    # vacuous if a state never seen may get all the mass; then every state may, and lose it
    whole = deviation(
        1.0, 1.0 / n if plan.drift else 0.0, _peeled(plan, n), _laplace(plan, n), True
    )
    set_pair(plan.pairs[p], rules, sets, count, r_hat(count) + sets["spread"], 0.0, whole >= 1.0)


@estimate.register(Supports)
def _estimate_supports(plan, window):
    """Put lower bounds in the rows, with the room up to the upper ones; start with states seen."""
    to_rows(window, plan)
    most = 1
    for p in range(plan.pairs.size):
        most = max(most, window.counts[p]["visits"])
        for s in range(plan.u.size):
            plan.inside[p, s] = 0
    for p in range(plan.pairs.size):
        pair, n = plan.pairs[p], window.counts[p]["visits"]
        if pair["kind"] == BOUND:
            plan.rest[p]["upper"] = plan.known[interval(plan, 0, n)]["upper"]
            plan.rest[p]["kappa"] = 10.0 * pair["entries"] / float(most) ** (2.0 / 3.0)
        for i in range(pair["row"], pair["row"] + pair["entries"]):
            hits = np.int64(plan.rows[i]["probability"] * n + 0.5)  # the count itself
            known = plan.known[interval(plan, hits, n)]
            plan.rows[i]["probability"] = known["lower"]
            plan.rooms[i] = known["upper"] - known["lower"]
            plan.inside[p, plan.rows[i]["index"]] = 1


@fill_values.register(Supports)
def _fill_supports(plan, best):
    """Fill `value` of every pair by NOSS; u is rebased, so f = u."""
    u, rows = plan.u, plan.rows
    for p in range(plan.pairs.size):
        pair = plan.pairs[p]
        if pair["kind"] != BOUND:
            pair["value"] = pair["reward"] + u[best]
            continue
        first, last = pair["row"], pair["row"] + pair["entries"]
        put_boxes_in_order(u, rows, plan.rooms, first, last)
        left, least = 1.0, 0.0
        for i in range(first, last):
            left -= rows[i]["probability"]
            least += rows[i]["probability"] * u[rows[i]["index"]]
        plan.inside[p, best] = 1
        outside = np.int64(0)
        while outside >= 0:
            worth, outside = _near_optimum(plan, p, left, least, u[best])
            if outside >= 0:
                plan.inside[p, outside] = 1
        pair["value"] = pair["reward"] + worth


@inlined
def _near_optimum(plan, p, left, least, span):
    """Return F(support), and the best state outside if it has to join, else -1.

    `left` is the mass that the lower bounds leave, `least` what they are worth. One walk from the
    best state down fills the support and what is outside.
    """
    u, upper, first = plan.u, plan.rest[p]["upper"], plan.pairs[p]["row"]
    entry = first + plan.pairs[p]["entries"] - 1
    worth, rest, free, outside = least, 0.0, 1.0, np.int64(-1)
    for rank in range(u.size - 1, -1, -1):
        s = plan.states[rank]["order"]
        if plan.inside[p, s]:
            room = upper
            if entry >= first and plan.rows[entry]["index"] == s:
                room = plan.rooms[entry]
                entry -= 1
            given = min(left, room)
            worth += given * u[s]
            left -= given
        else:
            outside = s if outside < 0 else outside
            given = min(free, upper)
            rest += given * u[s]
            free -= given
        if left <= 0.0 and free <= 0.0:
            break
    return worth, outside if rest > min(plan.rest[p]["kappa"] * span, worth) else np.int64(-1)


@evaluate.register(Supports)
def _evaluate_supports(_plan, _first):
    """Leave u alone: intervals are not evaluated between sweeps."""
