from __future__ import annotations

import math

import numpy as np

from windage.kernels.sums import accumulate


def test_sums_are_exact_and_do_not_depend_on_the_pieces():
    values = np.random.default_rng(0).random(10_000) * np.logspace(-12, 12, 10_000)
    for pieces in (1, 7, 100):
        total, nothing = np.zeros(2), np.empty(0)
        for part in np.array_split(values, pieces):
            assert accumulate(part, total, 1, 0, nothing) == 0
        assert total.sum() == math.fsum(values)


def test_running_sums_are_kept_at_multiples():
    values, total, out = np.arange(1.0, 11.0), np.zeros(2), np.empty(4)
    assert accumulate(values, total, 5, 3, out) == 3  # times 5..14, kept at 6, 9, 12
    assert out[:3].tolist() == [3.0, 15.0, 36.0]
