"""Tables, text and progress on a terminal; plain lines, and no progress, in a pipe."""

from __future__ import annotations

import shutil
import sys
import textwrap
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windage.study.runner import StudyStatus

__all__ = ["Progress", "number", "print_table", "print_text"]

_WIDEST = 100  # columns: longer lines of prose are hard to follow
_NARROWEST = 8  # columns: texts that are folded into less cannot be read
_GAP = 3  # columns from one cell to the next
_LONG = 2.0  # seconds after which a stage is shown with the time it has taken


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
    """Return a number with eight digits at most, thousands grouped; a dash for none.

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


class Progress:
    """What a command is doing, shown on a terminal until the end of the `with` block.

    Call it with the name of a stage, or follow a study with `study`. A stage that takes long is
    shown with its seconds, so that a long computation does not look like a dead one. The cursor
    stays visible: a program that is killed leaves the terminal as it was.
    """

    def __init__(self) -> None:
        self._stage = ""
        self._since = 0.0
        self._bar: _StudyBar | None = None
        self._live = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                get_renderable=self._render,
                console=Console(stderr=True),
                transient=True,
                redirect_stdout=False,
            )

    def __call__(self, stage: str) -> None:
        """Show what is about to be done, in the place of the last stage."""
        if self._live is not None:
            self._stage, self._since = stage, time.monotonic()
            self._live.refresh()

    def study(self, status: StudyStatus) -> None:
        """Show a bar with the runs of a study, its speed, the time left, and what is running."""
        if self._live is not None:
            self._bar = self._bar or _StudyBar()
            self._bar.update(status)

    def stop(self) -> None:
        """Take away what is shown."""
        if self._live is not None:
            self._live.stop()

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
            self._live.console.show_cursor(True)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _render(self) -> RenderableType:
        from rich.text import Text

        if self._bar is not None:
            return self._bar.group
        seconds = time.monotonic() - self._since
        spent = f" {seconds:.0f} s" if seconds >= _LONG else ""
        line = f"{self._stage} ...{spent}" if self._stage else ""
        return Text(line, no_wrap=True, overflow="ellipsis")


class _StudyBar:
    """A bar that follows a study, and below it what is running."""

    def __init__(self) -> None:
        from rich.console import Group
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar
        from rich.text import Text

        self._since = self._counted = time.monotonic()
        self._steps = 0
        self._bar = Bar(
            TextColumn("{task.description:<9}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[pace]}", markup=False),
        )
        self._row = self._bar.add_task("planning", total=None, pace="")
        self._running = Text(no_wrap=True, overflow="ellipsis")
        self.group = Group(self._bar, self._running)

    def update(self, status: StudyStatus) -> None:
        now = time.monotonic()
        if status.stage != "runs":
            self._since = now
        if status.steps != self._steps:
            self._steps, self._counted = status.steps, now
        self._bar.update(
            self._row,
            description=status.stage,
            total=status.total or None,
            completed=status.kept + status.made + status.failed,
            pace=_pace(status, self._counted - self._since, now - self._counted),
        )
        more = f" and {len(status.running) - 1} more" if len(status.running) > 1 else ""
        self._running.plain = f"{'':10}{status.running[0]}{more}" if status.running else ""


def _pace(status: StudyStatus, seconds: float, since: float = 0.0) -> str:
    """Return the speed, the time left at that rate, and the number of failed runs.

    Steps are counted when a run ends, so the rate is that of the `seconds` up to the last end; of
    what was left then, the time `since` has passed.

    >>> from windage.study.runner import StudyStatus
    >>> _pace(StudyStatus(steps=3_000_000, steps_to_do=9_000_000), 2.0)
    '1.5 M steps/s  0:04 left'
    >>> _pace(StudyStatus(steps=3_000_000, steps_to_do=9_000_000), 2.0, 3.0)
    '1.5 M steps/s  0:01 left'
    """
    parts = []
    if status.steps and seconds > 0:
        rate = status.steps / seconds
        left = max(0, round((status.steps_to_do - status.steps) / rate - since))
        speed = (
            f"{rate / 1e6:.2g} M" if rate >= 1e6
            else f"{rate / 1e3:.0f} k" if rate >= 1e4
            else f"{rate:.0f}"
        )  # fmt: skip
        minutes, hours = left // 60 % 60, left // 3600
        clock = f"{hours}:{minutes:02}" if hours else f"{minutes}"
        parts += [f"{speed} steps/s", f"{clock}:{left % 60:02} left"]
    if status.failed:
        parts.append(f"{status.failed:,} failed")
    return "  ".join(parts)
