"""Write a run's report as one self-contained HTML file."""

from __future__ import annotations

from pytest_lmeval.report.html.report import render_report, write_report

__all__ = ["render_report", "write_report"]
