"""windage: learning to act in Markov decision processes that change while you act.

Everything public is here, and is loaded when it is first used: `import windage as wd` costs next
to nothing. The names stand in `__init__.pyi`.
"""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from typing import Any

from windage._stub import public_names

__version__ = "0.1.0"

_PUBLIC = public_names(__name__, __file__)
_RENAMED = {"masters": "adversarial", "online": "live", "streams": "rng"}  # deprecated in 0.1

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = globals()[name] = pkgutil.resolve_name(_PUBLIC[name])
        return value
    if name in _RENAMED:
        warnings.warn(
            f"windage.{name} is now windage.{_RENAMED[name]}", DeprecationWarning, stacklevel=2
        )
        return importlib.import_module(f"windage.{_RENAMED[name]}")
    raise AttributeError(f"module 'windage' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
