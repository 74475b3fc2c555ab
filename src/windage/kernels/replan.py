"""The best policy of a believed model, from where the last plan left off.

Modified policy iteration on the model as it is (no sets): a sweep over all actions,

    v(s, a) = r(s, a) + sum p(s') u(s'),    stop when span(max_a v - u) <= eps,

then a few evaluations of the greedy policy, u <- u + d (v - u) with d = .95, which a periodic model
cannot fool. Beliefs change little between two plans, so one or two sweeps mostly do. A plan that
takes too many is left as it is: the next one goes on from there.
"""

from __future__ import annotations

import numpy as np

from windage.kernels.evi import rebase
from windage.kernels.jit import compiled, inlined
from windage.kernels.plan import GAIN, GAP, SPAN, SWEEPS

DAMPING = 0.95
EVALUATIONS = 5
EPSILON = 0.01
MOST = 200


@inlined
def value(belief, p, even):
    """Return r + p.u of a pair; `even` is the mean of u, times mu."""
    pair, u = belief.pairs[np.uint64(p)], belief.u
    total = even / pair["p_mass"]
    for i in range(np.uint64(pair["row"]), np.uint64(pair["row"] + pair["entries"])):
        entry = belief.rows[i]
        total += entry["probability"] * u[np.uint64(entry["index"])]
    return pair["reward"] + total


@inlined
def spread_evenly(belief):
    """Return what the pseudo-counts of next states expect: the mean of u, times mu."""
    total = 0.0
    for s in range(belief.u.size):
        total += belief.u[s]
    return belief.unseen * total / belief.u.size


@compiled
def improve(belief, policy, swept, answer):
    """Plan from `belief.u` on; fills policy (as pairs), `swept` (a workspace) and the answer."""
    u = belief.u
    sweeps, low, high = 0, 0.0, np.inf
    while True:
        even, low, high = spread_evenly(belief), np.inf, -np.inf
        for s in range(u.size):
            best, greedy = -np.inf, np.int64(-1)
            for p in range(belief.offsets[s], belief.offsets[s + 1]):
                if belief.pairs[np.uint64(p)]["allowed"] != 0:
                    v = value(belief, p, even)
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
            even = spread_evenly(belief)
            for s in range(u.size):
                swept[s] = value(belief, policy[s], even)
            for s in range(u.size):
                u[s] += DAMPING * (swept[s] - u[s])
        rebase(u)
    answer[GAIN] = 0.5 * (low + high)
    answer[SPAN] = rebase(u)
    answer[GAP] = high - low
    answer[SWEEPS] = sweeps
