"""Names of states and actions as small numbers, given out in the order in which they are met."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windage.errors import InputError
from windage.logs.cells import whole_numbers

__all__ = ["MOST", "Labels"]

MOST = 10_000
"""The most states, or actions, a log may have: a number fits into 16 bits."""

_MOSTLY = 0.9  # a column is one of integers if so many of its first cells are
_TABLE = 1 << 20  # integers below that are looked up in an array


class Labels:
    """What a column's cells are called, and the number of each.

    Whether it is a column of integers, in which a word is a mistake, or one of words is decided by
    its first cells.
    """

    def __init__(self, role: str) -> None:
        self.role = role
        self.integers: bool | None = None
        self._numbers: dict[int | str, int] = {}
        self._table = np.full(_TABLE, -1, dtype=np.int32)

    def encode(self, cells: pl.Series) -> NDArray[np.int32]:
        """Return the number of each cell; -1 for one that is empty or, among integers, none."""
        found = whole_numbers(cells)
        if self.integers is None and cells.len() > cells.null_count():
            known = found.len() - found.null_count()
            self.integers = known >= _MOSTLY * (cells.len() - cells.null_count())
        return self._numbered(found) if self.integers else self._named(cells)

    def _numbered(self, cells: pl.Series) -> NDArray[np.int32]:
        """Return the numbers of integers: those that are small by looking them up."""
        missing = cells.is_null().to_numpy()
        values = cells.fill_null(0).to_numpy()
        if values.size and values.min() >= 0 and values.max() < _TABLE:
            seen = np.zeros(_TABLE, dtype=bool)
            seen[values[~missing]] = True
            for value in np.flatnonzero(seen & (self._table < 0)).tolist():
                self._table[value] = self._number(value)
            codes: NDArray[np.int32] = self._table[values]
        else:
            distinct, place = np.unique(values, return_inverse=True)
            used = np.zeros(distinct.size, dtype=bool)
            used[place[~missing]] = True
            codes = np.array(
                [
                    self._number(value) if there else -1
                    for value, there in zip(distinct.tolist(), used, strict=True)
                ],
                dtype=np.int32,
            )[place]
        codes[missing] = -1
        return codes

    def _named(self, cells: pl.Series) -> NDArray[np.int32]:
        distinct = cells.drop_nulls().unique(maintain_order=True)
        numbers = [self._number(name) for name in distinct.to_list()]
        codes = cells.replace_strict(distinct, numbers, default=-1, return_dtype=pl.Int32)
        return codes.fill_null(-1).to_numpy().copy()

    def _number(self, label: int | str) -> int:
        number = self._numbers.setdefault(label, len(self._numbers))
        if number >= MOST:
            raise InputError(
                f"there are more than {MOST:,} of them",
                field=self.role,
                fix="put measurements into bins first, with wd.Binner, or name another column",
            )
        if isinstance(label, int) and 0 <= label < _TABLE:
            self._table[label] = number
        return number

    def names(self) -> list[int | str]:
        """Return the labels by number."""
        return list(self._numbers)
