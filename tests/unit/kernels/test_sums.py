from __future__ import annotations

import math

import numpy as np

from windage.kernels.sums import accumulate, accumulate_both


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


def test_two_columns_side_by_side_are_two_sums():
    columns = np.random.default_rng(1).random((2, 500)) * np.logspace(-9, 9, 500)
    for every in (0, 1, 7):
        totals, sums = np.zeros((2, 2)), np.full((2, 600), -1.0)
        singles, single_sums = np.zeros((2, 2)), np.full((2, 600), -1.0)
        place = 0
        for first, last in ((0, 3), (3, 11), (11, 500)):
            both = [column[first:last] for column in columns]
            n = accumulate_both(*both, totals, 5 + first, every, sums[:, place:])
            for k in range(2):
                out = single_sums[k, place:]
                assert accumulate(both[k], singles[k], 5 + first, every, out) == n
            place += n
        assert place == (sum((5 + i) % every == 0 for i in range(500)) if every else 0)
        assert (totals == singles).all()
        assert (sums == single_sums).all()
        assert totals.sum(axis=1).tolist() == [math.fsum(column) for column in columns]
