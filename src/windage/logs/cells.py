"""Cells of a table as whole numbers."""

from __future__ import annotations

import polars as pl

__all__ = ["whole_numbers"]

_EXACT = 2.0**53


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
