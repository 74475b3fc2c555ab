"""Regret over windows and widenings, with the theorem's choice and the best cell marked."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windage.report.page.chart import SEQUENTIAL, Chart, Table, View, axis, colorbar, rounded
from windage.report.page.data import REWARD, AgentRuns, Material, Setting
from windage.study import stats

__all__ = ["sweep_chart"]

_CELL = 46  # pixels
_SWEPT = ("window", "widening")


def sweep_chart(material: Material, setting: Setting) -> Chart | None:
    """Return the heat map of a sweep over (W, eta), for every agent that has one."""
    lost = material.results.measure(setting) is not REWARD
    oracle = material.oracle(setting)
    star = oracle.tuning if oracle else None
    sweeps = _sweeps(material, setting)
    if not sweeps:
        return None
    views, rows, sentences = [], [], []
    for label, cells in sweeps.items():
        windows = sorted({_window(cell) for cell in cells})
        widenings = sorted({_widening(cell) for cell in cells})
        values = np.full((len(widenings), len(windows)), np.nan)
        for cell in cells:
            found = stats.mean(cell.column("regret") if lost else cell.values(REWARD))
            place = widenings.index(_widening(cell)), windows.index(_window(cell))
            values[place] = found.estimate
            rows.append(
                [label, _window(cell), _widening(cell), found.estimate, found.low, found.high]
            )
        best = np.unravel_index(
            int(np.nanargmin(values) if lost else np.nanargmax(values)), values.shape
        )
        views.append(_view(label, values, windows, widenings, best, star, lost=lost))
        sentences.append(_sentence(label, values, windows, widenings, best, star, lost=lost))
    what = "regret" if lost else "reward per step"
    headers = ["sweep", "W", "eta", f"mean {what}", "95 % from", "to"]
    return Chart(
        id="",
        title="Window and widening",
        sentence=" ".join(sentences),
        views=views,
        table=Table(f"Mean {what} over the sweep, {setting.title}", headers, rows),
    )


def _sweeps(material: Material, setting: Setting) -> dict[str, list[AgentRuns]]:
    """Return cells that differ in window and widening only, by what tells the groups apart."""
    groups: dict[tuple[str, str], list[AgentRuns]] = defaultdict(list)
    for cell in material.results.cells(setting, ["learner"]):
        fixed = {k: v for k, v in cell.agent.parameter_values().items() if k not in _SWEPT}
        if _window(cell) and _widening(cell) is not None:
            groups[cell.agent.id, json.dumps(fixed, sort_keys=True)].append(cell)
    swept = {
        key: cells
        for key, cells in groups.items()
        if min(len({_window(c) for c in cells}), len({_widening(c) for c in cells})) > 1
    }
    return {_group_name(key, list(swept)): cells for key, cells in swept.items()}


def _group_name(key: tuple[str, str], keys: list[tuple[str, str]]) -> str:
    """Return an agent's id, and the parameters in which it differs from other sweeps of that id."""
    alike = [json.loads(text) for id_, text in keys if id_ == key[0]]
    own = json.loads(key[1])
    differs = {
        name: value for name, value in own.items() if any(o.get(name) != value for o in alike)
    }
    return ", ".join([key[0], *(f"{name} {value}" for name, value in differs.items())])


def _window(cell: AgentRuns) -> int:
    found = cell.labels("window")
    return int(found[0]) if len(found) == 1 and found[0] is not None else 0


def _widening(cell: AgentRuns) -> Any:
    found = cell.labels("widening")
    return float(found[0]) if len(found) == 1 and found[0] is not None else None


def _view(
    label: str,
    values: NDArray[np.float64],
    windows: list[int],
    widenings: list[float],
    best: Any,
    star: tuple[float, float] | None,
    *,
    lost: bool,
) -> View:
    what = "regret" if lost else "reward per step"
    low, high = _ends(star, windows, widenings)
    data: list[dict[str, Any]] = [
        {
            "type": "heatmap", "z": [rounded(row) for row in values],
            "x": list(range(len(windows))), "y": list(range(len(widenings))),
            "text": [[_short(value) for value in row] for row in values],
            "texttemplate": "%{text}", "colorscale": SEQUENTIAL,
            "customdata": [
                [f"W = {W:,}, η = {eta:g}" for W in windows] for eta in widenings
            ],
            "hovertemplate": f"%{{customdata}}: {what} %{{z:,.4~r}}<extra></extra>",
            "hoverongaps": False, "xgap": 2, "ygap": 2, "colorbar": colorbar(what),
        },
    ]  # fmt: skip
    if star is not None:
        x, y = _position(star[0], windows), _position(star[1], widenings)
        data.append(
            {
                "type": "scatter", "mode": "markers", "x": [x], "y": [y], "cliponaxis": False,
                "marker": {"symbol": "star-open", "size": 20, "color": "@agent-1",
                           "line": {"width": 2}},
                "hovertemplate": f"Theorem 1: W* = {star[0]:,.0f}, η* = {star[1]:.3g}"
                "<extra></extra>",
                "name": "W*, eta*",
            }
        )  # fmt: skip
    row, column = int(best[0]), int(best[1])
    layout = {
        "height": 96 + _CELL * max(3, len(widenings) + 1),
        "margin": {"l": 60, "r": 20, "t": 18, "b": 56},
        "xaxis": axis(
            "window W", tickmode="array", tickvals=list(range(len(windows))),
            ticktext=[f"{W:,}" for W in windows], range=[low[0], high[0]],
            showgrid=False, fixedrange=True,
        ),
        "yaxis": axis(
            "widening η", tickmode="array", tickvals=list(range(len(widenings))),
            ticktext=[f"{eta:g}" for eta in widenings], range=[low[1], high[1]],
            showgrid=False, fixedrange=True,
        ),
        "shapes": [
            {
                "type": "rect", "name": "best cell", "x0": column - 0.5, "x1": column + 0.5,
                "y0": row - 0.5, "y1": row + 0.5, "line": {"color": "@agent-1", "width": 3},
            }
        ],
        "showlegend": False,
        "hovermode": "closest",
    }  # fmt: skip
    return View(data, layout, {"margin": {"l": 48, "r": 4, "t": 18, "b": 56}}, label)


def _ends(
    star: tuple[float, float] | None, windows: list[int], widenings: list[float]
) -> tuple[list[float], list[float]]:
    """Return where the axes begin and end: at the cells, or beyond where the star lies outside."""
    low, high = [-0.5, -0.5], [len(windows) - 0.5, len(widenings) - 0.5]
    if star is not None:
        for k, (first, last) in enumerate(
            ((windows[0], windows[-1]), (widenings[0], widenings[-1]))
        ):
            low[k] -= 0.6 * (star[k] < first)
            high[k] += 0.6 * (star[k] > last)
    return low, high


def _short(value: float) -> str:
    if np.isnan(value):
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _position(value: float, ticks: list[Any]) -> float:
    """Return where a value lies among ticks that are drawn at 0, 1, 2; outside, beside the end.

    >>> _position(10, [1, 100]), _position(5000, [1, 100]), _position(0.05, [0.0, 0.1])
    (0.5, 1.8, 0.5)
    """
    if value < ticks[0] or value > ticks[-1]:
        return -0.8 if value < ticks[0] else len(ticks) - 0.2
    k = int(np.searchsorted(ticks, value, side="left"))
    if ticks[k] == value:
        return float(k)
    low, high = ticks[k - 1], ticks[k]
    if low > 0:
        return k - 1 + float(np.log(value / low) / np.log(high / low))
    return k - 1 + float((value - low) / (high - low))


def _sentence(
    label: str,
    values: NDArray[np.float64],
    windows: list[int],
    widenings: list[float],
    best: Any,
    star: tuple[float, float] | None,
    *,
    lost: bool,
) -> str:
    what = "the least regret" if lost else "the largest reward per step"
    said = (
        f"{label}: {what}, {_short(values[best])}, is at W = {windows[best[1]]:,} and "
        f"η = {widenings[best[0]]:g} (framed)"
    )
    if star is not None:
        said += f"; Theorem 1 asks for W* = {star[0]:,.0f} and η* = {star[1]:.3g} (star)"
        outside = [
            name
            for name, value, ticks in (("W*", star[0], windows), ("η*", star[1], widenings))
            if not ticks[0] <= value <= ticks[-1]
        ]
        if outside:
            said += f"; {' and '.join(outside)} outside the sweep"
    return said + "."
