"""Models that change with t: what drifts (`model`), how it is stored, and by how much it varies."""

from windage.drift.blend import Blend, Mixture
from windage.drift.budgets import Budgets
from windage.drift.model import DriftingMDP
from windage.drift.reach import Disconnection
from windage.drift.stream import ArrayStream, FunctionStream, Stream
from windage.drift.tables import Source

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
