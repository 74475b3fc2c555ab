"""Agents by id, `windage.agents.make("random", space, horizon=T)`, and their classes.

The agents stand in `__init__.pyi`, a line each; each is loaded when it is first used.
"""

from __future__ import annotations

import pkgutil
from typing import Any

from windage._stub import public_names

_PUBLIC = public_names(__name__, __file__)

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = pkgutil.resolve_name(_PUBLIC[name])
    return value


def __dir__() -> list[str]:
    return __all__
