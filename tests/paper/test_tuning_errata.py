"""E6, E7, E19 and E32: what the printed tuning gives, and the reading taken."""

from __future__ import annotations

import math

import pytest

import windage as wd
from windage.confidence.radii import KINDS, Radii
from windage.confidence.tuning import (
    as_widening,
    as_window,
    borl_grid,
    knowing_diameter,
    oblivious,
    sharper,
)


def test_e6_the_window_may_exceed_the_horizon_and_is_no_integer():
    space, T = wd.StateActions.uniform(100, 10), 10_000
    printed = wd.optimal_window(space, T, 0, 0)
    assert round(printed) == 20439
    assert printed != round(printed)
    assert as_window(printed, T) == T
    used = as_window(wd.optimal_window(wd.StateActions.uniform(10, 4), 100_000, 1, 1), 100_000)
    assert (used, type(used)) == (5085, int)


def test_e6_the_widening_comes_from_the_real_window():
    """From the clipped window it would be 1."""
    space, T = wd.StateActions.uniform(100, 10), 10_000
    assert wd.optimal_widening(space, T, 0, 0) == pytest.approx(math.sqrt(2.0439), abs=1e-4)


def test_e7_the_widening_may_exceed_the_diameter_of_the_simplex():
    printed = wd.optimal_widening(wd.StateActions.uniform(20, 4), 5_000, 0, 200)
    assert round(printed, 2) == 2.98
    assert as_widening(printed) == 2.0
    assert wd.plan(
        wd.StateActions.uniform(20, 4), horizon=5_000, reward_budget=0, transition_budget=200
    ).widening == 2.0  # fmt: skip


@pytest.mark.parametrize(("S", "A", "top"), [(5, 2, 2.03), (20, 4, 3.84)])
def test_e7_the_top_of_the_grid_is_capped(S, A, top):
    assert round(S ** (1 / 3) * A**0.25, 2) == top
    grid = borl_grid(wd.StateActions.uniform(S, A), 100_000)
    assert grid.widenings[0] == 2.0
    assert 0 < grid.widenings[-1] < 2 / math.sqrt(100_000)


def test_e19_the_oblivious_widening_is_the_root_of_the_share():
    S, A, T = 6, 2, 100_000
    found = oblivious(wd.StateActions.uniform(S, A), T)
    printed = S ** (2 / 3) * A**0.5 * T**-0.5
    assert round(found.widening, 4) == 0.1215
    assert round(printed, 4) == 0.0148
    assert found.widening == pytest.approx(math.sqrt(found.window / T))
    assert found.widening == pytest.approx(S ** (1 / 3) * A**0.25 * T**-0.25)


def test_e21_the_grid_reaches_the_widening_after_the_cap():
    """As printed its top is 1.16 times too low at B_p = 1,000; both are 2 at most after the cap."""
    space, T = wd.StateActions.uniform(2, 2), 5_000
    top = borl_grid(space, T).widenings[0]
    assert wd.optimal_widening(space, T, 0, 1_000) / top == pytest.approx(1.16, abs=5e-3)
    assert wd.optimal_widening(space, T, 0, 2 * (T - 1)) / top == pytest.approx(2.06, abs=5e-3)
    large = wd.StateActions.uniform(20, 4)
    wanted = as_widening(wd.optimal_widening(large, T, 0, 1_000))
    assert wanted == borl_grid(large, T).widenings[0] == 2.0


EVEN = wd.StateActions([3, 3, 3, 3])
UNEVEN = wd.StateActions([9, 1, 1, 1])  # the same pairs; the largest set is three times as large
SPARE = wd.StateActions([3, 3, 3, 2])  # A = 2.75, the largest set is that of EVEN


@pytest.mark.parametrize(
    "number",
    [
        lambda space: wd.optimal_window(space, 5_000, 1, 1),
        lambda space: wd.optimal_widening(space, 5_000, 1, 1),
        lambda space: oblivious(space, 5_000),
        lambda space: sharper(space, 5_000, 1, 1),
        lambda space: knowing_diameter(space, 5_000, 1, 1, 3.0),
        lambda space: borl_grid(space, 5_000).widenings,
        lambda space: borl_grid(space, 5_000).length,
        *(
            lambda space, kind=kind: Radii(kind).rules(space, 5_000, 0.05).tolist()
            for kind in KINDS
        ),
    ],
)
def test_e32_only_the_number_of_pairs_counts(number):
    assert number(EVEN) == number(UNEVEN)
    assert number(EVEN) != number(SPARE)
