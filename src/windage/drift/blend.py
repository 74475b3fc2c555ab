"""Blend: a few base models and weights that change with t."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from windage.drift.tables import Tables, alias_table, join_cells
from windage.mdp import Transitions, cells_of, freeze
from windage.schedules import Custom, Schedule
from windage.spaces import StateActions

__all__ = ["Blend", "Mixture", "alike"]

Reals = NDArray[np.float64]

_STEPS_A_CHUNK = 1 << 16
_STRETCH = 1 << 8
_GRID = 1 << 14  # whole runs ask for these stretches; others would pile up
_KEPT_HORIZON = 1 << 20  # weights of a million steps are about 50 MB


class Mixture:
    """A few arrays and the schedule of their weights: the rewards or the kernel of a blend.

    Parameters
    ----------
    parts
        One array a base model, all of one shape; kernels may be CSR.
    schedule
        The weights.
    horizon
        T.
    distance
        The size of the difference of two arrays: max norm for rewards, largest L1 row for kernels.
    """

    def __init__(
        self,
        parts: Sequence[Any],
        schedule: Schedule,
        horizon: int,
        distance: Callable[[Any], float],
    ) -> None:
        self.parts = parts
        self.schedule = schedule
        self.horizon = horizon
        self._distance = distance
        self._known: dict[tuple[int, int], float] = {}
        self._stretch: tuple[int, NDArray[np.int32], Reals] | None = None

    def at(self, t: int) -> Any:
        """Return sum_k w_k(t) part_k; the part itself where its weight is one.

        Written as a step away from one part, so that what is the same in all parts stays the same
        to the last bit.
        """
        models, weight = self._active_at(t)
        if 1.0 in weight:
            return self.parts[models[weight.index(1.0)]]
        base = self.parts[models[-1]]
        total = base
        for k, w in zip(models[:-1], weight[:-1], strict=True):
            if w > 0.0:
                total = total + w * (self.parts[k] - base)
        freeze(total)
        return total

    def _active_at(self, t: int) -> tuple[list[int], list[float]]:
        """Return models and weights at one time; times near by are likely to be asked for next."""
        if isinstance(self.schedule, Custom):  # may be slow, and is asked for no more than needed
            models, weight = self.active(t, t)
            return models[0].tolist(), weight[0].tolist()
        number, place = divmod(t - 1, _STRETCH)
        stretch = self._stretch
        if stretch is None or stretch[0] != number:
            first = number * _STRETCH + 1
            stretch = (number, *self.active(first, min(first + _STRETCH - 1, self.horizon)))
            self._stretch = stretch
        return stretch[1][place].tolist(), stretch[2][place].tolist()

    def active(self, first: int, last: int) -> tuple[NDArray[np.int32], Reals]:
        """Return the models in play and their weights for t = first..last."""
        return self.schedule.active(np.arange(first, last + 1), self.horizon)

    def distance(self, i: int, j: int) -> float:
        """Return the size of part_i - part_j."""
        pair = (min(i, j), max(i, j))
        if pair not in self._known:
            self._known[pair] = self._distance(self.parts[pair[1]] - self.parts[pair[0]])
        return self._known[pair]

    def variations(self, first: int, last: int) -> Reals:
        """Return the size of every step t -> t + 1 for t = first..last-1.

        Where only two weights change, they change by the same amount w, and the step has size
        w times the distance of the two parts; other steps are computed as they are.
        """
        models, weight = self.active(first, last)
        sizes = np.zeros(last - first)
        moved = (models[1:] != models[:-1]).any(axis=1) | (weight[1:] != weight[:-1]).any(axis=1)
        steps = np.flatnonzero(moved)
        i, j, change, simple = _two_that_change(models, weight, steps)
        pairs, which = np.unique(np.stack([i[simple], j[simple]]), axis=1, return_inverse=True)
        apart = np.array([self.distance(int(a), int(b)) for a, b in pairs.T])
        sizes[steps[simple]] = change[simple] * apart[which] if apart.size else 0.0
        for step in steps[~simple]:
            sizes[step] = self._distance(self.at(first + step + 1) - self.at(first + step))
        return sizes

    def total(self, first: int, last: int) -> float:
        """Return the sum of the steps; it telescopes between the stops of the schedule."""
        stops = self.schedule.stops(self.horizon)
        if stops is None:
            return math.fsum(
                float(self.variations(t, min(t + _STEPS_A_CHUNK, last)).sum())
                for t in range(first, last, _STEPS_A_CHUNK)
            )
        times = np.concatenate([[first], stops[(stops > first) & (stops < last)], [last]])
        models, weight = self.schedule.active(times, self.horizon)
        i, j, change, _ = _two_that_change(models, weight, np.arange(times.size - 1))
        return math.fsum(
            w * self.distance(int(a), int(b)) for a, b, w in zip(i, j, change, strict=True) if w > 0
        )


class Blend:
    """Base models and schedules: rewards and kernels may follow schedules of their own."""

    def __init__(self, space: StateActions, rewards: Mixture, kernels: Mixture) -> None:
        self.space = space
        self.rewards = rewards
        self.kernels = kernels
        self._stretches: dict[tuple[int, int], Tables] = {}

    def at(self, t: int) -> tuple[Reals, Transitions]:
        """Return rewards and transitions at time t."""
        return self.rewards.at(t), self.kernels.at(t)

    def variations(self, first: int, last: int) -> tuple[Reals, Reals]:
        """Return B_{r,t} and B_{p,t} for t = first..last-1."""
        return self.rewards.variations(first, last), self.kernels.variations(first, last)

    def totals(self, first: int, last: int) -> tuple[float, float]:
        """Return the sums of both series."""
        return self.rewards.total(first, last), self.kernels.total(first, last)

    def tables(self, first: int, last: int) -> Tables:
        """Return the alias table and the weights of the stretch, kept where the horizon is short.

        Runs of many seeds ask for the same stretches again.
        """
        if (first, last) in self._stretches:
            return self._stretches[first, last]
        kernel = self.kernels.active(first, last)
        shared = self.rewards.schedule == self.kernels.schedule
        reward = kernel if shared else self.rewards.active(first, last)
        tables = Tables(first, last, *self._alias, *kernel, self._rewards, *reward)
        if self.kernels.horizon <= _KEPT_HORIZON and (first - 1) % _GRID == 0:
            self._stretches[first, last] = tables
        return tables

    def supports(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return which bases have positive weight, as a number."""
        models, weight = self.kernels.schedule.active(times, self.kernels.horizon)
        alone = (weight == 1.0).any(axis=1, keepdims=True)  # then `at` knows of no other
        there = np.where(alone, weight == 1.0, weight > 0)
        present = np.sort(np.where(there, models, -1), axis=1)
        return np.unique(present, axis=0, return_inverse=True)[1].ravel()

    @functools.cached_property
    def _alias(self) -> tuple[NDArray[np.int64], NDArray[np.void]]:
        return alias_table(join_cells([cells_of(part) for part in self.kernels.parts]))

    @functools.cached_property
    def _rewards(self) -> Reals:
        return np.ascontiguousarray(np.stack(list(self.rewards.parts)))


def alike(parts: Sequence[Transitions]) -> list[Transitions]:
    """Return all kernels dense if all are, else all in CSR: sums of the two kinds are neither."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return list(parts)
    found = [csr_array(part) for part in parts]
    freeze(*found)
    return found


def _two_that_change(
    models: NDArray[np.int32], weight: Reals, steps: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Reals, NDArray[np.bool_]]:
    """Return for each step the models that lose and gain weight, how much, and if only those do."""
    before, after = steps, steps + 1
    ids = np.concatenate([models[before], models[after]], axis=1).astype(np.int64)
    change = np.concatenate([-weight[before], weight[after]], axis=1)
    order = np.argsort(ids, axis=1, kind="stable")
    ids, change = np.take_along_axis(ids, order, 1), np.take_along_axis(change, order, 1)
    for column in range(ids.shape[1] - 1):  # gather the entries of one model in the last of them
        same = ids[:, column] == ids[:, column + 1]
        change[same, column + 1] += change[same, column]
        change[same, column] = 0.0
    loser, gainer = np.argmin(change, axis=1), np.argmax(change, axis=1)
    at = np.arange(steps.size)
    simple = np.count_nonzero(change, axis=1) == 2
    return ids[at, loser], ids[at, gainer], change[at, gainer], simple
