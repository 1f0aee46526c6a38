"""What a reader without scripts is shown: the verdict and the scores, in plain HTML."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from pytest_lmeval.report.columns import interval_text
from pytest_lmeval.report.gate_text import baseline_line, is_off
from pytest_lmeval.report.tables import score_text
from pytest_lmeval.text import printable

_HEADINGS = ("task", "score", "95 % interval", "correct", "of")


def title_html(board: Mapping[str, Any]) -> str:
    """Return the page's title, escaped, ASCII."""
    return _text(f"{board.get('adapter', '')} - evaluation report")


def summary_html(board: Mapping[str, Any], comparison: Mapping[str, Any] | None = None) -> str:
    """Return headline, reasons, what was compared and a row per task, escaped, ASCII."""
    gate = board.get("gate") or {}
    told = [*gate.get("reasons", ()), *gate.get("warnings", ()), *(comparison or {}).get("coverage", ())]
    told.append(baseline_line(gate))
    reasons = "".join(f"<li>{_text(reason)}</li>" for reason in dict.fromkeys(told) if reason)
    head = "".join(f'<th scope="col">{heading}</th>' for heading in _HEADINGS)
    rows = "".join(map(_row, board.get("tasks", ())))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f"<h1>{_text(_headline(board, gate))}</h1><ul>{reasons}</ul>{table}"


def _headline(board: Mapping[str, Any], gate: Mapping[str, Any]) -> str:
    verdict = gate.get("verdict", "")
    if is_off(gate):
        verdict = "not gated"
    verdict = f"{verdict}: " if verdict else ""
    if not board.get("complete"):
        return f"{verdict}{board.get('adapter', '')}, an incomplete run"
    return f"{verdict}{board.get('adapter', '')}, overall {score_text(board.get('overall_score'))}"


def _row(row: Mapping[str, Any]) -> str:
    correct = "-" if row.get("measured") else row.get("correct", "")
    cells = (score_text(row.get("score")), interval_text(row.get("ci95")), correct, row.get("total", ""))
    return f'<tr><th scope="row">{_text(row["task"])}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def _text(value: object) -> str:
    return escape(printable(str(value), keep="")).encode("ascii", "xmlcharrefreplace").decode("ascii")
