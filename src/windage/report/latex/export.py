"""The folder for a paper: every file the same bytes each time, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import matplotlib as mpl

from windage.atomic_io import write_whole
from windage.report.figures.style import save_figure
from windage.report.latex.figures import STYLE, regret_column, regret_plot, shares_column
from windage.report.latex.tables import (
    bibliography,
    details_text,
    escaped,
    means_table,
    setting_text,
    tests_table,
)
from windage.report.page.data import Material

__all__ = ["write_paper"]


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
