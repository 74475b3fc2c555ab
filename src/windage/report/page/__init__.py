"""The report: one HTML page with a verdict, charts, all numbers and how to make them again."""

from __future__ import annotations

from windage.report.page.report import Report, make_report, write_report

__all__ = ["Report", "make_report", "write_report"]
