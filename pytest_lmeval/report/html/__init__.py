"""The run as one HTML file that needs no other file: no network, no fonts, no server."""

from __future__ import annotations

from pytest_lmeval.report.html.report import render_report, write_report

__all__ = ["render_report", "write_report"]
