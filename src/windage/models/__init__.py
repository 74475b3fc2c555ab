"""Models: stationary ones, and those that change with t; their sources, budgets and noise."""

from windage.models.blend import Blend, Mixture
from windage.models.drifting import Budgets, Disconnection, DriftingMDP
from windage.models.mdp import MDP, Noise
from windage.models.source import ArrayStream, FunctionStream, Source, Stream

__all__ = [
    "MDP",
    "ArrayStream",
    "Blend",
    "Budgets",
    "Disconnection",
    "DriftingMDP",
    "FunctionStream",
    "Mixture",
    "Noise",
    "Source",
    "Stream",
]
