"""Extended value iteration (Jaksch, Ortner, Auer 2010; the paper's Algorithm 2): the one planner.

A full sweep T is u -> max_a [r~(s, a) + max q.u], q in the L1 ball of the pair. It stops when
span(Tu - u) <= eps, and then rho~ = max(Tu - u) and gamma~ = u - min u satisfy Properties 1 and 2
whatever u was (so any start, and anything done between two full sweeps, is allowed):

* plain: u <- Tu from u = 0 on, the paper's iteration;
* quick: after some sweeps from a warm start, twenty evaluations of the greedy policy between two
  full sweeps (modified policy iteration), as long as the span keeps falling; from u = 0 the policy
  changes in every sweep while values travel, and evaluating it would be wasted;
* both: once the span stops falling, u <- (u + Tu) / 2, which a periodic model cannot fool.

A full sweep goes by columns: states in rising order of u, each non-zero of p_hat touched once, so
that the mass to be moved is taken from the worst states of every pair without sorting any row;
where few are zeros, by the lines of a grid, with the same result. An evaluation goes by rows, kept
in order of u by insertion: they hardly change between two sweeps.
Boxes, with bounds for every entry of q, always go by rows: every state gets its lower bound, what
is left goes to the best states up to their upper bounds.
Orders break ties by index, so no result depends on how counts are stored.
"""

from __future__ import annotations

import numpy as np

from windage.kernels import grid
from windage.kernels.jit import compiled, inlined
from windage.kernels.order import sort
from windage.kernels.plan import (
    BOX,
    FREE,
    GAIN,
    GAP,
    GRID,
    LEFT_OUT,
    SPAN,
    SWEEPS,
    spread,
    transpose,
)
from windage.kernels.rows import box_value, kept_value, row_value

PLAIN_SWEEPS = 24  # full sweeps before policy evaluations are tried: a round costs several
EVALUATIONS = 20
PRUNING = 1e-6  # what is left out is worse than a tie by more than rounding could explain
PATIENCE = 64  # full sweeps without progress before steps are halved
SURRENDER = 20_000  # halved sweeps without progress before giving up

ROUNDING = 1e-12  # values closer than this, relative to their size, are ties


@inlined
def bar(best, slack):
    """Return the value from which on an action counts as tied with the best one.

    Sums of the same numbers in another order differ in their last digits: which of several equally
    good actions is played must not hang on that.
    """
    return best - slack - ROUNDING * max(1.0, abs(best))


@compiled
def prune(plan, slack):
    """Leave out every pair that cannot come within `slack` of its state's best.

    A pair whose set is the whole simplex reaches r~ + max u; a pair with a smaller r~ cannot.
    """
    for state in plan.states:
        top = -np.inf
        for p in range(state["first"], state["last"]):
            if plan.pairs[p]["kind"] == FREE:
                top = max(top, plan.pairs[p]["reward"])
        for p in range(state["first"], state["last"]):
            if plan.pairs[p]["reward"] < top - slack - PRUNING:
                plan.pairs[p]["kind"] = LEFT_OUT


@compiled
def solve(plan, epsilon, quick, most):
    """Iterate until span(Tu - u) <= epsilon; returns whether it came to that in `most` sweeps."""
    u = plan.u
    evaluate = False
    for s in range(u.size):
        plan.states[s]["order"] = s
        evaluate = evaluate or (quick and u[s] != u[0] and plan.rooms.size == 0)
    best, stale, halved = np.inf, 0, False
    low, high = 0.0, np.inf
    sweeps = 0
    while sweeps < most:
        low, high = sweep(plan)
        sweeps += 1
        if high - low <= epsilon:
            break
        if high - low < 0.999 * best:
            best, stale = high - low, 0
        else:
            stale += 1
            patient = stale < PATIENCE + u.size  # a wave crosses a chain in as many sweeps
            evaluate = evaluate and patient
            if not patient and not halved:
                halved, stale = True, 0
            if stale >= SURRENDER:
                break
        for s in range(u.size):
            swept = plan.states[s]["swept"]
            u[s] = 0.5 * (u[s] + swept) if halved else swept
        rebase(u)
        if evaluate and sweeps >= PLAIN_SWEEPS:
            if sweeps == PLAIN_SWEEPS:
                if plan.answer[GRID] > 0.0:
                    grid.pick_up(plan)
                else:
                    spread(plan)
            _evaluate(plan)
    plan.answer[GAIN] = high
    plan.answer[SPAN] = rebase(u)
    plan.answer[GAP] = high - low
    plan.answer[SWEEPS] = sweeps
    return high - low <= epsilon


@inlined
def rebase(u):
    """Subtract min u, lest the digits go into a common offset; returns the new maximum."""
    least, most = np.inf, -np.inf
    for s in range(u.size):
        least = min(least, u[s])
        most = max(most, u[s])
    for s in range(u.size):
        u[s] -= least
    return most - least


@compiled
def lay_out(plan, entries):
    """Get the rows of a plan, with so many non-zeros in all, ready to be swept."""
    if grid.fits(plan, entries):
        grid.lay(plan)
    else:
        plan.answer[GRID] = 0.0
        transpose(plan)


@compiled
def sweep(plan):
    """Do one full sweep: fill `value`, `swept`, `greedy`; returns min and max of Tu - u."""
    u, pairs, states = plan.u, plan.pairs, plan.states
    sort(u, states)
    best = states[u.size - 1]["order"]
    if plan.answer[GRID] > 0.0:
        grid.values(plan, best)
    else:
        _by_columns(plan, best)
    if plan.rooms.size > 0:
        for p in range(pairs.size):
            if pairs[p]["kind"] == BOX:
                pairs[p]["value"] = pairs[p]["reward"] + box_value(plan, p)
    low, high = np.inf, -np.inf
    for i in range(np.uint64(u.size)):
        state = states[i]
        most, greedy = -np.inf, state["first"]
        for own in range(state["first"], state["last"]):
            pair = pairs[np.uint64(own)]
            if pair["kind"] == LEFT_OUT:
                pair["value"] = -np.inf
            elif pair["value"] > most:
                most, greedy = pair["value"], own
        state["swept"] = most
        state["greedy"] = greedy
        low = min(low, most - u[i])
        high = max(high, most - u[i])
    return low, high


@compiled
def _by_columns(plan, best):
    """Fill `value` of every pair: r~ + max q.u; `best` is the state with the largest u."""
    u, pairs, states, top = plan.u, plan.pairs, plan.states, plan.u[best]
    for p in range(np.uint64(pairs.size)):
        pairs[p]["left"] = pairs[p]["half"]
    for i in range(states[best]["entries"]):
        entry = plan.columns[np.uint64(states[best]["column"] + i)]
        pair = pairs[np.uint64(entry["index"])]
        if pair["half"] >= 1.0 - entry["probability"]:
            pair["left"] = np.inf  # all mass goes to the best state, exactly: it may be a tie
    for p in range(np.uint64(pairs.size)):  # the best state gains what the worst ones lose
        whole = pairs[p]["kind"] == FREE or pairs[p]["left"] == np.inf
        pairs[p]["value"] = pairs[p]["reward"] + (top if whole else pairs[p]["left"] * top)
    for rank in range(np.uint64(u.size)):
        s = np.uint64(states[rank]["order"])
        first = np.uint64(states[s]["column"])
        for i in range(first, first + np.uint64(states[s]["entries"])):
            entry = plan.columns[i]
            pair = pairs[np.uint64(entry["index"])]
            taken = min(pair["left"], entry["probability"])
            pair["left"] -= taken
            pair["value"] += (entry["probability"] - taken) * u[s]


@compiled
def _evaluate(plan):
    """Evaluate the greedy policy some twenty times, in the kernels that are best for it now."""
    u = plan.u
    best = np.int64(0)
    for s in range(u.size):
        if u[s] >= u[best]:
            best = np.int64(s)
    for i in range(EVALUATIONS):
        for s in range(u.size):
            p = plan.states[s]["greedy"]
            value = row_value(plan, p, best) if i == 0 else kept_value(plan, p, best)
            plan.states[s]["swept"] = value
        for s in range(u.size):
            u[s] = plan.states[s]["swept"]
        rebase(u)
