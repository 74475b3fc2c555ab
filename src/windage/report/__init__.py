"""Figures of models and runs, and the report of a study; matplotlib loads with this package."""

from __future__ import annotations

from windage.report.figures.drift import drift_figure
from windage.report.figures.learning import forgetting_figure, regret_figure
from windage.report.figures.oracle import oracle_figure, share
from windage.report.figures.style import picture_kind, save_figure
from windage.report.truth import Truth, truth_of

__all__ = [
    "Truth",
    "drift_figure",
    "forgetting_figure",
    "oracle_figure",
    "picture_kind",
    "regret_figure",
    "save_figure",
    "share",
    "truth_of",
]
