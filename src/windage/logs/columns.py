"""Columns of a log as numbers: names of states and actions, amounts, whole numbers, and times.

States and actions are numbered in the order in which they are met. Times are numbers or dates, kept
as runs of equal increments.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windage.errors import InputError
from windage.validation import as_choice

__all__ = ["MOST", "Amounts", "Clock", "Labels", "TimeGap", "whole_numbers"]

MOST = 10_000
"""The most states, or actions, a log may have: a number fits into 16 bits."""

_MOSTLY = 0.9  # a column is one of integers if so many of its first cells are
_TABLE = 1 << 20  # integers below that are looked up in an array
_EXACT = 2.0**53  # integers that a float holds

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


class Labels:
    """The labels of a column's cells, and the number of each.

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


_CURRENCY = r"\p{Sc}|[A-Z]{3}"
_AMOUNT = rf"^([+-]?)\s*({_CURRENCY})?\s*([+-]?[0-9][0-9.,' ]*?)\s*({_CURRENCY})?$"


class Amounts:
    """Rewards as numbers: with a decimal point or comma, marks between thousands, a currency.

    All cells follow one convention. The first cells tell it if `decimal` does not.

    >>> Amounts().parse(pl.Series(["1.234,50 €", "-3,5", "2", "1.5"])).to_list()
    [1234.5, -3.5, 2.0, None]
    >>> Amounts().parse(pl.Series(["$1,234.50", "-$3", "€ 2"])).to_list()
    [1234.5, -3.0, None]
    """

    def __init__(self, decimal: str | None = None) -> None:
        self.decimal = None if decimal is None else as_choice(decimal, "decimal", (".", ","))
        self.currency = ""
        self.wrong = "is not a number"
        self._plain = True

    def parse(self, cells: pl.Series) -> pl.Series:
        """Return the cells as numbers, null where they are none."""
        plain = cells.cast(pl.Float64, strict=False)
        if cells.dtype != pl.String:
            return plain
        if self.decimal != "," and plain.null_count() == cells.null_count():
            if self.decimal is None and cells.str.contains(".", literal=True).any():
                self.decimal = "."
            return plain
        parts = cells.str.replace_all("[\u00a0\u202f]", " ").str.replace("\u2212", "-")
        groups = parts.str.strip_chars().str.extract_groups(_AMOUNT).struct.unnest()
        sign, before, digits, after = (groups[f"{k}"].fill_null("") for k in range(1, 5))
        if self.decimal is None:
            self.decimal = _decimal(digits)
        if self.decimal is None:
            self.wrong = "is no number without `decimal`: its mark may stand between thousands"
            return plain
        thousands = "." if self.decimal == "," else ","
        whole = rf"[0-9]+|[0-9]{{1,3}}(?:[{thousands}' ][0-9]{{3}})+"
        fine = digits.str.contains(rf"^[+-]?(?:{whole})(?:{re.escape(self.decimal)}[0-9]*)?$")
        units = before + after
        self.currency = self.currency or next(filter(None, units.filter(fine).to_list()), "")
        fine &= units.is_in(["", self.currency]) & ((sign == "") | ~digits.str.contains("^[+-]"))
        digits = digits.str.replace_all(rf"[{thousands}' ]", "").str.replace(",", ".", literal=True)
        found = (sign + digits).set(~fine, None).cast(pl.Float64, strict=False)
        self._plain &= bool((found.is_null() | plain.is_not_null()).all()) and self.decimal == "."
        return found if self.decimal == "," else plain.fill_null(found)

    def note(self) -> str | None:
        """Return what was assumed, if anything was."""
        if self._plain:
            return None
        money = f", in {self.currency}" if self.currency else ""
        return f"Rewards are read with a decimal {_MARKS[self.decimal or '.']}{money}."


_MARKS = {".": "point", ",": "comma"}


def _decimal(digits: pl.Series) -> str | None:
    """Return the mark that more cells show to be decimal; None if no cell tells it.

    A mark is decimal if it comes after another one, or once and not before three digits; another
    one that comes twice separates thousands.
    """
    shown = {}
    for mark, other in ((".", ","), (",", ".")):
        m, o = re.escape(mark), re.escape(other)
        tells = (
            rf"{o}[^{m}]*{m}|^[^{m}]*{m}(?:[0-9]{{0,2}}|[0-9]{{4,}})$|^[^{m}]*{o}[^{m}]*{o}[^{m}]*$"
        )
        shown[mark] = int(digits.str.contains(tells).sum())
    if not any(shown.values()):
        return None if digits.str.contains("[.,]").any() else "."
    return max(shown, key=lambda mark: shown[mark])


class TimeGap(NamedTuple):
    """Time that is missing: between two steps that follow each other in the log."""

    row: int
    after: str
    before: str
    missing: float
    """How many steps there would have been."""


class Clock:
    """The times of the steps, in the order of the log.

    Times are whole numbers; dates are microseconds, and fractions millionths. Steps that are
    `unit` apart need no memory: only where a run of them begins is kept.
    """

    def __init__(self) -> None:
        self.dates = False
        self.unit: int | None = None
        self.rows = 0
        self._form: str | None = None
        self._scale = 1
        self._last: int | None = None
        self._begins: list[NDArray[np.int64]] = []  # rows at which a run begins
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
            apart = np.diff(times)
            steps, counts = np.unique(apart[apart > 0], return_counts=True)
            self.unit = int(steps[np.argmax(counts)]) if steps.size else 1
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
        place = np.searchsorted(begins, rows, side="right") - 1
        return np.asarray(values[place] + (rows - begins[place]) * (self.unit or 1))

    def gaps(self) -> list[TimeGap]:
        """Return where more than one unit passed between two steps."""
        if self.rows == 0 or self.unit is None:
            return []
        begins = np.concatenate(self._begins)[1:]
        before, after = self.at(begins - 1), self.at(begins)
        missing = (after - before) / self.unit - 1
        return [
            TimeGap(int(row), self.text(int(a)), self.text(int(b)), float(m))
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


def whole_numbers(cells: pl.Series, scale: int = 1) -> pl.Series:
    """Return cells times `scale` as integers, null where they are none; 3.0 is one.

    >>> whole_numbers(pl.Series(["3", " 4", "4.0", "x", None])).to_list()
    [3, None, 4, None, None]
    """
    if scale == 1 and (cells.dtype.is_integer() or cells.dtype == pl.String):
        found = cells.cast(pl.Int64, strict=False)
        if found.null_count() == cells.null_count():
            return found
    elif not (cells.dtype.is_numeric() or cells.dtype == pl.String):
        return pl.repeat(None, cells.len(), dtype=pl.Int64, eager=True)
    reals = cells.cast(pl.Float64, strict=False) * scale
    fine = reals.is_finite() & ((reals == reals.round()) | (scale > 1)) & (reals.abs() < _EXACT)
    return reals.set(~fine.fill_null(False), None).round().cast(pl.Int64)
