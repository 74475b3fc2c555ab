"""Variation budgets: how much rewards and transitions move from step to step (paper, Eq. 1-2).

B_{r,t} = max over pairs of abs(r_{t+1} - r_t), B_{p,t} = max over pairs of the L1 norm of
p_{t+1} - p_t, for t = 1..T-1; B_r and B_p are their sums, T - 1 terms each.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from windage.errors import InputError
from windage.validation import as_integer, require_memory

__all__ = ["Budgets"]

Reals = NDArray[np.float64]

CHUNK = 1 << 16
"""So many steps are looked at together where a series is not kept."""


class Varying(Protocol):
    """What budgets are computed from; see `tables.Source`."""

    def variations(self, first: int, last: int) -> tuple[Reals, Reals]:
        """Return B_{r,t} and B_{p,t} for t = first..last-1."""
        ...

    def totals(self, first: int, last: int) -> tuple[float, float]:
        """Return the sums of the two series."""
        ...


class Budgets:
    """The variation of a drifting model between the times `first` and `last`.

    `reward` and `transition` are the sums of the steps t -> t + 1 with first <= t < last. Per-step
    series are built when asked for.

    Attributes
    ----------
    reward, transition
        B_r and B_p of the interval.
    """

    def __init__(self, source: Varying, first: int, last: int) -> None:
        self.first = first
        self.last = last
        self._source = source
        self.reward, self.transition = source.totals(first, last)

    @functools.cached_property
    def _series(self) -> tuple[Reals, Reals]:
        require_memory(
            16 * (self.last - self.first), "budget series", fix="ask for a shorter interval"
        )
        r, p = self._source.variations(self.first, self.last)
        r.flags.writeable = p.flags.writeable = False
        return r, p

    @property
    def reward_steps(self) -> Reals:
        """B_{r,t} for t = first..last-1."""
        return self._series[0]

    @property
    def transition_steps(self) -> Reals:
        """B_{p,t} for t = first..last-1."""
        return self._series[1]

    @property
    def changes(self) -> int:
        """The number of times t in the interval at which M_{t+1} differs from M_t."""
        return self._summary[0]

    @property
    def change_times(self) -> NDArray[np.int64]:
        """The times t in the interval, after its first, at which M_t differs from M_{t-1}."""
        found, t = [], self.first + 1
        for r, p in self._chunks():
            found.append(t + np.flatnonzero((r > 0) | (p > 0)))
            t += r.size
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def between(self, first: int, last: int) -> Budgets:
        """Return the budgets of a part of the interval."""
        start = as_integer(first, "first", low=self.first, high=self.last)
        return Budgets(self._source, start, as_integer(last, "last", low=start, high=self.last))

    @property
    def largest_steps(self) -> tuple[float, float]:
        """The largest B_{r,t} and the largest B_{p,t}."""
        return self._summary[1:]

    @functools.cached_property
    def _summary(self) -> tuple[int, float, float]:
        """Changes and largest steps: one pass for both."""
        changes, reward, transition = 0, 0.0, 0.0
        for r, p in self._chunks():
            changes += int(np.count_nonzero((r > 0) | (p > 0)))
            reward = max(reward, float(r.max(initial=0.0)))
            transition = max(transition, float(p.max(initial=0.0)))
        return changes, reward, transition

    def windows(self, length: int) -> tuple[Reals, Reals]:
        """Return the budgets of every `length` consecutive steps: what a window of W sees drift.

        Entry i is the sum of the steps first + i .. first + i + length - 1.
        """
        n = as_integer(length, "length", low=1)
        steps = self.last - self.first
        if n > steps:
            raise InputError(
                f"{n} steps do not fit into the {steps} steps of the interval",
                field="length",
                fix=f"pass an integer from 1 to {steps}",
            )
        sums = [np.concatenate([[0.0], np.cumsum(series)]) for series in self._series]
        r, p = (total[n:] - total[:-n] for total in sums)
        return r, p

    def _chunks(self) -> Iterator[tuple[Reals, Reals]]:
        if "_series" in self.__dict__:
            yield self._series
            return
        for first in range(self.first, self.last, CHUNK):
            yield self._source.variations(first, min(first + CHUNK, self.last))

    def __repr__(self) -> str:
        return (
            f"Budgets(reward={self.reward:.6g}, transition={self.transition:.6g}, "
            f"first={self.first}, last={self.last})"
        )
