"""Planning rules beside optimism: with a drawn model, or up a ladder of widenings.

The posterior is that of what is remembered: rows are Dirichlet with `prior / S` added to every
count, mean rewards Beta with one success and one failure added. A share of each row is spread
evenly, so that the drawn model communicates.

Of a structure laws are drawn instead of rows (`Drawn`), with `prior / O` added to every count.
Samples that are intervals have no posterior in closed form: in turn, which outcome each of them had
is drawn given the law, and the law given the outcomes (Tanner and Wong 1987), `TO_PLAN` times from
the last law drawn on. Of n samples in an interval not each is drawn but how many had an outcome, a
binomial number, by halving: the middle one of n uniform numbers has a Beta law (Relles 1972).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.confidence import renew
from windage.kernels.evi import BOUND, LEFT_OUT, Balls, arrange, solve
from windage.kernels.jit import compiled, inlined, variants
from windage.kernels.policy import fix_policy, optimistic_value, tied_from
from windage.kernels.random import gamma, log_gamma, mix, uniform
from windage.kernels.structured import (
    ROUNDING,
    TO_PLAN,
    form_law,
    form_reward,
    is_used_up,
)
from windage.kernels.swucrl2cw import evi, make_plan
from windage.kernels.window import DenseWindow, HashedWindow, r_hat
from windage.kernels.window_experts import NONE

SPREAD = 1e-3
SWEEPS = 2_000  # a drawn model needs no certificate: after as many sweeps its policy will do


class Ladder(NamedTuple):
    """Optimism with the first widening, of those to try, whose bias is flat enough."""

    widenings: NDArray[np.float64]  # rising; the last one always
    most_span: float


class Posterior(NamedTuple):
    """Planning with a drawn model."""

    prior: float  # pseudo-counts of a row of transitions


class SampledTies(NamedTuple):
    """Of the actions tied, the one that is best in a drawn model."""

    drawn: Balls  # workspace of the draw
    prior: float


class Greedy(NamedTuple):
    """The policy of the plan as it is."""

    code: int


@make_plan.register(Ladder)
def _climb(planning, learner, t, age):  # noqa: ARG001 - a ladder has no draws
    epsilon, planned = 1.0 / math.sqrt(age), learner.episode[0]["planned"]
    last = planning.widenings.size - 1
    for i in range(last + 1):
        for p in range(learner.sets.size):
            learner.sets[p]["eta"] = planning.widenings[i]
            renew(learner, p, math.log(age))
        if not planned:  # nothing to plan: the first step will do
            return True
        solved = evi(learner, epsilon)
        flat = learner.plan.answer[0]["span"] <= planning.most_span * (1.0 + epsilon)
        if solved and (flat or i == last):
            return True
    return False


@make_plan.register(Posterior)
def _draw(planning, learner, t, age):
    learner.episode[0]["planned"] = True
    for p in range(learner.plan.pairs.size):
        learner.plan.pairs[p]["kind"] = BOUND
    draw_policy(learner.window, learner.plan, learner.key, t, age, planning.prior)
    return True


@fix_policy.register(Greedy)
def _be_greedy(_ties, learner, _t, _age):
    for s in range(learner.policy.size):
        learner.policy[s]["pair"] = learner.plan.states[s]["greedy"]
        learner.policy[s]["episode"] = learner.episode[0]["number"]


@fix_policy.register(SampledTies)
def _sample_policy(ties, learner, t, age):
    drawn = ties.drawn
    for p in range(drawn.pairs.size):
        drawn.pairs[p]["kind"] = BOUND
    draw_policy(learner.window, drawn, learner.key, t, age, ties.prior)
    for s in range(learner.policy.size):
        least, best = tied_from(learner, s), -np.inf
        for p in range(drawn.states[s]["first"], drawn.states[s]["last"]):
            if optimistic_value(learner, p) >= least and drawn.pairs[p]["value"] > best:
                best = drawn.pairs[p]["value"]
                learner.policy[s]["pair"] = p
        learner.policy[s]["episode"] = learner.episode[0]["number"]


@variants
def add_counts(window, plan):
    """Add the counts of every pair to its row, which has all next states in order."""


@add_counts.register(DenseWindow)
def _add_dense(window, plan):
    for p in range(plan.pairs.size):
        pair, cells = plan.pairs[p], p * plan.u.size
        for s in range(pair["entries"]):
            plan.rows[pair["row"] + s]["probability"] += window.cells[cells + s]["count"]


@add_counts.register(HashedWindow)
def _add_hashed(window, plan):
    for i in range(window.cells.size):
        cell = window.cells[i]
        if cell["mark"] > 0 and plan.pairs[cell["mark"] - 1]["kind"] != LEFT_OUT:
            place = plan.pairs[cell["mark"] - 1]["row"] + cell["state"]
            plan.rows[place]["probability"] += cell["count"]


@compiled
def draw_policy(window, plan, key, t, age, prior):
    """Make the best policy of a drawn model, over the pairs not left out, greedy in `plan`.

    `plan` has room for S entries a pair. Draws are addressed by t; the model is solved as exactly
    as a learner of that age would solve it.
    """
    n = 0
    for p in range(plan.pairs.size):
        pair = plan.pairs[p]
        pair["row"] = n
        pair["entries"] = 0 if pair["kind"] == LEFT_OUT else plan.u.size
        for s in range(pair["entries"]):
            plan.rows[n + s]["index"] = s
            plan.rows[n + s]["probability"] = prior / plan.u.size
        n += pair["entries"]
    add_counts(window, plan)
    for p in range(plan.pairs.size):
        if plan.pairs[p]["kind"] != LEFT_OUT:
            plan.pairs[p]["kind"] = BOUND
            plan.pairs[p]["half"] = 0.0
            _draw_pair(window.counts[p], plan, p, key, t)
    arrange(plan, n)
    for s in range(plan.u.size):
        plan.u[s] = 0.0
    quick = plan.u.size > 0  # always; a literal would compile the planner a second time
    if not solve(plan, 1.0 / math.sqrt(age), quick, np.int64(SWEEPS)):
        plan.answer[0]["unsolved"] += 1


@inlined
def _draw_pair(count, plan, p, key, t):
    # every pair has a key of its own: a row may need more draws than one address has room for
    own = (mix(key[0] + mix(np.uint64(p))), key[1])
    visits, mean = count["visits"], r_hat(count)
    mean = mean if mean > 0.0 else 0.0
    good = (mean if mean < 1.0 else 1.0) * visits
    wins, place = gamma(own, t, 0, 1.0 + good)
    losses, place = gamma(own, t, place, 1.0 + visits - good)
    pair = plan.pairs[p]
    pair["reward"] = wins / (wins + losses)
    most, total = -np.inf, 0.0
    for i in range(pair["row"], pair["row"] + pair["entries"]):
        share, place = log_gamma(own, t, place, plan.rows[i]["probability"])
        plan.rows[i]["probability"] = share
        most = share if share > most else most
    for i in range(pair["row"], pair["row"] + pair["entries"]):
        plan.rows[i]["probability"] = math.exp(plan.rows[i]["probability"] - most)
        total += plan.rows[i]["probability"]
    for i in range(pair["row"], pair["row"] + pair["entries"]):
        share = plan.rows[i]["probability"] / total
        plan.rows[i]["probability"] = (1.0 - SPREAD) * share + SPREAD / pair["entries"]


class Drawn(NamedTuple):
    """Plan with laws of a structure, and learned mean rewards, drawn from what is remembered.

    The first window is what is remembered.
    """

    key: NDArray[np.uint64]


FEW = 16  # samples that are drawn one by one


@inlined
def binomial(key, t, draw, n, p):
    """Return how many of n samples succeed with probability p each, and the next free draw."""
    hits = 0
    while n > FEW:
        i = (n + 1) // 2
        below, draw = gamma(key, t, draw, np.float64(i))
        above, draw = gamma(key, t, draw, np.float64(n + 1 - i))
        middle = below / (below + above)
        if p < middle:
            n = i - 1
            p /= middle
        else:
            hits += i
            n -= i
            p = (p - middle) / (1.0 - middle)
    for _ in range(n):
        hits += uniform(key, t, draw) < p
        draw += 1
    return hits, draw


@inlined
def _share_out(estimate, law, own, t, draw):
    """Add to `sums[1]` how many samples had each outcome; intervals draw it from `q`."""
    experts, known, sums = estimate.experts, estimate.known, estimate.sums
    first = known.outcomes[law]
    cell = np.int64(experts.cells.newest[law])
    while cell != NONE:
        left, symbol = np.int64(experts.cells.counts[cell, 0]), experts.cells.outcome[cell]
        low = high = np.int64(symbol)
        if known.intervals[law]:
            low, high = np.int64(known.spans[symbol, 0]), np.int64(known.spans[symbol, 1])
        inside = 0.0
        for o in range(low, high + 1):
            inside += estimate.q[first + o]
        for o in range(low, high):
            if left == 0:
                break
            q = estimate.q[first + o]
            hits, draw = binomial(own, t, draw, left, q / inside if q < inside else 1.0)
            sums[1, o] += hits
            left -= hits
            inside -= q
        sums[1, high] += left
        cell = np.int64(experts.cells.older[cell])


@inlined
def _draw_dirichlet(estimate, first, n, own, t, draw):
    """Draw `q` from the Dirichlet law with the parameters in `sums[1]`."""
    most, total = -np.inf, 0.0
    for o in range(n):
        share, draw = log_gamma(own, t, draw, estimate.sums[1, o])
        estimate.q[first + o] = share
        most = share if share > most else most
    for o in range(first, first + n):
        estimate.q[o] = math.exp(estimate.q[o] - most)
        total += estimate.q[o]
    for o in range(first, first + n):
        estimate.q[o] = (1.0 - SPREAD) * (estimate.q[o] / total) + SPREAD / n


@form_law.register(Drawn)
def _draw_law(belief, estimate, law):
    experts, known = estimate.experts, estimate.known
    first, n = known.outcomes[law], known.outcomes[law + 1] - known.outcomes[law]
    t = experts.clock[0]["taken"] - experts.clock[0]["ahead"] + 1
    estimate.laws[law]["mass"] = estimate.prior + experts.visits[law, 0]
    rounds = TO_PLAN if known.intervals[law] else 1
    for i in range(rounds):
        # keys of their own: one address has no room for the draws of all laws and rounds
        of_counts = (mix(belief.key[0] + mix(np.uint64(2 * (law * TO_PLAN + i)))), belief.key[1])
        of_law = (mix(belief.key[0] + mix(np.uint64(2 * (law * TO_PLAN + i) + 1))), belief.key[1])
        for o in range(n):
            estimate.sums[1, o] = estimate.prior / n
        _share_out(estimate, law, of_counts, t, 0)
        _draw_dirichlet(estimate, first, n, of_law, t, 0)


@form_reward.register(Drawn)
def _draw_reward(belief, estimate, p):
    experts, pair = estimate.experts, estimate.pairs[p]
    t = experts.clock[0]["taken"] - experts.clock[0]["ahead"] + 1
    own = (mix(belief.key[0] + mix(~np.uint64(p))), belief.key[1])
    visits, good = experts.tried[p, 0], experts.sums[p, 0]
    wins, draw = gamma(own, t, 0, 1.0 + good)
    losses, _ = gamma(own, t, draw, 1.0 + visits - good)
    pair["mean"] = wins / (wins + losses)
    pair["r_mass"] = 2.0 + visits
    pair["limit"] = max(1.0, visits)


@is_used_up.register(Drawn)
def _has_doubled(_belief, estimate, p):
    known, pair = estimate.known, estimate.pairs[p]
    if known.reward.size == 0 and pair["plays"] >= pair["limit"]:
        return True
    for f in range(known.law_of.shape[1]):
        law = known.law_of[p, f]
        if law >= 0:
            record = estimate.laws[law]
            if record["plays"] >= record["limit"] - ROUNDING:
                return True
    return False
