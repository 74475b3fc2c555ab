"""How many of the last steps count for a multi-scale learner, through time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windage.report.page.chart import Chart, Table, View, axis, rounded
from windage.report.page.data import AgentRuns, Material, Setting

__all__ = ["forgetting_chart"]

_TIMES = 160
_KINDS = {"rewards": ("@agent-1", "solid"), "transitions": ("@agent-0", "10px,3px")}


def forgetting_chart(material: Material, setting: Setting) -> Chart | None:
    """Return the memory of rewards and of transitions, one view a learner that learns them."""
    cells = [cell for cell in material.results.cells(setting) if cell.has("forgetting_t")]
    if not cells:
        return None
    times = np.unique(np.linspace(1, setting.horizon, _TIMES).round().astype(np.int64))
    views, rows = [], []
    for cell in cells:
        memory = {kind: _memory(cell, kind, times) for kind in _KINDS}
        views.append(_view(cell, times, memory, setting))
        rows += [
            [cell.agent.label, kind, float(many.min(axis=1).mean()), float(many.mean()),
             float(many[:, -1].mean())]
            for kind, many in memory.items()
        ]  # fmt: skip
    headers = ["agent", "of", "shortest (steps)", "mean over time", "at the end"]
    return Chart(
        id="",
        title="Effective memory",
        sentence=_sentence(cells[0], times),
        views=views,
        table=Table(f"Steps that count, means over seeds, {setting.title}", headers, rows),
    )


def _memory(cell: AgentRuns, kind: str, times: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return [run, time] how many of the last steps counted, as last looked at by then."""
    found = []
    for looked, steps in zip(
        cell.frame["forgetting_t"], cell.frame[f"forgetting_{kind}"], strict=True
    ):
        place = np.searchsorted(looked.to_numpy(), times, side="right") - 1
        found.append(steps.to_numpy()[np.maximum(place, 0)])
    return np.array(found, dtype=np.float64)


def _view(
    cell: AgentRuns,
    times: NDArray[np.int64],
    memory: dict[str, NDArray[np.float64]],
    setting: Setting,
) -> View:
    data: list[dict[str, Any]] = [
        {
            "type": "scatter", "mode": "lines", "name": "all so far", "showlegend": True,
            "x": times.tolist(), "y": times.tolist(), "hoverinfo": "skip",
            "line": {"color": "@faint", "dash": "dot", "width": 1.2},
        }
    ]  # fmt: skip
    for kind, (colour, dash) in _KINDS.items():
        many = memory[kind]
        low, high = np.quantile(many, (0.1, 0.9), axis=0)
        if cell.n > 1:
            data.append(
                {
                    "type": "scatter", "mode": "lines", "showlegend": False, "hoverinfo": "skip",
                    "x": [*times.tolist(), *times[::-1].tolist()],
                    "y": [*rounded(high), *rounded(low[::-1])],
                    "fill": "toself", "fillcolor": f"{colour}/0.15", "line": {"width": 0},
                }
            )  # fmt: skip
        data.append(
            {
                "type": "scatter", "mode": "lines", "name": kind, "showlegend": True,
                "x": times.tolist(), "y": rounded(np.median(many, axis=0)),
                "line": {"color": colour, "dash": dash, "width": 2},
                "hovertemplate": f"{kind}, t = %{{x:,}}: %{{y:,.0f}} steps<extra></extra>",
            }
        )  # fmt: skip
    layout: dict[str, Any] = {
        "height": 380,
        "margin": {"l": 66, "r": 20, "t": 34, "b": 52},
        "xaxis": axis("time t (steps)", range=[0, setting.horizon], tickformat=","),
        "yaxis": axis("steps that count", type="log", tickformat=",", dtick=1),
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom"},
        "hovermode": "closest",
    }
    narrow = {"margin": {"l": 56, "r": 6, "t": 34, "b": 52}, "xaxis": {"nticks": 4}}
    return View(data, layout, narrow, cell.agent.label)


def _sentence(cell: AgentRuns, times: NDArray[np.int64]) -> str:
    """Describe the curves, and compare the memory for rewards with that for transitions."""
    rewards, transitions = (
        float(np.median(_memory(cell, kind, times), axis=0).mean()) for kind in _KINDS
    )
    said = (
        "Windows compete in predicting the next step; drawn is how many of the last steps count as "
        "the windows are weighted for the whole environment: the median over seeds"
    )
    said += " and the middle 80 % of them." if cell.n > 1 else "."
    said += (
        f" For {cell.agent.label} {rewards:,.0f} steps count for rewards on average over time, "
        f"{transitions:,.0f} for transitions. Where a line falls, the environment has changed "
        "as far as the learner can see; along the dotted line nothing is forgotten."
    )
    return said
