"""The optimal gain of every frozen model M_t, certified, without solving every one of them.

At each time the rewards of a blend stand at a base model or on the way between two, and so do its
transitions. Times that share these bases form a family: a point if nothing moves, a line if one
weight moves or both move together, a box if rewards and transitions move on their own. Points are
solved, lines certified in their weight (`certify_line`), whatever the weight does in time; boxes,
and lines the compiled solver cannot take (large or sparse models, and those with several closed
classes), are certified along the path from stop to stop of the schedules. What is no blend is
solved at every change.

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
models are certified in a compiled loop (`kernels.curve`).

The cost of a line does not grow with T. Boxes lie along the path in time: their number grows with T
until each holds many times. No more models are solved than there are times, but for those of a line
that is given up, half as many at the most, and for four corners that certified nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windage.errors import NotConverged
from windage.models.blend import Blend, Place, edges, places, rising
from windage.models.mdp import Transitions
from windage.oracle import gain
from windage.spaces import StateActions
from windage.validation import as_integer, as_integers, as_real, require_memory

if TYPE_CHECKING:
    from windage.models.drifting import DriftingMDP

__all__ = ["MOST_SOLVES", "GainCurve", "PathCertifier", "PathGains", "gain_curve"]

Reals = NDArray[np.float64]
Times = NDArray[np.int64]

CHUNK = 1 << 16
"""So many times are evaluated together."""

_AMPLE = 64
"""With as many solves to spare a box is tried even if the straight way through it is too wide."""

MOST_SOLVES = 2_000_000
"""So many models are solved for one curve at the most."""

_FEW_SMALL, _FEW_LARGE = 32, 4
"""So few steps are solved one by one: for small models a box costs as much as many of them."""

_FEWEST = 256
"""Families of so many times are certified along their path at once: a line is no bargain there."""


class GainCurve:
    """rho*_t for t = 1..T, each within `error` of the truth.

    Attributes
    ----------
    model
        The model whose gains these are.
    error
        No value is further from the optimal gain of M_t than this.
    solves
        How many models were solved for it.

    Examples
    --------
    >>> import windage as wd
    >>> curve = wd.envs.make("riverswim", horizon=20_000).optimal_gains()
    >>> round(curve.at(1), 4), curve.error <= 1e-6
    (0.5789, True)
    """

    def __init__(
        self,
        model: DriftingMDP,
        evaluate: Callable[[Times], tuple[Reals, Reals]],
        error: float,
        solves: int,
    ) -> None:
        self.model = model
        self.horizon = model.horizon
        self.error = error
        self.solves = solves
        self._evaluate = evaluate

    def at(self, t: int) -> float:
        """Return rho*_t."""
        time = as_integer(t, "t", low=1, high=self.horizon)
        return float(self._evaluate(np.array([time]))[0][0])

    def bracket(self, t: int) -> tuple[float, float]:
        """Return certified bounds of rho*_t."""
        time = as_integer(t, "t", low=1, high=self.horizon)
        value, error = self._evaluate(np.array([time]))
        return float(value[0] - error[0]), float(value[0] + error[0])

    def evaluate(self, times: ArrayLike) -> tuple[Reals, Reals]:
        """Return rho*_t at the given times, and how far each may be from the truth."""
        asked = as_integers(np.asarray(times), "times", low=1, high=self.horizon)
        return self._evaluate(asked)

    def sum(self, first: int = 1, last: int | None = None) -> float:
        """Return the sum of rho*_t for t = first..last, the whole horizon if not said."""
        start = as_integer(first, "first", low=1, high=self.horizon)
        end = self.horizon
        if last is not None:
            end = as_integer(last, "last", low=start - 1, high=self.horizon)
        return float(sum(float(part.sum()) for part in self._parts(start, end)))

    @functools.cached_property
    def values(self) -> Reals:
        """All T values, built when first asked for."""
        require_memory(16.0 * self.horizon, "values", fix="use at(t) and sum(first, last)")
        values = np.concatenate(list(self._parts(1, self.horizon)))
        values.flags.writeable = False
        return values

    def _parts(self, first: int, last: int) -> Iterator[Reals]:
        for t in range(first, last + 1, CHUNK):
            yield self._evaluate(np.arange(t, min(t + CHUNK, last + 1)))[0]

    def __repr__(self) -> str:
        return f"GainCurve(horizon={self.horizon}, error={self.error:.3g}, solves={self.solves})"


def gain_curve(model: DriftingMDP, tol: float = 1e-6) -> GainCurve:
    """Return the certified curve of optimal gains of a drifting model."""
    width = as_real(tol, "tol", low=0, open_low=True) * model.reward_scale
    source = model.source
    if isinstance(source, Blend):
        schedules = (source.rewards.schedule, source.kernels.schedule)
        if all(schedule.stops(model.horizon) is not None for schedule in schedules):
            return _Families(source, model.horizon, width).curve(model)
    return _step_by_step(model, width)


class _Family(Protocol):
    """The gains of the times that share their base models."""

    error: float

    def at(self, times: Times, v: Reals, w: Reals) -> tuple[Reals, Reals]:
        """Return values and errors at times with weights v of the rewards, w of the kernels."""
        ...


class _OnALine:
    """A family certified in its one weight."""

    def __init__(self, line: Line, *, by_rewards: bool) -> None:
        self.line = line
        self.by_rewards = by_rewards
        self.error = float(line.error.max())

    def at(self, times: Times, v: Reals, w: Reals) -> tuple[Reals, Reals]:
        return self.line.at(v if self.by_rewards else w)


class _Families:
    """All families of a blend and the curve they make."""

    def __init__(self, source: Blend, horizon: int, tol: float) -> None:
        self.source = source
        self.horizon = horizon
        self.tol = tol
        self.space = source.space
        self.shared = source.rewards.schedule == source.kernels.schedule
        self.families: dict[tuple[int, ...], _Family] = {}
        self.warm: NDArray[np.int64] | None = None
        self.solves = 0
        stops = [side.schedule.stops(horizon) for side in (source.rewards, source.kernels)]
        merged = rising(*(s for s in stops if s is not None))
        self.stops = rising(*(edges(side, merged) for side in (source.rewards, source.kernels)))

    def curve(self, model: DriftingMDP) -> GainCurve:
        """Build every family that occurs.

        Between two stops the family is one and its weights move one way only, and the times at
        which a side starts and ends to move are among them: so the families and the ranges of their
        weights show at the stops.
        """
        v, w = self._places(self.stops)
        lengths = np.diff(self.stops, append=self.horizon + 1)  # from each of them to the next
        for here in _alike(v, w):
            k = here[0]
            key = int(v.i[k]), int(v.j[k]), int(w.i[k]), int(w.j[k])
            self._add(key, v.x[here], w.x[here], int(lengths[here].sum()))
        error = max(family.error for family in self.families.values())
        return GainCurve(model, self._evaluate, error, self.solves)

    def _places(self, times: Times) -> tuple[Place, Place]:
        return places(self.source.rewards, times), places(self.source.kernels, times)

    def _evaluate(self, times: Times) -> tuple[Reals, Reals]:
        v, w = self._places(times)
        values, errors = np.empty(times.size), np.empty(times.size)
        for here in _alike(v, w) if times.size else []:
            family = self._family(v, w, int(here[0]))
            values[here], errors[here] = family.at(times[here], v.x[here], w.x[here])
        return values, errors

    def _family(self, v: Place, w: Place, i: int) -> _Family:
        return self.families[int(v.i[i]), int(v.j[i]), int(w.i[i]), int(w.j[i])]

    def _add(self, key: tuple[int, ...], v: Reals, w: Reals, times: int) -> None:
        """Certify a family of so many times, whose extreme weights are among v and w."""
        ri, rj, pi, pj = key
        moves_r, moves_p = ri != rj, pi != pj
        together = self.shared and (ri, rj) == (pi, pj)
        if moves_r and moves_p and not together:
            self.families[key] = self._path(key)
            return
        x = v if moves_r else w
        r, p = self.source.rewards.parts, self.source.kernels.parts
        small = isinstance(p[pi], np.ndarray) and self.space.n_states <= gain.SMALL
        if small and (times > _FEWEST or not (moves_r or moves_p)):
            line = certify_line(
                self.space, (r[ri], r[rj]), (p[pi], p[pj]),
                float(x.min()), float(x.max()), self.tol, self.warm,
                most=min(max(2, times // 2), MOST_SOLVES - self.solves),
            )  # fmt: skip
            self.solves += line.solves if x.min() < x.max() else 1  # else one model, twice
            require_solves(self.solves, self.tol)
            if isinstance(line, Line) and np.isfinite(line.error).all():
                self.warm = line.policy
                self.families[key] = _OnALine(line, by_rewards=moves_r)
                return
        self.families[key] = self._path(key)

    def _path(self, key: tuple[int, ...]) -> PathGains:
        path = PathCertifier(
            self.source, self.stops, self.tol, key, shared=self.shared, spent=self.solves
        )
        found = path.certified()
        self.solves += path.solves
        return found


def _alike(v: Place, w: Place) -> list[NDArray[np.int64]]:
    """Return for each family the places of its times, rising."""
    keys = (w.j, w.i, v.j, v.i)
    if all((key == key[:1]).all() for key in keys):
        return [np.arange(v.i.size)]
    order = np.lexsort(keys)
    new = np.zeros(order.size - 1, dtype=bool)
    for key in keys:
        new |= np.diff(key[order]) != 0
    return np.split(order, np.flatnonzero(new) + 1)


def _step_by_step(model: DriftingMDP, tol: float) -> GainCurve:
    """Solve every model that differs from the one before, each from the policy before."""
    if model.horizon > MOST_SOLVES:
        raise NotConverged(
            f"this drift is no blend: all {model.horizon} models would have to be solved, "
            f"{MOST_SOLVES} at the most are",
            field="optimal_gains",
            fix="build the model from knots or as a blend, or take a shorter horizon",
        )
    starts, gains, errors = [], [], []
    before, warm = None, None
    for t in range(1, model.horizon + 1):
        now = model.at(t)
        if before is not None and before == now:
            continue
        found = gain.solve(model.space, now.rewards, now.transitions, tol=tol, warm=warm)
        starts.append(t)
        gains.append(found.gain)
        errors.append(max(found.upper - found.gain, found.gain - found.lower))
        before, warm = now, found.policy
    times, values, widths = np.array(starts), np.array(gains), np.array(errors)

    def evaluate(asked: Times) -> tuple[Reals, Reals]:
        i = np.searchsorted(times, asked, side="right") - 1
        return values[i], widths[i]

    return GainCurve(model, evaluate, float(widths.max()), len(starts))


class PathGains:
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


class PathCertifier:
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
        self.spare = 4  # so many more models may be solved that are those of no time

    def certified(self) -> PathGains:
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
        return PathGains(rows)

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
        at = list(zip(v.tolist(), w.tolist(), strict=True))
        new = [place for place in dict.fromkeys(at) if place not in self.solved]
        known = {place: self.solved[place][:2] for place in at if place in self.solved}
        if new:
            self._count(len(new))
            models = [self._model(*place) for place in new]
            kernels = [p for _, p in models]
            found = gain.solve_many(
                self.source.space,
                np.array([r for r, _ in models]),
                np.array(kernels) if self.dense else kernels,
                tol=self.solver_tol,
                warm=self.warm,
            )
            corners = [self._solved(place, one) for place, one in zip(new, found, strict=True)]
            known |= {place: one[:2] for place, one in zip(new, corners, strict=True)}
            ends = {at[0], at[-1]}  # the pieces beside these times begin or end there
            self.solved |= {
                place: one for place, one in zip(new, corners, strict=True) if place in ends
            }
        return [
            (float(t), float(t), x, x, y, y, *(known[x, y][0],) * 4, 0.0, known[x, y][1])
            for t, (x, y) in zip(times, at, strict=True)
        ]

    def _solved(self, at: tuple[float, float], found: gain.Solution) -> Corner:
        rewards = self._model(*at)[0]
        return corner(self.source.space, found, rewards, at[1], self.base, self.change)

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
            between = {(float(v0), float(w1)), (float(v1), float(w0))} - self.solved.keys()
            if len(between) > self.spare or (self.spare < _AMPLE and not self._closes(v, w)):
                return None
            self.spare -= len(between)
            corners = tuple(self._corner(x, y) for x in (v0, v1) for y in (w0, w1))  # type: ignore[assignment]
            edges = [(corners[0], corners[1]), (corners[2], corners[3])]
        lower, upper = bracket(edges)
        error = 0.5 * (upper - lower) + max(c.error for c in corners)
        if error > self.tol:
            return None
        self.spare += b - a - 1  # of these none has to be solved
        if self.line and w0 != w1:
            v0 = v1 = 0.0  # the bilinear form is a line in w alone
        gains = (c.gain for c in corners)
        return (float(a), float(b), v0, v1, w0, w1, *gains, 0.5 * (lower + upper), error)

    def _closes(self, v: Reals, w: Reals) -> bool:
        """Return whether the straight way through a box closes, whose ends are times' models."""
        ends = self._corner(v[0], w[0]), self._corner(v[1], w[1])
        lower, upper = bracket([ends])
        return 0.5 * (upper - lower) + max(c.error for c in ends) <= self.tol

    def _corner(self, v: float, w: float) -> Corner:
        at = (float(v), float(w))
        if at not in self.solved:
            self._count(1)
            r, p = self._model(v, w)
            found = gain.solve(self.source.space, r, p, tol=self.solver_tol, warm=self.warm)
            self.warm = found.policy
            self.solved[at] = self._solved(at, found)
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


_SOLVER_SHARE = 1e-3  # of the tolerance: what a solved point may be off by
_ROUNDING = 8 * 2.0**-52
_SOLVES = 300  # models that a segment takes, roughly


@dataclass(frozen=True)
class Line:
    """Gains along a line: solved to within `point_error` at the points `x`, certified in between.

    Between x[i] and x[i + 1] the gain is within error[i] of the straight line plus offset[i].
    """

    x: Reals
    gains: Reals
    offset: Reals
    error: Reals
    point_error: float
    policy: NDArray[np.int64]  # the optimal one at the last point, as pairs
    solves: int

    def at(self, x: Reals) -> tuple[Reals, Reals]:
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
    rewards: Reals
    w: float
    part: Reals  # sum p_0 (h - h(s)), over pairs
    slope: Reals  # sum (p_1 - p_0) (h - h(s)), over pairs
    span: float  # of the bias


def certify_line(
    space: StateActions,
    rewards: tuple[Reals, Reals],
    transitions: tuple[Reals, Reals],
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
    space: StateActions, solution: gain.Solution, rewards: Reals, w: float, base: Any, change: Any
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


def _moved(rows: Any, h: Reals, space: StateActions) -> Reals:
    """Return sum p (h - h(s)) over pairs: rows need not sum to one, or to zero, to the last bit."""
    moved: Reals = rows @ h - (rows @ np.ones(h.size)) * h[space.state_of]
    return moved


def _extreme(left: Reals, right: Reals, bend: Reals) -> Reals:
    """Return the largest value of (1 - y) left + y right - y (1 - y) bend on [0, 1]."""
    ends = np.maximum(left, right)
    rise = right - left - bend
    with np.errstate(divide="ignore", invalid="ignore"):
        y = -rise / (2.0 * bend)
        inner = left + y * rise + y * y * bend
    return np.where((bend < 0) & (y > 0) & (y < 1), np.maximum(ends, inner), ends)


def _at(ends: list[Reals], x: float) -> tuple[Reals, Reals]:
    r0, r1, p0, p1 = ends
    return r0 + x * (r1 - r0), p0 + x * (p1 - p0)
