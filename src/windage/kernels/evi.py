"""Extended value iteration (Jaksch, Ortner, Auer 2010; the paper's Algorithm 2): the one planner.

A full sweep T is u -> max_a [r~(s, a) + max q.u], q in the set of the pair. It stops when
span(Tu - u) <= eps, and then rho~ = max(Tu - u) and gamma~ = u - min u satisfy Properties 1 and 2
whatever u was (so any start, and anything done between two full sweeps, is allowed):

* plain: u <- Tu from u = 0 on, the paper's iteration;
* quick: after some sweeps from a warm start, twenty evaluations of the greedy policy between two
  full sweeps (modified policy iteration), as long as the span keeps falling; from u = 0 the policy
  changes in every sweep while values travel, and evaluating it would be wasted;
* both: once the span stops falling, u <- (u + Tu) / 2, which a periodic model cannot fool.

`Balls` are L1 balls around p_hat. A full sweep goes by columns: states in rising order of u, each
non-zero of p_hat touched once, so that the mass to be moved is taken from the worst states of every
pair without sorting any row. Where an eighth of all cells or more are non-zeros, it goes by the
lines of a grid, one line a next state with pairs side by side: all cells are touched, many pairs at
a time, and zeros change nothing. Every pair meets the same numbers in the same order, so both give
the same values to the last bit. An evaluation goes by rows, kept in order of u by insertion: they
hardly change between two sweeps.

`Boxes`, with bounds for every entry of q, go by rows: every state gets its lower bound, what is
left goes to the best states up to their upper bounds.

Orders break ties by index, so no result depends on how counts are stored.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.jit import compiled, inlined, variants
from windage.kernels.window import DenseWindow, HashedWindow

LEFT_OUT, VACUOUS, BOUND = 0, 1, 2
"""What the set of a pair is: not needed, the whole simplex, or a ball or box around p_hat."""

WHOLE = -1  # all mass on the best state

PLAIN_SWEEPS = 24  # full sweeps before policy evaluations are tried: a round costs several
EVALUATIONS = 20
PRUNING = 1e-6  # what is left out is worse than a tie by more than rounding could explain
PATIENCE = 64  # full sweeps without progress before steps are halved
SURRENDER = 20_000  # halved sweeps without progress before giving up
ROUNDING = 1e-12  # values closer than this, relative to their size, are ties
SPARSEST = 8  # a grid is used from one non-zero in as many cells on

PAIR = np.dtype(
    [
        ("reward", np.float64),  # r~
        ("half", np.float64),  # (radius + eta) / 2: the mass that may move; eta / 2 of a box
        ("root", np.float64),  # of a box: an entry q is off p by at most ...
        ("rest", np.float64),  # ... root * sqrt(p (1 - p)) + rest + half; of a KL ball its radius
        ("value", np.float64),  # r~ + max q.u of the last sweep; -inf if left out
        ("left", np.float64),  # mass still to be taken from worse states
        ("row", np.int64),  # where its entries start ...
        ("cut", np.int64),  # the first entry that keeps any mass, or WHOLE
        ("entries", np.int32),  # how many entries it has
        ("kind", np.int32),
        ("lane", np.int64),  # entry k: the pair in the k-th lane of the grid
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
ANSWER = np.dtype(
    [
        ("gain", np.float64),  # rho~
        ("span", np.float64),  # of gamma~
        ("gap", np.float64),  # span(Tu - u)
        ("sweeps", np.int64),
        ("unsolved", np.int64),  # drawn models that were not solved
        ("lanes", np.int64),  # of the grid in use; -1: columns
    ],
    align=True,
)


class Balls(NamedTuple):
    """L1 balls and the workspace to plan in them; `windage.confidence.confidence` makes one."""

    pairs: NDArray[np.void]
    states: NDArray[np.void]
    u: NDArray[np.float64]  # [S] start in, gamma~ out
    rows: NDArray[np.void]  # p_hat by pair; the index is the next state
    answer: NDArray[np.void]  # [1]
    columns: NDArray[np.void]  # p_hat by next state; the index is the pair
    grid: NDArray[np.float64]  # [S + 2, pairs] p_hat, mass left, values; empty: always columns


class Boxes(NamedTuple):
    """Boxes and the workspace to plan in them."""

    pairs: NDArray[np.void]
    states: NDArray[np.void]
    u: NDArray[np.float64]
    rows: NDArray[np.void]  # lower bounds by pair
    answer: NDArray[np.void]
    rooms: NDArray[np.float64]  # upper less lower bound of each entry of a row


@variants
def estimate(plan, window):
    """Take p_hat of the pairs that are bound from the counts of a window (Eq. (3))."""


@variants
def fill_values(plan, best):
    """Fill `value` of every pair: r~ + max q.u; `best` is the state with the largest u."""


@variants
def evaluate(plan, first):
    """Evaluate the greedy policy some twenty times, in the kernels that are best for it now.

    The first time, rows are filled from where p_hat is kept.
    """


@variants
def to_columns(window, plan):
    """Write p_hat of the pairs that are bound to the columns of a plan."""


@variants
def to_grid(window, plan):
    """Write p_hat to the grid of a plan, if that is where it is swept best; returns whether."""


@variants
def to_rows(window, plan):
    """Write p_hat of the pairs that are bound to the rows of a plan."""


@inlined
def tie_bar(best, slack):
    """Return the value from which on an action counts as tied with the best one.

    Sums of the same numbers in another order differ in their last digits: which of several equally
    good actions is played must not hang on that.
    """
    size = abs(best)
    return best - slack - ROUNDING * (size if size > 1.0 else 1.0)


@compiled
def prune(plan, slack):
    """Leave out every pair that cannot come within `slack` of its state's best.

    A pair whose set is the whole simplex reaches r~ + max u; a pair with a smaller r~ cannot.
    """
    for i in range(plan.states.size):
        state, top = plan.states[i], -np.inf
        for p in range(state["first"], state["last"]):
            if plan.pairs[p]["kind"] == VACUOUS and plan.pairs[p]["reward"] > top:
                top = plan.pairs[p]["reward"]
        for p in range(state["first"], state["last"]):
            if plan.pairs[p]["reward"] < top - slack - PRUNING:
                plan.pairs[p]["kind"] = LEFT_OUT


@compiled
def solve(plan, epsilon, quick, most):
    """Iterate until span(Tu - u) <= epsilon; returns whether it came to that in `most` sweeps."""
    u, answer = plan.u, plan.answer[0]
    warm = False
    for s in range(u.size):
        plan.states[s]["order"] = s
        warm |= quick and u[s] != u[0]
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
            warm &= patient
            if not patient and not halved:
                halved, stale = True, 0
            if stale >= SURRENDER:
                break
        for s in range(u.size):
            swept = plan.states[s]["swept"]
            u[s] = 0.5 * (u[s] + swept) if halved else swept
        rebase(u)
        if warm and sweeps >= PLAIN_SWEEPS:
            evaluate(plan, sweeps == PLAIN_SWEEPS)
    answer["gain"] = high
    answer["span"] = rebase(u)
    answer["gap"] = high - low
    answer["sweeps"] = sweeps
    return high - low <= epsilon


@compiled
def rebase(u):
    """Subtract min u, lest the digits go into a common offset; returns the new maximum."""
    least, most = u[0], u[0]
    for s in range(1, u.size):
        least = u[s] if u[s] < least else least
        most = u[s] if u[s] > most else most
    for s in range(u.size):
        u[s] -= least
    return most - least


@compiled
def sweep(plan):
    """Do one full sweep: fill `value`, `swept`, `greedy`; returns min and max of Tu - u."""
    u, pairs, states = plan.u, plan.pairs, plan.states
    _sort(u, states)
    fill_values(plan, states[u.size - 1]["order"])
    low, high = np.inf, -np.inf
    for i in range(np.uint64(u.size)):
        state = states[i]
        most, greedy = -np.inf, state["first"]
        for p in range(state["first"], state["last"]):
            pair = pairs[np.uint64(p)]
            if pair["kind"] == LEFT_OUT:
                pair["value"] = -np.inf
            elif pair["value"] > most:
                most, greedy = pair["value"], p
        state["swept"] = most
        state["greedy"] = greedy
        low = most - u[i] if most - u[i] < low else low
        high = most - u[i] if most - u[i] > high else high
    return low, high


@compiled
def _sort(u, states):
    """Put states in rising order of (u, index): by insertion while that is cheap, else by gaps."""
    gap, moves = 1, 16 * u.size
    while gap > 0:
        for i in range(gap, u.size):
            s = states[i]["order"]
            j = i
            while j >= gap and _before(u, s, states[j - gap]["order"]):
                states[j]["order"] = states[j - gap]["order"]
                j -= gap
            states[j]["order"] = s
            moves -= i - j
            if gap == 1 and moves < 0:  # far from sorted: start again with long strides (Shell)
                while gap < u.size // 9:
                    gap = 3 * gap + 1
                gap = 3 * gap + 1
                moves = np.int64(1) << np.int64(62)
                break
        gap //= 3


@inlined
def _before(u, s, other):
    return u[s] < u[other] or (u[s] == u[other] and s < other)


@estimate.register(Balls)
def _estimate_balls(plan, window):
    if to_grid(window, plan):
        return
    plan.answer[0]["lanes"] = -1
    n = 0
    for s in range(plan.states.size):  # room for all pairs that led there, needed or not
        plan.states[s]["column"] = n
        plan.states[s]["entries"] = 0
        n += window.sources[s]
    to_columns(window, plan)


@inlined
def _fits_grid(plan, entries):
    return plan.grid.size > 0 and SPARSEST * entries >= plan.pairs.size * plan.u.size


@inlined
def _assign_lanes(plan):
    """Give every pair that is bound a lane of the grid; returns how many there are."""
    lanes = 0
    for p in range(plan.pairs.size):
        if plan.pairs[p]["kind"] == BOUND:
            plan.pairs[lanes]["lane"] = p
            lanes += 1
    plan.answer[0]["lanes"] = lanes
    return lanes


@inlined
def _put_in_column(plan, p, s, probability):
    state = plan.states[np.uint64(s)]
    entry = plan.columns[np.uint64(state["column"] + state["entries"])]
    entry["index"] = p
    entry["probability"] = probability
    state["entries"] += 1


@to_columns.register(DenseWindow)
def _dense_to_columns(window, plan):
    for p in range(plan.pairs.size):
        if plan.pairs[p]["kind"] == BOUND:
            row, count = np.uint64(p * plan.u.size), window.counts[p]
            share = 1.0 / (count["visits"] if count["visits"] > 1 else 1)
            for i in range(row, row + np.uint64(count["distinct"])):
                after = np.uint64(window.cells[i]["state"])
                _put_in_column(plan, p, after, window.cells[row + after]["count"] * share)


@to_columns.register(HashedWindow)
def _hashed_to_columns(window, plan):
    for i in range(window.cells.size):
        cell = window.cells[i]
        if cell["mark"] > 0 and plan.pairs[cell["mark"] - 1]["kind"] == BOUND:
            share = 1.0 / window.counts[cell["mark"] - 1]["visits"]
            _put_in_column(plan, cell["mark"] - 1, cell["state"], cell["count"] * share)


@to_grid.register(DenseWindow)
def _dense_to_grid(window, plan):
    if not _fits_grid(plan, window.clock[0]["cells"]):
        return False
    for k in range(_assign_lanes(plan)):
        p = plan.pairs[k]["lane"]
        visits, row = window.counts[p]["visits"], np.uint64(p * plan.u.size)
        share = 1.0 / (visits if visits > 1 else 1)
        for s in range(np.uint64(plan.u.size)):
            plan.grid[s, np.uint64(k)] = window.cells[row + s]["count"] * share
    return True


@to_grid.register(HashedWindow)
def _hashed_to_grid(_window, _plan):
    return False  # models that large have none


@estimate.register(Boxes)
def _estimate_boxes(plan, window):
    """Put lower bounds in the rows, with the room up to the upper ones."""
    to_rows(window, plan)
    for p in range(plan.pairs.size):
        pair = plan.pairs[p]
        for i in range(pair["row"], pair["row"] + pair["entries"]):
            share = plan.rows[i]["probability"]
            off = pair["root"] * math.sqrt(share * (1.0 - share)) + pair["rest"] + pair["half"]
            lower = share - off if share > off else 0.0
            plan.rows[i]["probability"] = lower
            plan.rooms[i] = (share + off if share + off < 1.0 else 1.0) - lower


@to_rows.register(DenseWindow)
def _dense_to_rows(window, plan):
    n = 0
    for p in range(plan.pairs.size):
        pair, count, row = plan.pairs[p], window.counts[p], p * plan.u.size
        pair["row"], pair["entries"] = n, 0
        if pair["kind"] == BOUND:
            for i in range(row, row + count["distinct"]):
                after = window.cells[i]["state"]
                plan.rows[n]["index"] = after
                plan.rows[n]["probability"] = window.cells[row + after]["count"] / count["visits"]
                n += 1
            pair["entries"] = n - pair["row"]


@to_rows.register(HashedWindow)
def _hashed_to_rows(window, plan):
    n = 0
    for p in range(plan.pairs.size):
        pair = plan.pairs[p]
        pair["row"], pair["entries"] = n, 0
        n += window.counts[p]["distinct"] if pair["kind"] == BOUND else 0
    for i in range(window.cells.size):
        cell = window.cells[i]
        if cell["mark"] > 0 and plan.pairs[cell["mark"] - 1]["kind"] == BOUND:
            pair, visits = plan.pairs[cell["mark"] - 1], window.counts[cell["mark"] - 1]["visits"]
            entry = plan.rows[pair["row"] + pair["entries"]]
            entry["index"] = cell["state"]
            entry["probability"] = cell["count"] / visits
            pair["entries"] += 1


@compiled
def arrange(plan, entries):
    """Fill columns or grid of balls from the rows, which have so many entries in all."""
    if _fits_grid(plan, entries):
        for k in range(_assign_lanes(plan)):
            for s in range(plan.u.size):
                plan.grid[s, k] = 0.0
            pair = plan.pairs[plan.pairs[k]["lane"]]
            for i in range(pair["row"], pair["row"] + pair["entries"]):
                plan.grid[plan.rows[i]["index"], k] = plan.rows[i]["probability"]
        return
    plan.answer[0]["lanes"] = -1
    for s in range(plan.states.size):
        plan.states[s]["entries"] = 0
    for p in range(plan.pairs.size):
        for i in range(plan.pairs[p]["row"], plan.pairs[p]["row"] + plan.pairs[p]["entries"]):
            plan.states[plan.rows[i]["index"]]["entries"] += 1
    n = 0
    for s in range(plan.states.size):
        plan.states[s]["column"] = n
        n += plan.states[s]["entries"]
        plan.states[s]["entries"] = 0
    for p in range(plan.pairs.size):
        for i in range(plan.pairs[p]["row"], plan.pairs[p]["row"] + plan.pairs[p]["entries"]):
            _put_in_column(plan, p, plan.rows[i]["index"], plan.rows[i]["probability"])


@compiled
def _fill_rows(plan):
    """Fill the rows of balls from the grid or the columns."""
    n = 0
    for p in range(plan.pairs.size):
        plan.pairs[p]["entries"] = 0
    if plan.answer[0]["lanes"] >= 0:
        for k in range(plan.answer[0]["lanes"]):
            pair = plan.pairs[plan.pairs[k]["lane"]]
            pair["row"] = n
            for s in range(plan.u.size):
                if plan.grid[s, k] > 0.0:
                    plan.rows[n]["index"] = s
                    plan.rows[n]["probability"] = plan.grid[s, k]
                    n += 1
            pair["entries"] = n - pair["row"]
        return
    for s in range(plan.states.size):
        column = plan.states[s]["column"]
        for i in range(column, column + plan.states[s]["entries"]):
            plan.pairs[plan.columns[i]["index"]]["entries"] += 1
    for p in range(plan.pairs.size):
        plan.pairs[p]["row"] = n
        n += plan.pairs[p]["entries"]
        plan.pairs[p]["entries"] = 0
    for s in range(plan.states.size):
        column = plan.states[s]["column"]
        for i in range(column, column + plan.states[s]["entries"]):
            pair = plan.pairs[plan.columns[i]["index"]]
            entry = plan.rows[pair["row"] + pair["entries"]]
            entry["index"] = s
            entry["probability"] = plan.columns[i]["probability"]
            pair["entries"] += 1


@fill_values.register(Balls)
def _fill_balls(plan, best):
    """Give half the width of every ball to the best state, and take it from the worst ones."""
    u, pairs, states, top = plan.u, plan.pairs, plan.states, plan.u[best]
    if plan.answer[0]["lanes"] >= 0:
        _fill_by_grid(plan, best, top)
        return
    for p in range(np.uint64(pairs.size)):
        pairs[p]["left"] = pairs[p]["half"]
    for i in range(states[best]["entries"]):
        entry = plan.columns[np.uint64(states[best]["column"] + i)]
        pair = pairs[np.uint64(entry["index"])]
        if pair["half"] >= 1.0 - entry["probability"]:
            pair["left"] = np.inf  # all mass goes to the best state, exactly: it may be a tie
    for p in range(np.uint64(pairs.size)):  # the best state gains what the worst ones lose
        whole = pairs[p]["kind"] == VACUOUS or pairs[p]["left"] == np.inf
        pairs[p]["value"] = pairs[p]["reward"] + (top if whole else pairs[p]["left"] * top)
    for rank in range(np.uint64(u.size)):
        s = np.uint64(states[rank]["order"])
        first = np.uint64(states[s]["column"])
        for i in range(first, first + np.uint64(states[s]["entries"])):
            entry = plan.columns[i]
            pair = pairs[np.uint64(entry["index"])]
            left, mass = pair["left"], entry["probability"]
            taken = left if left < mass else mass
            pair["left"] = left - taken
            pair["value"] += (mass - taken) * u[s]


@inlined
def _fill_by_grid(plan, best, top):
    u, pairs, grid, lanes = plan.u, plan.pairs, plan.grid, plan.answer[0]["lanes"]
    left, value = grid[u.size], grid[u.size + 1]
    for p in range(pairs.size):
        pairs[p]["value"] = pairs[p]["reward"] + top  # all mass goes to the best state
    for k in range(lanes):
        pair = pairs[pairs[k]["lane"]]
        whole = pair["half"] >= 1.0 - grid[best, k]  # exactly: it may be a tie
        left[k] = np.inf if whole else pair["half"]
        value[k] = pair["reward"] + (top if whole else pair["half"] * top)
    for rank in range(u.size):
        s = plan.states[rank]["order"]
        line, height = grid[s], u[s]
        for k in range(lanes):
            taken = left[k] if left[k] < line[k] else line[k]
            left[k] -= taken
            value[k] += (line[k] - taken) * height
    for k in range(lanes):
        pairs[pairs[k]["lane"]]["value"] = value[k]


@evaluate.register(Balls)
def _evaluate_balls(plan, first):
    u = plan.u
    if first:
        _fill_rows(plan)
    best = np.int64(0)
    for s in range(u.size):
        if u[s] >= u[best]:
            best = np.int64(s)
    for s in range(u.size):
        _cut(plan, plan.pairs[plan.states[s]["greedy"]], best)
    for _ in range(EVALUATIONS):
        for s in range(u.size):
            plan.states[s]["swept"] = _kept(plan, plan.pairs[plan.states[s]["greedy"]], u[best])
        for s in range(u.size):
            u[s] = plan.states[s]["swept"]
        rebase(u)


@inlined
def _cut(plan, pair, best):
    """Find the kernel q of a pair that is best for u: where its row, in order of u, is cut off."""
    rows, first, last = plan.rows, pair["row"], pair["row"] + pair["entries"]
    _put_in_order(plan.u, rows, first, last)
    pair["cut"] = WHOLE
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


@inlined
def _put_in_order(u, rows, first, last):
    for i in range(first + 1, last):
        s, probability = rows[i]["index"], rows[i]["probability"]
        j = i
        while j > first and _before(u, s, rows[j - 1]["index"]):
            rows[j]["index"] = rows[j - 1]["index"]
            rows[j]["probability"] = rows[j - 1]["probability"]
            j -= 1
        rows[j]["index"] = s
        rows[j]["probability"] = probability


@inlined
def _kept(plan, pair, top):
    """Return r~ + q.u for the kernel q that `_cut` found."""
    u, rows = plan.u, plan.rows
    if pair["cut"] == WHOLE:
        return pair["reward"] + top
    cut = np.uint64(pair["cut"])
    total = pair["reward"] + pair["half"] * top
    total -= pair["left"] * u[np.uint64(rows[cut]["index"])]
    for i in range(cut, np.uint64(pair["row"] + pair["entries"])):
        total += rows[i]["probability"] * u[np.uint64(rows[i]["index"])]
    return total


@fill_values.register(Boxes)
def _fill_boxes(plan, best):
    """Give every state its lower bound, and what is left to the best ones up to their upper bounds.

    States that are no entry of a row have the bounds of p_hat = 0. Rows are kept in order of u, so
    one walk down the states meets their entries in turn.
    """
    u, rows, rooms, top = plan.u, plan.rows, plan.rooms, plan.u[best]
    for p in range(plan.pairs.size):
        pair = plan.pairs[p]
        if pair["kind"] != BOUND:
            pair["value"] = pair["reward"] + top
            continue
        first, entry = pair["row"], pair["row"] + pair["entries"] - 1
        put_boxes_in_order(u, rows, rooms, first, entry + 1)
        left, total = 1.0, 0.0
        for i in range(first, entry + 1):
            left -= rows[i]["probability"]
            total += rows[i]["probability"] * u[rows[i]["index"]]
        unseen = pair["rest"] + pair["half"]
        unseen = unseen if unseen < 1.0 else 1.0
        for rank in range(u.size - 1, -1, -1):
            s, room = plan.states[rank]["order"], unseen
            if entry >= first and rows[entry]["index"] == s:
                room = rooms[entry]
                entry -= 1
            given = left if left < room else room
            total += given * u[s]
            left -= given
            if left <= 0.0:
                break
        pair["value"] = pair["reward"] + total


@inlined
def put_boxes_in_order(u, rows, rooms, first, last):
    """Sort the entries of one row by u, each with its room."""
    for i in range(first + 1, last):
        s, probability, room = rows[i]["index"], rows[i]["probability"], rooms[i]
        j = i
        while j > first and _before(u, s, rows[j - 1]["index"]):
            rows[j]["index"] = rows[j - 1]["index"]
            rows[j]["probability"] = rows[j - 1]["probability"]
            rooms[j] = rooms[j - 1]
            j -= 1
        rows[j]["index"] = s
        rows[j]["probability"] = probability
        rooms[j] = room


@evaluate.register(Boxes)
def _evaluate_boxes(_plan, _first):
    """Leave u alone: boxes are not evaluated between sweeps."""
