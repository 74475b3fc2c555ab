"""Two agents on the same seeds: their difference, and whether it may be chance.

Tests flip the signs of paired differences, exactly up to thirty seeds; many tests are corrected by
Holm's step-down rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.errors import InputError
from windage.rng import stream
from windage.study import resampling
from windage.study.resampling import Interval, mean
from windage.validation import shown

__all__ = ["Paired", "holm", "paired", "sign_flip_test"]

Reals = NDArray[np.float64]

_EXACT = 30  # seeds: up to here all 2^n signs are counted
_DRAWS = 99_999  # signs drawn for more seeds than that
_SAME = 1e-12  # sums of differences that are closer than this, relatively, are equal


@dataclass(frozen=True)
class Paired:
    """Two agents compared seed by seed.

    Attributes
    ----------
    n
        How many seeds both have.
    difference
        Mean of (first - second), with its interval.
    wins, ties
        On how many seeds the first one is larger, and on how many both are equal.
    p_value
        Of the hypothesis that signs of the differences are a coin's: no difference at all.
    """

    n: int
    difference: Interval
    wins: int
    ties: int
    p_value: float


def paired(first: ArrayLike, second: ArrayLike, level: float = 0.95) -> Paired:
    """Compare two agents on the same seeds, given in the same order.

    >>> found = paired([3.0, 4.0, 6.0, 5.0], [1.0, 2.0, 3.0, 5.0])
    >>> print(found.difference, found.wins, found.ties, found.p_value)
    1.75 (0.5 to 2.75) 3 1 0.25
    """
    d = _differences(first, second)
    return Paired(
        n=d.size,
        difference=mean(d, level),
        wins=int((d > 0).sum()),
        ties=int((d == 0).sum()),
        p_value=sign_flip_test(d),
    )


def sign_flip_test(differences: ArrayLike) -> float:
    """Return the two-sided p-value of paired differences under random signs.

    All 2^n signs are counted up to thirty seeds; beyond, a fixed sample of them.

    >>> sign_flip_test([1.0, 2.0, 3.0])
    0.25
    """
    d = resampling.values(differences, "differences")
    d = d[d != 0.0]  # a zero is a zero with either sign
    if d.size == 0:
        return 1.0
    limit = abs(float(d.sum())) - _SAME * float(np.abs(d).sum())
    if d.size <= _EXACT:
        half = d.size // 2
        left, right = _all_sums(d[:half]), np.sort(_all_sums(d[half:]))
        above = right.size - np.searchsorted(right, limit - left, side="left")
        below = np.searchsorted(right, -limit - left, side="right")
        both = above + below if limit > 0 else np.full(left.size, right.size)
        return float(min(both.sum() / 2.0**d.size, 1.0))
    rng = stream(d.size, "study.signs")
    hits = 0
    for start in range(0, _DRAWS, 10_000):
        signs = rng.integers(0, 2, size=(min(10_000, _DRAWS - start), d.size)) * 2 - 1
        hits += int((np.abs(signs @ d) >= limit).sum())
    return (hits + 1) / (_DRAWS + 1)


def holm(p_values: ArrayLike) -> Reals:
    """Return p-values corrected for how many there are, by Holm's step-down rule.

    >>> holm([0.01, 0.04, 0.03]).round(6).tolist()
    [0.03, 0.06, 0.06]
    """
    p = resampling.reals(p_values)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise InputError(f"{shown(p_values)} are no p-values", field="p_values", fix="pass a list")
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * (p.size - np.arange(p.size)))
    adjusted = np.empty(p.size)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def _all_sums(d: Reals) -> Reals:
    """Return the sums of d with all 2^n signs."""
    sums = np.zeros(1)
    for value in d:
        sums = np.concatenate([sums - value, sums + value])
    return sums


def _differences(first: ArrayLike, second: ArrayLike) -> Reals:
    x, y = resampling.values(first, "first"), resampling.values(second, "second")
    resampling.same_length(x, y)
    return x - y
