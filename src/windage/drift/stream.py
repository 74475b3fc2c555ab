"""Stream: a model for every t from a function, for drift that is no blend."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from windage.drift.tables import Tables, alias_table, join_cells, largest, largest_row
from windage.mdp import Transitions, cells_of
from windage.spaces import StateActions

__all__ = ["Stream"]

Reals = NDArray[np.float64]

_CELLS_A_CHUNK = 1 << 21  # what is tabulated at a time: 2M cells are about 50 MB


class Stream:
    """A model for every t from a function: nothing is kept but the model asked for last."""

    def __init__(
        self,
        space: StateActions,
        model_at: Callable[[int], tuple[Reals, Transitions]],
        cells_a_step: int,
    ) -> None:
        self.space = space
        self._model_at = model_at
        self._piece = max(1, _CELLS_A_CHUNK // max(cells_a_step, 1))
        self._last: tuple[int, tuple[Reals, Transitions]] | None = None
        self._varied: tuple[tuple[int, int], tuple[Reals, Reals]] | None = None

    def at(self, t: int) -> tuple[Reals, Transitions]:
        """Return rewards and transitions at time t."""
        if self._last is None or self._last[0] != t:
            self._last = (t, self._model_at(t))
        return self._last[1]

    def variations(self, first: int, last: int) -> tuple[Reals, Reals]:
        """Return B_{r,t} and B_{p,t}, two models in memory at a time."""
        if self._varied is not None and self._varied[0] == (first, last):
            return self._varied[1]
        r, p = np.zeros(last - first), np.zeros(last - first)
        before = self.at(first)
        for i, t in enumerate(range(first + 1, last + 1)):
            after = self.at(t)
            r[i] = largest(after[0] - before[0])
            p[i] = largest_row(after[1] - before[1])
            before = after
        self._varied = (first, last), (r, p)
        return r, p

    def totals(self, first: int, last: int) -> tuple[float, float]:
        """Return the sums of both series, step by step: a stream has no closed form."""
        r, p = self.variations(first, last)
        return math.fsum(r), math.fsum(p)

    def tables(self, first: int, last: int) -> Tables:
        """Return tables in which every step is a base of its own."""
        last = min(last, first + self._piece - 1)
        models = [self.at(t) for t in range(first, last + 1)]
        n = len(models)
        base, weight = np.arange(n, dtype=np.int32)[:, None], np.ones((n, 1))
        return Tables(
            first, last, *alias_table(join_cells([cells_of(p) for _, p in models])),
            base, weight, np.stack([r for r, _ in models]), base, weight,
        )  # fmt: skip

    def supports(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a number for every distinct set of possible moves."""
        seen: dict[bytes, int] = {}
        numbers = np.empty(times.size, dtype=np.int64)
        for i, t in enumerate(times.tolist()):
            cells = cells_of(self.at(t)[1])
            numbers[i] = seen.setdefault(cells.rows.tobytes() + cells.states.tobytes(), len(seen))
        return numbers
