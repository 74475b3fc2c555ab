"""windage: learning to act in Markov decision processes that change while you act.

Everything public is here, and is loaded when it is first used: `import windage as wd` costs next
to nothing.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from windage import _gymnasium

__version__ = "0.1.0"

_HOME = {
    "BORL": "agents.meta.borl",
    "Binned": "agents.binned",
    "Binner": "binning",
    "CallOrderError": "errors",
    "ConfidenceRegion": "confidence.confidence",
    "DifferentialQ": "agents.differential_q",
    "Doubling": "agents.meta.doubling",
    "DriftingMDP": "models",
    "Exp3P": "adversarial",
    "GuaranteeWarning": "errors",
    "HorizonReached": "errors",
    "InputError": "errors",
    "JournalError": "errors",
    "MASTER": "agents.meta.master",
    "MDP": "models.mdp",
    "ModelError": "errors",
    "MultiScale": "agents.multiscale.multiscale",
    "MultiScaleGuarded": "agents.multiscale.guarded",
    "Noise": "models.noise",
    "NotConverged": "errors",
    "OptimisticModel": "confidence.evi",
    "PSRL": "agents.psrl",
    "ParameterWarning": "errors",
    "Radii": "confidence.radii",
    "Regret": "regret",
    "RegretTerms": "regret_decomposition",
    "RestartedPSRL": "agents.psrl",
    "RestartedUCRL2": "agents.optimistic.ucrl2",
    "SWPSRL": "agents.psrl",
    "SWUCRL": "agents.optimistic.ucrl2",
    "SWUCRL2": "agents.optimistic.swucrl2cw",
    "SWUCRL2CW": "agents.optimistic.swucrl2cw",
    "StateActions": "spaces",
    "StateError": "errors",
    "Study": "study.study",
    "UCRL2": "agents.optimistic.ucrl2",
    "UCRL2B": "agents.optimistic.ucrl2",
    "VariationAwareUCRL": "agents.optimistic.ucrl2",
    "WindageError": "errors",
    "benchmark_gap": "oracle.comparator",
    "dynamic_regret": "regret",
    "evi": "confidence.evi",
    "gain_lp": "models.mdp",
    "load": "models.files",
    "load_results": "study.results",
    "optimal_widening": "confidence.tuning",
    "optimal_window": "confidence.tuning",
    "plan": "theory",
    "regret_terms": "regret_decomposition",
    "run": "simulate",
}
_ROOMS = (
    "adversarial",
    "agents",
    "envs",
    "gym",
    "live",
    "logs",
    "rng",
    "schedules",
    "simulate",
    "testing",
)

_RENAMED = {"masters": "adversarial", "online": "live", "streams": "rng"}  # deprecated in 0.1

__all__ = [
    "BORL",
    "MASTER",
    "MDP",
    "PSRL",
    "SWPSRL",
    "SWUCRL",
    "SWUCRL2",
    "SWUCRL2CW",
    "UCRL2",
    "UCRL2B",
    "Binned",
    "Binner",
    "CallOrderError",
    "ConfidenceRegion",
    "DifferentialQ",
    "Doubling",
    "DriftingMDP",
    "Exp3P",
    "GuaranteeWarning",
    "HorizonReached",
    "InputError",
    "JournalError",
    "ModelError",
    "MultiScale",
    "MultiScaleGuarded",
    "Noise",
    "NotConverged",
    "OptimisticModel",
    "ParameterWarning",
    "Radii",
    "Regret",
    "RegretTerms",
    "RestartedPSRL",
    "RestartedUCRL2",
    "StateActions",
    "StateError",
    "Study",
    "VariationAwareUCRL",
    "WindageError",
    "adversarial",
    "agents",
    "benchmark_gap",
    "dynamic_regret",
    "envs",
    "evi",
    "gain_lp",
    "gym",
    "live",
    "load",
    "load_results",
    "logs",
    "optimal_widening",
    "optimal_window",
    "plan",
    "regret_terms",
    "rng",
    "run",
    "schedules",
    "simulate",
    "testing",
]

if TYPE_CHECKING:
    from windage import (
        adversarial,
        agents,
        envs,
        gym,
        live,
        logs,
        rng,
        schedules,
        simulate,
        testing,
    )
    from windage.adversarial import Exp3P
    from windage.agents.binned import Binned
    from windage.agents.differential_q import DifferentialQ
    from windage.agents.meta.borl import BORL
    from windage.agents.meta.doubling import Doubling
    from windage.agents.meta.master import MASTER
    from windage.agents.multiscale.guarded import MultiScaleGuarded
    from windage.agents.multiscale.multiscale import MultiScale
    from windage.agents.optimistic.swucrl2cw import SWUCRL2, SWUCRL2CW
    from windage.agents.optimistic.ucrl2 import (
        SWUCRL,
        UCRL2,
        UCRL2B,
        RestartedUCRL2,
        VariationAwareUCRL,
    )
    from windage.agents.psrl import PSRL, SWPSRL, RestartedPSRL
    from windage.binning import Binner
    from windage.confidence.confidence import ConfidenceRegion
    from windage.confidence.evi import OptimisticModel, evi
    from windage.confidence.radii import Radii
    from windage.confidence.tuning import optimal_widening, optimal_window
    from windage.errors import (
        CallOrderError,
        GuaranteeWarning,
        HorizonReached,
        InputError,
        JournalError,
        ModelError,
        NotConverged,
        ParameterWarning,
        StateError,
        WindageError,
    )
    from windage.models import DriftingMDP
    from windage.models.files import load
    from windage.models.mdp import MDP, gain_lp
    from windage.models.noise import Noise
    from windage.oracle.comparator import benchmark_gap
    from windage.regret import Regret, dynamic_regret
    from windage.regret_decomposition import RegretTerms, regret_terms
    from windage.simulate import run
    from windage.spaces import StateActions
    from windage.study.results import load_results
    from windage.study.study import Study
    from windage.theory import plan


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"windage.{_HOME[name]}"), name)
    elif name in _ROOMS:
        value = importlib.import_module(f"windage.{name}")
    elif name in _RENAMED:
        warnings.warn(
            f"windage.{name} is now windage.{_RENAMED[name]}", DeprecationWarning, stacklevel=2
        )
        return importlib.import_module(f"windage.{_RENAMED[name]}")
    else:
        raise AttributeError(f"module 'windage' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


_gymnasium.register_when_loaded()
