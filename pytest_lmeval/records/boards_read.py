"""Read the facts, tasks and results of a leaderboard file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_lmeval.leaderboard.board import RunFacts
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.records.boardfile import NO_RESULT, NOT_COMPARED
from pytest_lmeval.records.recorded import recorded_facts, recorded_result, recorded_scores
from pytest_lmeval.types import ExampleResult


def facts_from(fields: Mapping[str, Any]) -> RunFacts:
    """Return the facts in a ledger or a leaderboard; raise a ValueError that names the first invalid field."""
    known = recorded_facts(fields)
    if not known.get("finished", True) and not known.get("interruptions"):
        # A file from an older version, or from a run that died, has these reasons only in its gate, or lacks them.
        reasons = [str(reason) for reason in (known.get("gate") or {}).get("reasons", ())]
        others = [reason for reason in reasons if not reason.startswith((NO_RESULT, NOT_COMPARED))]
        known["interruptions"] = others or ["its run was cut short"]
    return RunFacts(**known)


def board_facts(board: Mapping[str, Any]) -> RunFacts:
    """Return a run's facts from the JSON of its leaderboard."""
    counts = board.get("counts")
    if not isinstance(counts, dict) or not all(isinstance(count, int) for count in counts.values()):
        raise ValueError(f"counts: expected an object of counts, got {counts!r:.80}")
    complete = board.get("complete")
    if not isinstance(complete, bool):
        raise ValueError(f"complete: expected true or false, got {complete!r:.80}")
    gate = board["gate"] if isinstance(board.get("gate"), dict) else {}
    settings = gate["settings"] if isinstance(gate.get("settings"), dict) else {}
    derived = {
        "missing": _missing(gate, counts.get("missing", 0)),
        "skipped": counts.get("skipped", 0),
        # The run is complete, so its limit allowed all of its errors.
        "max_errors": counts.get("errors", 0) + counts.get("timeouts", 0) if complete else 0,
        "finished": complete,
        "floors": {row["task"]: row["min_score"] for row in _rows(board) if row.get("min_score") is not None},
        "limits": settings.get("limits", {}),
    }
    return facts_from({**board, **derived})


def board_infos(board: Mapping[str, Any]) -> dict[str, TaskInfo]:
    """Return a leaderboard's tasks by name."""
    left = board.get("selection", {}).get("tasks", {})
    counts = left if isinstance(left, dict) else {}
    infos = {}
    for row in _rows(board):
        count = counts.get(row["task"], {})
        total = row.get("total")
        infos[row["task"]] = TaskInfo(
            row["task"],
            str(row.get("path", "")),
            row.get("sha256"),
            str(row.get("metric", "")),
            count.get("available", total),
            count.get("selected", total),
            config=row.get("config", {}),
            key=str(row.get("key", "")),
            display_name=str(row.get("display_name", "")),
            scores=recorded_scores(row["scores"]) if "scores" in row else {},
            numbered=row.get("numbered") is True,
        )
    return infos


def board_results(board: Mapping[str, Any]) -> tuple[ExampleResult, ...] | None:
    """Return the results in a leaderboard's per-example records, or None if a task with examples lacks records."""
    if any("per_example" not in row and row.get("total") for row in _rows(board)):
        return None
    return tuple(result for row in _rows(board) for result in _results(row, board))


def _results(row: Mapping[str, Any], board: Mapping[str, Any]) -> Iterator[ExampleResult]:
    records = row.get("per_example", [])
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise ValueError(f"tasks: {row['task']}: per_example: expected a list of objects")
    for number, record in enumerate(records):
        try:
            yield recorded_result(_fields(row, record, board))
        except ValueError as error:
            raise ValueError(f"tasks: {row['task']}: per_example[{number}]: {error}") from None


def _fields(row: Mapping[str, Any], record: Mapping[str, Any], board: Mapping[str, Any]) -> dict[str, Any]:
    given = {
        "task": row["task"],
        "metric": row.get("metric", ""),
        "adapter": board.get("adapter", ""),
        "threshold": _threshold(row, record),
        "prompt": "",
        **record,
    }
    for many, one in (("outputs", "output"), ("predictions", "prediction")):
        single = record.get(one)
        given.setdefault(many, [] if single is None else [single])
    return given


def _threshold(row: Mapping[str, Any], record: Mapping[str, Any]) -> Any:
    # If a task's examples have different thresholds, its row has none: choose a threshold that agrees with the status.
    threshold = row.get("threshold")
    implied = record.get("score") if record.get("status") == "passed" else 1.0
    return implied if threshold is None else threshold


def _missing(gate: Mapping[str, Any], count: int) -> list[str]:
    reasons = map(str, gate.get("reasons", []))
    named = [reason.removeprefix(NO_RESULT) for reason in reasons if reason.startswith(NO_RESULT)]
    return (named + ["an example that the board does not name"] * count)[:count]


def _rows(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = board.get("tasks")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"tasks: expected a list of objects, got {rows!r:.80}")
    for number, row in enumerate(rows):
        if not isinstance(row.get("task"), str):
            raise ValueError(f"tasks[{number}].task: expected text, got {row.get('task')!r:.80}")
    return rows
