"""What a board says of a run besides its results: when it began, its tasks, and what they aggregate themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.types import ExampleResult

if TYPE_CHECKING:
    from pytest_lmeval.task import Task


def aggregate(
    infos: Sequence[TaskInfo], results: Sequence[ExampleResult], task_of: Callable[[TaskInfo], Any]
) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    """Return the aggregates by task, and a line for each task whose aggregation failed.

    ``task_of`` returns the task that an info is of: under pytest-xdist the controlling process has collected none.
    """
    found: dict[str, Mapping[str, Any]] = {}
    failures = []
    for info in infos:
        if info.aggregates:
            try:
                own = [result for result in results if result.task == info.name and result.decides]
                found[info.name] = task_of(info).aggregate(own)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a task's own code must not cost the run its board: pytest.skip, sys.exit
                failures.append(f"{info.name}: its aggregation failed: {type(error).__name__}: {error}")
    return found, failures


def info_of(task: Task, path: str | None = None, *, selected: int | None = None) -> TaskInfo:
    """Return what a board says of a task before any example ran; ``path`` is how reports show its file."""
    count = len(task.examples)
    return TaskInfo(
        task.name,
        task.path.as_posix() if path is None else path,
        task.sha256,
        task.metric,
        count,
        count if selected is None else selected,
        random_baseline=task.random_baseline,
        aggregates=task.aggregates,
        score_metric=task.score_metric,
        dataset=dict(task.dataset),
        config=dict(task.config),
        key=task.key,
        display_name=task.display_name,
    )


def timestamp() -> str:
    """Return the time now, RFC 3339, UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
