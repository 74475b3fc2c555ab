"""Gymnasium, both ways: our models as its environments, its environments as problems for an agent.

`make_env` and the ids `windage/RiverSwim-v0`, ..., which importing this package registers, play a
`DriftingMDP` under Gymnasium's rules; `wrap` lets any of our agents act in an environment with
Discrete spaces; `drift` lets a tabular environment change on a schedule and knows its optimum.
"""

from __future__ import annotations

try:
    import gymnasium as _installed  # noqa: F401
except ModuleNotFoundError as _err:
    raise ModuleNotFoundError(
        "windage.gym needs Gymnasium. Fix: python -m pip install 'windage[gymnasium]'.",
        name=_err.name,
    ) from None

from windage.gym.drifting import Drifting, drift
from windage.gym.env import DriftingEnv, make_env, register
from windage.gym.masks import MaskedDiscrete
from windage.gym.problem import WrappedEnv, wrap
from windage.gym.tabular import tabular

__all__ = [
    "Drifting",
    "DriftingEnv",
    "MaskedDiscrete",
    "WrappedEnv",
    "drift",
    "make_env",
    "tabular",
    "wrap",
]

register()
