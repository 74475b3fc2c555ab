"""A study for a paper: LaTeX tables, figures at column width, a paragraph of details, BibTeX."""

from __future__ import annotations

from windage.report.latex.export import write_paper

__all__ = ["write_paper"]
