"""Alias tables (Walker 1977, built as Vose 1991) over the non-zeros of CSR rows.

A row with n non-zeros becomes n cells; a draw picks a cell uniformly and then its own place in the
row if the rest of the draw is below the cell's `cut`, else another place. Only states of positive
probability have cells, so an impossible state cannot be drawn, whatever the rounding. Draws and
cuts are whole numbers of units of 2**-53, and what is drawn is exact in them.

A step waits for this look-up, and the cells of a hundred states must not leave the cache: a cell is
four bytes, the first sixteen bits of its cut and the other place. Only when these bits do not
decide, once in 65,536 draws, or when a place does not fit, are the cut and the place asked in full.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.kernels.jit import compiled, inlined
from windage.kernels.random import split

_ONE = 2.0**53
_SHIFT = np.uint64(53 - 16)
_SIXTEEN = np.uint32(16)
_PLACES = np.uint32((1 << 16) - 1)


class Alias(NamedTuple):
    """The tables of many rows."""

    direct: bool  # whether the k-th place of every row is state k
    rows: NDArray[np.int64]  # [rows + 1] where the cells of each row start
    cells: NDArray[np.uint32]  # first bits of the cut, last bits of the other place
    states: NDArray[np.int32]
    cuts: NDArray[np.uint64]
    places: NDArray[np.int32]  # the other place


@compiled
def build(alias, probabilities, shares, stack):
    """Fill the cells of every row; `shares` has room for one, `stack` too."""
    rows, cuts, places = alias.rows, alias.cuts, alias.places
    for row in range(rows.size - 1):
        first, n = rows[row], rows[row + 1] - rows[row]
        total = 0.0
        for place in range(n):
            total += probabilities[first + place]
        small, large = 0, n  # the stack holds cells below one from the left, others from the right
        for place in range(n):
            shares[place] = probabilities[first + place] / total * n
            places[first + place] = place
            if shares[place] < 1.0:
                stack[small] = place
                small += 1
            else:
                large -= 1
                stack[large] = place
        while small > 0 and large < n:
            poor, rich = stack[small - 1], stack[large]
            places[first + poor] = rich
            shares[rich] -= 1.0 - shares[poor]
            small -= 1
            if shares[rich] < 1.0:
                large += 1
                stack[small] = rich
                small += 1
        for place in range(n):  # a cell whose other place is its own is full, rounding or not
            cut = min(np.ceil(shares[place] * _ONE), _ONE - 1.0)
            cuts[first + place] = np.uint64(cut)
            bits = np.uint32(np.uint64(cut) >> _SHIFT) << _SIXTEEN
            alias.cells[first + place] = bits | (np.uint32(places[first + place]) & _PLACES)


@inlined
def draw(alias, row, u):
    """Return the state that u, in units of 2**-53, picks from a row."""
    start = np.uint64(alias.rows[row])
    n = np.uint64(alias.rows[row + np.uint64(1)]) - start
    own, rest = split(u, n)
    cell = alias.cells[start + own]
    cut, bits = cell >> _SIXTEEN, np.uint32(rest >> _SHIFT)
    if bits == cut or n > _PLACES:
        place = own if rest < alias.cuts[start + own] else np.uint64(alias.places[start + own])
    else:
        place = own if bits < cut else np.uint64(cell & _PLACES)
    return np.int64(place) if alias.direct else np.int64(alias.states[start + place])
