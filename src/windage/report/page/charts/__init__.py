"""Charts of a report: one module each, `chart(material, setting)` returns a `Chart` or None.

A new chart is one module and one line in `CHARTS`.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import replace

from windage.report.page.chart import Chart
from windage.report.page.data import Material, Setting

__all__ = ["CHARTS", "charts_of"]

CHARTS = (
    "shares:shares_chart",
    "regret:regret_chart",
    "pairwise:pairwise_chart",
    "horizons:horizons_chart",
    "sweeps:sweep_chart",
    "episodes:episodes_chart",
    "episodes:reasons_chart",
    "arms:arms_chart",
    "memory:memory_chart",
    "forgetting:forgetting_chart",
)
"""Module and function of each chart, in the order of the page."""


def charts_of(material: Material, setting: Setting, anchor: str) -> list[Chart]:
    """Return the charts of a setting that have something to show; `anchor` begins their ids."""
    charts = []
    for entry in CHARTS:
        module, function = entry.split(":")
        draw = getattr(importlib.import_module(f"{__name__}.{module}"), function)
        chart: Chart | None = draw(material, setting)
        if chart is not None:
            charts.append(replace(chart, id=f"{anchor}-{_slug(chart.title)}"))
    return charts


def _slug(title: str) -> str:
    """Return a title as an anchor.

    >>> _slug("BORL's choice of window")
    'borl-s-choice-of-window'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
