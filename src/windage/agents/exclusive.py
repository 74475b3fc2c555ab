"""One call at a time: whoever else uses an agent while it acts, learns or runs gets an error.

Compiled loops let other threads run, write in place and check no bounds, so a second caller must be
kept out. An agent in use holds a `Use`; who finds one whose frame still runs is refused. A frame
that was cut short anywhere, by Ctrl-C or an error, holds nothing, so nothing need be cleaned up.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from windage.errors import CallOrderError

__all__ = ["claim", "exclusive", "release"]

P = ParamSpec("P")
R = TypeVar("R")


class Use(NamedTuple):
    """What an agent is in use by."""

    call: str
    thread: int
    frame: FrameType
    alone: bool  # whether it may only be looked at meanwhile, even from within

    def goes_on(self) -> bool:
        """Whether the frame is still on the stack of its thread."""
        frame = sys._current_frames().get(self.thread)
        while frame is not None and frame is not self.frame:
            frame = frame.f_back
        return frame is not None


_READS = ("explain", "index", "region", "state")


def claim(agent: Any, call: str, *, alone: bool = False) -> None:
    """Let the calling frame use an agent; refuse it while another one does.

    A call from within one that goes on, as `replay` calls `act`, is part of it.
    """
    mine = Use(call, threading.get_ident(), sys._getframe(1), alone)
    while (held := agent.__dict__.setdefault("_use", mine)) is not mine:
        if not held.goes_on():
            agent.__dict__.pop("_use", None)
        elif held.thread == mine.thread and (call in _READS or not (held.alone or call == "run")):
            return
        else:
            by = "this thread" if held.thread == mine.thread else "another thread"
            raise CallOrderError(
                f"the agent is in use, by {held.call!r} in {by}",
                field=call,
                where=f"t={agent.t}",
                fix="give each run and each thread an agent of its own, such as "
                "windage.agents.restore(agent.state())",
            )


def release(agent: Any) -> None:
    """Let others use an agent again, if the calling frame was the one that did."""
    held = agent.__dict__.get("_use")
    if held is not None and held.frame is sys._getframe(1):
        del agent.__dict__["_use"]


def exclusive(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Keep other threads out while a method runs."""
    name = method.__name__

    @functools.wraps(method)
    def kept(self: Any, /, *args: P.args, **options: P.kwargs) -> R:
        try:
            claim(self, name)
            return method(self, *args, **options)
        finally:
            release(self)

    return kept
