"""Planning rules beside optimism: with a drawn model, or up a ladder of widenings.

The posterior is that of what is remembered: rows are Dirichlet with `prior / S` added to every
count, mean rewards Beta with one success and one failure added. A share of each row is spread
evenly, so that the drawn model communicates.
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
from windage.kernels.random import gamma, log_gamma, mix
from windage.kernels.swucrl2cw import evi, make_plan
from windage.kernels.window import DenseWindow, HashedWindow, r_hat

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
