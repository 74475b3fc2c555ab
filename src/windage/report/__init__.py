"""Pictures of models and runs; matplotlib loads with this room, never with the package."""

from __future__ import annotations

from windage.report.figures import drift_figure
from windage.report.forgetting import forgetting_figure
from windage.report.oracle import oracle_figure, share
from windage.report.saving import picture_kind, save_figure
from windage.report.truth import Truth, truth_of

__all__ = [
    "Truth",
    "drift_figure",
    "forgetting_figure",
    "oracle_figure",
    "picture_kind",
    "save_figure",
    "share",
    "truth_of",
]
