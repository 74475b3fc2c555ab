"""Rewards around their mean: what is drawn has the law the noise names."""

from __future__ import annotations

import math

import numpy as np
import pytest

import windage as wd
from windage.errors import InputError

N = 1_000_000
ONE = wd.StateActions([1])


def drawn(noise, mean):
    model = wd.DriftingMDP.stationary(wd.MDP(ONE, [mean], [[1.0]]), horizon=N, noise=noise)
    agent = wd.agents.make("random", ONE, horizon=N)
    return wd.run(model, agent, seed=11).rewards


def excess(rewards, mean, x, variance):
    """How far E exp(x (R - m)) is above exp(x^2 variance / 2), in standard errors."""
    terms = np.exp(x * (rewards - mean))
    return (terms.mean() - math.exp(0.5 * x * x * variance)) / (terms.std() / math.sqrt(N))


CASES = [
    (wd.Noise.bernoulli(), 0.5, 0.25),  # Hoeffding: what lies in [0, 1] is 1/2-sub-Gaussian
    (wd.Noise.bernoulli(), 0.1, 0.25),
    (wd.Noise.beta(0.1), 0.5, 0.25),
    (wd.Noise.beta(10.0), 0.3, 0.25),
    (wd.Noise.none(), 0.7, 0.25),
    (wd.Noise.gaussian(1.0), 0.5, 1.0),  # the paper's bound itself, met with equality
    (wd.Noise.gaussian(0.1), 0.5, 0.01),
]


@pytest.mark.parametrize(("noise", "mean", "variance"), CASES, ids=repr)
def test_rewards_are_sub_gaussian_as_the_paper_asks(noise, mean, variance):
    """E exp(x (R - m)) <= exp(x^2 / 2) and, for bounded rewards, <= exp(x^2 / 8).

    Five standard errors are a false alarm of 3e-7 a look. The broken variants are rejected: rewards
    spread too far by a fifth, or off by a twentieth of the bound's spread, where it is met.
    """
    rewards = drawn(noise, mean)
    for x in (-1.0, -0.5, 0.5, 1.0):
        if noise != wd.Noise.none():
            assert excess(rewards, mean, x, variance) <= 5
        assert np.exp(x * (rewards - mean)).mean() <= math.exp(x * x / 2) * 1.005
    tight = noise.kind == "gaussian" or (noise.kind, mean) == ("bernoulli", 0.5)
    if tight:
        x = 1.0 if noise.kind == "bernoulli" else 0.5 / noise.spread
        stretched = mean + 1.2 * (rewards - mean)
        assert excess(rewards, mean, x, variance) <= 5 < excess(stretched, mean, x, variance)
        shifted = rewards + 0.05 * math.sqrt(variance)
        assert excess(shifted, mean, x, variance) > 5


@pytest.mark.parametrize(("noise", "mean", "variance"), CASES, ids=repr)
def test_rewards_have_their_mean_and_variance(noise, mean, variance):
    """Against the moments in closed form; five standard errors of the mean."""
    rewards = drawn(noise, mean)
    expected = {
        "none": 0.0,
        "bernoulli": mean * (1 - mean),
        "gaussian": noise.spread**2,
        "beta": mean * (1 - mean) / (noise.spread + 1),
    }[noise.kind]
    assert abs(rewards.mean() - mean) <= 5 * math.sqrt(expected / N) + 1e-12
    assert rewards.var() == pytest.approx(expected, rel=0.01, abs=1e-15)
    if noise.bounded:
        assert rewards.min() >= 0
        assert rewards.max() <= 1


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: wd.Noise("loud"), "noise"),
        (lambda: wd.Noise(7), "noise"),
        (lambda: wd.Noise(["none"]), "noise"),
        (lambda: wd.Noise("bernoulli", 0.5), "spread"),
        (lambda: wd.Noise("gaussian", "1"), "spread"),
        (lambda: wd.Noise("gaussian", math.nan), "spread"),
        (lambda: wd.Noise("beta"), "spread"),
        (lambda: wd.Noise.gaussian(-1), "sigma"),
        (lambda: wd.Noise.gaussian(10**400), "sigma"),
        (lambda: wd.Noise.beta(0), "concentration"),
        (lambda: wd.Noise.of(7), "noise"),
        (lambda: wd.Noise.of(None), "noise"),
        (lambda: wd.Noise.of("loud"), "noise"),
    ],
)
def test_what_is_no_noise(make, field):
    with pytest.raises(InputError) as error:
        make()
    assert error.value.field == field
    assert error.value.fix


def test_noises_by_name():
    assert wd.Noise.of("gaussian") == wd.Noise.gaussian(0.1)
    assert wd.Noise.of("beta") == wd.Noise.beta(10.0)
    assert wd.Noise.of("none") == wd.Noise.none()
    kept = wd.Noise.beta(3)
    assert wd.Noise.of(kept) is kept
    assert type(kept.spread) is float
    with pytest.raises(AttributeError):
        kept.spread = 4.0
