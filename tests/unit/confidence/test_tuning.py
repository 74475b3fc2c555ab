"""Windows and widenings against 50-digit formulas and the paper's own figures."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import windage as wd
from windage.confidence.tuning import (
    as_widening,
    as_window,
    bandit,
    borl_grid,
    knowing_diameter,
    oblivious,
    optimal_widening,
    optimal_window,
    sharper,
)

RAGGED = wd.StateActions([1, 2, 3, 4, 1, 1, 1])  # S = 7, A = 13/7, the largest set has 4
CASES = [
    (wd.StateActions.uniform(2, 2), 5_000, 3.2, 3.2),
    (wd.StateActions.uniform(6, 2), 100_000, 2.1, 1.0),
    (RAGGED, 12_345, 0.0, 7.5),
    (wd.StateActions.uniform(100, 10), 10_000, 0.0, 0.0),
    (wd.StateActions([5]), 1_000, 2.0, 0.0),
]


def exactly(space):
    return mpmath.mpf(space.n_states), mpmath.mpf(space.n_pairs) / space.n_states


@pytest.mark.parametrize(("space", "T", "Br", "Bp"), CASES)
def test_theorem_1_and_the_remark_without_budgets(space, T, Br, Bp):
    S, A = exactly(space)
    W = 3 * S ** (mpmath.mpf(2) / 3) * mpmath.sqrt(A) * mpmath.sqrt(T) / mpmath.sqrt(Br + Bp + 1)
    eta = mpmath.sqrt((Bp + 1) * W / T)
    assert optimal_window(space, T, Br, Bp) == pytest.approx(float(W), rel=1e-14)
    assert optimal_widening(space, T, Br, Bp) == pytest.approx(float(eta), rel=1e-14)
    W = S ** (mpmath.mpf(2) / 3) * mpmath.sqrt(A * T)
    assert oblivious(space, T).window == pytest.approx(float(W), rel=1e-14)
    eta = mpmath.cbrt(S) * A ** mpmath.mpf("0.25") * T ** mpmath.mpf("-0.25")
    assert oblivious(space, T).widening == pytest.approx(float(eta), rel=1e-14)


def test_budgets_that_no_model_uses_up():
    """A step moves mean rewards by 1 and rows by 2 at the most, and there are T - 1 of them."""
    space, T = wd.StateActions([2, 2]), 100
    for ask in (optimal_window, optimal_widening, sharper):
        assert ask(space, T, 99.0, 198.0)
        for Br, Bp, said in (
            (99.5, 0.0, "reward_budget: 99.5: no model drifts that much in T = 100 .* 0 to 99,"),
            (0.0, 199, "transition_budget: 199: no model drifts that much in T = 100 .* 0 to 198,"),
        ):
            with pytest.raises(wd.InputError, match=said):
                ask(space, T, Br, Bp)
    for tuned in (wd.SWUCRL2CW.tuned, wd.SWUCRL2CW.practical):
        with pytest.raises(wd.InputError, match="^reward_budget: 99.5: no model drifts"):
            tuned(space, horizon=T, reward_budget=99.5, transition_budget=0.0)
        with pytest.raises(wd.InputError, match="^transition_budget: 199: no model drifts"):
            tuned(space, horizon=T, reward_budget=0.0, transition_budget=199)
    with pytest.raises(wd.InputError, match="^reward_budget: 99.5: no model drifts"):
        wd.SWUCRL2CW.bandit(wd.StateActions([2]), horizon=T, reward_budget=99.5)


@pytest.mark.parametrize(
    ("S", "A", "T", "window", "mean"),
    [
        (2, 2, 5_000, 275, 69),
        (6, 2, 100_000, 2558, 213),
        (20, 4, 100_000, 8071, 101),
        (20, 4, 1_000_000, 25524, 319),
        (50, 5, 1_000_000, 52564, 210),
    ],
)
def test_windows_of_the_table_in_section_5(S, A, T, window, mean):
    real = optimal_window(wd.StateActions.uniform(S, A), T, 1.0, 1.0)
    assert as_window(real, T) == window
    assert round(real / (S * A)) == mean


@pytest.mark.parametrize("T", [100, 10_000, 1_000_000])
@pytest.mark.parametrize("arms", [2, 7])
@pytest.mark.parametrize("Br", [0.5, 3.0, 40.0])
def test_the_bandit_window_balances_drift_and_noise(T, arms, Br):
    """W minimises B_r W + 2 T sqrt(A / W) (the constant 2 makes the remark's W the exact one)."""
    found = bandit(wd.StateActions([arms]), T, Br)
    grid = found.window * np.linspace(0.2, 5.0, 4801)
    cost = Br * grid + 2 * T * np.sqrt(arms / grid)
    assert grid[np.argmin(cost)] == pytest.approx(found.window, rel=2e-3)
    assert found.widening == 0
    assert found.in_force == (1 / arms <= Br <= T / arms)


def test_a_bandit_that_does_not_drift_forgets_nothing():
    found = bandit(wd.StateActions([3]), 500, 0.0)
    assert as_window(found.window, 500) == 500
    assert not found.in_force
    with pytest.raises(wd.InputError, match="this space has 2"):
        bandit(wd.StateActions([1, 1]), 500, 1.0)


def terms(S, A, T, Br, Bp, D, W, eta):
    """Theorem 1, term by term: those of T^(3/4) last."""
    slow = Br * W + D * (Bp * W + S * A * T / W + math.sqrt(T))
    fast = Bp * W / eta + math.sqrt(S * A / W) * T + D * (S * math.sqrt(A / W) * T + T * eta)
    return slow, fast


def test_the_sharper_tuning_trades_s_to_the_two_thirds_for_its_root():
    """The term S A^(1/2) T / W^(1/2) when S grows by 256: by its root 16, or by 256^(2/3) = 40."""
    T, spaces = 10**11, [wd.StateActions.uniform(S, 2) for S in (4, 4 * 256)]
    assert all(sharper(space, T, 1.0, 1.0).in_force for space in spaces)
    for window, growth in (
        (lambda space: sharper(space, T, 1.0, 1.0).window, 16),
        (lambda space: optimal_window(space, T, 1.0, 1.0), 256 ** (2 / 3)),
    ):
        few, many = (space.n_states / math.sqrt(window(space)) for space in spaces)
        assert many / few == pytest.approx(growth, rel=1e-9)


def test_the_sharper_tuning_is_the_formula_and_knows_its_reach():
    space, T, Br, Bp = RAGGED, 12_345, 0.5, 7.5
    found = sharper(space, T, Br, Bp)
    assert found.window == pytest.approx(7 * math.sqrt(13 / 7 * T / 9), rel=1e-14)
    assert found.widening == pytest.approx(math.sqrt(8.5 * found.window / T), rel=1e-14)
    edge = 49 * 13 / 7 * 8
    assert not sharper(space, math.floor(edge) - 1, Br, Bp).in_force
    assert sharper(space, math.ceil(edge), Br, Bp).in_force


def test_knowing_the_diameter_gains_its_fourth_root():
    """The sum of the T^(3/4) terms grows like D^(3/4), at the paper's tuning like D."""
    space, T, Bp = wd.StateActions.uniform(4, 2), 10**12, 1.0
    known, paper = [], []
    for D in (16.0, 256.0):
        found = knowing_diameter(space, T, 0.0, Bp, D)
        assert found.in_force
        known.append(terms(4, 2, T, 0, Bp, D, found.window, found.widening)[1])
        W, eta = optimal_window(space, T, 0.0, Bp), optimal_widening(space, T, 0.0, Bp)
        paper.append(terms(4, 2, T, 0, Bp, D, W, eta)[1])
    assert math.log(known[1] / known[0], 16) == pytest.approx(0.75, abs=0.03)
    assert math.log(paper[1] / paper[0], 16) == pytest.approx(1.0, abs=0.05)


def test_knowing_the_diameter_is_the_formula_and_knows_its_reach():
    space, Bp, D = RAGGED, 7.5, 3.0
    found = knowing_diameter(space, 10**6, 0.0, Bp, D)
    W = 7 * math.sqrt(13 / 7 * D * 10**6 / 8.5)
    assert found.window == pytest.approx(W, rel=1e-14)
    assert found.widening == pytest.approx(math.sqrt(8.5 * W / (D * 10**6)), rel=1e-14)
    edge = D**3 * 49 * 13 / 7 * 8.5
    assert not knowing_diameter(space, math.floor(edge), 0.0, Bp, D).in_force
    assert knowing_diameter(space, math.ceil(edge), 0.0, Bp, D).in_force
    assert not knowing_diameter(space, 10**6, 1e4, Bp, D).in_force  # rewards drift too much


# --- what an agent can use -----------------------------------------------------------------------


def test_windows_and_widenings_that_can_be_used():
    assert [as_window(w, 10) for w in (0.0, 0.4, 1.4, 9.6, 20439.1)] == [1, 1, 1, 10, 10]
    assert type(as_window(3.7, 10)) is int
    assert [as_widening(eta) for eta in (0.0, 0.319, 2.0, 2.98)] == [0.0, 0.319, 2.0, 2.0]


@pytest.mark.parametrize(("space", "T"), [(case[0], case[1]) for case in CASES])
def test_the_grid_of_borl(space, T):
    """Spec 1.10, with 50 digits; the floors and powers are taken there."""
    grid = borl_grid(space, T)
    with mpmath.workdps(50):
        S, A = exactly(space)
        H = 3 * mpmath.cbrt(S) ** 2 * mpmath.sqrt(A * T)
        steps = int(mpmath.floor(mpmath.log(H)))
        falls = int(mpmath.floor(mpmath.log(2 * mpmath.sqrt(T))))
        windows = [mpmath.floor(H ** (mpmath.mpf(j) / steps)) for j in range(steps)]
        assert [*(int(w) for w in windows), int(H)] == list(grid.windows)
        top, low = mpmath.cbrt(S) * A ** mpmath.mpf("0.25"), 1 / (2 * mpmath.sqrt(T))
        powers = [mpmath.mpf(k) / falls for k in range(1, falls + 1)]
        etas = [float(min(2, top * low**power)) for power in (0, *powers)]
        assert grid.widenings == pytest.approx(etas, rel=1e-13)
        assert grid.block_length == min(T, int(mpmath.ceil(H)))
    assert grid.blocks == math.ceil(T / grid.block_length)
    assert grid.arms == (steps + 1) * (falls + 1)


def test_the_grid_of_one_step():
    grid = borl_grid(wd.StateActions([1]), 1)
    assert (grid.block_length, grid.blocks) == (1, 1)
    assert grid.windows == (1, 3)
    assert grid.widenings == (1.0,)


def test_a_space_that_is_none_is_what_it_is_everywhere():
    with pytest.raises(wd.ModelError, match="space: is of type int, not StateActions"):
        oblivious(3, 10)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: optimal_window(3, 10, 1, 1), "space"),
        (lambda: optimal_window(RAGGED, 0, 1, 1), "horizon"),
        (lambda: optimal_window(RAGGED, 10.5, 1, 1), "horizon"),
        (lambda: optimal_window(RAGGED, 10, -1, 1), "reward_budget"),
        (lambda: optimal_widening(RAGGED, 10, 1, "much"), "transition_budget"),
        (lambda: optimal_widening(RAGGED, 10, 1, math.nan), "transition_budget"),
        (lambda: knowing_diameter(RAGGED, 10, 1, 1, 0.0), "diameter"),
        (lambda: as_window(math.inf, 10), "window"),
        (lambda: as_window(-1.0, 10), "window"),
        (lambda: as_widening(math.nan), "widening"),
        (lambda: as_widening(-0.1), "widening"),
    ],
)
def test_bad_input_is_named(call, field):
    with pytest.raises(wd.WindageError) as caught:
        call()
    assert caught.value.field == field
