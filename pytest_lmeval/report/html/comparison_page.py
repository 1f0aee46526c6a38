"""Render the page of a multi-model run: the comparison, and each example with one column per model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from pytest_lmeval.compact_json import encode
from pytest_lmeval.compare.decision import why_no_best
from pytest_lmeval.leaderboard.details import METRIC
from pytest_lmeval.leaderboard.rows import are_in_data, in_data
from pytest_lmeval.report.comparison_text import headline, model_rows
from pytest_lmeval.report.html.data import (
    MAX_CHARACTERS,
    TAGS,
    ReportData,
    common_start,
    encode_task,
    most_telling,
    short_labels,
)
from pytest_lmeval.report.html.examples import PromptStart, example_fields
from pytest_lmeval.report.html.report import folders_of, html_table, html_text, page_text
from pytest_lmeval.report.ranking_text import comparison_remarks
from pytest_lmeval.report.tables import MODELS, Row, page_columns
from pytest_lmeval.types import ExampleResult

if TYPE_CHECKING:
    from pytest_lmeval.report.comparison import Compared

_PAGE = "report.html"
_OF_THE_QUESTION = (
    *("id", "line", "prompt", "messages", "targets", "category", "tags", "cluster", "metric", "rule", "threshold"),
    *("must_pass", "item", "function"),
)
"""The fields that a row stores once for all columns with the same value."""
_NOTHING = object()
_PASSES = {"passed": True, "failed": False, "below": False}


def render_comparison(comparison: Mapping[str, Any], models: Sequence[Compared], folder: Path | None = None) -> str:
    """Return the page of ``models`` as one ASCII HTML file; if it omits examples, it shows how many.

    Links to files are relative to ``folder``, which defaults to the working directory.
    """
    by_label = {model.label: model for model in models}
    columns = _columns(comparison, by_label)
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
    data = columns_data(overview, [by_label[column["label"]] for column in columns])
    rows = [(row, model.board.facts.manifest) for model in models for row in model.board.tasks]
    folders = {row.task: folders_of(row.path, manifest) for row, manifest in rows}
    title = html_text(f"Comparison: {', '.join(by_label)}")
    return page_text(data, title, _summary(overview), folders, folder)


def _columns(comparison: Mapping[str, Any], models: Mapping[str, Compared]) -> Sequence[Row]:
    known = {model["label"]: model for model in comparison["models"]}
    ranking = comparison["ranking"] or {"standings": (), "not_worse": ()}
    ranked = {each["name"] for each in ranking["standings"]}
    names_best = not why_no_best(comparison)
    rows = model_rows(comparison)
    columns = []
    for place, (row, short) in enumerate(zip(rows, short_labels([row["label"] for row in rows]), strict=True)):
        model, shown = known[row["label"]], models[row["label"]]
        columns.append(
            {
                **row,
                **short,
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
    """Return the address of a model's own page relative to this page, or "" if the model has no page."""
    return f"{quote(model['folder'])}/{_PAGE}" if Path(shown.folder, _PAGE).is_file() else ""


def _summary(overview: Mapping[str, Any]) -> str:
    remarks = "".join(f"<li>{html_text(remark)}</li>" for remark in overview["remarks"])
    table = html_table(MODELS, overview["columns"])
    return f"<h1>{html_text(overview['sentence'])}</h1><ul>{remarks}</ul>{table}"


class _Across(NamedTuple):
    """One example's results in the order of the models; a missing result is None."""

    results: Sequence[ExampleResult | None]
    present: Sequence[ExampleResult]
    differs: bool
    prompts_differ: bool


def columns_data(overview: Mapping[str, Any], columns: Sequence[Compared]) -> ReportData:
    """Return the page's data; ``overview`` describes the models, and ``columns`` has their results.

    If the page cannot hold all examples, drop examples with equal results first. Count the dropped examples of each
    task.
    """
    tasks = _tasks(columns)
    held, starts = [*tasks.values()], [*map(_start, tasks.values())]

    def text_of(number: int, place: int) -> str:
        return _encoded_row(held[number][place], starts[number])

    # If the models' results do not differ, all models have the same status as the first model.
    ranks = [[0 if row.differs else 1 + (row.present[0].outcome.status == "passed") for row in rows] for rows in held]
    # A page more than twice as large as a single model's page opens too slowly.
    chosen = most_telling(ranks, text_of, 2 * MAX_CHARACTERS)
    results = [result for column in columns for result in column.results]
    tags = {*chain.from_iterable(map(TAGS, results))}
    return ReportData(
        {
            **overview,
            "board": {},
            "examples": [*map(_tally, tasks, held, chosen)],
            "picks": {"category": sorted({result.question.category for result in results} - {""}), "tag": sorted(tags)},
        },
        [*map(encode_task, starts, chosen)],
    )


def _tasks(columns: Sequence[Compared]) -> dict[str, list[_Across]]:
    """Return each task's rows in data order, or by id if the data order is unknown."""
    held = [
        {(asked.task, asked.id): result for result in column.results for asked in (result.question,)}
        for column in columns
    ]
    tasks: dict[str, list[_Across]] = {}
    for key in dict.fromkeys(chain.from_iterable(held)):
        tasks.setdefault(key[0], []).append(_across([results.get(key) for results in held]))
    return {task: _in_data(rows) for task, rows in tasks.items()}


def _in_data(rows: list[_Across]) -> list[_Across]:
    firsts = [row.present[0] for row in rows]
    return rows if are_in_data(firsts) else sorted(rows, key=lambda row: in_data(row.present[0]))


def _across(results: Sequence[ExampleResult | None]) -> _Across:
    present = [result for result in results if result is not None]
    differs = len({None if result is None else result.outcome.status for result in results}) > 1 or _scored_apart(
        present
    )
    # Most examples have a result for every model, so one list can serve for both fields.
    return _Across(present if len(present) == len(results) else results, present, differs, _prompts_differ(present))


def _scored_apart(present: Sequence[ExampleResult]) -> bool:
    """Return True if an eval function's metrics differ between models."""
    first = present[0]
    return first.question.metric == METRIC and any(each.outcome.metrics != first.outcome.metrics for each in present)


def _prompts_differ(present: Sequence[ExampleResult]) -> bool:
    """Return True if the models received different prompts; if results lack prompts, compare hashes."""
    hashes = {result.question.hash for result in present}
    # The hash covers the prompt, so equal hashes mean that there is no need to read the texts.
    if len(hashes) == 1 and "" not in hashes:
        return False
    if all(result.prompt for result in present):
        has_roles = all(result.messages for result in present)
        return len({result.messages if has_roles else result.prompt for result in present}) > 1
    return len(hashes) > 1 and len({result.scoring_hash for result in present}) == 1


def _start(rows: Sequence[_Across]) -> PromptStart:
    """Return the common beginning of a task's prompts."""
    # Use one of several equal prompts. But if a task has a single row, use all of them: that row stores the shared
    # prompt.
    same = len(rows) > 1
    return common_start(
        [each for row in rows for each in (row.present[:1] if same and not row.prompts_differ else row.present)]
    )


def _encoded_row(row: _Across, start: PromptStart) -> str:
    fields = [None if result is None else example_fields(result, start) for result in row.results]
    first = next(each for each in fields if each is not None)
    shared = {name: first[name] for name in _OF_THE_QUESTION if name in first}
    own = [None if each is None else _beside(each, shared) for each in fields]
    marks = {name: True for name, is_so in (("prompts_differ", row.prompts_differ), ("differs", row.differs)) if is_so}
    return encode({**shared, **marks, "columns": own})


def _beside(fields: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return a column's fields that differ from the ``shared`` fields; a missing shared field becomes None."""
    own = {name: value for name, value in fields.items() if shared.get(name, _NOTHING) != value}
    return own if shared.keys() <= fields.keys() else {**own, **{name: None for name in shared if name not in fields}}


def _tally(task: str, rows: Sequence[_Across], chosen: Mapping[int, str]) -> dict[str, Any]:
    left = [row.differs for place, row in enumerate(rows) if place not in chosen]
    left_out = {"in which models differ": sum(left), "in which they do not": len(left) - sum(left)}
    return {
        "task": task,
        "total": len(rows),
        "differ": sum(row.differs for row in rows),
        "prompts_differ": sum(row.prompts_differ for row in rows),
        "prompts_known": sum(len(row.present) > 1 for row in rows),
        "left_out": {kind: count for kind, count in left_out.items() if count},
        "columns": _flips(rows),
    }


def _flips(rows: Sequence[_Across]) -> list[dict[str, int]]:
    """For each model, count failed examples, and examples that only this model or only the best model passed."""
    columns = [list(map(_passes, results)) for results in zip(*(row.results for row in rows), strict=True)]
    # The first column is the best model, so compare it with the second model.
    beside = [columns[min(1, len(columns) - 1)], *columns[:1] * (len(columns) - 1)]
    found = []
    for own, other in zip(columns, beside, strict=True):
        pairs = Counter(zip(own, other, strict=True))
        failed = len(own) - own.count(True)
        found.append({"failed": failed, "worse": pairs[False, True], "better": pairs[True, False]})
    return found


def _passes(result: ExampleResult | None) -> bool | None:
    return None if result is None else _PASSES.get(result.outcome.status)
