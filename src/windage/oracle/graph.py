"""Who can reach whom: the graph with an edge s -> s' wherever some action can make that move.

A model is communicating (Assumption 1 of the paper) exactly when this graph is strongly connected.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from windage.spaces import StateActions

__all__ = ["classes", "unreachable"]


def classes(
    space: StateActions, rows: NDArray[np.int64], states: NDArray[np.int32]
) -> tuple[int, NDArray[np.int32]]:
    """Return the number of strongly connected classes and the class of each state.

    `rows` and `states` list the possible next states of every pair, as in CSR.
    """
    from scipy.sparse.csgraph import connected_components

    n, labels = connected_components(
        _edges(space, rows, states), directed=True, connection="strong"
    )
    return int(n), labels


def unreachable(
    space: StateActions, rows: NDArray[np.int64], states: NDArray[np.int32]
) -> tuple[int, int] | None:
    """Return a pair (s, s') such that no policy leads from s to s', or None."""
    n, labels = classes(space, rows, states)
    if n == 1:
        return None
    edges = _edges(space, rows, states).tocoo()
    leaves = np.zeros(n, dtype=bool)
    leaves[labels[edges.row[labels[edges.row] != labels[edges.col]]]] = True
    closed = int(np.flatnonzero(~leaves)[0])  # a finite graph has a class that is never left
    return int(np.argmax(labels == closed)), int(np.argmax(labels != closed))


def _edges(space: StateActions, rows: NDArray[np.int64], states: NDArray[np.int32]) -> csr_array:
    starts = rows[space.offsets]  # the rows of a state's pairs lie side by side
    return csr_array(
        (np.ones(states.size, dtype=bool), states, starts), shape=(space.n_states, space.n_states)
    )
