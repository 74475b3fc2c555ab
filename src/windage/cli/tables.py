"""Tables: drawn on a terminal, plain aligned columns in a pipe."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence

__all__ = ["number", "print_table", "print_text"]

_WIDEST = 100  # columns: longer lines of prose are hard to follow
_NARROWEST = 8  # columns: texts that are folded into less cannot be read
_GAP = 3  # columns from one cell to the next


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
    _align(headers, rows)


def number(value: float | None) -> str:
    """Return a number as people read it, to eight digits; a dash for none.

    >>> number(20000), number(0.1 + 0.2), number(None)
    ('20,000', '0.3', '-')
    """
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.8g}"


def _align(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    for row in (headers, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def _is_number(cell: str) -> bool:
    """Return whether a cell begins like a number, an interval included.

    >>> _is_number("-1.5 to +2"), _is_number("6 states"), _is_number("ucrl2")
    (True, True, False)
    """
    return cell.lstrip("+-~<> ")[:1].isdigit()


def _draw(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Draw a table as wide as the terminal: texts are folded, numbers never are nor cut."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    needed = 0
    for header, *cells in zip(headers, *rows, strict=True):
        numbers = any(map(_is_number, cells))
        table.add_column(header, no_wrap=numbers, overflow="fold")
        width = max(map(len, (header, *cells)))
        needed += _GAP + (width if numbers else min(width, _NARROWEST))
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # a name in brackets is no markup
    if needed > console.width:
        _align(headers, rows)  # a line that goes on below is read; a number that is cut misleads
    else:
        console.print(table)
