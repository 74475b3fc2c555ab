"""Regret against t for pgfplots: a table of numbers, and the few lines that draw it."""

from __future__ import annotations

import numpy as np

from windage.report.page.looks import THEMES
from windage.report.page.material import Material
from windage.report.page.results import REWARD, Cell, Setting
from windage.report.papers.latex import escaped
from windage.study import stats

__all__ = ["regret_plot"]

_DASHES = {
    "solid": "solid", "10px,3px": "densely dashed", "dash": "dashed", "dot": "dotted",
    "dashdot": "dashdotted", "longdash": "loosely dashed",
}  # fmt: skip


def regret_plot(material: Material, setting: Setting, name: str) -> tuple[str, str]:
    """Return the numbers and the picture; the picture reads the numbers from `<name>.dat`."""
    lost = material.results.measure(setting) is not REWARD
    column = "cumulative_regret" if lost else "cumulative_reward"
    cells = [
        cell
        for cell in material.results.cells(setting)
        if material.looks[cell.agent.label].coloured
    ]
    times = np.concatenate([[0], cells[0].times()])
    columns = [times.astype(np.float64)]
    heads = ["t"]
    for k, cell in enumerate(cells):
        found = stats.band(cell.curves(column))
        columns += [np.concatenate([[0.0], part]) for part in found]
        heads += [f"mean{k}", f"low{k}", f"high{k}"]
    rows = np.stack(columns, axis=1)
    data = "\n".join([" ".join(heads), *(" ".join(f"{x:.6g}" for x in row) for row in rows)])
    return data + "\n", _picture(material, cells, name, setting, lost=lost)


def _picture(
    material: Material, cells: list[Cell], name: str, setting: Setting, *, lost: bool
) -> str:
    lines = [r"% \usepackage{pgfplots} \usepgfplotslibrary{fillbetween}"]
    for k, cell in enumerate(cells):
        colour = str(THEMES["light"][material.looks[cell.agent.label].colour[1:]])[1:].upper()
        lines.append(rf"\definecolor{{agent{k}}}{{HTML}}{{{colour}}}")
    lines += [
        r"\begin{tikzpicture}",
        r"\begin{axis}[width=\columnwidth, height=0.75\columnwidth, axis lines=left,",
        rf"  xmin=0, xmax={setting.horizon}, xlabel={{time $t$}},",
        rf"  ylabel={{{'regret so far' if lost else 'reward so far'}}}, scaled ticks=false,",
        r"  legend style={at={(0.5,-0.28)}, anchor=north, draw=none, font=\scriptsize},",
        r"  legend columns=2, legend cell align=left]",
    ]
    for k, cell in enumerate(cells):
        dash = _DASHES[material.looks[cell.agent.label].dash]
        table = rf"table[x=t, y={{}}] {{{name}.dat}};"
        for part in ("low", "high"):
            lines.append(
                rf"\addplot[draw=none, forget plot, name path={part}{k}] "
                + table.replace("{}", f"{part}{k}", 1)
            )
        lines += [
            rf"\addplot[agent{k}, opacity=0.15, forget plot] fill between[of=low{k} and high{k}];",
            rf"\addplot[agent{k}, thick, {dash}] " + table.replace("{}", f"mean{k}", 1),
            rf"\addlegendentry{{{escaped(cell.agent.label)}}}",
        ]
    return "\n".join([*lines, r"\end{axis}", r"\end{tikzpicture}", ""])
