"""Write a run's scores as a record of Every Eval Ever (https://github.com/evaleval/every_eval_ever)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_lmeval import __version__
from pytest_lmeval.errors import UsageError
from pytest_lmeval.formats.harness.measures import RIGHT_OR_WRONG
from pytest_lmeval.interop.publish import About, epoch_seconds
from pytest_lmeval.leaderboard.groups import MEASURES, shown
from pytest_lmeval.leaderboard.rows import TaskRow
from pytest_lmeval.records.runfile import RunFile, board_of

SCHEMA_VERSION = "0.3.0"
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")


def render(run: RunFile, about: About) -> bytes:
    """Return the record with a result for each metric of each task; raise UsageError for an incomplete run.

    A task's score is a proportion from 0 to 1. If the task reported the metric's own value, with its direction and
    standard error, the result is that value. Unknown bounds are null; an unknown direction means higher is better.
    """
    if not run.complete:
        raise UsageError(f"{run.path}: the run is not complete; only the scores of a complete one are published")
    board = board_of(run)
    results = [result for row in board.tasks for result in _results(row)]
    if not results:
        raise UsageError(f"{run.path}: no task has a score; there is nothing to publish")
    when = str(epoch_seconds(run))
    model = about.model_id or run.adapter
    record = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"pytest-lmeval/{model.replace('/', '_')}/{when}",
        "evaluation_timestamp": run.timestamp,
        "retrieved_timestamp": when,
        "source_metadata": {
            "source_name": "pytest-lmeval",
            "source_type": "evaluation_run",
            "source_organization_name": about.organization or "unknown",
            "evaluator_relationship": about.relationship,
            "additional_details": {"digest": board.digest},
        },
        "eval_library": {"name": "pytest-lmeval", "version": __version__},
        "model_info": {
            "name": run.adapter,
            "id": model,
            "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
        },
        "evaluation_results": results,
    }
    return (json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")


def _results(row: TaskRow) -> Iterator[dict[str, Any]]:
    notes = {shown(name): note for name, note in row.notes.get(MEASURES, {}).items()}
    if row.score is not None and row.metric not in notes:
        yield _result(row, row.metric, row.score, {"stderr": row.stderr, "ci95": row.ci95})
    for name, value in row.metrics.items():
        if value is not None and (name != row.metric or name in notes):
            yield _result(row, name, value, notes.get(name, {}))


def _result(row: TaskRow, metric: str, value: float, note: Mapping[str, Any]) -> dict[str, Any]:
    # A task's own aggregations may return any number.
    is_share = "ci95" in note or metric.partition(",")[0] in RIGHT_OR_WRONG
    low, high = (0.0, 1.0) if is_share else (None, None)
    details = {"path": str(row.dataset.get("path") or row.path), "sha256": str(row.dataset.get("sha256") or row.sha256)}
    return {
        "evaluation_result_id": f"{row.task}/{metric}",
        "evaluation_name": row.task,
        "source_data": {"dataset_name": row.task, "source_type": "other", "additional_details": details},
        "metric_config": {
            "metric_id": metric,
            "metric_name": metric,
            "lower_is_better": not note.get("higher_is_better", True),
            "score_type": "continuous",
            "min_score": low,
            "max_score": high,
        },
        "score_details": {"score": value, "uncertainty": _uncertainty(row, note)},
    }


def _uncertainty(row: TaskRow, note: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"num_samples": note.get("n", row.total - row.errors - row.timeouts - row.excluded)}
    if note.get("stderr") is not None:
        found["standard_error"] = {"value": note["stderr"]}
    if note.get("ci95"):
        lower, upper = note["ci95"]
        found["confidence_interval"] = {"lower": lower, "upper": upper, "confidence_level": 0.95}
    return found
