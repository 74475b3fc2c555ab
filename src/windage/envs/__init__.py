"""Benchmark environments by id: `windage.envs.make("riverswim", horizon=20_000)`.

A bare id is the newest version; results store the id with its version, such as `riverswim-v0`.
The environments stand in `__init__.pyi`, a line each.
"""

from __future__ import annotations

import pkgutil

from windage._stub import public_names

_PUBLIC = public_names(__name__, __file__)
globals().update({name: pkgutil.resolve_name(home) for name, home in _PUBLIC.items()})

__all__ = sorted(_PUBLIC)
