"""The share of the optimal gain: one row an agent, its seeds, its mean, its interval."""

from __future__ import annotations

from typing import Any

from windage.report.page.chart import FONT, NAME, Chart, Table, View, axis, plot_text, rounded
from windage.report.page.data import SHARE, Material, Setting, Standings
from windage.study import stats

__all__ = ["shares_chart"]

_ROW, _ROW_NARROW = 34, 44  # pixels
_TOP, _BOTTOM = 12, 52
_MOST = 30  # rows that are drawn; the table has them all


def shares_chart(material: Material, setting: Setting) -> Chart:
    """Return what every agent earned of what could be earned."""
    comparison = material.comparisons[setting]
    measure = comparison.measure
    shown = comparison.ranking[:_MOST]
    rows = list(range(len(shown)))[::-1]  # the best on top
    data: list[dict[str, Any]] = []
    for row, one in zip(rows, shown, strict=True):
        style = material.styles[one.label]
        name, values = plot_text(one.label), one.cell.values(measure)
        data.append(
            {
                "type": "scatter", "mode": "markers", "name": name, "legendgroup": one.label,
                "x": rounded(values), "y": [row] * values.size,
                "marker": {"color": style.faded(0.35), "size": 6, "symbol": "line-ns-open",
                           "line": {"width": 1.4, "color": style.faded(0.45)}},
                "customdata": one.cell.seeds.tolist(),
                "hovertemplate": "%{fullData.name}, seed %{customdata}: %{x:.4~r}<extra></extra>",
            }
        )  # fmt: skip
        score = one.score
        between = f" [{score.low:.{measure.digits}f}, {score.high:.{measure.digits}f}]"
        data.append(
            {
                "type": "scatter", "mode": "markers", "name": name, "legendgroup": one.label,
                "x": rounded([score.estimate]), "y": [row],
                "error_x": {
                    "type": "data", "symmetric": False, "thickness": 2.4, "width": 5,
                    "color": style.colour,
                    "array": rounded([score.high - score.estimate]),
                    "arrayminus": rounded([score.estimate - score.low]),
                    "visible": one.cell.n > 1,
                },
                "marker": {"color": style.colour, "size": 10, "symbol": style.marker},
                "hovertemplate": f"%{{fullData.name}}: {_value(comparison, score.estimate)}"
                f"{between if one.cell.n > 1 else ''}<extra></extra>",
            }
        )  # fmt: skip
    names = [plot_text(one.label, NAME) for one in shown]
    numbers = [
        _beside(row, _value(comparison, one.score.estimate))
        for row, one in zip(rows, shown, strict=True)
    ]
    title = "share of the optimal gain (%)" if measure is SHARE else "mean reward per step"
    layout: dict[str, Any] = {
        "height": _TOP + _BOTTOM + _ROW * len(shown),
        "margin": {"l": 8, "r": 66, "t": _TOP, "b": _BOTTOM},
        "xaxis": axis(title, zeroline=False),
        "yaxis": axis(
            tickmode="array", tickvals=rows, ticktext=names, range=[-0.6, len(shown) - 0.4],
            showgrid=True,
        ),
        "annotations": numbers,
        "hovermode": "closest",
    }  # fmt: skip
    if measure is SHARE:
        layout["shapes"] = [_optimum()]
    narrow = {
        "height": _TOP + _BOTTOM + _ROW_NARROW * len(shown),
        "margin": {"l": 8, "r": 68, "t": _TOP, "b": _BOTTOM},
        "xaxis": {"nticks": 5},
        "yaxis": {"showticklabels": False, "range": [-0.5, len(shown) - 0.25]},
        "annotations": [
            *numbers,
            *(_above(row, name) for row, name in zip(rows, names, strict=True)),
        ],
    }
    return Chart(
        id="",
        title="Share of the optimal gain" if measure is SHARE else "Mean reward per step",
        sentence=_sentence(comparison, len(comparison.ranking) - len(shown)),
        views=[View(data, layout, narrow)],
        table=_table(comparison),
    )


def _value(comparison: Standings, value: float) -> str:
    return comparison.measure.text(value)


def _beside(row: int, text: str) -> dict[str, Any]:
    return {
        "x": 1, "xref": "paper", "y": row, "yref": "y", "text": text, "showarrow": False,
        "xanchor": "left", "xshift": 8, "font": {"size": FONT, "color": "@ink"},
    }  # fmt: skip


def _above(row: int, name: str) -> dict[str, Any]:
    return {
        "x": 0, "xref": "paper", "y": row, "yref": "y", "text": name, "showarrow": False,
        "xanchor": "left", "yanchor": "bottom", "yshift": 7,
        "font": {"size": FONT - 1, "color": "@ink"},
    }  # fmt: skip


def _optimum() -> dict[str, Any]:
    return {
        "type": "line", "x0": 100, "x1": 100, "y0": 0, "y1": 1, "xref": "x", "yref": "paper",
        "line": {"color": "@faint", "width": 1, "dash": "dot"},
    }  # fmt: skip


def _sentence(comparison: Standings, left_out: int) -> str:
    said = "Each tick is one seed, the mark their mean"
    said += ", the bar its 95 % interval." if comparison.seeds > 1 else "."
    if comparison.measure is SHARE:
        said += " 100 % is the sum of the optimal gains ρ*, which no learner can know beforehand."
    informed = [one.label for one in comparison.ranking if one.cell.agent.kind == "informed"]
    if informed:
        names = " and ".join(informed[:3])
        what = (
            "is given the model: a yardstick"
            if len(informed) == 1
            else "are given the model: yardsticks"
        )
        said += f" {names} {what}, no learner."
    if left_out:
        lowest = "lowest agent is" if left_out == 1 else f"{left_out} lowest agents are"
        said += f" The {lowest} in the table only."
    return said


def _table(comparison: Standings) -> Table:
    rows = [
        [
            one.label,
            one.cell.n,
            one.score.estimate,
            *((one.score.low, one.score.high) if one.cell.n > 1 else (None, None)),
            stats.iqm(one.cell.values(comparison.measure)),
        ]
        for one in comparison.ranking
    ]
    headers = ["agent", "seeds", "mean", "95 % from", "to", "interquartile mean"]
    return Table(
        f"{comparison.measure.name.capitalize()}, {comparison.setting.title}", headers, rows
    )
