"""The optimal gain along a line, or over a box, of models: solved at a few, certified at all.

Let rewards be linear in v and transitions linear in w. On a box of (v, w) the gains g and biases h
of the corners are interpolated linearly in each. With y and z the places of w and v inside the box,
the Bellman residual r + P h - h - g of a pair is

    the interpolation of its corner residuals  -  y (1 - y) (P_1 - P_0)(h_1 - h_0),

linear in z and quadratic in y: its extremes lie on the two edges z = 0 and z = 1 and are known in
closed form there. The largest over all pairs bounds the gain from above, whatever h is. The least
over the states of one policy bounds it from below; of several policies and biases the best is
taken: the policy of each corner with the interpolated bias, and with the bias of its own corner.
The interpolated bias alone would not do where the optimal policy changes.

A line is a box without z: rewards may then move along with the transitions. Lines of small dense
models are certified in a compiled loop (`kernels.curve`), the rest here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windage.oracle import gain
from windage.spaces import StateActions

__all__ = ["Corner", "Line", "Unsolved", "bracket", "certify_line", "corner"]

Floats = NDArray[np.float64]

_SOLVER_SHARE = 1e-3  # of the tolerance: what a solved point may be off by
_ROUNDING = 8 * 2.0**-52
_SOLVES = 300  # models that a segment takes, roughly


@dataclass(frozen=True)
class Line:
    """Gains along a line: solved to within `point_error` at the points `x`, certified in between.

    Between x[i] and x[i + 1] the gain is within error[i] of the straight line plus offset[i].
    """

    x: Floats
    gains: Floats
    offset: Floats
    error: Floats
    point_error: float
    policy: NDArray[np.int64]  # the optimal one at the last point, as pairs
    solves: int

    def at(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the gain at each x and how far off it can be."""
        i = np.clip(np.searchsorted(self.x, x, side="right") - 1, 0, self.x.size - 1)
        j = np.minimum(i + 1, self.x.size - 1)
        gap = self.x[j] - self.x[i]
        share = np.where(gap > 0, (x - self.x[i]) / np.where(gap > 0, gap, 1.0), 0.0)
        inside = (share > 0) & (share < 1)
        value = (1 - share) * self.gains[i] + share * self.gains[j]
        return value + inside * self.offset[i], np.where(inside, self.error[i], self.point_error)


class Unsolved(NamedTuple):
    """A line that was given up, and how many of its models had been solved by then."""

    solves: int


class Corner(NamedTuple):
    """A solved model of a line or box, and what its bias contributes to residuals elsewhere."""

    gain: float
    error: float
    pairs: NDArray[np.int64]  # the optimal policy
    rewards: Floats
    w: float
    part: Floats  # sum p_0 (h - h(s)), over pairs
    slope: Floats  # sum (p_1 - p_0) (h - h(s)), over pairs
    span: float  # of the bias


def certify_line(
    space: StateActions,
    rewards: tuple[Floats, Floats],
    transitions: tuple[Floats, Floats],
    first: float,
    last: float,
    tol: float,
    start: NDArray[np.int64] | None = None,
    most: int = 1 << 16,
) -> Line | Unsolved:
    """Return the gain of (1 - x) M_0 + x M_1 for first <= x <= last, within `tol` everywhere.

    For dense models of at most `gain.SMALL` states. It is given up if some model on the way needs
    more than the compiled solver offers (a policy with several closed classes, or no convergence),
    or if `most` models were not enough. `start` is a policy to begin with, as pairs.

    >>> space = StateActions([2])
    >>> stay = np.ones((2, 1))
    >>> ends = np.array([0.2, 0.6]), np.array([0.8, 0.4])
    >>> line = certify_line(space, ends, (stay, stay), 0.0, 1.0, 1e-9)
    >>> line.at(np.array([0.25, 0.75]))[0]
    array([0.55, 0.65])
    """
    from windage.kernels import curve as kernel
    from windage.kernels.jit import call

    S, pairs = space.n_states, space.n_pairs
    D = kernel.DEPTH
    arrays = [np.ascontiguousarray(array, dtype=np.float64) for array in (*rewards, *transitions)]
    if start is None:
        start = gain.solve(space, *_at(arrays, first), tol=tol).policy + space.offsets[:-1]
    policy = np.array(start, dtype=np.int64)
    workspaces: Any = (
        np.empty(D), np.empty(D), np.empty((D, S)), np.empty((D, pairs)), np.empty((D, pairs)),
        np.empty((D, S), dtype=np.int64), np.empty(pairs), np.empty((pairs, S)),
        np.empty((S, S)), np.empty((4, S)), np.empty((3, S), dtype=np.int64),
        np.empty((2, D), dtype=np.int64),
    )  # fmt: skip
    for array in arrays:
        array.flags.writeable = False
    out = np.empty((max(most, 2), 4))  # as many points as solves; pages not used cost nothing
    share = tol * _SOLVER_SHARE
    end, filled, solves = call(
        kernel.certify, space.offsets, *arrays, tol - share, share, gain.ROUNDS, len(out),
        float(first), float(last), policy, *workspaces, out,
        seconds=_SOLVES * gain.plain_seconds(space),
    )  # fmt: skip
    if end == kernel.UNSOLVED:
        return Unsolved(int(solves))
    x, gains, offset, error = out[:filled].T.copy()
    return Line(x, gains, offset, error + share, share, policy, int(solves))


def corner(
    space: StateActions, solution: gain.Solution, rewards: Floats, w: float, base: Any, change: Any
) -> Corner:
    """Return what `bracket` needs of a solved model: base + w change are its transitions."""
    h = solution.bias
    return Corner(
        gain=solution.gain,
        error=max(solution.upper - solution.gain, solution.gain - solution.lower),
        pairs=solution.policy + space.offsets[:-1],
        rewards=rewards,
        w=w,
        part=_moved(base, h, space),
        slope=_moved(change, h, space),
        span=float(np.ptp(h)),
    )


def bracket(edges: list[tuple[Corner, Corner]]) -> tuple[float, float]:
    """Return bounds of the gain minus the interpolated gain, over a line or a box.

    `edges` are the pairs of corners (w_0, w_1) at each end of v: one pair for a line, two for a
    box. All corners of a box share w_0 and w_1.
    """
    upper, least, rounding = -np.inf, [], 0.0
    for left, right in edges:
        at_left = left.rewards + left.part + left.w * left.slope - left.gain
        at_right = right.rewards + right.part + right.w * right.slope - right.gain
        bend = (right.w - left.w) * (right.slope - left.slope)
        upper = max(upper, float(_extreme(at_left, at_right, bend).max()))
        least.append(-_extreme(-at_left, -at_right, -bend))
        size = 1.0 + max(left.span, right.span)  # products with h round by its size
        rounding = max(rounding, _ROUNDING * (left.pairs.size + 4) * size)
    corners = [c for edge in edges for c in edge]
    lower = -np.inf
    for c in corners:
        interpolated = min(float(edge[c.pairs].min()) for edge in least)
        own = min(
            float((o.rewards + c.part + o.w * c.slope)[c.pairs].min()) - o.gain for o in corners
        )
        lower = max(lower, interpolated, own)
    return lower - rounding, upper + rounding


def _moved(rows: Any, h: Floats, space: StateActions) -> Floats:
    """Return sum p (h - h(s)) over pairs: rows need not sum to one, or to zero, to the last bit."""
    moved: Floats = rows @ h - (rows @ np.ones(h.size)) * h[space.state_of]
    return moved


def _extreme(left: Floats, right: Floats, bend: Floats) -> Floats:
    """Return the largest value of (1 - y) left + y right - y (1 - y) bend on [0, 1]."""
    ends = np.maximum(left, right)
    rise = right - left - bend
    with np.errstate(divide="ignore", invalid="ignore"):
        y = -rise / (2.0 * bend)
        inner = left + y * rise + y * y * bend
    return np.where((bend < 0) & (y > 0) & (y < 1), np.maximum(ends, inner), ends)


def _at(ends: list[Floats], x: float) -> tuple[Floats, Floats]:
    r0, r1, p0, p1 = ends
    return r0 + x * (r1 - r0), p0 + x * (p1 - p0)
