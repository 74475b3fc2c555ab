"""How likely a run of one agent is to do better than a run of another, for every pair."""

from __future__ import annotations

from typing import Any

from windage.report.page.chart import DIVERGING, FONT, NAME, Chart, Table, View, axis, plot_text
from windage.report.page.data import Material, Scored, Setting, Standings, shared
from windage.study import stats
from windage.study.stats import Interval

__all__ = ["pairwise_chart"]

_MOST = 12  # agents: more cells than 144 nobody reads
_HEAD = 14  # letters that fit above a column
_NAMED = 7  # agents whose names fit above the columns
_CELL, _CELL_NARROW = 44, 32  # pixels


def pairwise_chart(material: Material, setting: Setting) -> Chart | None:
    """Return the probabilities of improvement, if there is a pair with seeds to compare."""
    comparison = material.comparisons[setting]
    ranked = [one for one in comparison.ranking if one.cell.agent.kind != "informed"]
    shown = ranked[:_MOST]
    if len(shown) < 2 or min(one.cell.n for one in shown) < 2:
        return None
    found = _all_pairs(comparison, shown)
    n = len(shown)
    names = [plot_text(f"{place + 1}  {one.label}", NAME) for place, one in enumerate(shown[:-1])]
    numbers = [str(place + 1) for place in range(n)]
    above = [[j > i for j in range(1, n)] for i in range(n - 1)]  # each pair once
    data: list[dict[str, Any]] = [
        {
            "type": "heatmap", "x": numbers[1:], "y": names,
            "z": [
                [round(100 * found[i, j + 1].estimate, 1) if yes else None
                 for j, yes in enumerate(row)]
                for i, row in enumerate(above)
            ],
            "text": [
                [f"{100 * found[i, j + 1].estimate:.0f}" if yes else ""
                 for j, yes in enumerate(row)]
                for i, row in enumerate(above)
            ],
            "customdata": [
                [_says(shown[i], shown[j + 1], found[i, j + 1]) if yes else ""
                 for j, yes in enumerate(row)]
                for i, row in enumerate(above)
            ],
            "texttemplate": "%{text}", "textfont": {"size": FONT},
            "hovertemplate": "%{customdata}<extra></extra>", "hoverongaps": False,
            "colorscale": DIVERGING, "zmin": 0, "zmax": 100, "showscale": False,
            "xgap": 2, "ygap": 2,
        }
    ]  # fmt: skip
    side: dict[str, Any] = {
        "type": "category",
        "showgrid": False,
        "showline": False,
        "fixedrange": True,
    }
    layout = {
        "height": 56 + _CELL * (n - 1),
        "margin": {"l": 8, "r": 8, "t": 48, "b": 8},
        "xaxis": axis("… does better than", side="top", tickmode="array", tickvals=numbers[1:],
                      ticktext=_heads(shown), **side),
        "yaxis": axis(**side, autorange="reversed"),
    }  # fmt: skip
    narrow = {
        "height": 56 + _CELL_NARROW * (n - 1),
        "xaxis": {"ticktext": numbers[1:]},
        "yaxis": {"tickmode": "array", "tickvals": names, "ticktext": numbers[:-1]},
    }
    return Chart(
        id="",
        title="Probability of improvement",
        sentence=_sentence(shown, found, len(ranked) - n),
        views=[View(data, layout, narrow)],
        table=_table(comparison, shown, found),
        key=[material.styles[one.label] for one in shown],
        numbered=True,
    )


def _heads(shown: list[Scored]) -> list[str]:
    """Return what stands above the columns: names where there is room for all of them."""
    names = [f"{place + 2} {one.label}" for place, one in enumerate(shown[1:])]
    if len(shown) > _NAMED or max(map(len, names)) > _HEAD:
        return [str(place + 2) for place in range(len(shown) - 1)]
    return [plot_text(name) for name in names]


def _all_pairs(comparison: Standings, shown: list[Scored]) -> dict[tuple[int, int], Interval]:
    found: dict[tuple[int, int], Interval] = {}
    for i, one in enumerate(shown):
        for j in range(i + 1, len(shown)):
            first, second = shared(one.cell, shown[j].cell, comparison.measure)
            if first.size == 0:  # no seed in common yet
                found[i, j] = found[j, i] = Interval(0.5, 0.0, 1.0)
                continue
            above = stats.improvement({"": first}, {"": second})
            found[i, j] = above
            found[j, i] = Interval(1 - above.estimate, 1 - above.high, 1 - above.low)
    return found


def _says(one: Scored, other: Scored, found: Interval) -> str:
    return (
        f"{plot_text(one.label)}<br>above {plot_text(other.label)}<br>with probability "
        f"{found.estimate:.2f} [{found.low:.2f}, {found.high:.2f}]"
    )


def _sentence(shown: list[Scored], found: dict[tuple[int, int], Interval], left_out: int) -> str:
    sure = sum(found[i, j].low > 0.5 for i in range(len(shown)) for j in range(i + 1, len(shown)))
    pairs = len(shown) * (len(shown) - 1) // 2
    said = (
        "How often, in %, a run of the agent on the left does better than a run of the one above, "
        f"ties counting half: 50 is a coin. In {sure} of {pairs} pairs the interval is above 50."
    )
    if left_out:
        agents = "lowest agent is" if left_out == 1 else f"{left_out} lowest agents are"
        said += f" The {agents} left out."
    return said


def _table(
    comparison: Standings, shown: list[Scored], found: dict[tuple[int, int], Interval]
) -> Table:
    rows = [
        [one.label, shown[j].label, found[i, j].estimate, found[i, j].low, found[i, j].high]
        for i, one in enumerate(shown)
        for j in range(i + 1, len(shown))
    ]
    headers = ["agent", "better than", "probability", "95 % from", "to"]
    return Table(f"Probability of improvement, {comparison.setting.title}", headers, rows)
