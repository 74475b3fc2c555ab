"""A study for a paper: LaTeX tables, figures at column width, a paragraph of details, BibTeX.

Every file is the same bytes each time, whole or not at all. Entries of `references.bib` are
separated by empty lines. Above some of them a comment names the fields that are not verified; it
goes where the entry goes.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from windage.atomic_io import write_whole
from windage.report.figures.style import literal, save_figure
from windage.report.page.chart import THEMES, AgentStyle, shortened
from windage.report.page.data import (
    REWARD,
    SHARE,
    AgentRuns,
    Contrast,
    Material,
    Setting,
    Standings,
    settings_of,
    values_of,
)
from windage.study import stats
from windage.study.stats import RESAMPLES

__all__ = [
    "STYLE",
    "bibliography",
    "details_text",
    "escaped",
    "keys_of",
    "means_table",
    "regret_column",
    "regret_plot",
    "setting_text",
    "shares_column",
    "tests_table",
    "write_paper",
]


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


_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
}  # fmt: skip
_GREEK = {"ρ": r"\ensuremath{\rho}", "η": r"\ensuremath{\eta}", "δ": r"\ensuremath{\delta}"}
_STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
_FACTS = {
    "B_r": "$B_r$", "B_p": "$B_p$", "D": "$D$", "l": r"the number of changes $\ell$",
}  # fmt: skip

_SYMBOLS = {"window": "$W$", "widening": r"$\eta$", "delta": r"$\delta$"}


_OF_AGENT: dict[str, tuple[str, ...]] = {
    "swucrl2-cw": ("cheung2020",),
    "swucrl2-cw-practical": ("cheung2020", "windage"),
    "swucrl2": ("cheung2020",),
    "borl": ("cheung2020",),
    "ucrl2": ("jaksch2010",),
    "ucrl2-restarts": ("jaksch2010",),
    "sw-ucrl": ("gajane2018",),
    "va-ucrl": ("ortner2019",),
    "ucrl2b": ("fruit2020",),
    "ucrl3": ("bourel2020",),
    "sw-ucrl3": ("bourel2020",),
    "kl-ucrl": ("filippi2010",),
    "sw-kl-ucrl": ("filippi2010",),
    "psrl": ("osband2013", "ouyang2017"),
    "sw-psrl": ("osband2013", "ouyang2017"),
    "restarted-psrl": ("osband2013", "ouyang2017"),
    "diff-q": ("wan2021",),
    "imed-rl": ("pesquerel2022",),
    "sw-imed-rl": ("pesquerel2022",),
    "master": ("wei2021",),
    "multi-scale": ("windage",),
    "multi-scale-guarded": ("windage",),
    "ucb1": ("auer2002finite",),
    "sw-ucb": ("garivier2011",),
    "d-ucb": ("garivier2011",),
    "rexp3": ("besbes2014",),
    "exp3-s": ("auer2002nonstochastic",),
    "bob": ("cheung2022",),
}
_ALWAYS = ("cheung2020", "windage")  # dynamic regret, and what computed it


def escaped(text: str) -> str:
    r"""Return a label as LaTeX prints it letter by letter; what no font has is named by its code.

    >>> print(escaped("W=50% & more_"))
    W=50\% \& more\_
    """
    parts = []
    for character in " ".join(text.split()):
        if character in _SPECIAL or character in _GREEK:
            parts.append(_SPECIAL.get(character) or _GREEK[character])
        elif ord(character) < 128:
            parts.append(character if character.isprintable() else "")
        elif unicodedata.category(character)[0] in "LN" and ord(character) < 0x250:
            parts.append(character)  # letters of Latin scripts
        elif character in "–—‘’“”…":
            parts.append({"–": "--", "—": "---", "…": r"\dots{}"}.get(character, character))
        else:
            parts.append(rf"\texttt{{U+{ord(character):04X}}}")
    return "".join(parts)


def means_table(material: Material) -> str:
    """Return the table of means: one row an agent, one column an environment."""
    judged = material.judged
    agents = [*(agent.label for agent in material.results.agents), *material.nowhere]
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{_means_caption(material)}}}",
        r"\label{tab:means}",
        r"\begin{tabular}{l" + "r@{\\hspace{0.6em}}l" * len(judged) + "}",
        r"\toprule",
        " & ".join(
            ["agent", *(rf"\multicolumn{{2}}{{c}}{{{_environment(c)}}}" for c in judged)]
        ) + r" \\",
        r"\midrule",
    ]  # fmt: skip
    for agent in agents:
        cells = [_mean_cell(comparison, agent) for comparison in judged]
        lines.append(" & ".join([escaped(agent), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def tests_table(material: Material) -> str:
    """Return the table of paired tests: the planned ones, or the best learner less every other."""
    plan = material.asked.plan
    head, whose = "difference", "Planned paired differences"
    if not plan:
        head = r"the best less \dots"
        whose = "Paired differences between the best learner of each environment and the others"
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{whose}, in points of the optimal gain where an oracle is known and in reward "
        r"per step elsewhere: mean, 95\,\% bootstrap interval over seeds, $n$ paired seeds, and "
        rf"$p$-value. The $p$-values are those of two-sided {_rule(material)}.}}",
        r"\label{tab:tests}",
        r"\begin{tabular}{lrlrr}",
        r"\toprule",
        rf"{head} & mean & 95\,\% interval & $n$ & $p$ \\",
        r"\midrule",
    ]
    for place, comparison in enumerate(material.judged):
        if place:
            lines.append(r"\addlinespace")
        best = escaped(comparison.learners[0].label) if comparison.learners else "no learner"
        end = "" if plan else f": {best}"
        lines.append(rf"\multicolumn{{5}}{{l}}{{\emph{{{_environment(comparison)}}}{end}}} \\")
        lines += [_test_row(comparison, contrast) for contrast in comparison.contrasts]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def details_text(
    material: Material,
    versions: dict[str, str],
    study_hash: str,
    before: Sequence[dict[str, str]] = (),
) -> str:
    """Return the paragraph "Experimental details"; `before` are versions that ran parts earlier."""
    results = material.results
    environments = "; ".join(
        rf"{escaped(s.environment)} (\texttt{{{escaped(s.environment_id)}}}, "
        rf"$T = {_number(s.horizon)}$)"
        for s in results.settings
    )
    counts = sorted({cell.n for s in results.settings for cell in results.cells(s)})
    seeds = counts[-1]
    ran = f"{counts[0]} to {seeds} seeds" if counts[0] < seeds else _count(seeds, "seed")
    sentences = [
        rf"\paragraph{{Experimental details.}} We ran "
        rf"{_count(len(results.agents) + len(material.nowhere), 'agent')} "
        rf"on {_count(len(results.environments), 'environment')}: {environments}.",
        f"Each agent ran on {ran}; agents on one seed meet the same noise, so "
        "differences are paired by seed.",
        *_missing_sentences(material),
        *_agent_sentences(material),
        r"Performance is the expected reward of the path as a share of $\sum_t \rho^*_t$, the sum "
        r"of the certified optimal average rewards of the model of every $t$; regret is the "
        r"difference of the two.",
        *_statistics(seeds, material),
        _software(versions, before),
        rf"The hash of the study is {_code(study_hash)}.",
    ]
    return "\n".join(sentences) + "\n"


def _rule(material: Material) -> str:
    """Return how p-values are made; a baseline may be named in it."""
    return escaped(material.asked.plan.rule)


def _missing_sentences(material: Material) -> list[str]:
    """Return which runs are not in, and which agents failed or have none in a setting."""
    done, wanted = material.results.frame.height, len(material.asked.runs)
    if done >= wanted:
        return []
    sentences = [f"{_number(done)} of {_number(wanted)} runs have finished."]
    for agent in material.nowhere:
        what = "failed on every seed" if material.has_failed(agent) else "has no finished run"
        sentences.append(rf"\emph{{{escaped(agent)}}} {what}.")
    for (environment, horizon), agents in material.missing.items():
        for agent in (one for one in agents if one not in material.nowhere):
            failed = material.has_failed(agent, environment, horizon)
            what = "failed on every seed of" if failed else "has no finished run on"
            where = rf"{escaped(environment)}, $T = {_number(horizon)}$"
            sentences.append(rf"\emph{{{escaped(agent)}}} {what} {where}.")
    return sentences


def _statistics(seeds: int, material: Material) -> list[str]:
    """Return how intervals and tests were made, where there are any."""
    if seeds < 2:
        return ["With one seed there are no intervals and no tests."]
    return [
        r"Intervals are 95\,\% percentile bootstrap intervals over seeds "
        rf"({_number(RESAMPLES)} resamples); $p$-values are those of two-sided {_rule(material)}.",
        *(
            rf"\emph{{{escaped(label)}}} is the best of {n} settings of \texttt{{{escaped(id)}}} "
            f"on {escaped(', '.join(where))}, picked on the seeds it is shown on."
            for (label, id, n), where in material.best_of().items()  # noqa: A001
        ),
    ]


def _software(versions: dict[str, str], before: Sequence[dict[str, str]]) -> str:
    """Return what made the runs; parts may be older."""
    whole = rf"{_made_with(versions, cite=True)}."
    if not before:
        return f"All runs were made with {whole}"
    older = "; ".join(_made_with(one, cite=False) for one in before)
    return f"Runs were made with {whole} Parts of the study were made earlier, with {older}."


def _made_with(versions: dict[str, str], *, cite: bool) -> str:
    source = r" \citep{windage}" if cite else ""
    commit = versions.get("commit", "")
    at = f" (commit {_code(commit)})" if commit else ""
    return (
        rf"windage {escaped(versions.get('windage', ''))}{at}{source} on Python "
        rf"{escaped(versions.get('python', ''))} and NumPy {escaped(versions.get('numpy', ''))}"
    )


def _agent_sentences(material: Material) -> list[str]:
    """Return the id, source, settings and given facts of each agent."""
    found = []
    for agent in material.results.agents:
        cells = material.results.cells_of(agent.label)
        cited = keys_of(agent.id)
        source = rf" \citep{{{','.join(cited)}}}" if cited else ""
        parts = [rf"\texttt{{{escaped(agent.id)}}}{source}"]
        for name in ("radii", "ties"):
            texts = values_of(cells, name)
            if texts:
                parts.append(f"{name} {escaped(', '.join(texts))}")
        for name, symbol in _SYMBOLS.items():
            values = sorted(values_of(cells, name))
            if values:
                parts.append(f"{symbol} = {_range(values)}")
        if others := settings_of(cells):
            name = "parameters" if agent.own else "variant"
            parts.append(f"{name}: {escaped(' or '.join(others))}")
        if agent.label in material.tuned:
            parts.append(f"picked in each environment: {escaped(material.tuned[agent.label])}")
        told = " and ".join(_FACTS.get(fact, escaped(fact)) for fact in agent.told)
        parts.append(f"given {told}" if told else "given nothing of the drift")
        found.append(rf"\emph{{{escaped(agent.label)}}} is {'; '.join(parts)}.")
    return found


def _means_caption(material: Material) -> str:
    judged = material.judged
    shares = all(c.measure is SHARE for c in judged)
    what = (
        r"Share of the optimal gain, in \%" if shares
        else r"Share of the optimal gain in \%, or mean reward per step where no oracle is known"
    )  # fmt: skip
    seeds = sorted({one.cell.n for c in judged for one in c.ranking})
    n = str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    if material.nowhere or any(len(c.ranking) < len(material.results.agents) for c in judged):
        what += " (--: no finished run)"
    if seeds[-1] < 2:
        return rf"{what}: one run each, so no intervals and no tests. Bold: the best learner."
    told = rf"{what}: mean over $n = {n}$ seeds and 95\,\% bootstrap interval."
    tested = [c for c in judged if c.contrasts]
    if not tested or material.asked.plan:
        return f"{told} Bold: the best learner."
    undecided = [c for c in tested if not c.decidable]
    if len(undecided) == len(tested):
        return rf"{told} Bold: the best learner; the seeds are too few for any test."
    bold = "Bold: the best learner and those no test tells from it"
    if undecided:
        names = ", ".join(escaped(c.setting.environment) for c in undecided)
        bold += f" (only the best on {names}, where the seeds are too few for any test)"
    return (
        rf"{told} {bold}. Stars: the best learner is better, by {_rule(material)} "
        r"($^{*}$ $p < 0.05$, $^{**}$ $p < 0.01$, $^{***}$ $p < 0.001$)."
    )


def _mean_cell(comparison: Standings, label: str) -> str:
    found = next((one for one in comparison.ranking if one.label == label), None)
    if found is None:
        return "-- &"
    digits = comparison.measure.digits
    text = f"{found.score.estimate:.{digits}f}"
    contrast = next((c for c in comparison.contrasts if c.other.label == label), None)
    best = bool(comparison.learners) and comparison.learners[0].label == label
    if comparison.plan:
        contrast = None  # its tests have a table of their own
    tied = contrast is not None and not contrast.significant
    if found.cell.agent.kind == "learner" and (best or (tied and comparison.decidable)):
        text = rf"\textbf{{{text}}}"
    stars = _stars(contrast) if comparison.decidable else ""
    between = f"[{found.score.low:.{digits}f}, {found.score.high:.{digits}f}]"
    return f"{text}{stars} & {between if found.cell.n > 1 else ''}"


def _stars(contrast: Contrast | None) -> str:
    if contrast is None or contrast.found.difference.estimate <= 0:
        return ""
    return next((f"$^{{{s}}}$" for p, s in _STARS if contrast.corrected < p), "")


def _test_row(comparison: Standings, contrast: Contrast) -> str:
    found, digits = contrast.found, comparison.measure.digits
    d = found.difference
    lead = f"{escaped(contrast.better.label)} less " if comparison.plan else ""
    between = f"[${d.low:.{digits}f}$, ${d.high:.{digits}f}$]"
    p = "$< 0.001$" if contrast.corrected < 0.001 else f"${contrast.corrected:.3f}$"
    cells = [
        rf"\quad {lead}{escaped(contrast.other.label)}",
        f"${d.estimate:+.{digits}f}$",
        *((between, str(found.n), p) if found.n > 1 else ("--", "1", "--")),
    ]
    return " & ".join(cells) + r" \\"


def _environment(comparison: Standings) -> str:
    return setting_text(comparison.setting)


def setting_text(setting: Setting) -> str:
    """Return an environment and its horizon."""
    return rf"{escaped(setting.environment)}, $T = {_number(setting.horizon)}$"


def _code(text: str) -> str:
    r"""Return a hash in pieces, between which a line may end.

    >>> print(_code("0123456789abcdef"))
    \texttt{01234567\allowbreak{}89abcdef}
    """
    pieces = r"\allowbreak{}".join(escaped(text[k : k + 8]) for k in range(0, len(text), 8))
    return rf"\texttt{{{pieces}}}"


def _range(values: Sequence[float]) -> str:
    texts = [_number(v) if isinstance(v, int) else f"{v:.3g}" for v in values]
    return texts[0] if len(texts) == 1 else f"{texts[0]} to {texts[-1]}"


def _number(value: int) -> str:
    return f"{value:,}".replace(",", "{,}")


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def keys_of(agent_id: str) -> tuple[str, ...]:
    """Return the keys to cite for an agent; nothing for yardsticks and agents of one's own.

    >>> keys_of("borl"), keys_of("random")
    (('cheung2020',), ())
    """
    return _OF_AGENT.get(agent_id, ())


def bibliography(agent_ids: Iterable[str]) -> str:
    """Return the BibTeX file of the agents, every entry once, sorted."""
    wanted = set(_ALWAYS).union(*(keys_of(agent) for agent in agent_ids))
    entries = _entries()
    return "\n\n".join(entries[key] for key in sorted(wanted)) + "\n"


@functools.cache
def _entries() -> dict[str, str]:
    """Return all entries by their keys."""
    text = (files("windage.report") / "references.bib").read_text("utf-8")
    entries = text.strip().split("\n\n")
    return {re.findall(r"^@\w+\{(\w+),", entry, re.MULTILINE)[0]: entry for entry in entries}
