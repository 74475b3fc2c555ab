"""Text, tables and progress on a terminal, and options that several verbs have.

Whatever the command line prints goes through here; in a pipe it is plain lines, without progress.
Names, messages and paths come from files and from other people's code: control characters in them
are shown escaped, as Python writes them, and what is very long is cut.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from windage.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windage.study.study import StudyStatus

__all__ = [
    "Progress",
    "complain",
    "escaped",
    "find_own_classes",
    "line_width",
    "number",
    "parse_settings",
    "print_json",
    "print_table",
    "print_text",
    "require_writable",
    "say",
]

_WIDEST = 100  # columns: longer lines of prose are hard to follow
_NARROWEST = 8  # columns: texts that are folded into less cannot be read
_GAP = 3  # columns from one cell to the next
_LONG = 2.0  # seconds after which a stage is shown with the time it has taken
_LONGEST_LINE = 2_000  # characters
_LONGEST_CELL = 300
_MOST_LINES = 10_000


def escaped(text: str, most: int = _LONGEST_LINE) -> str:
    r"""Return a text without control characters, cut if it is longer than that.

    >>> print(escaped("river\x1b[31m\u202e"), escaped("x" * 99, most=3))
    river\x1b[31m\u202e xxx... (99 characters)
    """
    more = f"... ({len(text):,} characters)" if len(text) > most else ""
    text = text[:most]
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text + more


def say(text: str = "") -> None:
    """Print lines as they are, at once."""
    print("\n".join(map(escaped, text.split("\n")[:_MOST_LINES])), flush=True)


def complain(text: str) -> None:
    """Print a line on standard error."""
    print(f"windage: {escaped(text)}", file=sys.stderr)


def print_json(data: Any, default: Callable[[Any], Any] | None = None) -> None:
    """Print data for programs, whole: JSON has escapes of its own."""
    print(json.dumps(data, indent=2, default=default))


def line_width() -> int:
    """Return how wide a line of prose may be."""
    return min(shutil.get_terminal_size().columns, _WIDEST)


def print_text(text: str) -> None:
    """Print a paragraph, wrapped on a terminal; in a pipe it is one line."""
    text = escaped(text)
    print(textwrap.fill(text, line_width()) if sys.stdout.isatty() else text)


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under headers; in a pipe one line a row, nothing wrapped."""
    headers, *rows = ([escaped(c, _LONGEST_CELL) for c in row] for row in (headers, *rows))
    if sys.stdout.isatty():
        _draw(headers, rows)
    else:
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
        table.add_column(Text(header), no_wrap=numbers, overflow="fold")
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
        self._bar: _Bar | None = None
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
            self._stage, self._since, self._bar = escaped(stage), time.monotonic(), None
            self._live.refresh()

    def count(self, what: str, done: int, total: int, *, steps: bool = False) -> None:
        """Show a bar: how many are done, and with `steps` their speed and the time left."""
        if self._live is not None:
            self._bar = self._bar or _Bar()
            self._bar.update(what, done, total, *((done, total) if steps else (0, 0)))
            if done == total:
                self._live.refresh()

    def study(self, status: StudyStatus) -> None:
        """Show a bar with the runs of a study, its speed, the time left, and what is running."""
        if self._live is not None:
            self._bar = self._bar or _Bar()
            done = status.kept + status.made + status.failed
            self._bar.update(status.stage, done, status.total, status.steps, status.steps_to_do)
            failed = f"{status.failed:,} failed" if status.failed else ""
            self._bar.describe(failed, status.running)

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


class _Bar:
    """A bar with the speed and the time left, and below it what is running."""

    def __init__(self) -> None:
        from rich.console import Group
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar
        from rich.text import Text

        self._what = ""
        self._since = self._counted = self._latest = time.monotonic()
        self._steps = 0
        self._bar = Bar(
            TextColumn("{task.description:<9}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[pace]}", markup=False),
            TextColumn("{task.fields[remark]}", markup=False),
        )
        self._row = self._bar.add_task("", total=None, pace="", remark="")
        self._running = Text(no_wrap=True, overflow="ellipsis")
        self.group = Group(self._bar, self._running)

    def update(self, what: str, done: int, total: int, steps: int, steps_to_do: int) -> None:
        now = time.monotonic()
        if what != self._what:
            self._what, self._since = what, self._latest
        if steps != self._steps:
            self._steps, self._counted = steps, now
        self._latest = now
        pace = _pace(steps, steps_to_do, self._counted - self._since, now - self._counted)
        self._bar.update(
            self._row, description=escaped(what), total=total or None, completed=done, pace=pace
        )

    def describe(self, remark: str, running: Sequence[str]) -> None:
        self._bar.update(self._row, remark=remark)
        more = f" and {len(running) - 1} more" if len(running) > 1 else ""
        self._running.plain = f"{'':10}{escaped(running[0])}{more}" if running else ""


def _pace(steps: int, steps_to_do: int, seconds: float, since: float = 0.0) -> str:
    """Return the speed and the time left at that rate.

    Steps are counted when a run ends, so the rate is that of the `seconds` up to the last end; of
    what was left then, the time `since` has passed.

    >>> _pace(3_000_000, 9_000_000, 2.0), _pace(3_000_000, 9_000_000, 2.0, since=3.0)
    ('1.5 M steps/s  0:04 left', '1.5 M steps/s  0:01 left')
    """
    if not steps or seconds <= 0:
        return ""
    rate = steps / seconds
    left = max(0, round((steps_to_do - steps) / rate - since))
    speed = (
        f"{rate / 1e6:.2g} M" if rate >= 1e6 else f"{rate / 1e3:.0f} k" if rate >= 1e4
        else f"{rate:.0f}"
    )  # fmt: skip
    minutes, hours = left // 60 % 60, left // 3600
    clock = f"{hours}:{minutes:02}" if hours else f"{minutes}"
    return f"{speed} steps/s  {clock}:{left % 60:02} left"


def find_own_classes(folder: Path) -> None:
    """Let `module:Class` be found in the current folder, and in another one."""
    for place in (Path.cwd(), folder.absolute()):
        if str(place) not in sys.path:
            sys.path.insert(0, str(place))


def parse_settings(settings: list[str], option: str = "--set") -> dict[str, Any]:
    """Return the values of `name=value` options.

    >>> parse_settings(["states=3", "radii=laplace"])
    {'states': 3, 'radii': 'laplace'}
    """
    values: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not name or not equals:
            raise InputError(
                f"{setting!r} sets nothing", field=option, fix=f"write {option} name=value"
            )
        if name in values:
            raise InputError(f"{name!r} is given twice", field=option, fix="give it once")
        values[name] = _value(value)
    return values


def require_writable(target: Path) -> None:
    """Refuse a file that could not be written: better before the work than after it.

    A missing folder is made, but not at the root of the file system.
    """
    folders = target.absolute().parents
    folder = next(one for one in folders if one.exists())
    why = (
        "it is a folder" if target.is_dir()
        else "its folder is a file" if not folder.is_dir()
        else "its folder is read-only" if not os.access(folder, os.W_OK)
        else f"there is no folder {folders[-2]}" if len(folders) > 1 and folder == folders[-1]
        else ""
    )  # fmt: skip
    if why:
        raise InputError(
            f"cannot be written ({why})",
            field=str(target),
            fix="name a file in a folder you may write to",
        )


def _value(text: str) -> Any:
    """Return a number, a value in JSON, or else the text itself.

    >>> _value("3"), _value("0.5"), _value("true"), _value("[0, 1]"), _value("laplace")
    (3, 0.5, True, [0, 1], 'laplace')
    """
    kinds: tuple[Callable[[str], Any], ...] = (int, float, json.loads)
    for kind in kinds:
        try:
            return kind(text)
        except ValueError:
            continue
    return text
