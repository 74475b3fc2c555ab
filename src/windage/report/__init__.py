"""Pictures of models and runs; matplotlib loads with this room, never with the package."""

from __future__ import annotations

from windage.report.figures import drift_figure, picture_kind, save_figure

__all__ = ["drift_figure", "picture_kind", "save_figure"]
