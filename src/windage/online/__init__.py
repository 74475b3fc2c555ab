"""Agents that decide for real: a journal that survives the process, and ways to look at it."""

from __future__ import annotations

from windage.online.answers import Decision, Receipt
from windage.online.fleet import Fleet
from windage.online.opening import open  # noqa: A004
from windage.online.session import Session

__all__ = ["Decision", "Fleet", "Receipt", "Session", "open"]
