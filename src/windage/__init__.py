"""windage: learning to act in Markov decision processes that change while you act.

Everything public is here, and is loaded when it is first used: `import windage as wd` costs next
to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "CallOrderError": "errors",
    "DriftingMDP": "drift",
    "GuaranteeWarning": "errors",
    "HorizonReached": "errors",
    "InputError": "errors",
    "MDP": "mdp",
    "ModelError": "errors",
    "Noise": "noise",
    "NotConverged": "errors",
    "ParameterWarning": "errors",
    "StateActions": "spaces",
    "StateError": "errors",
    "WindageError": "errors",
    "gain_lp": "mdp",
    "load": "drift.files",
    "run": "simulate",
}
_ROOMS = ("agents", "envs", "schedules", "simulate", "streams", "testing")

__all__ = [
    "MDP",
    "CallOrderError",
    "DriftingMDP",
    "GuaranteeWarning",
    "HorizonReached",
    "InputError",
    "ModelError",
    "Noise",
    "NotConverged",
    "ParameterWarning",
    "StateActions",
    "StateError",
    "WindageError",
    "agents",
    "envs",
    "gain_lp",
    "load",
    "run",
    "schedules",
    "simulate",
    "streams",
    "testing",
]

if TYPE_CHECKING:
    from windage import agents, envs, schedules, simulate, streams, testing
    from windage.drift import DriftingMDP
    from windage.drift.files import load
    from windage.errors import (
        CallOrderError,
        GuaranteeWarning,
        HorizonReached,
        InputError,
        ModelError,
        NotConverged,
        ParameterWarning,
        StateError,
        WindageError,
    )
    from windage.mdp import MDP, gain_lp
    from windage.noise import Noise
    from windage.simulate import run
    from windage.spaces import StateActions


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"windage.{_HOME[name]}"), name)
    elif name in _ROOMS:
        value = importlib.import_module(f"windage.{name}")
    else:
        raise AttributeError(f"module 'windage' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
