"""The page of several models: what their comparison found, and a column for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from pytest_lmeval.compare.decision import why_no_best
from pytest_lmeval.report.comparison_text import headline, model_rows
from pytest_lmeval.report.html.columns import ModelColumn
from pytest_lmeval.report.html.report import html_table, html_text, render_columns
from pytest_lmeval.report.html.shown import ShownExamples
from pytest_lmeval.report.ranking_text import comparison_remarks
from pytest_lmeval.report.tables import MODELS, page_columns
from pytest_lmeval.types import ExampleResult

_PAGE = "report.html"


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
        "models": page_columns(MODELS, [column.facts for column in columns]),
        "table": comparison["tasks"],
        "remarks": comparison_remarks(comparison),
    }
    title = html_text(f"Comparison: {', '.join(models)}")
    return render_columns(overview, columns, title, _summary(overview, columns))


def _columns(comparison: Mapping[str, Any], models: Mapping[str, ShownModel]) -> list[ModelColumn]:
    """Return the columns, those that are ranked first, by rank."""
    known = {model["label"]: model for model in comparison["models"]}
    ranking = comparison["ranking"] or {"standings": (), "not_worse": ()}
    ranked = {each["name"] for each in ranking["standings"]}
    names_best = not why_no_best(comparison)
    columns = []
    for place, row in enumerate(model_rows(comparison)):
        model, shown = known[row["label"]], models[row["label"]]
        facts = {
            **row,
            "is_best": place == 0 and names_best,
            "not_worse": names_best and row["label"] in ranking["not_worse"],
            "ranked": row["label"] in ranked,
            "reasons": model["reasons"],
            "page": _page_of(model, shown),
            "suffix": shown.suffix,
        }
        columns.append(ModelColumn(facts, shown.results, shown.shown))
    return columns


def _page_of(model: Mapping[str, Any], shown: ShownModel) -> str:
    """Return the address of the model's own page, from this one; "" if it has no page."""
    return f"{quote(model['folder'])}/{_PAGE}" if Path(shown.folder, _PAGE).is_file() else ""


def _summary(overview: Mapping[str, Any], columns: Sequence[ModelColumn]) -> str:
    """Return what a reader without scripts is shown, escaped, ASCII."""
    remarks = "".join(f"<li>{html_text(remark)}</li>" for remark in overview["remarks"])
    table = html_table(MODELS, [column.facts for column in columns])
    return f"<h1>{html_text(overview['sentence'])}</h1><ul>{remarks}</ul>{table}"
