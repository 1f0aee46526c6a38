"""What tasks with aggregations of their own make of all their results, in the process that has heard of all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.runner import aggregated
from pytest_lmeval.types import ExampleResult

if TYPE_CHECKING:
    from pytest_lmeval.plugin.state import RunState

__all__ = ["aggregate", "recorded"]


def aggregate(
    infos: Sequence[TaskInfo], results: Sequence[ExampleResult], run: RunState
) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    """Return the aggregates by task, and a line for each task whose aggregation failed.

    The tasks are loaded anew: under pytest-xdist the controlling process has collected none.
    """
    return aggregated({info.name: partial(run.task_again, info) for info in infos if info.aggregates}, results)


def recorded(aggregates: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the ledger says of the aggregates: nothing where there are none, or they are no JSON."""
    try:
        plain = json.loads(json.dumps(aggregates, default=str, allow_nan=False))
    except ValueError:
        return {}
    return {"aggregates": plain} if plain else {}
