"""The optimal gain along a line of models, certified between the points where it is solved.

Rewards and transitions are linear in x. On an interval the gains and biases of its two ends are
interpolated; every Bellman residual is then a quadratic in x, and its extreme over the interval is
known in closed form (docs/paper/gain-curve.md). An interval whose bracket is too wide is cut in
half and its middle is solved, starting from the policy on its left.
"""

from __future__ import annotations

import numpy as np

from windage.kernels.gain import EPS, SETTLED, policy_iteration
from windage.kernels.jit import compiled, inlined

DONE, UNSOLVED = 0, 1
"""How `certify` ended: all of the line; a point it could not solve, or too many of them."""

FLOOR = 2.0**-42
"""Intervals this narrow are not cut further: something jumps there."""

DEPTH = 48


@inlined
def _extreme(left, right, bend, sign):
    """Return the largest (sign 1) or least (sign -1) value of a quadratic on [0, 1].

    The quadratic is (1 - y) left + y right - y (1 - y) bend.
    """
    best = max(sign * left, sign * right)
    curve = sign * bend
    if curve < 0.0:
        y = (sign * (right - left) - curve) / (-2.0 * curve)
        if 0.0 < y < 1.0:
            best = max(best, sign * left + y * (sign * (right - left) - curve) + y * y * curve)
    return sign * best


@inlined
def _bracket(offsets, r0, r1, x, gain, bias_part, slope_part, policy, left, right):
    """Return bounds of gain(x) minus the interpolated gain, valid between the two points.

    bias_part[i, pair] = sum p_0 (h_i - h_i(s)) and slope_part[i, pair] = sum (p_1 - p_0) h_i, so
    that a residual at any x costs two sums.
    """
    xl, xr, gl, gr = x[left], x[right], gain[left], gain[right]
    upper = -np.inf
    by_left = by_right = with_left = with_right = np.inf
    largest = 0.0
    for s in range(offsets.size - 1):
        for pair in range(offsets[s], offsets[s + 1]):
            rl = r0[pair] + xl * (r1[pair] - r0[pair])
            rr = r0[pair] + xr * (r1[pair] - r0[pair])
            ul, vl = bias_part[left, pair], slope_part[left, pair]
            ur, vr = bias_part[right, pair], slope_part[right, pair]
            at_left, at_right = rl + ul + xl * vl - gl, rr + ur + xr * vr - gr
            bend = (xr - xl) * (vr - vl)
            upper = max(upper, _extreme(at_left, at_right, bend, 1.0))
            largest = max(largest, abs(ul), abs(ur), abs(vl), abs(vr))
            mine, theirs = pair == policy[left, s], pair == policy[right, s]
            if mine or theirs:
                least = _extreme(at_left, at_right, bend, -1.0)
                if mine:
                    by_left = min(by_left, least)
                    with_left = min(with_left, at_left, rr + ul + xr * vl - gr)
                if theirs:
                    by_right = min(by_right, least)
                    with_right = min(with_right, at_right, rl + ur + xl * vr - gl)
    lower = max(by_left, by_right, with_left, with_right)
    rounding = 8.0 * (policy.shape[1] + 4) * EPS * (1.0 + largest)
    return lower - rounding, upper + rounding


@compiled
def _solve(
    offsets, r0, r1, p0, p1, tol, limit, slot, warm,
    x, gain, bias, bias_part, slope_part, policy, rewards, rows, matrix, work, marks,
):  # fmt: skip
    """Solve the model at x[slot] from the policy `warm`; return whether that worked."""
    for pair in range(r0.size):
        rewards[pair] = r0[pair] + x[slot] * (r1[pair] - r0[pair])
        for j in range(p0.shape[1]):
            rows[pair, j] = p0[pair, j] + x[slot] * (p1[pair, j] - p0[pair, j])
    for s in range(warm.size):
        policy[slot, s] = warm[s]
    end, _, g, low, high = policy_iteration(
        offsets, rewards, rows, limit, policy[slot], bias[slot], matrix, work, marks
    )
    if end != SETTLED or high - low > tol:
        return False
    gain[slot] = min(max(g, low), high)
    h = bias[slot]
    for s in range(warm.size):
        for pair in range(offsets[s], offsets[s + 1]):
            total = slope = 0.0
            for j in range(h.size):
                step = h[j] - h[s]
                total += p0[pair, j] * step
                slope += (p1[pair, j] - p0[pair, j]) * step
            bias_part[slot, pair], slope_part[slot, pair] = total, slope
    return True


@compiled
def certify(
    offsets, r0, r1, p0, p1, tol, solver_tol, limit, most, first, last, start,
    x, gain, bias, bias_part, slope_part, policy, rewards, rows, matrix, work, marks, slots, out,
):  # fmt: skip
    """Certify the gain from x = first to x = last to within `tol`, and `solver_tol` at points.

    Row i of `out` holds x, the gain there, and the offset and half-width of the bracket around the
    line to the next point, infinite where narrow intervals did not close. The arrays over DEPTH
    slots hold the points on the way; `start` is the policy (pairs) to begin with, and at the end
    the one at `last`. Returns how it ended, the number of points in `out` and the number of models
    solved, `most` of them at the most: `out` has room for as many.
    """
    rights, spare = slots[0], slots[1]  # those that wait, those that are free
    for slot in range(DEPTH):
        spare[slot] = DEPTH - 1 - slot
    spares = DEPTH - 2
    left, rights[0], waiting = 0, 1, 1
    x[0], x[1] = first, last
    solves, filled = 0, 0
    for slot in range(2):
        warm = start if slot == 0 else policy[0]
        solves += 1
        if not _solve(
            offsets, r0, r1, p0, p1, solver_tol, limit, slot, warm,
            x, gain, bias, bias_part, slope_part, policy, rewards, rows, matrix, work, marks,
        ):  # fmt: skip
            return UNSOLVED, 0, solves
    while waiting > 0:
        right = rights[waiting - 1]
        lower, upper = _bracket(
            offsets, r0, r1, x, gain, bias_part, slope_part, policy, left, right
        )
        closed = upper - lower <= 2.0 * tol
        if closed or spares == 0 or x[right] - x[left] <= FLOOR * (last - first):
            out[filled, 0], out[filled, 1] = x[left], gain[left]
            out[filled, 2] = 0.5 * (upper + lower)
            out[filled, 3] = 0.5 * (upper - lower) if closed else np.inf
            filled += 1
            spare[spares] = left
            spares += 1
            waiting -= 1
            left = right
        elif solves >= most:
            return UNSOLVED, 0, solves
        else:
            spares -= 1
            middle = spare[spares]
            x[middle] = 0.5 * (x[left] + x[right])
            solves += 1
            if not _solve(
                offsets, r0, r1, p0, p1, solver_tol, limit, middle, policy[left],
                x, gain, bias, bias_part, slope_part, policy, rewards, rows, matrix, work, marks,
            ):  # fmt: skip
                return UNSOLVED, 0, solves
            rights[waiting] = middle
            waiting += 1
    out[filled, 0], out[filled, 1], out[filled, 2], out[filled, 3] = x[left], gain[left], 0.0, 0.0
    for s in range(start.size):
        start[s] = policy[left, s]
    return DONE, filled + 1, solves
