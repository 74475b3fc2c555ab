"""Tables: drawn on a terminal, plain aligned columns in a pipe."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence

__all__ = ["number", "print_table", "print_text"]

_WIDEST = 100  # columns: longer lines of prose are hard to follow


def print_text(text: str) -> None:
    """Print a paragraph, wrapped on a terminal; in a pipe it is one line."""
    if sys.stdout.isatty():
        text = textwrap.fill(text, min(shutil.get_terminal_size().columns, _WIDEST))
    print(text)


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under headers; in a pipe one line a row, nothing wrapped or cut."""
    if sys.stdout.isatty():
        _draw(headers, rows)
        return
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    for row in (headers, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def number(value: float | None) -> str:
    """Return a number as people read it, to eight digits; a dash for none.

    >>> number(20000), number(0.1 + 0.2), number(None)
    ('20,000', '0.3', '-')
    """
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.8g}"


def _draw(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in headers:
        last = header is headers[-1]
        table.add_column(header, no_wrap=not last, overflow="fold" if last else "ignore")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # a name in brackets is no markup
    Console().print(table)
