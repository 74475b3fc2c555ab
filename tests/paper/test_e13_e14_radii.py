"""E13 and E14: the radii of the text, those of the proof, and the constant of the noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

import windage as wd
from windage.confidence.radii import Radii


def both(radii, n, space, T, delta):
    here = {"space": space, "horizon": T, "delta": delta}
    return radii.reward(n, **here), radii.transition(n, **here)


@pytest.mark.parametrize(("S", "A", "T", "times"), [(2, 2, 5_000, 1.5), (20, 4, 100_000, 4.1)])
def test_e13_the_text_is_wider_than_its_proof_needs(S, A, T, times):
    space = wd.StateActions.uniform(S, A)
    text, proof = (both(radii, 100, space, T, 0.05)[1] for radii in (Radii.paper(), Radii.proof()))
    assert text / proof == pytest.approx(times, abs=0.05)


def test_e13_the_text_dominates_the_proof_where_the_algebra_says():
    """rad_r: SA >= 2 delta. rad_p: S >= 2, or S = 1 and A >= 4 delta. Both ways."""
    tight = 0
    for counts in ([1], [2], [3], [4], [1, 1], [2, 1], [3, 3, 3]):
        space = wd.StateActions(counts)
        for delta in (0.01, 0.24, 0.26, 0.49, 0.51, 0.74, 0.76, 0.99):
            for T in (1, 2, 50, 10**6):
                text = both(Radii.paper(), 5, space, T, delta)
                proof = both(Radii.proof(), 5, space, T, delta)
                SA, S = space.n_pairs, space.n_states
                assert (text[0] >= proof[0] * (1 - 1e-15)) == (2 * delta <= SA)
                assert (text[1] >= proof[1] * (1 - 1e-15)) == (S >= 2 or 4 * delta <= SA)
                tight += text[0] < proof[0]
    assert tight > 0  # some settings are on the other side


def test_e13_the_proofs_radius_is_the_lemma_with_its_union_bound():
    """Self-normalised noise with R = 1 at level delta / (2 SAT 2^S) is within the proof's radius.

    For n visits sum xi <= sqrt(2 (n + 1) ln(sqrt(n + 1) / level)), n < T, and the L1 norm is the
    largest of 2^S sums with signs; a reward needs one sign each way, counted by the 2 of 2 SAT.
    """
    for S, A, T, delta in ((2, 2, 5_000, 0.05), (6, 2, 100_000, 0.01), (20, 4, 1_000, 0.3)):
        space = wd.StateActions.uniform(S, A)
        n = np.unique(np.geomspace(1, T - 1, 200).astype(np.int64))
        r, p = both(Radii.proof(), n, space, T, delta)
        mixing = np.sqrt(2 * (n + 1)) / n
        need_r = mixing * np.sqrt(np.log(np.sqrt(n + 1) * 2 * S * A * T / delta))
        need_p = mixing * np.sqrt(S * math.log(2) + np.log(np.sqrt(n + 1) * 2 * S * A * T / delta))
        assert (need_r <= r).all()
        assert (need_p <= p).all()
        assert (need_r > r / 2).any()  # half of it would not do
        laplace = both(Radii.laplace(), n, space, T, delta)  # one sign vector in two is enough
        assert laplace[0] == pytest.approx(need_r, rel=1e-12)
        assert (laplace[1] <= need_p).all()


def test_e13_the_text_without_its_factor_2_would_not_cover():
    """Lemma sto_error writes rad_r without the 2: below what the union bound needs."""
    space, T, delta = wd.StateActions.uniform(6, 2), 100_000, 0.05
    text, proof = Radii.paper(), Radii.laplace()
    here = {"space": space, "horizon": T, "delta": delta}
    assert text.reward(1, **here) > proof.reward(1, **here)
    assert text.reward(1, **here) / 2 < proof.reward(1, **here)


def log_mgf(values, probabilities, x):
    mean = values @ probabilities
    return math.log(np.exp(x * (values - mean)) @ probabilities)


def variance_factor(values):
    """The least R^2 with ln E exp(x xi) <= R^2 x^2 / 2 for all laws on two points and all x."""
    worst = 0.0
    for q in np.linspace(0.01, 0.99, 99):
        for x in np.concatenate([-np.geomspace(0.01, 20, 60), np.geomspace(0.01, 20, 60)]):
            found = 2 * log_mgf(values, np.array([q, 1 - q]), x) / x**2
            worst = max(worst, found)
    return worst


def test_e14_noise_in_a_range_of_two_is_1_sub_gaussian_and_not_2():
    """A sign theta(s') and a noise in [-1, 1] have range 2: R = 1; rewards in [0, 1]: R = 1/2."""
    assert variance_factor(np.array([-1.0, 1.0])) == pytest.approx(1.0, abs=1e-3)
    assert variance_factor(np.array([0.0, 1.0])) == pytest.approx(0.25, abs=1e-3)


def test_e14_the_printed_constant_would_double_the_radius():
    """With R = 2 the lemma asks for more than the printed radius of rewards; with R = 1 it fits."""
    space, T, delta = wd.StateActions.uniform(6, 2), 100_000, 0.05
    text, lemma = (both(radii, 50, space, T, delta)[0] for radii in (Radii.paper(), Radii.proof()))
    assert 1 * lemma <= text < 2 * lemma


@pytest.mark.parametrize("make", [Radii.proof, Radii.laplace])
def test_e14_rewards_in_the_unit_interval_need_half(make):
    space, T, delta = wd.StateActions.uniform(6, 2), 100_000, 0.05
    whole, half = (both(make(bounded=b), [0, 1, 9], space, T, delta) for b in (False, True))
    assert half[0] == pytest.approx(whole[0] / 2, rel=1e-15)
    assert (half[1] == whole[1]).all()


def test_e14_fair_coins_stay_inside_and_half_the_radius_does_not_hold_them():
    """2,000 paths of 400 signs against the Laplace radius at SAT/delta = 40.

    A path leaves at some n with probability at most 1/40; more than 100 of 2,000 then has
    probability below 1e-9. With half the radius more than half the paths leave, so that 100 or
    fewer would be as rare.
    """
    rng = np.random.default_rng(20)
    steps = rng.integers(0, 2, size=(2_000, 400)) * 2 - 1
    n = np.arange(1, 401)
    means = np.abs(np.cumsum(steps, axis=1)) / n
    radius = Radii.laplace().reward(n, space=wd.StateActions([2]), horizon=1, delta=0.05)
    assert (means > radius).any(axis=1).sum() <= 100
    assert (means > radius / 2).any(axis=1).sum() > 100
