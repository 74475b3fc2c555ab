"""One line on the terminal that says what takes so long; nothing where nobody looks."""

from __future__ import annotations

import sys
from types import TracebackType

__all__ = ["Progress"]


class Progress:
    """Call it with what is about to be done; the line is gone at the end of the `with` block."""

    def __init__(self) -> None:
        self._seen = sys.stderr.isatty()
        self._width = 0

    def __call__(self, stage: str) -> None:
        """Put another line in the place of the last."""
        if self._seen:
            line = f"{stage} ..." if stage else ""
            end = "" if stage else "\r"
            print("\r" + line.ljust(self._width), end=end, file=sys.stderr, flush=True)
            self._width = len(line)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self("")
