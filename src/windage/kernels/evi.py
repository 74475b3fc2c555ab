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
that the mass to be moved is taken from the worst states of every pair without sorting any row. An
evaluation goes by rows, kept in order of u by insertion: they hardly change between two sweeps.
Boxes, with bounds for every entry of q, always go by rows: every state gets its lower bound, what
is left goes to the best states up to their upper bounds.
Orders break ties by index, so no result depends on how counts are stored.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.compiled import compiled, inlined

LEFT_OUT, FREE, BOUND, BOX = 0, 1, 2, 3
"""What a pair's set is: not needed, the whole simplex, a ball around p_hat, or a box around it."""

WHOLE = -1  # all mass on the best state

PLAIN_SWEEPS = 24  # full sweeps before policy evaluations are tried: a round costs several
EVALUATIONS = 20
PRUNING = 1e-6  # what is left out is worse than a tie by more than rounding could explain
PATIENCE = 64  # full sweeps without progress before steps are halved
SURRENDER = 20_000  # halved sweeps without progress before giving up

ROUNDING = 1e-12  # values closer than this, relative to their size, are ties
GAIN, SPAN, GAP, SWEEPS = 0, 1, 2, 3  # places in Plan.answer

PAIR = np.dtype(
    [
        ("reward", np.float64),  # r~
        ("half", np.float64),  # (radius + eta) / 2: the mass that may move; eta / 2 of a box
        ("root", np.float64),  # of a box: an entry q is off p by at most ...
        ("rest", np.float64),  # ... root * sqrt(p (1 - p)) + rest + half
        ("value", np.float64),  # r~ + max q.u of the last sweep; -inf if left out
        ("left", np.float64),  # mass still to be taken from worse states
        ("row", np.int64),  # where its entries start ...
        ("cut", np.int64),  # the first entry that keeps any mass, or WHOLE
        ("entries", np.int32),  # how many entries it has
        ("kind", np.int32),
    ],
    align=True,
)
STATE = np.dtype(
    [
        ("first", np.int64),  # its pairs
        ("last", np.int64),
        ("swept", np.float64),  # Tu
        ("greedy", np.int64),  # the first pair that attains it
        ("order", np.int64),  # entry i: the state with the i-th smallest u
        ("column", np.int64),  # where its column starts ...
        ("entries", np.int64),  # ... and how many entries it has
    ],
    align=True,
)
ENTRY = np.dtype([("probability", np.float64), ("index", np.int64)], align=True)


class Plan(NamedTuple):
    """Sets and workspace of one EVI; `windage.learn.confidence` makes one."""

    pairs: NDArray[np.void]
    states: NDArray[np.void]
    u: NDArray[np.float64]  # [S] start in, gamma~ out
    rows: NDArray[np.void]  # p_hat by pair, or lower bounds; the index is the next state
    rooms: NDArray[np.float64]  # upper less lower bound of each entry of a row; none: no boxes
    columns: NDArray[np.void]  # the same by next state, the index is the pair
    answer: NDArray[np.float64]  # rho~, span(gamma~), span(Tu - u), sweeps


@compiled
def transpose(plan):
    """Fill the columns from the rows."""
    for state in plan.states:
        state["entries"] = 0
    for pair in plan.pairs:
        for i in range(pair["row"], pair["row"] + pair["entries"]):
            plan.states[plan.rows[i]["index"]]["entries"] += 1
    n = 0
    for state in plan.states:
        state["column"] = n
        n += state["entries"]
        state["entries"] = 0
    for p in range(plan.pairs.size):
        for i in range(plan.pairs[p]["row"], plan.pairs[p]["row"] + plan.pairs[p]["entries"]):
            state = plan.states[plan.rows[i]["index"]]
            entry = plan.columns[state["column"] + state["entries"]]
            entry["index"] = p
            entry["probability"] = plan.rows[i]["probability"]
            state["entries"] += 1


@compiled
def spread(plan):
    """Fill the rows from the columns."""
    for p in range(plan.pairs.size):
        plan.pairs[p]["entries"] = 0
    for s in range(plan.states.size):
        first = plan.states[s]["column"]
        for i in range(first, first + plan.states[s]["entries"]):
            plan.pairs[plan.columns[i]["index"]]["entries"] += 1
    n = 0
    for p in range(plan.pairs.size):
        plan.pairs[p]["row"] = n
        n += plan.pairs[p]["entries"]
        plan.pairs[p]["entries"] = 0
    for s in range(plan.states.size):
        first = plan.states[s]["column"]
        for i in range(first, first + plan.states[s]["entries"]):
            pair = plan.pairs[plan.columns[i]["index"]]
            entry = plan.rows[pair["row"] + pair["entries"]]
            entry["index"] = s
            entry["probability"] = plan.columns[i]["probability"]
            pair["entries"] += 1


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
def sweep(plan):
    """Do one full sweep: fill `value`, `swept`, `greedy`; returns min and max of Tu - u."""
    u, pairs, states = plan.u, plan.pairs, plan.states
    _sort(u, states)
    best = states[u.size - 1]["order"]
    top = u[best]
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
    if plan.rooms.size > 0:
        for p in range(pairs.size):
            if pairs[p]["kind"] == BOX:
                pairs[p]["value"] = pairs[p]["reward"] + _box_value(plan, p)
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


@inlined
def put_in_box(plan, p, place, probability):
    """Write the bounds of one entry of a pair from its estimate."""
    pair = plan.pairs[p]
    off = pair["root"] * math.sqrt(probability * (1.0 - probability)) + pair["rest"] + pair["half"]
    lower = max(0.0, probability - off)
    plan.rows[place]["probability"] = lower
    plan.rooms[place] = min(1.0, probability + off) - lower


@compiled
def _box_value(plan, p):
    """Return max q.u over a box; states that are no entry of the row have the bounds of p_hat = 0.

    Rows are kept in order of u, so one walk down the states meets their entries in turn.
    """
    u, rows, pair = plan.u, plan.rows, plan.pairs[p]
    put_in_order(plan, p)
    first, entry = pair["row"], pair["row"] + pair["entries"] - 1
    left, total = 1.0, 0.0
    for i in range(first, entry + 1):
        left -= rows[i]["probability"]
        total += rows[i]["probability"] * u[rows[i]["index"]]
    unseen = min(1.0, pair["rest"] + pair["half"])
    for rank in range(u.size - 1, -1, -1):
        s, room = plan.states[rank]["order"], unseen
        if entry >= first and rows[entry]["index"] == s:
            room = plan.rooms[entry]
            entry -= 1
        given = min(left, room)
        total += given * u[s]
        left -= given
        if left <= 0.0:
            break
    return total


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
            value = row_value(plan, p, best) if i == 0 else _kept_value(plan, p, best)
            plan.states[s]["swept"] = value
        for s in range(u.size):
            u[s] = plan.states[s]["swept"]
        rebase(u)


@compiled
def row_value(plan, p, best):
    """Return r~ + max q.u of one pair: put its row in order of u and find where q begins."""
    rows, pair = plan.rows, plan.pairs[p]
    pair["cut"] = WHOLE
    first, last = pair["row"], pair["row"] + pair["entries"]
    put_in_order(plan, p)
    on_best = 0.0
    if last > first and rows[last - 1]["index"] == best:
        on_best = rows[last - 1]["probability"]
    if pair["kind"] == BOUND and pair["half"] < 1.0 - on_best:
        left, cut = pair["half"], first
        while cut < last - 1 and left >= rows[cut]["probability"]:
            left -= rows[cut]["probability"]
            cut += 1
        pair["cut"] = cut
        pair["left"] = left  # what the first entry that stays loses
    return _kept_value(plan, p, best)


@inlined
def put_in_order(plan, p):
    """Put the row of a pair in rising order of u, by insertion."""
    u, rows, rooms = plan.u, plan.rows, plan.rooms
    first = plan.pairs[p]["row"]
    for i in range(first + 1, first + plan.pairs[p]["entries"]):
        s, probability = rows[i]["index"], rows[i]["probability"]
        room = rooms[i] if rooms.size > 0 else 0.0
        j = i
        while j > first and _before(u, s, rows[j - 1]["index"]):
            rows[j]["index"] = rows[j - 1]["index"]
            rows[j]["probability"] = rows[j - 1]["probability"]
            if rooms.size > 0:
                rooms[j] = rooms[j - 1]
            j -= 1
        rows[j]["index"] = s
        rows[j]["probability"] = probability
        if rooms.size > 0:
            rooms[j] = room


@inlined
def _kept_value(plan, p, best):
    """Return r~ + q.u for the kernel q that `row_value` found."""
    u, rows, pair = plan.u, plan.rows, plan.pairs[p]
    if pair["cut"] == WHOLE:
        return pair["reward"] + u[best]
    cut = np.uint64(pair["cut"])
    total = pair["reward"] + pair["half"] * u[best]
    total -= pair["left"] * u[np.uint64(rows[cut]["index"])]
    for i in range(cut, np.uint64(pair["row"] + pair["entries"])):
        total += rows[i]["probability"] * u[np.uint64(rows[i]["index"])]
    return total


@inlined
def _before(u, s, other):
    return u[s] < u[other] or (u[s] == u[other] and s < other)


@compiled
def _sort(u, states):
    """Put states in rising order of (u, index): by insertion while that is cheap, else by heap."""
    moves = 16 * u.size
    for i in range(1, u.size):
        s = states[i]["order"]
        j = i
        while j > 0 and _before(u, s, states[j - 1]["order"]):
            states[j]["order"] = states[j - 1]["order"]
            j -= 1
        states[j]["order"] = s
        moves -= i - j
        if moves < 0:
            _heapsort(u, states)
            return


@compiled
def _heapsort(u, states):
    n = u.size
    for start in range(n // 2 - 1, -1, -1):
        _sift(u, states, start, n)
    for end in range(n - 1, 0, -1):
        _swap(states, 0, end)
        _sift(u, states, 0, end)


@inlined
def _sift(u, states, start, end):
    root = start
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and _before(u, states[child]["order"], states[child + 1]["order"]):
            child += 1
        if not _before(u, states[root]["order"], states[child]["order"]):
            return
        _swap(states, root, child)
        root = child


@inlined
def _swap(states, i, j):
    kept = states[i]["order"]
    states[i]["order"] = states[j]["order"]
    states[j]["order"] = kept
