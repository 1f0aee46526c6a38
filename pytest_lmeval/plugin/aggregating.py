"""What tasks with aggregations of their own make of all their results, in the process that has heard of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.types import ExampleResult

if TYPE_CHECKING:
    from pytest_lmeval.plugin.state import RunState

__all__ = ["aggregate"]


def aggregate(
    infos: Sequence[TaskInfo], results: Sequence[ExampleResult], run: RunState
) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    """Return the aggregates by task, and a line for each task whose aggregation failed.

    The tasks are loaded anew: under pytest-xdist the controlling process has collected none.
    """
    found: dict[str, Mapping[str, Any]] = {}
    failures = []
    for info in infos:
        if info.aggregates:
            try:
                found[info.name] = _of(info, [result for result in results if result.task == info.name], run)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a task's own code must not cost the run its board: pytest.skip, sys.exit
                failures.append(f"{info.name}: its aggregation failed: {type(error).__name__}: {error}")
    return found, failures


def _of(info: TaskInfo, results: Sequence[ExampleResult], run: RunState) -> Mapping[str, Any]:
    task: Any = run.task_again(info)
    aggregates: Mapping[str, Any] = task.aggregate(results)
    return aggregates
