"""Gains certified along the path of a blend in time: boxes between two times, or single times.

For families whose rewards and transitions move on their own, and for lines that the compiled solver
cannot take: large or sparse models, and those with several closed classes.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from windage.errors import NotConverged
from windage.models.blend import Blend
from windage.models.families import places
from windage.models.mdp import Transitions
from windage.oracle import gain
from windage.oracle.curve import Corner, bracket, corner

__all__ = ["MOST_SOLVES", "OnAPath", "Path", "require_solves"]

Reals = NDArray[np.float64]
Times = NDArray[np.int64]

MOST_SOLVES = 2_000_000
"""So many models are solved for one curve at the most."""

_FEW_SMALL, _FEW_LARGE = 32, 4
"""So few steps are solved one by one: for small models a box costs as much as many of them."""


class OnAPath:
    """A family certified along its path: boxes [first, last] in time, or single times."""

    def __init__(self, boxes: list[tuple[float, ...]]) -> None:
        table = np.array(sorted(boxes))  # at one first time a box comes after a single time
        self.firsts, self.table = table[:, 0], table[:, 2:]
        self.error = float(table[:, -1].max())

    def at(self, times: Times, v: Reals, w: Reals) -> tuple[Reals, Reals]:
        """Return values and errors at times with weights v of the rewards, w of the kernels."""
        i = np.searchsorted(self.firsts, times, side="right") - 1
        v0, v1, w0, w1, g00, g01, g10, g11, offset, error = self.table[i].T
        z, y = _share(v, v0, v1), _share(w, w0, w1)
        low, high = (1 - y) * g00 + y * g01, (1 - y) * g10 + y * g11
        return (1 - z) * low + z * high + offset, error


class Path:
    """Certifies a family along its path in time; solved models are remembered by their weights."""

    def __init__(
        self,
        source: Blend,
        stops: Times,
        tol: float,
        key: tuple[int, ...],
        *,
        shared: bool,
        spent: int = 0,
    ) -> None:
        self.source = source
        self.stops = stops
        self.tol = tol
        self.key = key
        ri, rj, pi, pj = key
        self.line = ri == rj or pi == pj or (shared and (ri, rj) == (pi, pj))
        self.rewards = (source.rewards.parts[ri], source.rewards.parts[rj])
        self.base = source.kernels.parts[pi]
        self.change = source.kernels.parts[pj] - self.base
        self.solved: dict[tuple[float, float], Corner] = {}
        self.solves, self.spent = 0, spent  # its own, and those of families before it
        self.solver_tol = 1e-3 * tol
        self.warm: NDArray[np.int64] | None = None
        self.dense = isinstance(self.base, np.ndarray)
        small = self.dense and source.space.n_states <= gain.SMALL
        self.few = _FEW_SMALL if small else _FEW_LARGE

    def certified(self) -> OnAPath:
        """Walk from stop to stop wherever the family holds, and cut until brackets close."""
        rows: list[tuple[float, ...]] = []
        stops = self.stops
        todo = [(int(a), int(b)) for a, b in pairwise(stops)] or [(1, 1)]
        while todo:
            a, b = todo.pop()
            if b - a <= self.few:
                rows += self._points(np.arange(a, b + 1))
                continue
            times = np.array([a, a + 1, b - 1, b])  # at a stop itself another family may hold
            v, w, mine = self._weights(times)
            if not mine.any():
                continue
            ends = np.flatnonzero(mine)[[0, -1]]
            a, b = times[ends].tolist()
            box = self._box(a, b, v[ends], w[ends])
            if box is None:
                middle = (a + b) // 2
                todo += [(a, middle), (middle, b)]
            else:
                rows.append(box)
        return OnAPath(rows)

    def _weights(self, times: Times) -> tuple[Reals, Reals, NDArray[np.bool_]]:
        v, w = places(self.source.rewards, times), places(self.source.kernels, times)
        keys = np.stack([v.i, v.j, w.i, w.j], axis=1)
        return v.x, w.x, (keys == np.array(self.key)).all(axis=1)

    def _points(self, times: Times) -> list[tuple[float, ...]]:
        """Solve every time of the family on its own."""
        v, w, mine = self._weights(times)
        times, v, w = times[mine], v[mine], w[mine]
        if not times.size:
            return []
        self._count(times.size)
        models = [self._model(x, y) for x, y in zip(v, w, strict=True)]
        kernels = [p for _, p in models]
        found = gain.solve_many(
            self.source.space,
            np.array([r for r, _ in models]),
            np.array(kernels) if self.dense else kernels,
            tol=self.solver_tol,
            warm=self.warm,
        )
        errors = [max(one.upper - one.gain, one.gain - one.lower) for one in found]
        return [
            (float(t), float(t), x, x, y, y, *(one.gain,) * 4, 0.0, error)
            for t, x, y, one, error in zip(times, v, w, found, errors, strict=True)
        ]

    def _box(self, a: int, b: int, v: Reals, w: Reals) -> tuple[float, ...] | None:
        (v0, v1), (w0, w1) = v, w
        if self.line:  # the two ends; a weight that stands still counts as moving along
            left, right = self._corner(v0, w0), self._corner(v1, w1)
            edges = [(left, right)]
            corners = (left, right, left, right)
            if w0 == w1:
                edges = [(left, left), (right, right)]
                corners = (left, left, right, right)
        else:
            corners = tuple(self._corner(x, y) for x in (v0, v1) for y in (w0, w1))  # type: ignore[assignment]
            edges = [(corners[0], corners[1]), (corners[2], corners[3])]
        lower, upper = bracket(edges)
        error = 0.5 * (upper - lower) + max(c.error for c in corners)
        if error > self.tol:
            return None
        if self.line and w0 != w1:
            v0 = v1 = 0.0  # the bilinear form is a line in w alone
        gains = (c.gain for c in corners)
        return (float(a), float(b), v0, v1, w0, w1, *gains, 0.5 * (lower + upper), error)

    def _corner(self, v: float, w: float) -> Corner:
        at = (float(v), float(w))
        if at not in self.solved:
            self._count(1)
            r, p = self._model(v, w)
            space = self.source.space
            found = gain.solve(space, r, p, tol=self.solver_tol, warm=self.warm)
            self.warm = found.policy
            self.solved[at] = corner(space, found, r, float(w), self.base, self.change)
        return self.solved[at]

    def _model(self, v: float, w: float) -> tuple[Reals, Transitions]:
        r = self.rewards[0] + v * (self.rewards[1] - self.rewards[0])
        return r, self.base + w * self.change

    def _count(self, solves: int) -> None:
        self.solves += solves
        require_solves(self.spent + self.solves, self.tol)


def require_solves(solves: int, tol: float) -> None:
    """Refuse to solve more models than a curve may cost."""
    if solves > MOST_SOLVES:
        raise NotConverged(
            f"{MOST_SOLVES} models were solved and the curve is not within {tol:g}",
            field="optimal_gains",
            fix="allow a larger tol, or a shorter horizon",
        )


def _share(x: Reals, low: Reals, high: Reals) -> Reals:
    gap = high - low
    found: Reals = np.where(gap != 0, (x - low) / np.where(gap != 0, gap, 1.0), 0.0)
    return found
