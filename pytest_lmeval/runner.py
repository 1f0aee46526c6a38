"""The whole path without pytest: tasks and an adapter in, a leaderboard out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pytest_lmeval.adapters.resolve import adapter_name, check_adapter
from pytest_lmeval.engine.batches import plan_batches
from pytest_lmeval.engine.engine import Engine
from pytest_lmeval.engine.evaluate import Judgement, Thresholds, evaluate, failed_result, runs_code
from pytest_lmeval.engine.policy import DEFAULT_BATCH_SIZE, Policy
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.formats.prepare import prepared
from pytest_lmeval.formats.task import Prompt, Task, Tools
from pytest_lmeval.leaderboard.board import Leaderboard, RunFacts, build_board
from pytest_lmeval.leaderboard.rows import TaskInfo, TaskRow, make_row
from pytest_lmeval.registry import Registry, default_registry
from pytest_lmeval.rendering import render
from pytest_lmeval.types import Example, ExampleResult, Request

__all__ = ["aggregated", "evaluate_tasks", "run_leaderboard", "run_task", "timestamp"]


def run_task(
    task: Task, adapter: Any, *, batch_size: int = DEFAULT_BATCH_SIZE, registry: Registry | None = None
) -> TaskRow:
    """Return the row of one task: score, correct, total, latency and, under ``per_example``, every result."""
    results = evaluate_tasks([task], adapter, batch_size=batch_size, registry=registry)
    return make_row(_info(task), results, aggregates=aggregated(_loaded([task]), results)[0].get(task.name, {}))


def run_leaderboard(
    tasks: Sequence[Task], adapter: Any, *, batch_size: int = DEFAULT_BATCH_SIZE, registry: Registry | None = None
) -> Leaderboard:
    """Return the board of ``tasks``; its overall score is the unweighted mean of theirs.

    ``registry`` is the one that the tasks were loaded with, if it was not the default. A batch adapter stays open; an
    async one is closed (``aclose``) with the event loop that it was asked in.
    """
    results = evaluate_tasks(tasks, adapter, batch_size=batch_size, registry=registry)
    aggregates, failures = aggregated(_loaded(tasks), results)
    facts = RunFacts(timestamp=timestamp(), adapter=adapter_name(adapter), finished=not failures)
    return build_board([_info(task) for task in tasks], results, facts, aggregates)


def evaluate_tasks(
    tasks: Sequence[Task],
    adapter: Any,
    *,
    batch_size: int = DEFAULT_BATCH_SIZE,
    registry: Registry | None = None,
    thresholds: Mapping[str, float] | None = None,
    render: Callable[[Example], Prompt] = render,
) -> list[ExampleResult]:
    """Return the result of every example of ``tasks``, in order."""
    name = adapter_name(adapter)
    check_adapter(adapter, name)
    tasks = [prepared(task, adapter) for task in tasks]
    keyed = {(task.name, example.id): (task, example) for task in tasks for example in task.examples}
    check = getattr(adapter, "check_selection", None)
    if callable(check):
        check(list(keyed))
    registry = registry or default_registry()
    sandbox = _sandbox() if any(runs_code(*asked, registry) for asked in keyed.values()) else None
    judgement = Judgement(Thresholds(registry, thresholds or {}), Tools(sandbox), adapter=name)
    prompts = {key: render(example) for key, (_, example) in keyed.items()}

    def requests_of(key: tuple[str, str]) -> Sequence[Request]:
        task, example = keyed[key]
        return task.requests(example, prompts[key])

    engine = Engine(adapter, Policy(batch_size=batch_size))
    ahead = iter(keyed)
    engine.plan(plan_batches(((key[0], key) for key in keyed), batch_size), lambda: next(ahead, None))
    try:
        return [_result(engine, key, keyed[key], prompts[key], requests_of, judgement) for key in keyed]
    finally:
        engine.close()
        if sandbox is not None:
            sandbox.close()


def _result(
    engine: Engine,
    key: tuple[str, str],
    asked: tuple[Task, Example],
    prompt: Prompt,
    requests_of: Callable[[tuple[str, str]], Sequence[Request]],
    judgement: Judgement,
) -> ExampleResult:
    try:
        responses = engine.respond(key, requests_of)
    except AdapterError as error:
        return failed_result(*asked, prompt, error, judgement)
    return evaluate(*asked, prompt, responses, judgement)


def aggregated(
    tasks: Mapping[str, Callable[[], Any]], results: Sequence[ExampleResult]
) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    """Return by name what ``tasks`` with aggregations of their own make of their results, and a line for each failure.

    Each value of ``tasks`` returns the task, and may fail itself.
    """
    found: dict[str, Mapping[str, Any]] = {}
    failures = []
    for name, load in tasks.items():
        try:
            found[name] = load().aggregate([result for result in results if result.task == name])
        except Exception as error:  # a task's own code must not cost the run its board
            failures.append(f"{name}: its aggregation failed: {type(error).__name__}: {error}")
    return found, failures


def _loaded(tasks: Sequence[Any]) -> dict[str, Callable[[], Any]]:
    own = [task for task in tasks if getattr(task, "aggregates", False)]
    return {task.name: partial(_itself, task) for task in own}


def _itself(task: Any) -> Any:
    return task


def timestamp() -> str:
    """Return the time now, RFC 3339, UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _info(task: Task) -> TaskInfo:
    count = len(task.examples)
    return TaskInfo(
        task.name,
        task.path.as_posix(),
        task.sha256,
        task.metric,
        count,
        count,
        random_baseline=getattr(task, "random_baseline", None),
        score_metric=str(getattr(task, "score_metric", "")),
        dataset=dict(getattr(task, "dataset", {})),
    )


def _sandbox() -> Any:
    from pytest_lmeval.sandbox import open_sandbox

    return open_sandbox()
