"""What tasks with aggregations of their own make of all their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.types import ExampleResult

__all__ = ["aggregate"]


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
                own = [result for result in results if result.task == info.name]
                found[info.name] = task_of(info).aggregate(own)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a task's own code must not cost the run its board: pytest.skip, sys.exit
                failures.append(f"{info.name}: its aggregation failed: {type(error).__name__}: {error}")
    return found, failures
