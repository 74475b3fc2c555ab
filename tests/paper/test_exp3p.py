"""E4 and Algorithm 3, lines 6 and 14: EXP3.P as printed, and the reading taken."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import windage as wd
from windage import reference
from windage.adversarial import Exp3P
from windage.confidence.tuning import borl_grid

SIZES = [(2, 2), (6, 2), (20, 4)]


def as_printed(K, n):
    """EXP3.P to the letter: gamma is what its formula gives."""
    master = reference.Exp3P(K, n)
    master.gamma = master.raw_gamma
    return master


class PlayedAlone(reference.Exp3P):
    """A misreading of (71): beta for the arm that was played alone."""

    def update(self, arm, x):
        self.q[arm] += (self.beta + x) / self.probabilities[arm]


def blocks(S, A, T):
    grid = borl_grid(wd.StateActions.uniform(S, A), T)
    return grid.arms, grid.blocks


def quiet(K, n):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wd.GuaranteeWarning)
        return Exp3P(n_arms=K, n_rounds=n)


@pytest.mark.parametrize(("S", "A"), SIZES)
@pytest.mark.parametrize("T", [10**2, 10**3, 10**4, 10**5, 10**6])
def test_e4_as_printed_negative_as_read_never(S, A, T):
    """One good block is enough: as printed, the arm that did well is played with u < 0."""
    K, n = blocks(S, A, T)
    printed, ours = as_printed(K, n), quiet(K, n)
    assert printed.gamma == pytest.approx(ours.raw_gamma, rel=1e-14)
    assert printed.gamma > 1.0
    assert ours.gamma == 1.0
    printed.update(0, 1.0)
    assert printed.probabilities.min() < 0.0
    for i in range(n):
        ours.update(i % K, 1.0)
        p = ours.probabilities
        assert p.min() >= 0.0
        assert abs(math.fsum(p) - 1.0) <= 1e-12
        assert p == pytest.approx(np.full(K, 1 / K), rel=1e-14)  # so it is a uniform tuner


def test_e4_the_figures():
    assert blocks(2, 2, 5_000) == (35, 11)
    for T, gamma in ((5_000, 3.5), (10**6, 1.5)):
        assert quiet(*blocks(2, 2, T)).raw_gamma == pytest.approx(gamma, abs=0.05)


@pytest.mark.parametrize(("S", "A", "last"), [(2, 2, 1.14e7), (6, 2, 7.9e7), (20, 4, 2.1e9)])
def test_e4_from_when_on_it_is_a_probability(S, A, last):
    """Just below the last T with gamma > 1, and never from there on (a grid up to 300 times T)."""

    def gamma(T):
        K, n = blocks(S, A, int(T))
        return 1.05 * math.sqrt(K * math.log(K) / n)

    grid = [last * 1.005**i for i in range(-320, 1140)]
    above = [T for T in grid if gamma(T) > 1.0]
    assert max(above) == pytest.approx(last, rel=0.02)
    if S == 2:  # not monotone: there are T below with gamma <= 1 already
        assert min(T for T in grid if gamma(T) <= 1.0) == pytest.approx(9.0e6, rel=0.02)


@pytest.mark.parametrize(("K", "n"), [(2, 50), (5, 400), (9, 3000)])
def test_line_14_every_arm_is_given_beta(K, n):
    """After each round q is what the line says, for arms that were not played too."""
    printed, wrong, ours = as_printed(K, n), PlayedAlone(K, n), Exp3P(K, n, quiet=True)
    wrong.gamma = printed.gamma
    rng = wd.rng.stream(K, "line 14")
    for t in range(n):
        u, x = rng.random(2)
        arm = ours.choose(u)
        for one in (printed, wrong, ours):
            one.update(arm, float(x))
        assert ours.probabilities == pytest.approx(printed.probabilities, abs=1e-12)
        if t == 0:
            q = ours.saved()["scores"]
            others = np.delete(q, arm)
            assert others == pytest.approx(np.full(K - 1, K * ours.beta), rel=1e-14)
            assert q[arm] == pytest.approx(K * (ours.beta + x), rel=1e-14)
    apart = np.abs(ours.probabilities - wrong.probabilities).max()
    assert apart > 1e-3  # what a beta for the played arm alone would give is far away
