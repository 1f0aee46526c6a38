"""The page of several models: what their comparison found, and a column for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pytest_lmeval.compare.decision import why_no_best
from pytest_lmeval.report.comparison_text import headline, model_rows
from pytest_lmeval.report.html.report import html_table, html_text, render_columns
from pytest_lmeval.report.ranking_text import comparison_remarks
from pytest_lmeval.report.tables import MODELS, Row, page_columns

if TYPE_CHECKING:
    from pytest_lmeval.report.comparison import Compared

_PAGE = "report.html"


def render_comparison(comparison: Mapping[str, Any], models: Mapping[str, Compared]) -> str:
    """Return the page of ``models``, by label, as the text of one HTML file, all ASCII."""
    columns = _columns(comparison, models)
    overview = {
        "schema": comparison["schema"],
        "timestamp": comparison["timestamp"],
        "verdict": headline(comparison),
        "sentence": comparison["decision"],
        "columns": columns,
        "models": page_columns(MODELS, columns),
        "table": comparison["tasks"],
        "remarks": comparison_remarks(comparison),
    }
    title = html_text(f"Comparison: {', '.join(models)}")
    return render_columns(overview, [models[column["label"]] for column in columns], title, _summary(overview))


def _columns(comparison: Mapping[str, Any], models: Mapping[str, Compared]) -> Sequence[Row]:
    """Return what the page shows of each model as a whole, those that are ranked first, by rank."""
    known = {model["label"]: model for model in comparison["models"]}
    ranking = comparison["ranking"] or {"standings": (), "not_worse": ()}
    ranked = {each["name"] for each in ranking["standings"]}
    names_best = not why_no_best(comparison)
    columns = []
    for place, row in enumerate(model_rows(comparison)):
        model, shown = known[row["label"]], models[row["label"]]
        columns.append(
            {
                **row,
                "is_best": place == 0 and names_best,
                "not_worse": names_best and row["label"] in ranking["not_worse"],
                "ranked": row["label"] in ranked,
                "reasons": model["reasons"],
                "page": _page_of(model, shown),
                "suffix": shown.suffix,
            }
        )
    return columns


def _page_of(model: Mapping[str, Any], shown: Compared) -> str:
    """Return the address of the model's own page, from this one; "" if it has no page."""
    return f"{quote(model['folder'])}/{_PAGE}" if Path(shown.folder, _PAGE).is_file() else ""


def _summary(overview: Mapping[str, Any]) -> str:
    """Return what a reader without scripts is shown, escaped, ASCII."""
    remarks = "".join(f"<li>{html_text(remark)}</li>" for remark in overview["remarks"])
    table = html_table(MODELS, overview["columns"])
    return f"<h1>{html_text(overview['sentence'])}</h1><ul>{remarks}</ul>{table}"
