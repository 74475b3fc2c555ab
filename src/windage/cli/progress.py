"""One line on the terminal that says what takes so long; nothing where nobody looks."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

__all__ = ["Progress"]

_TICK = 1.0  # seconds


class Progress:
    """Call it with what is about to be done; the line is gone at the end of the `with` block.

    What takes longer than a second or two is shown with the seconds it has taken, so that a long
    computation does not look like a dead one.
    """

    def __init__(self) -> None:
        self._seen = sys.stderr.isatty()
        self._stage = ""
        self._since = 0.0
        self._width = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __call__(self, stage: str) -> None:
        """Put another line in the place of the last."""
        if self._seen:
            with self._lock:
                self._stage, self._since = stage, time.monotonic()
                self._write(f"{stage} ...")

    def __enter__(self) -> Progress:
        if self._seen:
            self._ticker.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._seen:
            self._ticker.join()
            self._write("")
            print("\r", end="", file=sys.stderr, flush=True)

    def _tick(self) -> None:
        while not self._over.wait(_TICK):
            with self._lock:
                spent = time.monotonic() - self._since
                if self._stage and spent >= 2 * _TICK:
                    self._write(f"{self._stage} ... {spent:.0f} s")

    def _write(self, line: str) -> None:
        print("\r" + line.ljust(self._width), end="", file=sys.stderr, flush=True)
        self._width = len(line)
