"""Compensated sums that do not depend on where a run was cut into pieces."""

from __future__ import annotations

from windage.kernels.compiled import compiled


@compiled
def accumulate(values, total, t, every, out):
    """Add `values` to the running sum `total` (sum and compensation, after Neumaier).

    values[i] belongs to time t + i; the sum after each time that is a multiple of `every` goes to
    `out`, one after another (every = 0: never). Returns how many went there.
    """
    high, low = total[0], total[1]
    kept = 0
    for i in range(values.size):
        x = values[i]
        new = high + x
        low += (high - new) + x if abs(high) >= abs(x) else (x - new) + high
        high = new
        if every > 0 and (t + i) % every == 0:
            out[kept] = high + low
            kept += 1
    total[0], total[1] = high, low
    return kept
