"""Regret against T on logarithmic scales, with the slope that fits each agent."""

from __future__ import annotations

from typing import Any

import numpy as np

from windage.errors import InputError
from windage.report.page.chart import (
    Chart,
    Table,
    View,
    axis,
    direct_labels,
    fits_beside,
    interval_text,
    label_room,
    plot_text,
    rounded,
)
from windage.report.page.data import REWARD, AgentRuns, Material, Setting
from windage.study import stats
from windage.study.stats import Interval

__all__ = ["horizons_chart"]

_HEIGHT, _TOP, _BOTTOM = 440, 14, 52


def horizons_chart(material: Material, setting: Setting) -> Chart | None:
    """Return how regret grows with T, if the study has several T."""
    results, environment = material.results, setting.environment
    rows: list[list[Any]] = []
    data: list[dict[str, Any]] = []
    ends, slopes = [], {}
    tops: list[float] = []
    for agent in results.agents:
        cells = results.of_agent(agent, environment)
        cells = [cell for cell in cells if results.measure(cell.setting) is not REWARD]
        if len(cells) < 2 or agent.kind == "informed":
            continue
        scores = [stats.mean(cell.column("regret")) for cell in cells]
        if min(score.estimate for score in scores) <= 0:
            continue  # it has no logarithm
        style = material.styles[agent.label]
        found = _slope(cells)
        slopes[agent.label] = found
        horizons = [cell.setting.horizon for cell in cells]
        data.append(
            {
                "type": "scatter", "mode": "lines+markers", "name": plot_text(agent.label),
                "legendgroup": agent.label, "x": horizons,
                "y": rounded(score.estimate for score in scores),
                "error_y": {
                    "type": "data", "symmetric": False, "thickness": 1.4, "width": 4,
                    "color": style.colour,
                    "array": rounded(score.high - score.estimate for score in scores),
                    "arrayminus": rounded(s.estimate - max(s.low, 1e-9) for s in scores),
                    "visible": style.coloured,
                },
                "line": {"color": style.colour, "width": 2 if style.coloured else 1,
                         "dash": style.dash},
                "marker": {"color": style.colour, "size": 8 if style.coloured else 4,
                           "symbol": style.marker},
                "hovertemplate": "%{fullData.name}<br>T = %{x:,}: regret %{y:,.4~r}"
                "<extra></extra>",
            }
        )  # fmt: skip
        tops += [value for score in scores for value in (score.estimate, score.high)]
        tops += [score.low for score in scores if score.low > 0]
        if style.coloured:
            ends.append((style, float(np.log10(scores[-1].estimate)), _words(found)))
        slope = _numbers(found)
        rows.append([agent.label, *slope, *(score.estimate for score in scores)])
    if not data:
        return None
    horizons = sorted({T for trace in data for T in trace["x"]})
    low, high = np.log10(min(tops)) - 0.06, np.log10(max(tops)) + 0.06
    labels = direct_labels(ends, float(np.log10(horizons[-1])), low, high, _HEIGHT - _TOP - _BOTTOM)
    order = np.log10([horizons[0], horizons[-1]])
    decades = range(int(np.floor(low)), int(np.ceil(high)) + 1)
    ticks = [
        k * 10.0**d for d in decades for k in (1, 2, 5) if low <= np.log10(k * 10.0**d) <= high
    ]
    edge = 0.04 * float(order[1] - order[0])
    layout: dict[str, Any] = {
        "height": _HEIGHT,
        "margin": {"l": 64, "r": label_room(ends), "t": _TOP, "b": _BOTTOM},
        "xaxis": axis(
            "T (logarithmic)", type="log", tickmode="array", tickvals=horizons,
            ticktext=[f"{T:,}" for T in horizons], range=[order[0] - edge, order[1] + edge],
        ),
        "yaxis": axis(
            "regret (logarithmic)", type="log", range=[low, high], tickmode="array",
            tickvals=ticks, ticktext=[f"{tick:,g}" for tick in ticks],
        ),
        "annotations": labels,
        "hovermode": "closest",
    }  # fmt: skip
    narrow = {
        "margin": {"l": 48, "r": 12, "t": _TOP, "b": _BOTTOM},
        "annotations": [],
        "xaxis": {"tickangle": -30},
    }
    headers = ["agent", "slope", "95 % from", "to", *(f"regret at T = {T:,}" for T in horizons)]
    return Chart(
        id="",
        title="Regret as T grows",
        sentence=_sentence(slopes, len(horizons)),
        views=[View(data, layout, narrow)],
        table=Table(f"Slopes of log regret against log T, {environment}", headers, _padded(rows)),
        key=[material.styles[label] for label in slopes if material.styles[label].coloured],
        direct=fits_beside(style for style, _, _ in ends),
    )


def _padded(rows: list[list[Any]]) -> list[list[Any]]:
    wide = max(map(len, rows))
    return [[*row, *[None] * (wide - len(row))] for row in rows]


def _slope(cells: list[AgentRuns]) -> Interval | None:
    """Return the fitted slope over the seeds that all horizons have; None where there is none.

    One seed gives a slope without an interval: its ends are not numbers.
    """
    seeds = cells[0].seeds
    for cell in cells[1:]:
        seeds = np.intersect1d(seeds, cell.seeds)
    if seeds.size == 0:
        return None
    values = [cell.column("regret")[np.isin(cell.seeds, seeds)] for cell in cells]
    try:
        found = stats.slope([cell.setting.horizon for cell in cells], np.stack(values, axis=1))
    except InputError:
        return None  # a mean that may be negative has no logarithm
    return found if seeds.size > 1 else Interval(found.estimate, np.nan, np.nan)


def _numbers(found: Interval | None) -> list[float | None]:
    if found is None:
        return [None, None, None]
    ends = (found.low, found.high)
    return [found.estimate, *(end if np.isfinite(end) else None for end in ends)]


def _words(found: Interval | None) -> str:
    return f"slope {found.estimate:.2f}" if found else "no slope"


def _sentence(slopes: dict[str, Interval | None], n: int) -> str:
    known = {label: found for label, found in slopes.items() if found}
    said = (
        "A slope of 1 loses at the same rate however long it runs; SWUCRL2-CW and BORL have bounds "
        f"of order 3/4. Slopes are fitted to {n} horizons."
    )
    if known:
        label, least = min(known.items(), key=lambda one: one[1].estimate)
        between = f" {interval_text(least.low, least.high, 2)}" if np.isfinite(least.low) else ""
        said += f" {label} has the flattest, {least.estimate:.2f}{between}."
    if n < 3:
        said += " Two horizons fit any line: add a third."
    return said
