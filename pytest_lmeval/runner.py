"""The whole path without pytest: tasks and an adapter in, a leaderboard out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_lmeval.adapters.resolve import adapter_name, check_adapter
from pytest_lmeval.engine.batches import plan_batches
from pytest_lmeval.engine.engine import Engine
from pytest_lmeval.engine.evaluate import Judgement, Thresholds, evaluate, failed_result
from pytest_lmeval.engine.policy import DEFAULT_BATCH_SIZE, Policy
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.formats.task import Prompt, Task, Tools
from pytest_lmeval.leaderboard.board import Leaderboard, RunFacts, build_board
from pytest_lmeval.leaderboard.rows import TaskInfo, TaskRow, make_row
from pytest_lmeval.registry import default_registry
from pytest_lmeval.rendering import render
from pytest_lmeval.types import Example, ExampleResult

__all__ = ["evaluate_task", "run_leaderboard", "run_task", "timestamp"]


def run_task(task: Task, adapter: Any, *, batch_size: int = DEFAULT_BATCH_SIZE) -> TaskRow:
    """Return the row of one task: score, correct, total, latency and, under ``per_example``, every result."""
    return make_row(_info(task), evaluate_task(task, adapter, batch_size=batch_size))


def run_leaderboard(tasks: Sequence[Task], adapter: Any, *, batch_size: int = DEFAULT_BATCH_SIZE) -> Leaderboard:
    """Return the board of ``tasks``; its overall score is the unweighted mean of theirs.

    The adapter stays open: it is its maker's to close.
    """
    check = getattr(adapter, "check_selection", None)
    if callable(check):
        check([(task.name, example.id) for task in tasks for example in task.examples])
    results = [result for task in tasks for result in evaluate_task(task, adapter, batch_size=batch_size)]
    facts = RunFacts(timestamp=timestamp(), adapter=adapter_name(adapter))
    return build_board([_info(task) for task in tasks], results, facts)


def evaluate_task(
    task: Task,
    adapter: Any,
    *,
    batch_size: int = DEFAULT_BATCH_SIZE,
    thresholds: Mapping[str, float] | None = None,
    render: Callable[[Example], Prompt] = render,
) -> list[ExampleResult]:
    """Return the result of every example of ``task``, in order."""
    check_adapter(adapter, adapter_name(adapter))
    judgement = Judgement(
        Thresholds(default_registry(), thresholds or {}), Tools(_sandbox()), adapter=adapter_name(adapter)
    )
    prompts = {index: render(example) for index, example in enumerate(task.examples)}
    engine = Engine(adapter, Policy(batch_size=batch_size))
    ahead = iter(prompts)
    engine.plan(plan_batches(((task.name, index) for index in prompts), batch_size), lambda: next(ahead, None))
    results = []
    try:
        for index, example in enumerate(task.examples):
            try:
                responses = engine.respond(index, lambda key: task.requests(task.examples[key], prompts[key]))
            except AdapterError as error:
                results.append(failed_result(task, example, prompts[index], error, judgement))
            else:
                results.append(evaluate(task, example, prompts[index], responses, judgement))
    finally:
        engine.close()
    return results


def timestamp() -> str:
    """Return the time now, RFC 3339, UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _info(task: Task) -> TaskInfo:
    count = len(task.examples)
    return TaskInfo(task.name, task.path.as_posix(), task.sha256, task.metric, count, count)


def _sandbox() -> Any:
    from pytest_lmeval.sandbox import open_sandbox

    return open_sandbox()
