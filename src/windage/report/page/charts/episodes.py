"""Episodes: how long they are, why they end, and what the plans behind them are worth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windage.report.page.chart import NAME, Chart, Table, View, axis, plot_text, rounded, shortened
from windage.report.page.data import AgentRuns, Material, Setting

__all__ = ["episodes_chart", "reasons_chart"]

_TIMES = 160
_MOST_BARS = 12
_PANELS = (
    ("episode_length", "steps in the episode", "log"),
    ("episode_span", "span of the plan", "linear"),
    ("episode_vacuous", "vacuous sets (%)", "linear"),
)
_REASONS = {
    "visits": ("a pair's visits doubled", "@agent-0"),
    "boundary": ("a multiple of W came", "@agent-4"),
    "restart": ("all was forgotten", "@agent-1"),
    "length": ("it outgrew the one before", "@agent-2"),
    "open": ("the run ended", "@faint"),
}


def episodes_chart(material: Material, setting: Setting) -> Chart | None:
    """Return length, span and vacuous share of the episode in force at every t."""
    cells = _with_episodes(material, setting)
    if not cells:
        return None
    times = np.unique(np.linspace(1, setting.horizon, _TIMES).round().astype(np.int64))
    data: list[dict[str, Any]] = []
    rows: list[list[Any]] = []
    for cell in cells:
        style = material.styles[cell.agent.label]
        means = []
        for k, (column, _, _) in enumerate(_PANELS):
            values = _in_force(cell, column, times)
            values = 100 * values if column == "episode_vacuous" else values
            mean = _mean(values)
            means.append(mean)
            data.append(
                {
                    "type": "scatter", "mode": "lines", "name": plot_text(cell.agent.label),
                    "legendgroup": cell.agent.label, "x": times.tolist(), "y": rounded(mean),
                    "yaxis": "y" if k == 0 else f"y{k + 1}",
                    "line": {"color": style.colour, "dash": style.dash, "shape": "hv",
                             "width": 2 if style.coloured else 1},
                    "hovertemplate": "%{fullData.name}<br>t = %{x:,}: %{y:,.4~r}<extra></extra>",
                }
            )  # fmt: skip
        rows.append(
            [cell.agent.label, float(np.mean(cell.column("episodes")))]
            + [_settled(mean) for mean in means]
        )
    layout: dict[str, Any] = {
        "height": 600,
        "margin": {"l": 64, "r": 26, "t": 14, "b": 52},
        "xaxis": axis("time t (steps)", range=[0, setting.horizon], anchor="y3", tickformat=","),
        "hovermode": "closest",
    }
    for k, (column, title, kind) in enumerate(_PANELS):
        more: dict[str, Any] = {"dtick": 1} if kind == "log" else {"rangemode": "tozero"}
        if column == "episode_vacuous":
            more = {"range": [-4, 104]}
        layout["yaxis" if k == 0 else f"yaxis{k + 1}"] = axis(
            title, type=kind, domain=[1 - (k + 1) / 3 + 0.045, 1 - k / 3], **more
        )
    narrow = {
        "margin": {"l": 48, "r": 8, "t": 14, "b": 52},
        "xaxis": {"nticks": 4},
    }
    headers = [
        "agent", "episodes a run", "mean steps", "mean span", "mean vacuous sets (%)",
    ]  # fmt: skip
    return Chart(
        id="",
        title="Episodes",
        sentence=_sentence(rows, cells),
        views=[View(data, layout, narrow)],
        table=Table(
            f"Episodes in force, means over time and seeds, {setting.title}", headers, rows
        ),
        key=[
            material.styles[cell.agent.label]
            for cell in cells
            if material.styles[cell.agent.label].coloured
        ],
    )


def reasons_chart(material: Material, setting: Setting) -> Chart | None:
    """Return why episodes ended, as shares of all episodes of an agent."""
    everyone = _with_episodes(material, setting)
    if not everyone:
        return None
    order = [one.label for one in material.comparisons[setting].ranking]
    everyone.sort(key=lambda cell: order.index(cell.agent.label))
    cells = everyone[:_MOST_BARS]
    counts = [_counts(cell) for cell in cells]
    used = [reason for reason in _REASONS if any(count.get(reason) for count in counts)]
    rows = list(range(len(cells)))[::-1]
    data = [
        {
            "type": "bar", "orientation": "h", "name": _REASONS[reason][0], "legendgroup": reason,
            "y": rows, "x": rounded(100 * count.get(reason, 0) / _total(count) for count in counts),
            "customdata": [count.get(reason, 0) for count in counts],
            "marker": {"color": _REASONS[reason][1], "line": {"width": 1, "color": "@paper"}},
            "hovertemplate": "%{fullData.name}: %{x:.1f} % (%{customdata:,})<extra></extra>",
        }
        for reason in used
    ]  # fmt: skip
    names = [plot_text(cell.agent.label, NAME) for cell in cells]
    layout: dict[str, Any] = {
        "height": 110 + 34 * len(cells),
        "margin": {"l": 8, "r": 14, "t": 40, "b": 52},
        "barmode": "stack",
        "bargap": 0.35,
        "xaxis": axis("share of the episodes (%)", range=[0, 100]),
        "yaxis": axis(tickmode="array", tickvals=rows, ticktext=names, showgrid=False),
        "showlegend": True,
        "legend": {
            "orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "traceorder": "normal",
            "bgcolor": "@paper",
        },
        "hovermode": "closest",
    }  # fmt: skip
    narrow = {
        "height": 150 + 48 * len(cells),
        "margin": {"l": 8, "r": 8, "t": 84, "b": 52},
        "bargap": 0.6,
        "yaxis": {"showticklabels": False, "range": [-0.5, len(cells) - 0.2]},
        "annotations": [
            {
                "x": 0, "xref": "paper", "y": row + 0.2, "yref": "y", "text": name,
                "showarrow": False, "xanchor": "left", "yanchor": "bottom",
                "font": {"size": 12, "color": "@ink"},
            }
            for row, name in zip(rows, names, strict=True)
        ],
    }  # fmt: skip
    table = [
        [cell.agent.label, *(count.get(reason, 0) for reason in used)]
        for cell, count in ((cell, _counts(cell)) for cell in everyone)
    ]
    headers = ["agent", *(_REASONS[reason][0] for reason in used)]
    return Chart(
        id="",
        title="Why episodes end",
        sentence=_why(cells, counts, len(everyone) - len(cells)),
        views=[View(data, layout, narrow)],
        table=Table(f"Episodes by reason, all seeds, {setting.title}", headers, table),
    )


def _with_episodes(material: Material, setting: Setting) -> list[AgentRuns]:
    return [
        cell for cell in material.results.cells(setting, ["learner"]) if cell.has("episode_start")
    ]


def _in_force(cell: AgentRuns, column: str, times: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return a column of the episode that each run is in at some times; NaN before those kept."""
    found = np.full((cell.n, times.size), np.nan)
    for row, (starts, values) in enumerate(
        zip(cell.frame["episode_start"], cell.frame[column], strict=True)
    ):
        if len(starts) == 0:
            continue
        place = np.searchsorted(starts.to_numpy(), times, side="right") - 1
        known = place >= 0
        found[row, known] = values.to_numpy().astype(np.float64)[place[known]]
    return found


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means over runs, of those that are known at a time."""
    known = np.isfinite(values)
    total = np.where(known, values, 0.0).sum(axis=0)
    mean = np.full(values.shape[1], np.nan)
    np.divide(total, known.sum(axis=0), out=mean, where=known.any(axis=0))
    return mean


def _settled(mean: NDArray[np.float64]) -> float | None:
    return float(np.nanmean(mean)) if np.isfinite(mean).any() else None


def _counts(cell: AgentRuns) -> dict[str, int]:
    reasons = cell.frame["episode_reason"].explode().drop_nulls().value_counts()
    return {row["episode_reason"]: int(row["count"]) for row in reasons.iter_rows(named=True)}


def _total(count: dict[str, int]) -> int:
    return max(sum(count.values()), 1)


def _sentence(rows: list[list[Any]], cells: list[AgentRuns]) -> str:
    said = (
        "At every t, the episode that is under way: its length, the span of the plan it plays, and "
        "the share of state-action pairs whose transitions it may imagine at will (vacuous sets)."
    )
    empty = [shortened(row[0], 40) for row in rows if row[4] is not None and row[4] >= 99.95]
    if empty:
        names = ", ".join(empty[:4]) + (" and others" if len(empty) > 4 else "")
        said += (
            f" All sets of {names} are vacuous throughout: nothing learned of transitions counts."
        )
    if any((cell.column("episodes") > cell.frame["episode_start"].list.len().to_numpy()).any()
           for cell in cells):  # fmt: skip
        said += " Of runs with more than 2,000 episodes the last 2,000 are kept."
    return said


def _why(cells: list[AgentRuns], counts: list[dict[str, int]], left_out: int) -> str:
    most = max(range(len(cells)), key=lambda k: float(np.mean(cells[k].column("episodes"))))
    mean = float(np.mean(cells[most].column("episodes")))
    reason = max(counts[most], key=lambda name: counts[most][name])
    said = _REASONS.get(reason, (reason, ""))[0]
    words = (
        f"{cells[most].agent.label} plans most often, {mean:,.0f} times a run; most end because "
    )
    words += f"{said}."
    if left_out:
        agents = "agent below is" if left_out == 1 else f"{left_out} agents below are"
        words += f" The {agents} in the table only."
    return words
