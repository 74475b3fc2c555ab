"""Rows that are off by a little: accepted, rescaled, and of no consequence however long T is."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.sparse import csr_array

import windage as wd
from windage.errors import WindageError
from windage.models.gains import bracket, corner
from windage.oracle import diameter, gain
from windage.oracle.certificate import certify
from windage.oracle.finite_horizon import finite_horizon
from windage.oracle.lp import gain_lp

OFF = 9e-10  # just within the tolerance of 1e-9
PAIR = wd.StateActions([1, 1])
SLOW = np.array([[0.999, 0.001], [0.001, 0.999]])


def by(name, rows):
    """The rows as each way into the library takes and keeps them, dense."""
    if name == "mdp":
        return wd.MDP(PAIR, [0.0, 1.0], rows).transitions
    if name == "csr":
        return wd.MDP(PAIR, [0.0, 1.0], csr_array(rows)).transitions.toarray()
    if name == "knots":
        model = wd.DriftingMDP(PAIR, [1, 9], [[0.0, 1.0]] * 2, [rows, rows], horizon=9)
    elif name == "arrays":
        model = wd.DriftingMDP.from_arrays([[[0.0], [1.0]]] * 9, [rows[:, None]] * 9)
    else:
        model = wd.DriftingMDP.from_function(lambda t: ([0.0, 1.0], rows), space=PAIR, horizon=9)
    return model.at(9).transitions


@pytest.mark.parametrize("name", ["mdp", "csr", "knots", "arrays", "function"])
@pytest.mark.parametrize("off", [OFF, -OFF])
def test_every_way_in_rescales_rows(name, off):
    found = by(name, SLOW * (1 + off))
    assert np.abs(found.sum(axis=1) - 1).max() <= 4e-16
    assert found == pytest.approx(SLOW, abs=1e-15)


def test_rows_that_are_right_stay_as_they_are():
    """What was saved must come back to the last bit, so a second look changes nothing."""
    rng = np.random.default_rng(0)
    for states in (1, 2, 3, 7, 30, 300):
        space = wd.StateActions.uniform(states, 4)
        rows = rng.dirichlet(np.full(states, 0.3), size=4 * states)
        once = wd.MDP(space, np.zeros(4 * states), rows * (1 + OFF)).transitions
        for kind in (np.array, csr_array):
            again = wd.MDP(space, np.zeros(4 * states), kind(once)).transitions
            dense = again if isinstance(again, np.ndarray) else again.toarray()
            assert (dense == once).all()


@pytest.mark.parametrize("kind", [np.array, csr_array])
def test_the_finite_horizon_optimum_of_slow_rows_that_are_off(kind):
    """Two states with one action: V = sum of powers, from the eigenvalues 1 and 0.998."""
    T = 10**5
    with mpmath.workdps(50):
        second = 1 - 2 * mpmath.mpf(SLOW[0, 1]) / (mpmath.mpf(SLOW[0, 0]) + mpmath.mpf(SLOW[0, 1]))
        half = (1 - second**T) / (1 - second) / 2
        expected = [mpmath.mpf(T) / 2 - half, mpmath.mpf(T) / 2 + half]
        model = np.array([0.0, 1.0]), kind(SLOW * (1 + OFF))
        found = finite_horizon(PAIR, lambda t: model, T)
        assert found.error < 1e-6
        for value, truth in zip(found.values, expected, strict=True):
            assert abs(mpmath.mpf(float(value)) - truth) <= found.error


def slow_box(off):
    """The bracket over a box of slow models, whose biases are of size 1e4, with rows off by `off`.

    Both states are as likely at every w, for the two rows change alike: the gain is v / 2.
    """
    base = np.array([[0.9999, 0.0001], [0.0001, 0.9999]]) * (1 + off)
    change = np.array([[-0.0001, 0.0001], [0.0001, -0.0001]])

    def at(v, w):
        r = np.array([0.0, v])
        found = corner(PAIR, gain.solve(PAIR, r, base + w * change), r, w, base, change)
        assert found.gain == pytest.approx(v / 2, abs=1e-11)
        return found

    return bracket([(at(v, 0.0), at(v, 0.01)) for v in (0.4, 0.8)])


@pytest.mark.parametrize("off", [OFF, -OFF])
def test_brackets_do_not_feel_rows_that_are_off(off):
    """A bias of size 1e4 times an error of 1e-9 would be 1e-5."""
    lower, upper = slow_box(off)
    assert lower <= 1e-9
    assert upper >= -1e-9
    assert (lower, upper) == pytest.approx(slow_box(0.0), abs=1e-8)


def test_the_curve_of_rows_that_are_off_lies_in_its_bracket():
    ends = [wd.MDP(PAIR, [0.0, r], SLOW * (1 + OFF)) for r in (0.4, 0.8)]
    model = wd.DriftingMDP.blend(ends, wd.schedules.Linear(), wd.schedules.Cosine(2), horizon=1000)
    curve = model.optimal_gains(1e-7)
    for t in (1, 100, 250, 333, 500, 1000):
        low, high = curve.bracket(t)
        assert low <= model.at(t).rewards[1] / 2 <= high


def test_rounding_counts_by_the_size_of_the_bias():
    """h of size 1e12 in products with rows: a bracket narrower than its rounding would be a lie."""
    p = 2.0**-40
    base = np.array([[1 - p, p], [p, 1 - p]])
    change = np.zeros((2, 2))
    r = np.array([0.0, 1.0])
    one = corner(PAIR, gain.solve(PAIR, r, base, tol=1e-3), r, 0.0, base, change)
    assert one.span == pytest.approx(2.0**39)
    lower, upper = bracket([(one, one)])
    assert upper - lower >= 2 * 8 * 6 * 2.0**-52 * 2.0**39


def test_no_environment_has_specks_of_probability():
    """Below 1e-290 nothing is computed with: 200 people, who do not all fall ill at once."""
    model = wd.envs.make("epidemic", population=200, horizon=30, cycles=1)
    for t in (1, 15, 30):
        mdp = model.at(t)
        assert mdp.transitions[mdp.transitions > 0].min() >= 1e-300  # blends may halve them
        assert mdp.is_communicating()
        assert (mdp.transitions == 0).any()


def hostile():
    rows = csr_array(SLOW)
    rows.indptr[1] = 10**6
    return rows


STILL = np.zeros(2)
DOORS = {
    "mdp": lambda rows: wd.MDP(PAIR, STILL, rows),
    "function": lambda rows: wd.DriftingMDP.from_function(
        lambda t: (STILL, rows), space=PAIR, horizon=9
    ).at(1),
    "knots": lambda rows: wd.DriftingMDP(PAIR, [1, 9], [STILL] * 2, [rows, rows], horizon=9),
    "gain": lambda rows: gain.solve(PAIR, STILL, rows),
    "many gains": lambda rows: gain.solve_many(PAIR, [STILL], [rows]),
    "certificate": lambda rows: certify(PAIR, STILL, rows, STILL, [0, 0]),
    "lp": lambda rows: gain_lp(PAIR, STILL, rows),
    "diameter": lambda rows: diameter.diameter(PAIR, rows),
    "hitting times": lambda rows: diameter.hitting_times(PAIR, rows, 1),
    "classes": lambda rows: diameter.classes(PAIR, rows.indptr, rows.indices),
    "unreachable": lambda rows: diameter.unreachable(PAIR, rows.indptr, rows.indices),
    "finite horizon": lambda rows: finite_horizon(PAIR, lambda t: (STILL, rows), 3),
    "region": lambda rows: wd.ConfidenceRegion(PAIR, STILL, rows, STILL, [True, True]),
}


@pytest.mark.parametrize("door", DOORS)
def test_no_door_lets_sparse_rows_in_whose_parts_do_not_fit(door):
    with pytest.raises(WindageError, match=r"indptr\[2\]: falls from 1000000 to 4"):
        DOORS[door](hostile())
