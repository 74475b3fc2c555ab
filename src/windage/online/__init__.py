"""Agents that decide for real: a journal that survives the process, and ways to look at it."""

from __future__ import annotations

from windage.online.answers import Decision, Receipt
from windage.online.export import export, to_frame
from windage.online.fleet import Fleet
from windage.online.opening import open  # noqa: A004
from windage.online.reasons import explain
from windage.online.recover import recover
from windage.online.session import Session
from windage.online.status import status
from windage.online.verify import verify

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
