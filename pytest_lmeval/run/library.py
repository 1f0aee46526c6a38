"""Run tasks without pytest, and return a leaderboard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pytest_lmeval.adapters.facts import adapter_name, check_adapter, member, scrubber_of_objects
from pytest_lmeval.adapters.resolve import made_with, resolve_adapter
from pytest_lmeval.errors import UnknownName, UsageError
from pytest_lmeval.leaderboard.board import Leaderboard, RunFacts, aggregate, build_board, info_of
from pytest_lmeval.leaderboard.quarantine import Quarantine, quarantined
from pytest_lmeval.leaderboard.rows import TaskRow
from pytest_lmeval.loading import default_registry
from pytest_lmeval.records.runfile import RunFile, examples_of
from pytest_lmeval.redaction import redact
from pytest_lmeval.registry import Registry
from pytest_lmeval.run.plan import check_left, check_repeats
from pytest_lmeval.run.run import Run
from pytest_lmeval.run.settings import RunSettings, timestamp, today
from pytest_lmeval.task import ExamplesOfTask, Prompt, Task, complete, name_fault, render
from pytest_lmeval.types import Example, ExampleResult

_DEFAULT = RunSettings()


@dataclass(slots=True, eq=False)
class ExampleUnit:
    """An example to run, and its task."""

    task: Task
    example: Example


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The outcome of a run: results in order, the model's name, and facts for the leaderboard."""

    results: list[ExampleResult]
    adapter: str
    unasked: list[str]
    manifest: Mapping[str, Any]
    reasons: Sequence[str]


def run_task(task: Any, adapter: Any, **options: Any) -> TaskRow:
    """Run one task and return its leaderboard row; the options are those of :func:`run_leaderboard`.

    The row has the score, the numbers of correct and total examples, the latency, and all results in ``per_example``.
    """
    (row,) = run_leaderboard([task], adapter, **options).tasks
    return row


def run_leaderboard(  # noqa: PLR0913  # keyword-only options, like those of the command line
    tasks: Sequence[Any] | Mapping[str, Any],
    adapter: Any,
    *,
    batch_size: int = _DEFAULT.batch_size,
    registry: Registry | None = None,
    judge: Any = None,
    repeats: int = 1,
    timeout: float = _DEFAULT.timeout_s,
    thresholds: Mapping[str, float] | None = None,
    sandbox: str = _DEFAULT.sandbox,
    gate: str = _DEFAULT.gate,
    think_tags: tuple[str, str] | None = _DEFAULT.think_tags,
    baseline: RunFile | None = None,
) -> Leaderboard:
    """Run ``tasks`` and return the leaderboard; its overall score is the unweighted mean of the tasks' scores.

    A task is a :class:`~pytest_lmeval.Task`, any object with its required members, or a list of examples from
    :func:`~pytest_lmeval.load_all_tasks`. ``tasks`` may also be the whole result of that function. ``registry`` is the
    registry that loaded the tasks, unless the default registry loaded them. ``judge`` is the adapter that judges
    answers. ``repeats`` is the number of responses per example, ``timeout`` is the number of seconds for one request,
    and ``sandbox`` is the level at which programs run. ``thresholds`` maps tasks or metrics to values in [0, 1].
    ``gate`` is the mode for :func:`decide`: in every mode except ``examples``, the status of an example under its
    threshold is ``below``. ``think_tags`` enclose the thoughts at the beginning of a model's text; None leaves text
    unchanged. ``baseline`` is the run whose quarantine applies; without a baseline, the examples' own quarantine
    applies. Results hide adapter and judge attributes whose names suggest secrets, such as ``api_key``. The function
    does not close a batch adapter, but it closes an async adapter (``aclose``) with its event loop. A task with an
    unmet need, such as a missing package, gets no requests, and the leaderboard is then incomplete. Raises UsageError
    if every task has an unmet need, if there are no tasks, if tasks share a name, if the adapter has no answering
    method, or if an option is out of range.
    """
    if not tasks:
        raise UsageError("no tasks: a run of nothing has no score")
    given = tasks.values() if isinstance(tasks, Mapping) else tasks
    tasks = [each.task if isinstance(each, ExamplesOfTask) else each for each in given]
    if any(isinstance(each, list) for each in tasks):
        raise UsageError("expected a task, or the list of its examples from load_all_tasks; got another list")
    known = registry or default_registry()
    names = {task.name for task in tasks}
    for name in thresholds or ():
        if name not in names and name not in known.metrics:
            raise UnknownName("task or metric in thresholds", name, [*names, *known.metrics])
    settings = RunSettings(
        batch_size=batch_size,
        repeats=repeats,
        timeout_s=timeout,
        thresholds=thresholds or {},
        sandbox=sandbox,
        gate=gate,
        think_tags=think_tags,
        quarantine=Quarantine(today(), None if baseline is None else quarantined(examples_of(baseline))),
    )
    whole = [complete(task) for task in tasks]
    found = run_tasks(whole, adapter, settings, registry=known, judge=judge)
    infos = [info_of(task) for task in whole]
    task_of = {task.name: task for task in whole}
    aggregates, failures = aggregate(infos, found.results, lambda info: task_of[info.name])
    reasons = [*found.reasons, *failures]
    address = {}
    if url := member(adapter, "base_url"):
        address = {"base_url": redact(url), "base_url_from": made_with(adapter).named_by or "the adapter"}
    facts = RunFacts(
        timestamp=timestamp(),
        adapter=found.adapter,
        missing=found.unasked,
        manifest={"repeats": repeats, **address, **found.manifest},
        finished=not reasons,
        interruptions=reasons,
        mode=gate,
    )
    return build_board(infos, found.results, facts, aggregates)


def run_tasks(
    tasks: Sequence[Task],
    adapter: Any,
    settings: RunSettings = _DEFAULT,
    *,
    registry: Registry | None = None,
    judge: Any = None,
    render: Callable[[Example], Prompt] = render,
) -> RunOutcome:
    """Run ``tasks`` and return the outcome; ``settings`` holds the other options of :func:`run_leaderboard`."""
    check_adapter(adapter, adapter_name(adapter))
    _check_names(tasks)
    known = registry or default_registry()
    settings = replace(settings, scrubber=settings.scrubber or scrubber_of_objects(adapter, judge))
    run = Run(settings, known, lambda spec: resolve_adapter(spec, known, {}, Path.cwd()))
    units = [ExampleUnit(task, example) for task in tasks for example in task.examples]
    check_repeats(units, settings.repeats if settings.repeats > 1 else None)
    with ExitStack() as stack:
        stack.callback(run.close)
        plan = run.plan(units, adapter, judge)
        check_left(plan)
        sandbox = stack.enter_context(run.sandbox(plan))
        following = iter(units)
        answers = run.ask(plan, adapter, partial(next, following, None), judge=judge)
        results: list[ExampleResult] = []
        reason = ""
        for unit in units:
            results.append(run.score(unit, answers, render, judge, sandbox))
            if reason := run.stopped:
                break
    unasked = [f"{unit.task.path}::{unit.example.id}" for unit in units[len(results) :]]
    reasons = [*plan.lacking.values(), *([reason] if reason else [])]
    return RunOutcome(results, run.model.name, unasked, run.facts(), reasons)


def _check_names(tasks: Sequence[Task]) -> None:
    taken: dict[str, Task] = {}
    for task in tasks:
        if fault := name_fault(task.name, taken[task.name].path if task.name in taken else None):
            raise UsageError(f"{task.path}: {fault}")
        taken[task.name] = task
