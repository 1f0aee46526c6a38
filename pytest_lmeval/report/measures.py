"""What a task file of a harness has besides scores: groups, and metrics that are no shares or better when lower."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_lmeval.leaderboard.board import Leaderboard
from pytest_lmeval.leaderboard.groups import MEASURES, shown
from pytest_lmeval.report.tables import Row


def measure_rows(board: Leaderboard) -> Iterator[Row]:
    """Yield every metric of groups, and of those of tasks that the board's own table cannot show."""
    for name, group in board.groups().items():
        for metric, score in group["metrics"].items():
            yield _row(name, metric, score["value"], score)
    for row in board.tasks:
        for metric, note in row.notes.get(MEASURES, {}).items():
            value = row.metrics.get(shown(metric))
            if not note["higher_is_better"] or value is None or not 0.0 <= value <= 1.0:
                yield _row(row.task, metric, value, note)


def _row(name: str, metric: str, value: float | None, note: Mapping[str, Any]) -> Row:
    arrow = "" if note["higher_is_better"] else " ↓"
    return {"name": name, "metric": f"{shown(metric)}{arrow}", "value": value, "stderr": note["stderr"], "n": note["n"]}
