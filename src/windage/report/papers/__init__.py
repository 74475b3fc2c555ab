"""What a paper needs of a study: LaTeX tables, figures at column width, a paragraph, BibTeX."""

from __future__ import annotations

from windage.report.papers.folder import write_paper

__all__ = ["write_paper"]
