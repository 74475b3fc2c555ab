"""p_hat as a grid, one line a next state with pairs side by side: for rows with few zeros.

A sweep by columns touches every non-zero once, one after another. Where an eighth of all cells or
more are non-zeros it is faster to touch all cells and do many pairs at a time: a line of the grid
is a few vectors, and zeros change nothing. Every pair meets the same numbers in the same order as
in a sweep by columns, so both give the same values to the last bit.

Only pairs whose set is a ball have a lane. Below the lines of the states are two more: what is left
to be taken from each pair, and its value so far.
"""

from __future__ import annotations

import numpy as np

from windage.kernels.jit import compiled, inlined
from windage.kernels.plan import BOUND, GRID

SPARSEST = 8  # a grid is used from one non-zero in as many cells on


@inlined
def fits(plan, entries):
    """Whether so many non-zeros should go to the grid; without room for one: never."""
    return plan.grid.size > 0 and SPARSEST * entries >= plan.pairs.size * plan.u.size


@inlined
def _assign(plan):
    """Give every pair whose set is a ball a lane; returns how many there are."""
    lanes = 0
    for p in range(plan.pairs.size):
        if plan.pairs[p]["kind"] == BOUND:
            plan.pairs[lanes]["lane"] = p
            lanes += 1
    plan.answer[GRID] = 1.0 + lanes
    return lanes


@compiled
def fill(plan, cells, counts):
    """Write p_hat to the grid: cells[pair * S + state] of the visits that `counts` has."""
    grid, pairs, states = plan.grid, plan.pairs, plan.u.size
    for k in range(_assign(plan)):
        p = pairs[k]["lane"]
        share, row = 1.0 / max(1, counts[p]["visits"]), np.uint64(p * states)
        for s in range(np.uint64(states)):
            grid[s, np.uint64(k)] = cells[row + s] * share


@compiled
def lay(plan):
    """Write the rows of a plan to the grid."""
    plan.grid[:] = 0.0
    for k in range(_assign(plan)):
        pair = plan.pairs[plan.pairs[k]["lane"]]
        for i in range(pair["row"], pair["row"] + pair["entries"]):
            plan.grid[plan.rows[i]["index"], k] = plan.rows[i]["probability"]


@compiled
def pick_up(plan):
    """Write the grid to the rows of a plan."""
    for pair in plan.pairs:
        pair["entries"] = 0
    n = 0
    for k in range(np.int64(plan.answer[GRID]) - 1):
        pair = plan.pairs[plan.pairs[k]["lane"]]
        pair["row"] = n
        for s in range(plan.u.size):
            if plan.grid[s, k] > 0.0:
                plan.rows[n]["index"] = s
                plan.rows[n]["probability"] = plan.grid[s, k]
                n += 1
        pair["entries"] = n - pair["row"]


@compiled
def values(plan, best):
    """Fill `value` of every pair: r~ + max q.u; `best` is the state with the largest u."""
    u, pairs, grid, top = plan.u, plan.pairs, plan.grid, plan.u[best]
    left, value, lanes = grid[u.size], grid[u.size + 1], np.int64(plan.answer[GRID]) - 1
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
            taken = min(left[k], line[k])
            left[k] -= taken
            value[k] += (line[k] - taken) * height
    for k in range(lanes):
        pairs[pairs[k]["lane"]]["value"] = value[k]
