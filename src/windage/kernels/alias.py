"""Alias tables (Walker 1977, built as Vose 1991) over the non-zeros of CSR rows.

A row with n non-zeros becomes n cells; a draw picks a cell uniformly and then its `near` state if
the coin is below `cut`, else its `far` state. Only states of positive probability have cells, so an
impossible state cannot be drawn, whatever the rounding. A cell is one record of 16 bytes, so that
a draw touches one line of the cache.
"""

from __future__ import annotations

import numpy as np

from windage.kernels.compiled import compiled, inlined

CELL = np.dtype([("cut", np.float64), ("near", np.int32), ("far", np.int32)])


@compiled
def build(rows, states, probabilities, table, stack):
    """Fill the cells of every row; `stack` has room for the longest row."""
    cut, near, far = table["cut"], table["near"], table["far"]
    for row in range(rows.size - 1):
        first, last = rows[row], rows[row + 1]
        n = last - first
        total = 0.0
        for cell in range(first, last):
            total += probabilities[cell]
        small, large = 0, n  # the stack holds cells below one from the left, others from the right
        for cell in range(first, last):
            cut[cell] = probabilities[cell] / total * n
            near[cell] = states[cell]
            far[cell] = states[cell]
            if cut[cell] < 1.0:
                stack[small] = cell
                small += 1
            else:
                large -= 1
                stack[large] = cell
        while small > 0 and large < n:
            poor, rich = stack[small - 1], stack[large]
            far[poor] = states[rich]
            cut[rich] -= 1.0 - cut[poor]
            small -= 1
            if cut[rich] < 1.0:
                large += 1
                stack[small] = rich
                small += 1
        for place in range(small):  # what rounding left over is full
            cut[stack[place]] = 1.0
        for place in range(large, n):
            cut[stack[place]] = 1.0


@inlined
def draw(rows, table, row, u):
    """Return the state that the uniform number u picks from a row."""
    start = rows[row]
    place = u * (rows[row + 1] - start)
    whole = np.int64(place)
    cell = table[np.uint64(start + whole)]
    near, far = cell["near"], cell["far"]  # both loaded: choosing between them needs no branch
    return near if place - whole < cell["cut"] else far
