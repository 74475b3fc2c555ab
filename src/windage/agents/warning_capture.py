"""Agent warnings, and a per-thread context manager that collects them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

from windage.spaces import StateActions

__all__ = ["listening", "quietly", "warn"]

A = TypeVar("A")
_OURS = __name__.partition(".")[0] + "."
Heard = list[tuple[str, type[Warning]]]

_heard: ContextVar[Heard | None] = ContextVar("heard", default=None)


def warn(message: str, category: type[Warning]) -> None:
    """Warn where the library was called from, or tell whoever listens instead."""
    heard = _heard.get()
    if heard is None:
        frame, level = sys._getframe(1), 2
        while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
            frame, level = frame.f_back, level + 1
        warnings.warn(message, category, stacklevel=level)
    else:
        heard.append((message, category))


@contextmanager
def listening() -> Iterator[Heard]:
    """Collect what agents warn of in this thread, to be told once or not at all."""
    heard: Heard = []
    token = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(token)


def quietly(kind: Callable[..., A], space: StateActions, options: dict[str, Any]) -> A:
    """Make an agent whose warnings somebody else has given, or will give, already.

    In a context of its own: Ctrl-C in any line of it leaves nothing that would swallow warnings.
    """

    def make() -> A:
        _heard.set([])
        return kind(space, **options)

    return copy_context().run(make)
