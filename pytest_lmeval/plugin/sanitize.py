"""Reports that survive the way to another process.

A report whose text holds a lone surrogate cannot be encoded: under xdist the failure would be lost, and the run green.
"""

from __future__ import annotations

import pytest

__all__ = ["make_encodable"]


def make_encodable(report: pytest.TestReport) -> None:
    """Escape lone surrogates in everything that ``report``, of any test, has from outside."""
    if any(not _encodable(text) for _, text in report.sections):
        report.sections = [(name, _escaped(text)) for name, text in report.sections]
    report.user_properties = [(name, _plain(value)) for name, value in report.user_properties]
    if hasattr(report, "wasxfail"):
        report.wasxfail = _escaped(report.wasxfail)
    if report.longrepr is None:
        return
    if isinstance(report.longrepr, tuple):  # a skip: (path, line, reason)
        path, line, reason = report.longrepr
        report.longrepr = (path, line, _escaped(reason))
    elif not _encodable(text := str(report.longrepr)):
        report.longrepr = _escaped(text)


def _encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _plain(value: object) -> object:
    return _escaped(value) if isinstance(value, str) else value


def _escaped(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
