"""Live agents: real decisions in a journal that survives the process, and ways to inspect it."""

from __future__ import annotations

from windage.live.config import Decision, Receipt
from windage.live.explain import explain
from windage.live.maintenance import verify
from windage.live.salvage import recover
from windage.live.session import Fleet, Session, open  # noqa: A004
from windage.live.views import export, status, to_frame

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
