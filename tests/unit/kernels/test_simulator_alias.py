"""Alias tables give back the row they were built from, to rounding, and no impossible state."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from windage.kernels import simulator
from windage.models.mdp import Cells
from windage.models.source import alias_table

ROWS = [
    [1.0],
    [0.5, 0.5],
    [0.1, 0.9],
    [0.7, 0.2, 0.1],
    [1 / 3, 1 / 3, 1 / 3],
    [1e-12, 1 - 1e-12],
    [1e-300, 1.0],
    [0.05, 0.6, 0.35],
]


def tabulate(rows):
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    states = np.concatenate([np.arange(len(row)) * 2 + 1 for row in rows]).astype(np.int32)
    return alias_table(Cells(starts, states, np.concatenate(rows)))


def literal_draw(table, row, u):
    """Draw with whole numbers of any size: a cell, then its own place or the other one."""
    start, stop = (int(place) for place in table.rows[row : row + 2])
    own, rest = divmod(u * (stop - start), 2**53)
    states = table.states if rest < int(table.cuts[start + own]) else table.others
    return int(states[start + own])


def law(table, row):
    """What a table draws, added up exactly: a cell is as likely as any other."""
    start, stop = table.rows[row : row + 2]
    total: dict[int, Fraction] = {}
    for cell in range(start, stop):
        cut = Fraction(int(table.cuts[cell]), 2**53)
        for states, share in ((table.states, cut), (table.others, 1 - cut)):
            state = int(states[cell])
            total[state] = total.get(state, Fraction(0)) + share / int(stop - start)
    return {state: float(share) for state, share in total.items() if share}


def test_tables_hold_the_probabilities():
    table = tabulate(ROWS)
    for i, row in enumerate(ROWS):
        expected = dict(zip((2 * np.arange(len(row)) + 1).tolist(), row, strict=True))
        found = law(table, i)
        assert found.keys() == expected.keys()
        for state, share in expected.items():
            assert found[state] == pytest.approx(share, abs=1e-15)


def test_random_rows_of_many_sizes():
    rng = np.random.default_rng(0)
    rows = [rng.dirichlet(np.full(n, 0.3)) for n in (2, 5, 17, 100, 1000)]
    table = tabulate(rows)
    for i, row in enumerate(rows):
        found = law(table, i)
        expected = zip((2 * np.arange(len(row)) + 1).tolist(), row, strict=True)
        assert max(abs(found.get(state, 0.0) - share) for state, share in expected) <= 1e-15


def draws_near_the_cuts(table, row):
    """The draws around every place where a draw changes: the ends of cells, and their cuts."""
    start, stop = (int(place) for place in table.rows[row : row + 2])
    for own, cut in enumerate(table.cuts[start:stop].tolist()):
        for edge in (own << 53, (own << 53) + cut, (own << 53) + (cut >> 37 << 37)):
            middle = edge // (stop - start)
            yield from range(max(0, middle - 2), min(2**53, middle + 3))


def test_draws_are_exact_where_they_change():
    rng = np.random.default_rng(1)
    table = tabulate([*ROWS, *(rng.dirichlet(np.full(n, 0.3)) for n in (7, 300, 3000))])
    for row in range(table.rows.size - 1):
        for u in draws_near_the_cuts(table, row):
            assert simulator.draw(table, np.uint64(row), np.uint64(u)) == literal_draw(
                table, row, u
            )


def test_rows_longer_than_sixteen_bits():
    rng = np.random.default_rng(2)
    table = tabulate([[0.5, 0.5], rng.dirichlet(np.ones(70_000))])
    assert table.others.max() > 2**17
    for u in rng.integers(0, 2**53, 2000).tolist():
        assert simulator.draw(table, np.uint64(1), np.uint64(u)) == literal_draw(table, 1, u)


def test_a_place_is_a_state_where_no_state_is_missing():
    cells = Cells(np.array([0, 3, 5]), np.array([0, 1, 2, 0, 1], np.int32), np.full(5, 0.4))
    gap = cells._replace(states=np.array([0, 1, 2, 0, 2], np.int32))
    assert alias_table(cells).direct
    assert not alias_table(gap).direct
    drawn = {
        int(simulator.draw(alias_table(gap), np.uint64(1), np.uint64(u << 45))) for u in range(256)
    }
    assert drawn == {0, 2}
