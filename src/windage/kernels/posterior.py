"""A model drawn from the posterior of what is remembered, and its best policy.

Rows are Dirichlet with `prior / S` added to every count, mean rewards Beta with one success and one
failure added, both on the remembered samples only. A share of each row is spread evenly, so that
the drawn model communicates.
"""

from __future__ import annotations

import math

import numpy as np

from windage.kernels.evi import lay_out, solve
from windage.kernels.jit import compiled, inlined
from windage.kernels.memory import mean
from windage.kernels.plan import BOUND, LEFT_OUT, UNSOLVED
from windage.kernels.random import gamma, log_gamma, mix

SPREAD = 1e-3
SWEEPS = 2_000  # a drawn model needs no certificate: after as many sweeps its policy will do


@compiled
def draw_policy(memory, plan, key, t, clock, prior):
    """Make the best policy of a drawn model, over the pairs not left out, greedy in `plan`.

    `plan` has room for S entries a pair. Draws are addressed by t; the model is solved as exactly
    as a learner of age `clock` would solve it.
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
    _add_counts(memory, plan)
    for p in range(plan.pairs.size):
        if plan.pairs[p]["kind"] != LEFT_OUT:
            plan.pairs[p]["kind"] = BOUND
            plan.pairs[p]["half"] = 0.0
            _draw_pair(memory, plan, p, key, t)
    lay_out(plan, n)
    for s in range(plan.u.size):
        plan.u[s] = 0.0
    quick = plan.u.size > 0  # always; a literal would compile the planner a second time
    if not solve(plan, 1.0 / np.sqrt(clock), quick, np.int64(SWEEPS)):
        plan.answer[UNSOLVED] += 1.0


@inlined
def _add_counts(memory, plan):
    if memory.hashed:
        for i in range(memory.cell_mark.size):
            if memory.cell_mark[i] > 0 and plan.pairs[memory.cell_mark[i] - 1]["kind"] != LEFT_OUT:
                place = plan.pairs[memory.cell_mark[i] - 1]["row"] + memory.cell_state[i]
                plan.rows[place]["probability"] += memory.cell_count[i]
    else:
        for p in range(plan.pairs.size):
            pair, cells = plan.pairs[p], p * memory.n_states
            for s in range(pair["entries"]):
                plan.rows[pair["row"] + s]["probability"] += memory.cell_count[cells + s]


@inlined
def _draw_pair(memory, plan, p, key, t):
    # every pair has a key of its own: a row may need more draws than one address has room for
    own = (mix(key[0] + mix(np.uint64(p))), key[1])
    visits = memory.counts[p]["visits"]
    good = min(max(mean(memory, p), 0.0), 1.0) * visits
    wins, place = gamma(own, t, 0, 1.0 + good)
    losses, place = gamma(own, t, place, 1.0 + visits - good)
    pair = plan.pairs[p]
    pair["reward"] = wins / (wins + losses)
    most, total = -np.inf, 0.0
    for i in range(pair["row"], pair["row"] + pair["entries"]):
        share, place = log_gamma(own, t, place, plan.rows[i]["probability"])
        plan.rows[i]["probability"] = share
        most = max(most, share)
    for i in range(pair["row"], pair["row"] + pair["entries"]):
        plan.rows[i]["probability"] = math.exp(plan.rows[i]["probability"] - most)
        total += plan.rows[i]["probability"]
    for i in range(pair["row"], pair["row"] + pair["entries"]):
        share = plan.rows[i]["probability"] / total
        plan.rows[i]["probability"] = (1.0 - SPREAD) * share + SPREAD / pair["entries"]
