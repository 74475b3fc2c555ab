"""Sets and workspace of one EVI, and the two ways its rows are kept: by pair and by next state.

Where most are non-zeros, `kernels.grid` keeps them by next state in full.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.jit import compiled

LEFT_OUT, FREE, BOUND, BOX = 0, 1, 2, 3
"""What a pair's set is: not needed, the whole simplex, a ball around p_hat, or a box around it."""

WHOLE = -1  # all mass on the best state
GAIN, SPAN, GAP, SWEEPS, UNSOLVED, GRID = 0, 1, 2, 3, 4, 5  # places in Plan.answer

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


class Plan(NamedTuple):
    """Sets and workspace of one EVI; `windage.confidence.confidence` makes one."""

    pairs: NDArray[np.void]
    states: NDArray[np.void]
    u: NDArray[np.float64]  # [S] start in, gamma~ out
    rows: NDArray[np.void]  # p_hat by pair, or lower bounds; the index is the next state
    rooms: NDArray[np.float64]  # upper less lower bound of each entry of a row; none: no boxes
    columns: NDArray[np.void]  # the same by next state, the index is the pair
    grid: NDArray[np.float64]  # [S + 2, pairs], see kernels.grid; none: always columns
    # rho~, span(gamma~), span(Tu - u), sweeps; draws not solved; 1 + lanes in use, 0: columns
    answer: NDArray[np.float64]


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
