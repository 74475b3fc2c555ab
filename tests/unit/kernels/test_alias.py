"""Alias tables give back the row they were built from, to rounding, and no impossible state."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from windage.kernels import alias

ROWS = [
    [1.0],
    [0.5, 0.5],
    [0.1, 0.9],
    [0.7, 0.2, 0.1],
    [1 / 3, 1 / 3, 1 / 3],
    [1e-12, 1 - 1e-12],
    [0.05, 0.6, 0.35],
]


def tabulate(rows):
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    states = np.concatenate([np.arange(len(row)) * 2 + 1 for row in rows]).astype(np.int32)
    table = np.empty(states.size, dtype=alias.CELL)
    stack = np.empty(max(map(len, rows)), dtype=np.int64)
    alias.build(starts, states, np.concatenate(rows), table, stack)
    return starts, states, table


def law(cells):
    """What a table draws, added up exactly: a cell is as likely as any other."""
    total: dict[int, Fraction] = {}
    for cell in cells:
        cut = Fraction(float(cell["cut"]))
        for state, share in ((int(cell["near"]), cut), (int(cell["far"]), 1 - cut)):
            total[state] = total.get(state, Fraction(0)) + share / len(cells)
    return {state: float(share) for state, share in total.items() if share}


def test_tables_hold_the_probabilities():
    starts, states, table = tabulate(ROWS)
    for i, row in enumerate(ROWS):
        found = law(table[starts[i] : starts[i + 1]])
        expected = dict(zip(states[starts[i] : starts[i + 1]].tolist(), row, strict=True))
        assert found.keys() == expected.keys()
        for state, share in expected.items():
            assert found[state] == pytest.approx(share, abs=1e-15)


def test_random_rows_of_many_sizes():
    rng = np.random.default_rng(0)
    rows = [rng.dirichlet(np.full(n, 0.3)) for n in (2, 5, 17, 100, 1000)]
    starts, states, table = tabulate(rows)
    for i, row in enumerate(rows):
        found = law(table[starts[i] : starts[i + 1]])
        expected = zip(states[starts[i] : starts[i + 1]].tolist(), row, strict=True)
        assert max(abs(found.get(state, 0.0) - share) for state, share in expected) <= 1e-15


def test_draws_fall_into_the_cell_they_point_at():
    starts, _, table = tabulate(ROWS)
    row = 3
    for u in (0.0, 0.2, 0.4, 0.77, 1 - 2**-53):
        cell = table[starts[row] + int(u * 3)]
        expected = cell["near"] if u * 3 - int(u * 3) < cell["cut"] else cell["far"]
        assert alias.draw(starts, table, row, u) == expected
