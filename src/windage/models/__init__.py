"""Models that change with t: what drifts (`model`), how it is stored, and by how much it varies."""

from windage.models.blend import Blend, Mixture
from windage.models.budgets import Budgets
from windage.models.communication import Disconnection
from windage.models.drifting import DriftingMDP
from windage.models.source import Source
from windage.models.tabulated import ArrayStream, FunctionStream, Stream

__all__ = [
    "ArrayStream",
    "Blend",
    "Budgets",
    "Disconnection",
    "DriftingMDP",
    "FunctionStream",
    "Mixture",
    "Source",
    "Stream",
]
