"""What a window holds over time: how many samples of each state-action pair."""

from __future__ import annotations

import numpy as np

from windage.report.page.chart import (
    SEQUENTIAL,
    Chart,
    Table,
    View,
    axis,
    colorbar,
    plot_text,
    rounded,
)
from windage.report.page.data import AgentRuns, Material, Setting

__all__ = ["memory_chart"]

_ROW = 19  # pixels
_MOST = 8  # agents: the best ones


def memory_chart(material: Material, setting: Setting) -> Chart | None:
    """Return the contents of windows over time, one view an agent that has a window."""
    cells = [cell for cell in material.results.cells(setting) if cell.has("memory_counts")]
    if not cells:
        return None
    order = [one.label for one in material.comparisons[setting].ranking]
    cells.sort(key=lambda cell: order.index(cell.agent.label))
    views, rows = [], []
    for cell in cells[:_MOST]:
        _, times, counts, names = _contents(cell)
        views.append(_view(cell, times, counts, names, setting))
        rows += [
            [cell.agent.label, name, int(counts[-1, k]), float(counts[:, k].mean()),
             float(100 * (counts[:, k] == 0).mean())]
            for k, name in enumerate(names)
        ]  # fmt: skip
    headers = ["agent", "pair", "samples at the end", "mean", "time without a sample (%)"]
    return Chart(
        id="",
        title="What the window holds",
        sentence=_sentence(cells[0], len(cells) - _MOST),
        views=views,
        table=Table(f"Samples in memory, one run each, {setting.title}", headers, rows),
    )


def _contents(cell: AgentRuns) -> tuple[int, list[int], np.ndarray, list[str]]:
    """Return the first run that kept its contents: its seed, times, counts and pairs."""
    first = cell.frame.filter(cell.frame["memory_counts"].list.len() > 0).row(0, named=True)
    counts = np.array(first["memory_counts"], dtype=np.int64)
    return int(first["seed"]), list(first["memory_t"]), counts, list(first["pair_names"])


def _view(
    cell: AgentRuns, times: list[int], counts: np.ndarray, names: list[str], setting: Setting
) -> View:
    shown = [plot_text(name, 26) for name in names]
    rows = list(range(len(names)))
    depth = np.log10(1.0 + counts)  # one sample is far more than none, 401 are not than 400
    ticks = [0, *(10**k for k in range(8) if 10**k <= counts.max())]
    data = [
        {
            "type": "heatmap", "x": times, "y": rows, "z": [rounded(row) for row in depth.T],
            "colorscale": SEQUENTIAL, "zmin": 0,
            "customdata": counts.T.tolist(),
            "hovertemplate": "%{y}, t = %{x:,}: %{customdata:,} samples<extra></extra>",
            "colorbar": colorbar(
                "samples", tickmode="array", tickvals=rounded(np.log10(1.0 + np.array(ticks))),
                ticktext=[f"{tick:,}" for tick in ticks],
            ),
        }
    ]  # fmt: skip
    layout = {
        "height": 90 + max(200, _ROW * len(names)),
        "margin": {"l": 8, "r": 16, "t": 14, "b": 52},
        "xaxis": axis(
            "time t (steps)", range=[0, setting.horizon], showgrid=False, tickformat=","
        ),
        "yaxis": axis(
            tickmode="array", tickvals=rows, ticktext=shown, range=[len(names) - 0.5, -0.5],
            showgrid=False,
        ),
        "hovermode": "closest",
    }  # fmt: skip
    narrow = {
        "margin": {"l": 8, "r": 4, "t": 14, "b": 52},
        "xaxis": {"nticks": 4},
        "yaxis": {"tickfont": {"size": 10}},
    }
    return View(data, layout, narrow, cell.agent.label)


def _sentence(cell: AgentRuns, left_out: int) -> str:
    seed, _, counts, names = _contents(cell)
    never = counts.sum(axis=0) == 0
    gaps = (counts == 0).mean(axis=0)
    worst = int(np.where(never, -1.0, gaps).argmax())
    said = (
        "Strong colours are pairs the learner knows well at that time, faint ones it guesses: what "
        f"leaves the window is forgotten. Shown is one run (seed {seed})."
    )
    if never.any():
        said += f" {int(never.sum())} of {len(names)} pairs are never in the window when looked at."
    elif gaps[worst] > 0:
        said += f" {names[worst]} is missing {100 * gaps[worst]:.0f} % of the time."
    if left_out > 0:
        agents = "agent below is" if left_out == 1 else f"{left_out} agents below are"
        said += f" The {agents} left out."
    return said
