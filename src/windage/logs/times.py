"""When each step was: the column t as numbers or dates, kept as stretches of even steps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windage.logs.cells import whole_numbers

__all__ = ["Clock", "Gap"]

_DAY = 86_400_000_000
_MICRO = 1_000_000
_FORMS = (
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M",
)  # the first that the first cells are written in


class Gap(NamedTuple):
    """Time that is missing: between two steps that follow each other in the log."""

    row: int
    after: str
    before: str
    missing: float
    """How many steps there would have been."""


class Clock:
    """The times of the steps, in the order of the log.

    Times are whole numbers; dates are microseconds, and fractions millionths. Steps that are
    `unit` apart need no memory: only where a stretch of them begins is kept.
    """

    def __init__(self) -> None:
        self.dates = False
        self.unit: int | None = None
        self.rows = 0
        self._form: str | None = None
        self._scale = 1
        self._last: int | None = None
        self._begins: list[NDArray[np.int64]] = []  # rows at which a stretch begins
        self._values: list[NDArray[np.int64]] = []  # and its first time

    def parse(self, cells: pl.Series) -> pl.Series:
        """Return cells as whole numbers or, for dates, microseconds; null where they are none."""
        if cells.dtype in (pl.Date, pl.Datetime) or isinstance(cells.dtype, pl.Datetime):
            self.dates = True
            return cells.cast(pl.Datetime("us")).cast(pl.Int64)
        if self.rows == 0 and cells.dtype == pl.String:
            self._form = _form(cells)
            self.dates = self._form is not None
        if self._form is not None:
            kind = pl.Date if "H" not in self._form else pl.Datetime("us")
            found = cells.str.strptime(kind, self._form, strict=False)
            return found.cast(pl.Datetime("us")).cast(pl.Int64)
        if self.rows == 0 and _fractions(cells):
            self._scale = _MICRO
        return whole_numbers(cells, self._scale)

    def in_order(self, times: NDArray[np.int64], usable: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which of the usable times come after all usable ones before them."""
        floor = np.iinfo(np.int64).min
        tops = np.where(usable, times, floor)
        before = np.empty_like(tops)
        before[0] = floor if self._last is None else self._last
        np.maximum(np.maximum.accumulate(tops[:-1]), before[0], out=before[1:])
        return usable & (times > before)

    def add(self, times: NDArray[np.int64]) -> None:
        """Take in the times of further steps."""
        if not times.size:
            return
        if self.unit is None and times.size > 1:
            steps, counts = np.unique(np.diff(times), return_counts=True)
            self.unit = int(steps[np.argmax(counts)])
        joined = times if self._last is None else np.concatenate([[self._last], times])
        odd = np.flatnonzero(np.diff(joined) != self.unit) + 1
        starts = odd if self._last is None else odd - 1
        if self._last is None:
            starts = np.concatenate([[0], starts])
        self._begins.append(starts + self.rows)
        self._values.append(times[starts])
        self._last = int(times[-1])
        self.rows += times.size

    def at(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the times of these rows."""
        begins, values = np.concatenate(self._begins), np.concatenate(self._values)
        stretch = np.searchsorted(begins, rows, side="right") - 1
        return np.asarray(values[stretch] + (rows - begins[stretch]) * (self.unit or 1))

    def gaps(self) -> list[Gap]:
        """Return where more than one unit passed between two steps."""
        if self.rows == 0 or self.unit is None:
            return []
        begins = np.concatenate(self._begins)[1:]
        before, after = self.at(begins - 1), self.at(begins)
        missing = (after - before) / self.unit - 1
        return [
            Gap(int(row), self.text(int(a)), self.text(int(b)), float(m))
            for row, a, b, m in zip(begins, before, after, missing, strict=True)
            if m > 0
        ]

    def text(self, time: int) -> str:
        """Return a time as people write it."""
        if not self.dates:
            return str(time) if self._scale == 1 else f"{time / self._scale:.10g}"
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time)
        return moment.strftime("%Y-%m-%d" if time % _DAY == 0 else "%Y-%m-%d %H:%M:%S")


def _form(cells: pl.Series) -> str | None:
    """Return how dates are written, or None for numbers."""
    some = cells.drop_nulls().head(1000)
    if not some.len() or some.cast(pl.Float64, strict=False).null_count() <= some.len() // 2:
        return None
    for form in _FORMS:
        kind = pl.Date if "H" not in form else pl.Datetime("us")
        if some.str.strptime(kind, form, strict=False).null_count() <= some.len() // 2:
            return form
    return None


def _fractions(cells: pl.Series) -> bool:
    """Return whether most of the first times are numbers, and more than a few no whole ones."""
    some = cells.drop_nulls().head(1000)
    reals = some.cast(pl.Float64, strict=False).drop_nulls()
    return reals.len() > some.len() // 2 and whole_numbers(some).null_count() > some.len() // 10
