"""Which state followed which pair how often, over several windows at once.

A cell is one (pair, next state) that has been seen; it has one count for each window. The longest
window is all history, so a cell never goes away: cells are numbered as they are met, and those of a
pair form a chain from the last met to the first. A cell is found through a table, one place for
every (pair, state) of a small model, a hash table for a large one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.jit import compiled, inlined
from windage.kernels.random import mix

NONE = -1  # no cell


class Cells(NamedTuple):
    """All that was ever seen to follow; made and given room by `windage.confidence.scales`."""

    n_states: int
    hashed: bool
    met: NDArray[np.int64]  # [1] how many cells there are
    table: NDArray[np.int32]  # [pairs * S], or a power of two: 1 + cell, 0 if there is none
    pair: NDArray[np.int32]  # [room]
    state: NDArray[np.int32]
    older: NDArray[np.int32]  # the cell of the same pair that was met before, or NONE
    newest: NDArray[np.int32]  # [pairs] where a pair's chain starts, or NONE
    counts: NDArray[np.int32]  # [room, windows]


@inlined
def place_of(cells, pair, state):
    """Return the cell of (pair, state); one that is new gets the next number."""
    slot = np.uint64(pair * cells.n_states + state)
    if cells.hashed:
        mask = np.uint64(cells.table.size - 1)
        slot = mix(slot) & mask
        while cells.table[slot] != 0:
            cell = np.uint64(cells.table[slot] - 1)
            if cells.pair[cell] == pair and cells.state[cell] == state:
                break
            slot = (slot + np.uint64(1)) & mask
    if cells.table[slot] == 0:
        _meet(cells, slot, pair, state)
    return np.int64(cells.table[slot]) - 1


@compiled
def _meet(cells, slot, pair, state):
    cell = cells.met[0]
    cells.met[0] = cell + 1
    cells.table[slot] = cell + 1
    cells.pair[cell] = pair
    cells.state[cell] = state
    cells.older[cell] = cells.newest[pair]
    cells.newest[pair] = cell


@compiled
def enter(cells, pairs, states):
    """Meet many cells, in this order, none of them twice."""
    for i in range(pairs.size):
        place_of(cells, np.int64(pairs[i]), np.int64(states[i]))
