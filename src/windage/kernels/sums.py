"""Compensated sums that do not depend on where a run was cut into pieces."""

from __future__ import annotations

import numpy as np

from windage.kernels.jit import compiled, inlined


@inlined
def added(high, low, x):
    """Return high + low + x, what rounding takes from high + x carried on in low (Knuth)."""
    new = high + x
    back = new - high
    return new, low + ((high - (new - back)) + (x - back))


@inlined
def added_less(high, low, x):
    """Return the same where 0 <= x <= high, with half the operations (Dekker)."""
    new = high + x
    return new, low + (x - (new - high))


@inlined
def _all_less(values, high):
    """Whether every value is in [0, high]: then no sum of them is less than high either."""
    n = 0
    for i in range(np.uint64(values.size)):
        n += (values[i] >= 0.0) & (values[i] <= high)
    return n == values.size


@compiled
def accumulate(values, total, t, every, out):
    """Add `values` to the running sum `total` (sum and compensation, after Neumaier).

    values[i] belongs to time t + i; the sum after each time that is a multiple of `every` goes to
    `out`, one after another (every = 0: never). Returns how many went there.
    """
    high, low = total[0], total[1]
    kept, left = 0, _until(t, every)
    for i in range(values.size):
        high, low = added(high, low, values[i])
        left -= 1
        if left == 0:
            out[kept] = high + low
            kept += 1
            left = every
    total[0], total[1] = high, low
    return kept


@compiled
def accumulate_both(values, others, totals, t, every, out):
    """`accumulate` two columns side by side: one sum has to wait for itself, two need not."""
    high, low = totals[0, 0], totals[0, 1]
    other_high, other_low = totals[1, 0], totals[1, 1]
    kept, left = 0, _until(t, every)
    quick = _all_less(values, high) and _all_less(others, other_high)
    for i in range(values.size):
        if quick:
            high, low = added_less(high, low, values[i])
            other_high, other_low = added_less(other_high, other_low, others[i])
        else:
            high, low = added(high, low, values[i])
            other_high, other_low = added(other_high, other_low, others[i])
        left -= 1
        if left == 0:
            out[0, kept] = high + low
            out[1, kept] = other_high + other_low
            kept += 1
            left = every
    totals[0, 0], totals[0, 1] = high, low
    totals[1, 0], totals[1, 1] = other_high, other_low
    return kept


@inlined
def _until(t, every):
    """Return how many times there are from t to the next multiple of `every`, itself included."""
    return 1 + (-t) % every if every > 0 else np.int64(-1)
