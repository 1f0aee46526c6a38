"""Format a comparison of models: the decision, one row per model, and a table of scores by task and model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_lmeval.compare.gate import LET_PASS
from pytest_lmeval.report.markdown import COMMENT_BYTES
from pytest_lmeval.report.ranking_text import INTERVAL, comparison_remarks, standing_row
from pytest_lmeval.report.tables import MODELS, Column, Row, cut_to, score_text, table, text_table
from pytest_lmeval.report.terminal_text import WHOLE, Screen, has_interval
from pytest_lmeval.text import escape_markdown

_REASONS = 20
_ACROSS = 8
_TASK, _LABEL, _CELL = 32, 14, 16
"""Widths on a narrow terminal: the task and count columns together, a model's label, and a model's column."""
_OF_RANKED = ("ci95", "win_rate", "difference", "difference_ci95", "p_adjusted")
_BEST = "*: best of its task"


def comparison_table(comparison: Mapping[str, Any], screen: Screen = WHOLE) -> list[str]:
    """Return the lines for a terminal: the decision, one row per model (best first), and scores by task and model."""
    models = screen.table(MODELS, model_rows(comparison))
    lines = [*screen.lines(comparison["decision"]), "", *models, ""]
    for labels in _blocks(order_of(comparison), screen) if _has_tasks(comparison) else ():
        lines += [*screen.table(*_by_task(comparison["tasks"], labels, screen)), ""]
    marked = _has_tasks(comparison) and any(task["best"] for task in comparison["tasks"])
    remarks = [remark for remark in comparison_remarks(comparison) if remark != INTERVAL or has_interval(models)]
    lines += [_BEST] if marked else []
    return [*lines, *(line for remark in remarks for line in screen.lines(remark, screen.most))]


def _by_task(tasks: Sequence[Row], labels: Sequence[str], screen: Screen) -> tuple[Sequence[Column], Sequence[Row]]:
    names = labels if screen.width is None else screen.names(labels, _LABEL)
    shown = [Column(f"{place}", name, "raw") for place, name in enumerate(names)]
    columns = (Column("task", "task"), *shown, Column("n", "n", "raw"))
    keys = [each.name for each in columns]
    cells = [_task_row(task, labels, mark="*") for task in tasks]
    return columns, [dict(zip(keys, row, strict=True)) for row in cells]


def comparison_markdown(comparison: Mapping[str, Any]) -> str:
    """Return the comparison as Markdown."""
    labels, tasks = order_of(comparison), comparison["tasks"]
    lines = [f"# Comparison: {escape_markdown(headline(comparison))}", ""]
    lines += [f"**{escape_markdown(comparison['decision'])}**", ""]
    lines += table(*text_table(MODELS, model_rows(comparison)))
    if _has_tasks(comparison):
        rows = [_task_row(task, labels) for task in tasks]
        best = [
            (row, column)
            for row, task in enumerate(tasks)
            for column, label in enumerate(labels, start=1)
            if label in task["best"]
        ]
        lines += table(("task", *map(escape_markdown, labels), "n"), rows, texts=1, bold=best)
    reasons = [
        f"{model['label']}: {verdict_of(model)}: {reason}"
        for model in comparison["models"]
        for reason in model["reasons"][:_REASONS]
    ]
    lines += [f"- {escape_markdown(remark)}" for remark in (*comparison_remarks(comparison), *reasons)]
    return cut_to("\n".join([*lines, ""]), COMMENT_BYTES)


def headline(comparison: Mapping[str, Any]) -> str:
    """Summarize all models' verdicts, with the labels of models that failed or are inconclusive."""
    verdicts = {model["label"]: verdict_of(model) for model in comparison["models"]}
    failed = [f"{label} ({verdict})" for label, verdict in verdicts.items() if verdict not in (*LET_PASS, _NOT_GATED)]
    if failed:
        return f"failed: {', '.join(failed)}"
    doubtful = [label for label, verdict in verdicts.items() if verdict == "inconclusive"]
    if doubtful:
        return f"passed, but inconclusive: {', '.join(doubtful)}"
    return _NOT_GATED if set(verdicts.values()) <= {_NOT_GATED} else "passed"


_NOT_GATED = "not gated"


def verdict_of(model: Mapping[str, Any]) -> str:
    """Return a model's verdict as text: "incomplete", "not gated" or the gate's verdict."""
    if not model["complete"]:
        return "incomplete"
    return str(model["verdict"]) if model["gated"] else _NOT_GATED


def _has_tasks(comparison: Mapping[str, Any]) -> bool:
    # If there is only one task, the models' rows already contain its scores.
    return len(comparison["tasks"]) > 1


def _blocks(labels: Sequence[str], screen: Screen) -> Iterator[Sequence[str]]:
    across = _ACROSS if screen.width is None else max(1, min(_ACROSS, (screen.width - _TASK) // _CELL))
    for start in range(0, len(labels), across):
        yield labels[start : start + across]


def _task_row(task: Row, labels: Sequence[str], mark: str = "") -> list[str]:
    """Return a task's scores and number of examples; if the number differs between models, it follows each score."""
    held = [task["scores"].get(label, {"score": None}) for label in labels]
    counts = {each["n"] for each in held if each["score"] is not None}
    cells = []
    for label, each in zip(labels, held, strict=True):
        best = mark if label in task["best"] else ""
        of = f" of {each['n']}" if each["score"] is not None and len(counts) > 1 else ""
        cells.append(f"{score_text(each['score'])}{best}{of}")
    return [task["task"], *cells, str(*counts) if len(counts) == 1 else ""]


def order_of(comparison: Mapping[str, Any]) -> list[str]:
    """Return the labels of ranked models, best first, followed by the labels of unranked models."""
    standings = [each["name"] for each in (comparison["ranking"] or {}).get("standings", ())]
    return [*standings, *(model["label"] for model in comparison["models"] if model["label"] not in standings)]


def model_rows(comparison: Mapping[str, Any]) -> list[Row]:
    """Return a table row for each model, in the order of :func:`order_of`."""
    models = {model["label"]: model for model in comparison["models"]}
    standings = {each["name"]: each for each in (comparison["ranking"] or {}).get("standings", ())}
    return [_model_row(models[label], standings.get(label)) for label in order_of(comparison)]


def _model_row(model: Mapping[str, Any], standing: Row | None) -> Row:
    place = {} if standing is None else standing_row(standing)
    took = model["spent"]
    return {
        "label": model["label"],
        "verdict": verdict_of(model),
        "score": place.get("score", model["overall_score"]),
        **{name: place.get(name) for name in _OF_RANKED},
        "scored": model["counts"]["scored"],
        "p95_ms": took.get("p95_ms"),
        "cost": (took["cost"], "cost_known" in took) if took.get("cost") is not None else None,
    }
