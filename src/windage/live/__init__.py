"""Agents that decide for real: a journal that survives the process, and ways to look at it."""

from __future__ import annotations

from windage.live.answers import Decision, Receipt
from windage.live.export import export, to_frame
from windage.live.fleet import Fleet
from windage.live.opening import open  # noqa: A004
from windage.live.reasons import explain
from windage.live.recover import recover
from windage.live.session import Session
from windage.live.status import status
from windage.live.verify import verify

__all__ = [
    "Decision",
    "Fleet",
    "Receipt",
    "Session",
    "explain",
    "export",
    "open",
    "recover",
    "status",
    "to_frame",
    "verify",
]
