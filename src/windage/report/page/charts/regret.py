"""Regret against t with its interval, and rho*_t below."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windage.report.page.chart import (
    AgentStyle,
    Chart,
    Table,
    View,
    axis,
    direct_labels,
    fits_beside,
    label_room,
    plot_text,
    rounded,
)
from windage.report.page.data import REWARD, AgentRuns, Material, Setting
from windage.study import stats

__all__ = ["regret_chart"]

Reals = NDArray[np.float64]

_HEIGHT, _ALONE = 540, 420  # pixels, with the oracle below and without
_TOP, _BOTTOM = 14, 52
_SPLIT = 0.30  # of the height, for the oracle
_ROWS = 12  # times in the table


def regret_chart(material: Material, setting: Setting) -> Chart:
    """Return how regret grew, or reward where there is no oracle."""
    cells = material.results.cells(setting)
    lost = material.results.measure(setting) is not REWARD
    column = "cumulative_regret" if lost else _earned(cells)
    oracle = material.oracle(setting) if lost else None
    times = np.concatenate([[0], cells[0].times()])
    curves: list[tuple[AgentStyle, Reals, Reals, Reals]] = []
    for cell in cells:
        style, values = material.styles[cell.agent.label], cell.curves(column)
        found = stats.band(values) if style.coloured else (values.mean(axis=0),) * 3
        mean, low, high = (np.concatenate([[0.0], part]) for part in found)
        curves.append((style, mean, low, high))
    data: list[dict[str, Any]] = []
    for style, mean, low, high in sorted(curves, key=lambda one: one[0].coloured):
        data += _line(style, times, mean, low, high)
    floor = min(0.0, *(float(low.min()) for _, _, low, _ in curves))
    top = max(float(high.max()) for _, _, _, high in curves) or 1.0
    room = 0.03 * (top - floor)
    low_end, high_end = floor - room, top + room
    height = _HEIGHT if oracle else _ALONE
    split = _SPLIT if oracle else 0.0
    if oracle:
        data.append(_optimum(oracle.times, oracle.gains))
    named = [(style, float(mean[-1]), "") for style, mean, _, _ in curves if style.coloured]
    pixels = (height - _TOP - _BOTTOM) * (1 - split)
    layout: dict[str, Any] = {
        "height": height,
        "margin": {"l": 64, "r": label_room(named), "t": _TOP, "b": _BOTTOM},
        "xaxis": axis(
            "time t (steps)",
            range=[0, setting.horizon],
            anchor="y2" if oracle else "y",
            tickformat=",",
        ),
        "yaxis": axis(
            "regret so far" if lost else "reward so far",
            range=[low_end, high_end],
            tickformat=",",
            domain=[split + (0.04 if oracle else 0), 1],
        ),
        "annotations": direct_labels(named, setting.horizon, low_end, high_end, pixels),
        "hovermode": "closest",
    }
    if oracle:
        layout["yaxis2"] = axis(
            "ρ*<sub>t</sub>", domain=[0, split - 0.06], rangemode="tozero", nticks=4
        )
    narrow = {
        "height": height - 60,
        "margin": {"l": 48, "r": 8, "t": _TOP, "b": _BOTTOM},
        "annotations": [],
        "xaxis": {"nticks": 4},
    }
    return Chart(
        id="",
        title="Regret against t" if lost else "Reward against t",
        sentence=_sentence(material, setting, curves, lost=lost),
        views=[View(data, layout, narrow)],
        table=_table(setting, times, curves, lost=lost),
        key=[material.styles[cell.agent.label] for cell in cells if _coloured(material, cell)],
        direct=fits_beside(style for style, _, _ in named),
    )


def _earned(cells: list[AgentRuns]) -> str:
    """Return the column of rewards to add up: means, where all runs have them."""
    known = all(cell.has("cumulative_mean_reward") for cell in cells)
    return "cumulative_mean_reward" if known else "cumulative_reward"


def _coloured(material: Material, cell: AgentRuns) -> bool:
    return material.styles[cell.agent.label].coloured


def _line(
    style: AgentStyle, times: NDArray[Any], mean: Reals, low: Reals, high: Reals
) -> list[dict[str, Any]]:
    name = plot_text(style.label)
    line: dict[str, Any] = {
        "type": "scatter", "mode": "lines", "name": name, "legendgroup": style.label,
        "x": times.tolist(), "y": rounded(mean),
        "line": {"color": style.colour, "width": 2.2 if style.coloured else 1, "dash": style.dash},
        "customdata": [list(pair) for pair in zip(rounded(low), rounded(high), strict=True)],
        "hovertemplate": "%{fullData.name}<br>t = %{x:,}: %{y:,.4~r} "
        "[%{customdata[0]:,.4~r}, %{customdata[1]:,.4~r}]<extra></extra>",
    }  # fmt: skip
    if not style.coloured:
        return [line]
    band = {
        "type": "scatter", "mode": "lines", "name": name, "legendgroup": style.label,
        "x": [*times.tolist(), *times[::-1].tolist()],
        "y": [*rounded(high), *rounded(low[::-1])],
        "fill": "toself", "fillcolor": style.faded(0.16), "line": {"width": 0},
        "hoverinfo": "skip",
    }  # fmt: skip
    return [band, line]


def _optimum(times: NDArray[np.int64], gains: Reals) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines", "name": "rho*", "yaxis": "y2",
        "x": times.tolist(), "y": rounded(gains),
        "line": {"color": "@soft", "width": 1.8, "shape": "hv"},
        "hovertemplate": "optimal gain at t = %{x:,}: %{y:.4f}<extra></extra>",
    }  # fmt: skip


def _sentence(
    material: Material,
    setting: Setting,
    curves: list[tuple[AgentStyle, Reals, Reals, Reals]],
    *,
    lost: bool,
) -> str:
    comparison = material.comparisons[setting]
    n = comparison.seeds
    band = " One seed, no bands."
    if n > 1:
        band = f" Bands are 95 % intervals of the mean over {n} seeds."
    learners = {one.label for one in comparison.learners}
    ends = [(style.label, mean, low, high) for style, mean, low, high in curves]
    ends = [end for end in ends if end[0] in learners]
    if not ends:
        return "Lower is better." + band if lost else "Higher is better." + band
    if not lost:
        label, mean, *_ = max(ends, key=lambda end: end[1][-1])
        return f"Higher is better: {label} has collected most, {mean[-1]:,.0f}." + band
    label, mean, low, high = min(ends, key=lambda end: end[1][-1])
    said = (
        "Lower is better: a line that flattens has learned, a straight one loses at the same "
        f"rate to the end. {label} has lost least, {mean[-1]:,.0f}"
    )
    said += f" [{low[-1]:,.0f}, {high[-1]:,.0f}]." if n > 1 else "."
    if len(ends) > 1:
        worst, loss, *_ = max(ends, key=lambda end: end[1][-1])
        said += f" {worst} has lost most, {loss[-1]:,.0f}."
    oracle = material.oracle(setting)
    if oracle is not None:
        least, most = float(oracle.gains.min()), float(oracle.gains.max())
        between = (
            f"{least:.3f} throughout" if most - least <= 1e-4 else f"{least:.3f} to {most:.3f}"
        )
        said += f" Below: the optimal gain ρ* of the model at t, {between}."
    hidden = sum(not style.coloured for style, *_ in curves)
    return said + band + (f" The {hidden} others are grey." if hidden else "")


def _table(
    setting: Setting,
    times: NDArray[Any],
    curves: list[tuple[AgentStyle, Reals, Reals, Reals]],
    *,
    lost: bool,
) -> Table:
    picks = np.unique(np.linspace(0, times.size - 1, _ROWS + 1).round().astype(int))[1:]
    headers = ["t", *(style.label for style, *_ in curves)]
    rows = [[int(times[k]), *(float(mean[k]) for _, mean, _, _ in curves)] for k in picks]
    what = "Mean regret" if lost else "Mean reward so far"
    return Table(f"{what} over seeds at some times, {setting.title}", headers, rows)
