"""The folder for a paper: every file the same bytes each time, whole or not at all.

Figures at the width of a column: shares of the optimal gain, and regret against t.

Regret comes as a matplotlib figure, and as a table of numbers for pgfplots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from windage.atomic_io import write_whole
from windage.report.figures.style import literal, save_figure
from windage.report.latex.tables import (
    bibliography,
    details_text,
    escaped,
    means_table,
    setting_text,
    tests_table,
)
from windage.report.page.chart import shortened
from windage.report.page.data import REWARD, SHARE, AgentRuns, Material, Setting
from windage.report.page.style import THEMES, AgentStyle
from windage.study import stats

__all__ = ["STYLE", "regret_column", "regret_plot", "shares_column", "write_paper"]


def write_paper(
    material: Material,
    folder: str | Path,
    *,
    title: str,
    versions: dict[str, str],
    study_hash: str,
    before: Sequence[dict[str, str]] = (),
) -> list[Path]:
    """Write tables, figures, the paragraph of details, BibTeX, and an example that uses them.

    Parameters
    ----------
    material
        What `make_report` gathered.
    folder
        Where to write; it is made if there is none. Files that are there are replaced.
    title
        Of the example.
    versions, study_hash, before
        What the paragraph of details names: what made the runs, the study, and what made parts of
        it earlier.
    """
    place = Path(folder)
    texts = {
        "means.tex": means_table(material),
        "tests.tex": tests_table(material),
        "details.tex": details_text(material, versions, study_hash, before),
        "references.bib": bibliography(agent.id for agent in material.results.agents),
    }
    written = []
    figures = []
    for number, environment in enumerate(material.results.environments, 1):
        setting = material.results.longest(environment)
        made = {
            f"shares-{number}": shares_column(material, setting),
            f"regret-{number}": regret_column(material, setting),
        }
        for name, figure in made.items():
            for kind in ("pdf", "svg"):
                target = place / f"{name}.{kind}"
                with mpl.rc_context(STYLE):
                    save_figure(figure, target)
                written.append(target)
            figures.append((name, setting_text(setting)))
        data, plot = regret_plot(material, setting, f"regret-{number}")
        texts[f"regret-{number}.dat"], texts[f"regret-{number}-pgf.tex"] = data, plot
    texts["example.tex"] = _example(title, figures)
    for name, text in texts.items():
        written.append(place / name)
        write_whole(place / name, _writer(text), make_folder=True)
    return sorted(written)


def _writer(text: str) -> Callable[[BinaryIO], object]:
    return lambda file: file.write(text.encode())


def _example(title: str, figures: list[tuple[str, str]]) -> str:
    """Return a document that shows all parts: `pdflatex example && bibtex example`."""
    lines = [
        r"\documentclass[twocolumn]{article}",
        r"\usepackage[utf8]{inputenc}",
        r"\usepackage[T1]{fontenc}",
        r"\usepackage{textcomp,booktabs,graphicx,natbib}",
        rf"\title{{{escaped(title)}}}",
        r"\author{}",
        r"\date{}",
        r"\begin{document}",
        r"\maketitle",
        r"\input{details}",
        r"\onecolumn",
        r"\input{means}",
        r"\input{tests}",
        r"\twocolumn",
    ]
    for name, where in figures:
        what = "Share of the optimal gain" if name.startswith("shares") else "Regret against $t$"
        lines += [
            r"\begin{figure}[t]",
            r"\centering",
            rf"\includegraphics[width=\columnwidth]{{{name}.pdf}}",
            rf"\caption{{{what}, {where}.}}",
            r"\end{figure}",
        ]
    lines += [r"\bibliographystyle{plainnat}", r"\bibliography{references}", r"\end{document}"]
    return "\n".join(lines) + "\n"


WIDTH = 3.35  # inches: one of two columns
_ROW = 0.2
_MOST = 24
_NAME = 32
STYLE: Any = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.linewidth": 0.6,
    "pdf.fonttype": 42,  # journals ask for letters that stay letters
    "svg.fonttype": "none",
}
_DASHES: dict[str, Any] = {
    "solid": "-", "10px,3px": (0, (6, 1.5)), "dash": "--", "dot": ":", "dashdot": "-.",
    "longdash": (0, (8, 3)),
}  # fmt: skip
_MARKERS = {
    "circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "cross": "P", "x": "X",
    "triangle-down": "v",
}  # fmt: skip

_PGF_DASHES = {
    "solid": "solid", "10px,3px": "densely dashed", "dash": "dashed", "dot": "dotted",
    "dashdot": "dashdotted", "longdash": "loosely dashed",
}  # fmt: skip


def shares_column(material: Material, setting: Setting) -> Figure:
    """Return means with intervals, one row an agent."""
    comparison = material.comparisons[setting]
    shown = comparison.ranking[:_MOST]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 0.55 + _ROW * len(shown)), layout="constrained")
        panel = figure.subplots()
        for row, one in enumerate(reversed(shown)):
            style = material.styles[one.label]
            score, colour = one.score, _colour(style)
            panel.plot([score.low, score.high], [row, row], color=colour, linewidth=1.4)
            panel.plot(
                [score.estimate], [row], color=colour, markersize=4, linestyle="none",
                marker=_MARKERS[style.marker.removesuffix("-open")],
                fillstyle="none" if style.marker.endswith("-open") else "full",
            )  # fmt: skip
        names = [literal(shortened(one.label, _NAME)) for one in reversed(shown)]
        panel.set_yticks(range(len(shown)), names)
        panel.set_ylim(-0.6, len(shown) - 0.4)
        panel.tick_params(axis="y", length=0)
        panel.grid(axis="x", color="#E4E4E4", linewidth=0.5)
        _bare(panel)
        if comparison.measure is SHARE:
            panel.axvline(100.0, color="#9aa3ad", linewidth=0.7, linestyle=":")
            panel.set_xlabel("share of the optimal gain (%)")
        else:
            panel.set_xlabel("mean reward per step")
    return figure


def regret_column(material: Material, setting: Setting) -> Figure:
    """Return regret against t with its intervals, names in a legend below."""
    lost = material.results.measure(setting) is not REWARD
    cells = material.results.cells(setting)
    column = "cumulative_regret" if lost else "cumulative_reward"
    with mpl.rc_context(STYLE):
        named = sum(material.styles[cell.agent.label].coloured for cell in cells)
        rows = -(-named // 2)
        figure = Figure(figsize=(WIDTH, 2.1 + 0.16 * rows), layout="constrained")
        panel = figure.subplots()
        for cell in cells:
            style = material.styles[cell.agent.label]
            t = np.concatenate([[0], cell.times()])
            found = stats.band(cell.curves(column))
            mean, low, high = (np.concatenate([[0.0], part]) for part in found)
            colour = _colour(style)
            panel.plot(
                t, mean, color=colour, linestyle=_DASHES[style.dash],
                linewidth=1.2 if style.coloured else 0.5, zorder=3 if style.coloured else 2,
                label=literal(shortened(style.label, _NAME)) if style.coloured else None,
            )  # fmt: skip
            if style.coloured:
                panel.fill_between(t, low, high, color=colour, alpha=0.15, linewidth=0)
        panel.set_xlim(0, setting.horizon)
        panel.set_xlabel("time $t$")
        panel.set_ylabel("regret so far" if lost else "reward so far")
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_locator(MaxNLocator(nbins=5))
            axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
        _bare(panel)
        figure.legend(loc="outside lower left", ncols=2, frameon=False, handlelength=2.2)
    return figure


def _bare(panel: Axes) -> None:
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_axisbelow(True)


def _colour(style: AgentStyle) -> str:
    return str(THEMES["light"][style.colour.removeprefix("@")])


def regret_plot(material: Material, setting: Setting, name: str) -> tuple[str, str]:
    """Return the numbers and the picture; the picture reads the numbers from `<name>.dat`."""
    lost = material.results.measure(setting) is not REWARD
    column = "cumulative_regret" if lost else "cumulative_reward"
    cells = [
        cell
        for cell in material.results.cells(setting)
        if material.styles[cell.agent.label].coloured
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
    return data + "\n", _pgf_picture(material, cells, name, setting, lost=lost)


def _pgf_picture(
    material: Material, cells: list[AgentRuns], name: str, setting: Setting, *, lost: bool
) -> str:
    lines = [r"% \usepackage{pgfplots} \usepgfplotslibrary{fillbetween}"]
    for k, cell in enumerate(cells):
        colour = str(THEMES["light"][material.styles[cell.agent.label].colour[1:]])[1:].upper()
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
        dash = _PGF_DASHES[material.styles[cell.agent.label].dash]
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
