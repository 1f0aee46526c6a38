"""What is said of tasks that only their aggregations score: no threshold, no pair and, mostly, no score applies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_lmeval.leaderboard.board import Leaderboard
    from pytest_lmeval.leaderboard.rows import TaskRow


def measured_lines(board: Leaderboard) -> list[str]:
    """Return a sentence for every task with measured examples."""
    return [f"{row.task}: {_told(row)}" for row in board.tasks if row.measured]


def floor_without_score(board: Leaderboard, floors: Iterable[str]) -> str:
    """Return why a floor cannot be held, or "", of a board: only the results of some tasks tell that they have none."""
    scored = {row.key: not row.is_unscored for row in board.tasks if row.key}
    return no_score_for_floor(floors, {**scored, **{row.task: not row.is_unscored for row in board.tasks}})


def no_score_for_floor(floors: Iterable[str], scores: Mapping[str, bool]) -> str:
    """Return why a floor cannot be held, or "". ``scores`` tells by task whether it can have a score."""
    name = next((name for name in floors if not scores.get(name, True)), None)
    if name is None:
        return ""
    return (
        f"task {name!r} has no score, so it can have no floor: no field is the score of its examples, and no "
        "score_metric names the metric that is its score"
    )


def ambiguous_floor(floors: Iterable[str], keys: Mapping[str, str]) -> str:
    """Return why a floor has two meanings, or "". ``keys`` has the key of each task by its name, "" without one."""
    for name in floors:
        others = sorted(task for task, key in keys.items() if key == name and task != name)
        if name in keys and others:
            whose = " and ".join(repr(task) for task in others)
            return (
                f"the floor of {name!r} has two meanings: a task is called so, and it is the key of {whose}; name "
                f"{' or '.join(others)}, or rename one of them"
            )
    return ""


def _told(row: TaskRow) -> str:
    name = row.measured["score_metric"]
    score = f"its score is the metric {name!r}" if name else "it has no score and is outside the overall score"
    return (
        f"{row.measured['examples']} example(s) are measured by aggregations only: no threshold applies to them, no "
        f"baseline is compared; {score}"
    )
