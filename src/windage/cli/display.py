"""How far a study is: a bar and what is running on a terminal, silence where nobody looks."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windage.study.status import Status

__all__ = ["Display"]


class Display:
    """Call it with a `Status`; the bar is gone at the end of the `with` block."""

    def __init__(self) -> None:
        from windage.study.status import Status

        self.status = Status()
        self._since = self._counted = time.monotonic()
        self._steps = 0
        self._seen = sys.stderr.isatty()
        if self._seen:
            self._prepare()

    def _prepare(self) -> None:
        from rich.console import Console, Group
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.text import Text

        self._bar = Progress(
            TextColumn("{task.description:<9}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[pace]}", markup=False),
        )
        self._row = self._bar.add_task("planning", total=None, pace="")
        self._running = Text(no_wrap=True, overflow="ellipsis")
        self._live = Live(
            Group(self._bar, self._running), console=Console(stderr=True), transient=True
        )

    def __enter__(self) -> Display:
        if self._seen:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the bar away."""
        if self._seen:
            self._live.stop()

    def show_cursor(self) -> None:
        """Give the terminal its cursor back, while the bar is still there."""
        if self._seen:
            self._live.console.show_cursor()

    def __call__(self, status: Status) -> None:
        """Show how far it is."""
        now = time.monotonic()
        if status.stage != "runs":
            self._since = now
        if status.steps != self._steps:
            self._steps, self._counted = status.steps, now
        self.status = status
        if self._seen:
            self._bar.update(
                self._row,
                description=status.stage,
                total=status.total or None,
                completed=status.kept + status.made + status.failed,
                pace=pace(status, self._counted - self._since, now - self._counted),
            )
            self._running.plain = f"{'':10}{_named(status.running)}"


def pace(status: Status, seconds: float, since: float = 0.0) -> str:
    """Say how fast it goes, how long it will take at that rate, and what failed.

    Steps are counted when a run ends, so the rate is that of the `seconds` up to the last end; of
    what was left then, the time `since` has passed.

    >>> from windage.study.status import Status
    >>> pace(Status(steps=3_000_000, steps_to_do=9_000_000), 2.0)
    '1.5 M steps/s  0:04 left'
    >>> pace(Status(steps=3_000_000, steps_to_do=9_000_000), 2.0, 3.0)
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


def _named(running: list[str]) -> str:
    if not running:
        return ""
    return running[0] + (f" and {len(running) - 1} more" if len(running) > 1 else "")
