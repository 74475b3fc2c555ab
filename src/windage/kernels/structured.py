"""Laws instead of rows: what a multi-scale learner does differently where it knows a structure.

A structure says where every joint outcome of a pair's variables leads and what it pays; what is
learned is the law of each variable. Counts and weights of the windows are those of laws
(`window_experts`). Only the model is formed otherwise, and what is learned of a step:

    laws      q(o) = (mu/O + sum_k omega_k n_k(o) + the forgotten past) / M,    M = mu + samples
    pairs     row and mean reward: sums over the joint outcomes of the products of their laws
    hope      only for laws that some action of the state does not show; with V(o) what outcome o
              is worth on average, u being the last plan's bias, and v = c^2 zeta^2 l, where
              l = log(1 + f mean_b M_b / M), M_b the least such M of action b:
              b = range(V) times Wilson's bound at v with M + 1 samples, at most max V - mean
              the reward planned with is the mean plus the root of the sum of b^2

Where a step shows an interval of outcomes and not one of them (sales that sold out), intervals are
what is counted, and laws are fitted to the counts by expectation-maximisation (Turnbull 1976), from
where the last fit left off:

    q(o) <- (mu/O + n(o) + sum_I n(I) q(o) 1[o in I] / q(I)) / M

The fits of the windows take `TO_SCORE` rounds before each sample of a law, with one pseudo-count;
the law that is planned with takes `TO_PLAN`. A window's chance of an interval is its sum.

What is planned with is up to a *belief*: `Average` is the above; `posterior.Drawn` draws laws and
learned mean rewards from their posteriors instead.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.jit import compiled, inlined, variants
from windage.kernels.multiscale import (
    average_law,
    form,
    is_full,
    is_vacuous,
    mean_reward,
    open_epoch,
    payback_factor,
    take_in,
    wilson,
)
from windage.kernels.window_experts import (
    GRAIN,
    NONE,
    Experts,
    count_step,
    place_of,
    predict_outcome,
    predict_reward,
    reweigh,
    score_past_of_outcome,
    score_past_of_reward,
)

ROUNDING = 1e-9  # a law known from three samples may say 3 + 1e-16
TO_SCORE, TO_PLAN = 2, 20  # rounds of a fit to intervals
MOST = 2**31 - 1
SAME = 1e-9  # rewards in [0, 1] that differ by less are told apart by nobody

LAW = np.dtype(
    [
        ("mass", np.float64),  # M
        ("plays", np.float64),  # nu, how often it was used in this epoch
        ("limit", np.float64),  # as many uses end the epoch
    ],
    align=True,
)


class Known(NamedTuple):
    """A structure, as compiled code has it; `windage.agents.multiscale.structured` makes one."""

    law_of: NDArray[np.int32]  # [pairs, F] of the variables a pair involves, else -1
    shows: NDArray[np.int32]  # [pairs, F] the law a sample is of, if one is shown, else -1
    hoped: NDArray[np.bool_]  # [pairs, F] whether some action of the state does not show the law
    hopes: bool  # whether any is
    outcomes: NDArray[np.int64]  # [L + 1] where the outcomes of each law start
    intervals: NDArray[np.bool_]  # [L] whether intervals of it are shown
    spans: NDArray[np.int32]  # [symbols, 2] the ends of the intervals, as they are numbered
    first: NDArray[np.int64]  # [pairs + 1] where the joint outcomes of each pair start
    next_state: NDArray[np.int32]  # [joint]
    reward: NDArray[np.float64]  # [joint] in [0, 1]; empty if rewards are learned
    row: NDArray[np.int64]  # [pairs + 1] where the entries of each pair's row start
    entry: NDArray[np.int32]  # [joint] which entry of the row a joint outcome leads to


class Average(NamedTuple):
    """Plan with the average of the windows, and hope for what it does not know."""

    code: int


@variants
def form_law(belief, estimate, law):
    """Say what to plan with for a law: its `q` and `mass`."""


@variants
def form_reward(belief, estimate, p):
    """Say what to plan with for the mean reward of a pair that is learned."""


@variants
def is_used_up(belief, estimate, p):
    """Return whether something of a pair was used in this epoch as often as it may be."""


class StructuredEstimate(NamedTuple):
    """The model by laws, and the bias it was last planned with; beside `multiscale.Estimate`."""

    experts: Experts
    known: Known
    belief: NamedTuple
    horizon: int
    unseen: float  # 0: all is in the rows
    prior: float  # mu: pseudo-counts of a law, spread over its outcomes
    exploration: float  # c
    payback: float
    offsets: NDArray[np.int64]  # [S + 1]
    pairs: NDArray[np.void]  # [pairs] multiscale.PAIR
    rows: NDArray[np.void]  # plan.ENTRY: next states and their probabilities
    u: NDArray[np.float64]  # [S]
    laws: NDArray[np.void]  # [L] LAW
    q: NDArray[np.float64]  # [sum of O] the laws, as planned with
    fits: NDArray[np.float64]  # [K, sum of O] those of the windows; empty without intervals
    omega: NDArray[np.float64]  # [K] workspace
    counted: NDArray[np.void]  # plan.ENTRY, workspace: what is counted of a law
    joint: NDArray[np.float64]  # workspace: probabilities of joint outcomes
    worth: NDArray[np.float64]  # [O] workspace: V
    sums: NDArray[np.float64]  # [3, O + 1] workspace
    told: NDArray[np.int64]  # [F, 2] workspace: what the step shows
    cells: NDArray[np.int32]  # [F] workspace


@inlined
def symbol_of(known, law, low, high):
    """Return by which number what was shown of a law is counted."""
    return high * (high + 1) // 2 + low if known.intervals[law] else low


@inlined
def _begin_round(q, first, n, sums):
    """Add up a law, sums[0, o] being all before o, and make room for what it is fitted to."""
    sums[0, 0] = 0.0
    for o in range(n):
        sums[0, o + 1] = sums[0, o] + q[first + o]
        sums[1, o] = 0.0
        sums[2, o] = 0.0
    sums[2, n] = 0.0


@inlined
def _add(known, symbol, share, sums):
    """Fit to what is the share of a sample: an outcome, or an interval that shares it out."""
    low, high = known.spans[symbol, 0], known.spans[symbol, 1]
    if low == high:
        sums[1, low] += share
    else:
        part = share / (sums[0, high + 1] - sums[0, low])
        sums[2, low] += part
        sums[2, high + 1] -= part


@inlined
def _end_round(q, first, n, even, sums):
    part = 0.0
    for o in range(n):
        part += sums[2, o]
        q[first + o] = even + sums[1, o] + q[first + o] * part


@compiled
def _fit_windows(estimate, law):
    """Fit the law of every window to what it remembers."""
    experts, known, sums = estimate.experts, estimate.known, estimate.sums
    first, n = known.outcomes[law], known.outcomes[law + 1] - known.outcomes[law]
    for k in range(experts.windows.size):
        share = 1.0 / (experts.visits[law, k] + 1.0)
        for _ in range(TO_SCORE):
            _begin_round(estimate.fits[k], first, n, sums)
            cell = np.int64(experts.cells.newest[law])
            while cell != NONE:
                count = experts.cells.counts[cell, k]
                if count > 0:
                    _add(known, experts.cells.outcome[cell], count * share, sums)
                cell = np.int64(experts.cells.older[cell])
            _end_round(estimate.fits[k], first, n, share * experts.even[law], sums)


@inlined
def _predict_interval(estimate, law, low, high, chances):
    """Fill in how likely each window held an interval; returns N, n and n of all history.

    The counts are those expected under each window's fit.
    """
    experts, at = estimate.experts, estimate.known.outcomes[law]
    weights, even = experts.of_laws, (high - low + 1) * experts.even[law]
    mass, recent, hits, inside = 0.0, 0.0, 0.0, 0.0
    for k in range(experts.windows.size):
        visits, chance = experts.visits[law, k], 0.0
        for o in range(at + low, at + high + 1):
            chance += estimate.fits[k, o]
        omega = weights.overall[k] * weights.own[law, k]
        inside = chance * (visits + 1.0) - even
        mass += omega
        recent += omega * visits
        hits += omega * inside
        chances[k] = chance
    return recent / mass, hits / mass, inside


@inlined
def _score(estimate, law, low, high, cell):
    """Weigh the windows, and the past they have forgotten, by what was shown of a law."""
    experts = estimate.experts
    chances = experts.chances[0]
    if estimate.known.intervals[law]:
        _fit_windows(estimate, law)
        recent, hits, seen = _predict_interval(estimate, law, low, high, chances)
        mean = (high - low + 1) * experts.even[law]
    else:
        recent, hits = predict_outcome(experts, law, cell, chances)
        seen = np.float64(experts.cells.counts[cell, experts.windows.size - 1])
        mean = experts.even[law]
    reweigh(experts, experts.of_laws, law, chances)
    if experts.strength > 0.0:
        score_past_of_outcome(experts, law, mean, recent, hits, seen)


@compiled
def complete(known, p, reward, after, same, seen, told):
    """Write what a step shows, and infer what it should and does not; returns if anything fits.

    What is inferred are the lowest and the highest outcome among all joint outcomes that lead to
    the next state, pay the reward up to `same`, and lie within what is shown.
    """
    F, fits, missing = known.law_of.shape[1], False, False
    for f in range(F):
        told[f, 0], told[f, 1] = seen[f, 0], seen[f, 1]
        if known.law_of[p, f] >= 0 and seen[f, 1] < seen[f, 0]:
            told[f, 0], told[f, 1] = MOST, -1
            missing = True
    if not missing:
        return True
    for j in range(known.first[p], known.first[p + 1]):
        if known.next_state[j] != after:
            continue
        if known.reward.size > 0 and abs(known.reward[j] - reward) > same:
            continue
        rest, inside = j - known.first[p], True
        for f in range(F - 1, -1, -1):
            law = known.law_of[p, f]
            if law >= 0:
                n = known.outcomes[law + 1] - known.outcomes[law]
                o, rest = rest % n, rest // n
                inside = inside and (
                    seen[f, 1] < seen[f, 0] or (seen[f, 0] <= o and o <= seen[f, 1])
                )
        if not inside:
            continue
        fits, rest = True, j - known.first[p]
        for f in range(F - 1, -1, -1):
            law = known.law_of[p, f]
            if law >= 0:
                n = known.outcomes[law + 1] - known.outcomes[law]
                o, rest = rest % n, rest // n
                if seen[f, 1] < seen[f, 0]:
                    told[f, 0], told[f, 1] = min(told[f, 0], o), max(told[f, 1], o)
    return fits


@take_in.register(StructuredEstimate)
def _take_in(estimate, p, reward, after, seen):
    experts, known, told, cells = estimate.experts, estimate.known, estimate.told, estimate.cells
    complete(known, p, reward, after, SAME, seen, told)
    compares = experts.by_overall or experts.by_law or experts.strength > 0.0
    for f in range(cells.size):
        used, law = known.law_of[p, f], np.int64(known.shows[p, f])
        low, high = told[f, 0], told[f, 1]
        cells[f] = NONE
        if used >= 0:
            estimate.laws[used]["plays"] += 1.0
        if law >= 0 and (low == high or (low < high and known.intervals[law])):
            cells[f] = place_of(experts.cells, law, symbol_of(known, law, low, high))
            if compares:
                _score(estimate, law, low, high, np.int64(cells[f]))
    exact = math.floor(reward * GRAIN + 0.5) / GRAIN
    if known.reward.size == 0:
        recent, hits = predict_reward(experts, p, exact, experts.chances[1])
        reweigh(experts, experts.of_rewards, p, experts.chances[1])
        if experts.strength > 0.0:
            score_past_of_reward(experts, p, exact, recent, hits)
        estimate.pairs[p]["plays"] += 1.0
    count_step(experts, cells, p, exact)
    experts.clock[0]["state"] = after


@form.register(StructuredEstimate)
def _form(estimate):
    for law in range(estimate.laws.size):
        form_law(estimate.belief, estimate, law)
    if estimate.known.reward.size == 0:
        for p in range(estimate.pairs.size):
            form_reward(estimate.belief, estimate, p)
    form_pairs(estimate)
    if estimate.exploration > 0.0 and (estimate.known.hopes or estimate.known.reward.size == 0):
        _hope(estimate)


@form_law.register(Average)
def _average_law(_belief, estimate, law):
    known, q, sums = estimate.known, estimate.q, estimate.sums
    first, n = known.outcomes[law], known.outcomes[law + 1] - known.outcomes[law]
    mass, met = average_law(
        estimate.experts, law, estimate.prior, estimate.omega, estimate.counted, 0
    )
    estimate.laws[law]["mass"] = mass
    even = estimate.prior / (n * mass)
    if known.intervals[law]:
        for _ in range(TO_PLAN):
            _begin_round(q, first, n, sums)
            for i in range(met):
                entry = estimate.counted[i]
                _add(known, entry["index"], entry["probability"], sums)
            _end_round(q, first, n, even, sums)
    else:
        for o in range(n):
            q[first + o] = even
        for i in range(met):
            entry = estimate.counted[i]
            q[first + entry["index"]] += entry["probability"]


@compiled
def believe(estimate):
    """Average the counts of all laws, whatever it is that is planned with."""
    for law in range(estimate.laws.size):
        form_law(Average(0), estimate, law)


@form_reward.register(Average)
def _average_reward(_belief, estimate, p):
    pair = estimate.pairs[p]
    pair["r_mass"], pair["mean"] = mean_reward(estimate.experts, p)


@compiled
def form_pairs(estimate):
    """Multiply the laws of every pair, and add up where their outcomes lead and what they pay."""
    known, joint, rows = estimate.known, estimate.joint, estimate.rows
    F, before = known.law_of.shape[1], 0
    for p in range(estimate.pairs.size):
        pair, start = estimate.pairs[p], known.first[p]
        alike = p > 0
        for f in range(F):
            alike = alike and known.law_of[p, f] == known.law_of[before, f]
        if not alike:
            _multiply(estimate, p)
            before = p
        row = known.row[p]
        for i in range(row, known.row[p + 1]):
            rows[i]["probability"] = 0.0
        mean, paid = 0.0, known.reward.size > 0
        first = np.uint64(row)
        for i in range(np.uint64(known.first[p + 1] - start)):
            at = np.uint64(start) + i
            rows[first + np.uint64(known.entry[at])]["probability"] += joint[i]
            if paid:
                mean += joint[i] * known.reward[at]
        if paid:
            pair["mean"] = mean
        pair["bonus"] = 0.0
        pair["reward"] = pair["mean"]


@inlined
def _multiply(estimate, p):
    """Write the probabilities of the joint outcomes of a pair."""
    known, joint, n = estimate.known, estimate.joint, 1
    joint[0] = 1.0
    for f in range(known.law_of.shape[1]):
        law = known.law_of[p, f]
        if law >= 0:
            first, size = known.outcomes[law], known.outcomes[law + 1] - known.outcomes[law]
            for i in range(n - 1, -1, -1):
                before = joint[i]
                for o in range(size):
                    joint[i * size + o] = before * estimate.q[first + o]
            n *= size


@inlined
def _hope(estimate):
    """Add what may be better than is known."""
    known, payback = estimate.known, payback_factor(estimate)
    learned = known.reward.size == 0
    for s in range(estimate.u.size):
        first, last = estimate.offsets[s], estimate.offsets[s + 1]
        mass, mass_r, n = 0.0, 0.0, 0
        for p in range(first, last):
            least = _least_mass(estimate, p)
            if least < np.inf:
                mass += least
                n += 1
            mass_r += estimate.pairs[p]["r_mass"]
        if n == 0 and not learned:
            continue
        mass *= payback / max(1, n)
        mass_r *= payback / (last - first)
        for p in range(first, last):
            pair = estimate.pairs[p]
            c = estimate.exploration * pair["factor"]
            total, mean, spread = 0.0, 0.0, False
            if learned:
                q, m = pair["mean"], pair["r_mass"]
                b = wilson(q, q * (1.0 - q), c * c * math.log(1.0 + mass_r / m), m + 1.0)
                total += b * b
            for f in range(known.law_of.shape[1]):
                if known.hoped[p, f]:
                    if not spread:
                        mean, spread = _spread_value(estimate, p), True
                    m = estimate.laws[known.law_of[p, f]]["mass"]
                    b = _better(estimate, p, f, mean, c * c * math.log(1.0 + mass / m), m + 1.0)
                    total += b * b
            pair["bonus"] = math.sqrt(total)
            pair["reward"] = pair["mean"] + pair["bonus"]


@inlined
def _least_mass(estimate, p):
    """Return the least M of the laws of a pair that are hoped for, infinity if there is none."""
    known, least = estimate.known, np.inf
    for f in range(known.law_of.shape[1]):
        if known.hoped[p, f]:
            least = min(least, estimate.laws[known.law_of[p, f]]["mass"])
    return least


@inlined
def _spread_value(estimate, p):
    """Write what each joint outcome of a pair adds to its value, and return their sum."""
    known, joint, total = estimate.known, estimate.joint, 0.0
    _multiply(estimate, p)
    start = np.uint64(known.first[p])
    paid = known.reward.size > 0
    for i in range(np.uint64(known.first[p + 1] - known.first[p])):
        at = start + i
        value = estimate.u[np.uint64(known.next_state[at])]
        if paid:
            value += known.reward[at]
        joint[i] *= value
        total += joint[i]
    return total


@inlined
def _better(estimate, p, f, mean, v, m):
    """Return how much better than on average a pair may be, for all that is known of one law."""
    known, joint, worth = estimate.known, estimate.joint, estimate.worth
    law = known.law_of[p, f]
    first = np.uint64(known.outcomes[law])
    size = np.uint64(known.outcomes[law + 1]) - first
    stride = 1  # joint outcomes between one outcome of it and the next
    for g in range(f + 1, known.law_of.shape[1]):
        other = known.law_of[p, g]
        if other >= 0:
            stride *= known.outcomes[other + 1] - known.outcomes[other]
    for o in range(size):
        worth[o] = 0.0
    i, n = np.uint64(0), np.uint64(known.first[p + 1] - known.first[p])
    while i < n:
        for o in range(size):
            part = 0.0
            for _ in range(np.uint64(stride)):
                part += joint[i]
                i += np.uint64(1)
            worth[o] += part
    low, high, square = np.inf, -np.inf, 0.0
    for o in range(size):
        q = estimate.q[first + o]
        value = worth[o] / q
        low, high = min(low, value), max(high, value)
        square += q * (value - mean) * (value - mean)
    span = high - low
    if span <= 0.0:
        return 0.0
    b = span * wilson((mean - low) / span, square / (span * span), v, m)
    return min(b, max(0.0, high - mean))


@open_epoch.register(StructuredEstimate)
def _open_epoch(estimate):
    for law in range(estimate.laws.size):
        record = estimate.laws[law]
        record["plays"] = 0.0
        record["limit"] = max(1.0, record["mass"] - estimate.prior)
    for p in range(estimate.pairs.size):
        estimate.pairs[p]["plays"] = 0.0


@is_full.register(StructuredEstimate)
def _is_full(estimate, p):
    return is_used_up(estimate.belief, estimate, p)


@is_used_up.register(Average)
def _is_hoped_for_too_long(_belief, estimate, p):
    known = estimate.known
    for f in range(known.law_of.shape[1]):
        if known.hoped[p, f]:
            record = estimate.laws[known.law_of[p, f]]
            if record["plays"] >= record["limit"] - ROUNDING:
                return True
    return False


@is_vacuous.register(StructuredEstimate)
def _is_vacuous(estimate, p):
    experts, known = estimate.experts, estimate.known
    for f in range(known.law_of.shape[1]):
        law = known.law_of[p, f]
        if law >= 0 and experts.visits[law, experts.windows.size - 1] == 0.0:
            return True
    return False


@compiled
def take_past(estimate, p, reward, after, seen):
    """`take_in` of a step before t = 1: no epoch has begun."""
    take_in(estimate, p, reward, after, seen)
    for law in range(estimate.laws.size):
        estimate.laws[law]["plays"] = 0.0
    estimate.pairs[p]["plays"] = 0.0


@compiled
def weigh_laws(estimate, samples):
    """Write how many samples of each law count, without touching what was planned with."""
    for law in range(samples.size):
        mass, _ = average_law(
            estimate.experts, law, estimate.prior, estimate.omega, estimate.counted, 0
        )
        samples[law] = mass - estimate.prior
