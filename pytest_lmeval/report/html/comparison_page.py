"""The page of several models: what their comparison found, and a column for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from pytest_lmeval.compare.decision import why_no_best
from pytest_lmeval.report.comparison_text import headline, order_of, verdict_of
from pytest_lmeval.report.html.columns import Column
from pytest_lmeval.report.html.report import html_text, render_columns
from pytest_lmeval.report.html.shown import ShownExamples
from pytest_lmeval.report.ranking_text import comparison_remarks
from pytest_lmeval.report.tables import interval_text, score_text
from pytest_lmeval.types import ExampleResult

_PAGE = "report.html"
_HEADINGS = ("model", "score", "95 % interval", "scored")


class ShownModel(Protocol):
    """A model of the page: its results with their prompts, what its own page shows, and the folder of its files."""

    @property
    def results(self) -> Sequence[ExampleResult]: ...
    @property
    def shown(self) -> ShownExamples | None: ...
    @property
    def folder(self) -> str: ...
    @property
    def suffix(self) -> str: ...


def render_comparison(comparison: Mapping[str, Any], models: Mapping[str, ShownModel]) -> str:
    """Return the page of ``models``, by label, as the text of one HTML file, all ASCII."""
    columns = _columns(comparison, models)
    overview = {
        # Its examples are in blocks of their own, what it says of each model in the columns.
        "comparison": {name: comparison[name] for name in ("schema", "timestamp", "exit_code")},
        "verdict": headline(comparison),
        "sentence": comparison["decision"],
        "table": comparison["tasks"],
        "remarks": comparison_remarks(comparison),
    }
    title = html_text(f"Comparison: {', '.join(models)}")
    return render_columns(overview, columns, title, _summary(overview, columns))


def _columns(comparison: Mapping[str, Any], models: Mapping[str, ShownModel]) -> list[Column]:
    """Return the columns, those that are ranked first, by rank."""
    known = {model["label"]: model for model in comparison["models"]}
    standings = {each["name"]: each for each in _ranking(comparison).get("standings", ())}
    not_worse = () if why_no_best(comparison) else _ranking(comparison)["not_worse"]
    columns = []
    for place, label in enumerate(order_of(comparison)):
        model, standing = known[label], standings.get(label)
        facts = {
            "label": label,
            "is_best": place == 0 and not why_no_best(comparison),
            "not_worse": label in not_worse,
            "ranked": standing is not None,
            **_verdict(model),
            **_numbers(model, standing),
            "page": _page_of(model, models[label]),
            "suffix": models[label].suffix,
        }
        columns.append(Column(facts, models[label].results, models[label].shown))
    return columns


def _ranking(comparison: Mapping[str, Any]) -> Mapping[str, Any]:
    return comparison["ranking"] or {}


def _verdict(model: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "verdict": verdict_of(model),
        "reasons": model["reasons"],
    }


def _numbers(model: Mapping[str, Any], standing: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return score, difference to the best, and what it took, in the units of the comparison."""
    found = standing or {}
    return {
        "score": found.get("score", model["overall_score"]),
        "ci95": found.get("ci95"),
        "scored": model["counts"]["scored"],
        "difference": found.get("difference"),
        "difference_ci95": found.get("difference_ci95"),
        "p": found.get("p_adjusted"),
        "p95_ms": model["spent"].get("p95_ms"),
        "cost": model["spent"].get("cost"),
        "cost_is_least": "cost_known" in model["spent"],
    }


def _page_of(model: Mapping[str, Any], shown: ShownModel) -> str:
    """Return the address of the model's own page, from this one; "" if it has no page."""
    return f"{quote(model['folder'])}/{_PAGE}" if Path(shown.folder, _PAGE).is_file() else ""


def _summary(overview: Mapping[str, Any], columns: Sequence[Column]) -> str:
    """Return what a reader without scripts is shown, escaped, ASCII."""
    head = "".join(f'<th scope="col">{heading}</th>' for heading in _HEADINGS)
    rows = "".join(_row(column.facts) for column in columns)
    remarks = "".join(f"<li>{html_text(remark)}</li>" for remark in overview["remarks"])
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f"<h1>{html_text(overview['sentence'])}</h1><ul>{remarks}</ul>{table}"


def _row(facts: Mapping[str, Any]) -> str:
    cells = (score_text(facts["score"]), interval_text(facts["ci95"]), facts["scored"])
    return f'<tr><th scope="row">{html_text(facts["label"])}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
