"""Addressed draws against a twin in Python's own integers, compiled and not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from windage.kernels import random as kernel
from windage.rng import key

MASK = (1 << 64) - 1


def literal_mix(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def literal_word(k: np.ndarray, t: int, draw: int) -> int:
    counter = t | (draw << 40)
    return literal_mix((literal_mix((counter + int(k[0])) & MASK) + int(k[1])) & MASK)


def literal_uniform(k: np.ndarray, t: int, draw: int) -> float:
    return (literal_word(k, t, draw) >> 11) / 2**53


ADDRESSES = [(1, 0), (2, 0), (1, 1), (12345, 7), (2**40 - 1, 2**24 - 1)]


@pytest.mark.parametrize(("t", "draw"), ADDRESSES)
def test_words_equal_those_of_whole_numbers(t, draw):
    k = key(5, "test")
    with np.errstate(over="ignore"):
        assert int(kernel.word(k, t, draw)) == literal_word(k, t, draw)
        assert kernel.uniform(k, t, draw) == literal_uniform(k, t, draw)


@pytest.mark.parametrize("n", [1, 2, 3, 100, 2048, 2049, 65_537, 2**31 - 1, 2**32 - 1])
def test_shares_are_exact(n):
    rng = np.random.default_rng(n)
    for u in [0, 1, 2**53 - 1, 2**52, *rng.integers(0, 2**53, 50).tolist()]:
        found = kernel.split(np.uint64(u), np.uint64(n))
        assert tuple(map(int, found)) == divmod(u * n, 2**53)


def test_normal_is_box_muller():
    k = key(5, "test")
    with np.errstate(over="ignore"):
        for t in range(1, 50):
            u, v = literal_uniform(k, t, 3), literal_uniform(k, t, 4)
            expected = math.sqrt(-2 * math.log(1 - u)) * math.cos(2 * math.pi * v)
            assert kernel.normal(k, t, 3) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("shape", [0.3, 1.0, 2.5, 40.0])
def test_gamma_has_its_law_and_uses_fresh_draws(shape):
    k = key(11, "gamma")
    with np.errstate(over="ignore"):
        drawn = [kernel.gamma(k, t, 0, shape) for t in range(1, 4001)]
    values = np.array([value for value, _ in drawn])
    assert min(draw for _, draw in drawn) >= 3
    # Kolmogorov-Smirnov at a false-alarm rate of 1e-6; a shape off by 15 % is rejected
    assert stats.kstest(values, stats.gamma(shape).cdf).pvalue > 1e-6
    assert stats.kstest(values, stats.gamma(1.15 * shape).cdf).pvalue < 1e-6
