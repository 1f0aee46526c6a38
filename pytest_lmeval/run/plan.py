"""Plan a run before its first request: form batches, and find the tasks' unmet needs."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pytest_lmeval.adapters.facts import AdapterFacts, adapter_name, method
from pytest_lmeval.errors import LmevalError, UsageError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.details import METRIC
from pytest_lmeval.scoring.evaluate import runs_code
from pytest_lmeval.text import portable_path, printable
from pytest_lmeval.types import NO_POLICY

if TYPE_CHECKING:
    from pytest_lmeval.registry import Registry
    from pytest_lmeval.run.settings import RunSettings
    from pytest_lmeval.sandbox import Sandbox
    from pytest_lmeval.task import Task
    from pytest_lmeval.types import Example, Metric

_LEVELS = ("confined", "process", "container")
_NO_JUDGE = "asks a judge, and the run has no judge: name a model with --lm-judge SPEC (in Python: judge=ADAPTER)"
_NO_USER = (
    "talks with a simulated user, and the run has no model for it: name one with --lm-user SPEC, or a judge with "
    "--lm-judge SPEC, which simulates it, too"
)
_NO_COST = "--lm-max-cost needs to know what requests cost"
_Key = TypeVar("_Key")


class Unit(Protocol):
    """A unit to query and score: an example with its task."""

    @property
    def task(self) -> Task: ...

    @property
    def example(self) -> Example: ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run's units, and facts that are known about them before the first request.

    The run sends the requests of each batch in ``batches`` together. ``lacking`` describes unmet needs by task name; a
    task with unmet needs gets no requests. ``adapter`` is None until it is known. ``tasks`` holds the tasks prepared
    for the adapter, by the ``id`` of the unit's task. ``runs_programs`` means that a unit runs code written by the
    model. ``no_programs`` is the reason why programs cannot run, or "". ``is_trusted`` means that the adapter's
    programs are trusted. ``media`` holds the ids of examples with media, by task name and kind.
    """

    registry: Registry
    units: Sequence[Unit] = ()
    batches: Sequence[Sequence[Unit]] = ()
    lacking: Mapping[str, str] = field(default_factory=dict)
    adapter: Any = None
    tasks: Mapping[int, Task] = field(default_factory=dict)
    runs_programs: bool = False
    no_programs: str = ""
    is_trusted: bool = False
    media: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)

    def refusal(self, unit: Unit) -> str:
        """Return the reason why a unit gets no requests, or ""."""
        return self.lacking.get(unit.task.name, "")


@dataclass(slots=True)
class Needs:
    """The needs of a task other than the model; ``unit`` is the task's first selected unit.

    ``judges`` holds specs; "" is the run's judge. ``metrics`` names all metrics, and ``packaged`` holds those that
    import a package to score. ``programs`` means that a metric runs code written by the model. ``media`` holds the ids
    of examples with media, by kind, and ``sees_media`` holds these examples' judges.
    """

    unit: Any
    judges: set[str] = field(default_factory=set)
    metrics: set[str] = field(default_factory=set)
    packaged: list[Metric] = field(default_factory=list)
    programs: bool = False
    media: dict[str, list[str]] = field(default_factory=dict)
    sees_media: set[str] = field(default_factory=set)


def needs_of(
    units: Iterable[Unit], registry: Registry, has_judge: Callable[[Any], bool] = lambda unit: True
) -> dict[str, Needs]:
    """Return the needs of each task in ``units``, by name; a unit with ``has_judge`` does not need the run's judge."""
    found: dict[str, Needs] = {}
    for unit in units:
        task, example = unit.task, unit.example
        if (needs := found.get(task.name)) is None:
            needs = found[task.name] = Needs(unit)
        for spec in task.judges(example):
            if spec not in needs.judges and (spec or not has_judge(unit)):
                needs.judges.add(spec)
        if example.media:
            needs.sees_media.update(task.judges(example))
            for kind in example.media:
                needs.media.setdefault(kind, []).append(example.id)
        for name in (task.metric_name(example), *task.further_metrics(example)):
            if name in needs.metrics:
                continue
            needs.metrics.add(name)
            if (metric := task.own_metrics.get(name) or registry.metrics.get(name)) is not None:
                needs.programs = needs.programs or metric.needs_sandbox
                needs.packaged += [metric] if metric.package else []
    return found


def lacking_packages(needs: Needs) -> Iterator[str]:
    """Yield a message for each missing package that a task's metrics need, with the command that installs it."""
    for metric in needs.packaged:
        if find_spec(metric.package) is None:
            missing = f"the metric {metric.name!r} needs {metric.package}, which is not installed"
            yield f": {missing}: pip install '{metric.install or metric.package}'"


def lacking_without_model(
    needed: Mapping[str, Needs], judge_of: Callable[[str], Any], has_user: Callable[[Any], bool], no_programs: str
) -> dict[str, str]:
    """Return each task's unmet needs other than the model, by task name, with remedies.

    ``judge_of`` returns the adapter of a judge that a task names, or raises LmevalError. ``has_user`` returns True if a
    model simulates a unit's user. ``no_programs`` is the reason why programs cannot run here, or "".
    """
    lacking = {}
    for name, needs in needed.items():
        faults = []
        if needs.judges or needs.packaged:
            faults = [*_lacking_judges(needs, judge_of), *lacking_packages(needs)]
        if needs.unit.task.asks_user and not has_user(needs.unit):
            faults.append(f" {_NO_USER}")
        if needs.programs and no_programs:
            faults.append(f": {no_programs}")
        if faults:
            lacking[name] = "; ".join(f"{called(needs.unit.task)}{fault}" for fault in faults)
    return lacking


def _lacking_judges(needs: Needs, judge_of: Callable[[str], Any]) -> Iterator[str]:
    for spec in sorted(needs.judges):
        try:
            if spec:
                check_named([judge_of(spec)])
            else:
                yield f" {_NO_JUDGE}"
        except LmevalError as error:
            yield f": {error}"


def plan_run(
    units: Sequence[Unit],
    needed: Mapping[str, Needs],
    settings: RunSettings,
    registry: Registry,
    facts: AdapterFacts,
    group_of: Callable[[Any], Any],
) -> RunPlan:
    """Plan a run of tasks with the needs ``needed``; :meth:`Run.plan` describes the other parameters."""
    programs, no_programs = any(needs.programs for needs in needed.values()), ""
    if programs and not facts.trusted:
        from pytest_lmeval.sandbox import require_level

        no_programs = require_level(settings.sandbox) or ""
    media: dict[str, Mapping[str, Sequence[str]]] = {}
    for name, needs in needed.items():
        if needs.media:
            media[name] = needs.media
    grouped = ((group, unit) for unit in units if (group := group_of(unit)) is not None)
    return RunPlan(
        registry,
        units,
        plan_batches(grouped, settings.batch_size),
        runs_programs=programs and any(runs_code(unit.task, unit.example, registry) for unit in units),
        no_programs=no_programs,
        is_trusted=facts.trusted,
        media=media,
    )


def put_to(plan: RunPlan, adapter: Any, facts: AdapterFacts) -> RunPlan:
    """Return the plan with its tasks prepared for ``adapter``; add the tasks that it cannot answer to ``lacking``."""
    lacking, tasks = dict(plan.lacking), {}
    for key, task in {id(unit.task): unit.task for unit in plan.units}.items():
        try:
            if task.needs and method(adapter, task.needs) is None:
                raise UsageError(f"adapter {adapter_name(adapter)} has no {task.needs}, which this task is scored by")
            if facts.model_by_request and task.metric != METRIC and task.asks_model:
                name = adapter_name(adapter)
                raise UsageError(f"it names no model, and {name}: has none of its own: set --lm-adapter={name}:MODEL")
            if task.name in plan.media:
                from pytest_lmeval.run.media import check_media

                check_media(plan.media[task.name], f"adapter {adapter_name(adapter)}", facts)
            tasks[key] = task.prepared(adapter)
        except UsageError as error:
            lacking.setdefault(task.name, f"{called(task)}: {error}")
    return replace(plan, adapter=adapter, tasks=tasks, lacking=lacking)


def check_left(*plans: RunPlan) -> None:
    """Raise UsageError if every task of a run has unmet needs; pass one plan per model."""
    lacking: dict[str, None] = {}
    for plan in plans:
        for unit in plan.units:
            if unit.task.name not in plan.lacking:
                return
        lacking.update(dict.fromkeys(plan.lacking.values()))
    if lacking:
        raise UsageError("; ".join(lacking))


def check_repeats(units: Iterable[Unit], given: int | None) -> None:
    """Raise UsageError if a task has too few repeats to pass, or if their number differs from the run's, ``given``."""
    others: dict[str, int] = {}
    for unit in units:
        policy = unit.example.policy
        if policy is NO_POLICY:
            continue
        repeats = given or 1 if policy.repeats is None else policy.repeats
        passes = 1 if policy.passes is None else policy.passes
        for name, count in (("repeats", repeats), ("passes", passes)):
            # Loaders have checked tasks from files, but not tasks from Python code.
            if not isinstance(count, int) or count < 1:
                raise UsageError(f"{unit.task.name}: {unit.example.id}: {name}: expected 1 or more, got {count!r:.60}")
        if given is not None and repeats != given:
            others[unit.task.name] = repeats
        if passes > repeats:
            raise UsageError(
                f"{unit.task.name}: {unit.example.id}: of {repeats} repeat{'s' if repeats > 1 else ''} {passes} cannot "
                "pass: set its repeats, or --lm-repeats"
            )
    if others:
        named = ", ".join(f"{task} ({repeats})" for task, repeats in sorted(others.items()))
        raise UsageError(f"--lm-repeats={given}: tasks have other repeats of their own: {named}; leave the option out")


def task_name(unit: Unit) -> str:
    """Return the name of the unit's task."""
    return unit.task.name


def plan_batches(keyed: Iterable[tuple[Hashable, _Key]], size: int) -> list[list[_Key]]:
    """Return batches of at most ``size`` keys from ``(group, key)`` pairs; a batch never mixes groups.

    A group is a task file, whose examples share fixtures and can be rendered together. The keys of a group fill its
    batches in order, even if keys of other groups come between them.

    >>> plan_batches([("a", 1), ("b", 2), ("a", 3), ("a", 4)], 2)
    [[1, 3], [2], [4]]
    """
    batches: list[list[_Key]] = []
    filling: dict[Hashable, list[_Key]] = {}
    for group, key in keyed:
        batch = filling.get(group)
        if batch is None or len(batch) >= size:
            batch = filling[group] = []
            batches.append(batch)
        batch.append(key)
    return batches


def check_named(judges: Iterable[Any]) -> None:
    """Raise UsageError if a judge or simulated user has an adapter without a model: its requests name no model."""
    for adapter in judges:
        if adapter is not None and AdapterFacts.of(adapter).model_by_request:
            name = adapter_name(adapter)
            raise UsageError(
                f"{name}: has no model of its own, and requests to a judge or a simulated user name none: use "
                f"{name}:MODEL with --lm-judge or --lm-user"
            )


def check_selection(units: Sequence[Unit], adapter: Any, facts: AdapterFacts) -> None:
    """Raise UsageError if ``adapter`` rejects ``units``, or if it gives no answers although a task needs answers."""
    if not facts.answers:
        _check_no_answers(units, adapter)
    # An adapter from a conftest may reject the selection before the first request.
    if (check := method(adapter, "check_selection")) is not None:
        check([(unit.task.name, unit.example.id) for unit in units])


def _check_no_answers(units: Sequence[Unit], adapter: Any) -> None:
    asking = Counter(unit.task.name for unit in units if unit.task.metric != METRIC and unit.task.asks_model)
    if asking:
        tasks = ", ".join(f"{task} ({count})" for task, count in asking.items())
        raise UsageError(
            f"adapter {adapter_name(adapter)} asks no model, and these examples need one: {tasks}; name one with "
            "--lm-adapter=SPEC, or select eval functions alone"
        )


def check_costs(adapters: Iterable[Any], tasks: Iterable[Task]) -> None:
    """Raise UsageError if an adapter does not report costs, or if the cost of a task's requests is unknown."""
    for adapter in adapters:
        if adapter is not None and not _tells_cost(adapter):
            options = "price_input and price_output, per million tokens"
            where = f"[tool.lmeval.prices.MODEL]: {options}" if AdapterFacts.of(adapter).model_by_request else options
            raise UsageError(
                f"{_NO_COST}, which adapter {adapter_name(adapter)} does not say: give it prices ({where}), or leave "
                "the option out"
            )
    for task in tasks:
        if task.needs == "loglikelihood":
            raise UsageError(f"{_NO_COST}: {called(task)} is scored by log-probabilities, whose cost is unknown")


def _tells_cost(adapter: Any) -> bool:
    facts = AdapterFacts.of(adapter)
    if facts.tells_cost is not None:
        return facts.tells_cost
    # ``generate`` returns only texts, but responses from other methods may include a cost.
    return not facts.methods.isdisjoint(("complete", "generate_requests"))


def called(task: Task) -> str:
    """Return a task's file and name for messages."""
    return printable(f"{portable_path(str(task.path))}: task {task.name!r}", keep="")


def opened_sandbox(plan: RunPlan, settings: RunSettings) -> tuple[Any, str]:
    """Return the sandbox for programs and its level; if the plan runs no programs, open the sandbox on first use."""
    wanted = settings.sandbox
    if not plan.runs_programs and wanted in _LEVELS:
        return _OnFirstUse(wanted), ""
    from pytest_lmeval.sandbox import open_sandbox, require_level

    # Trusted programs run at the best available level.
    level = None if plan.is_trusted and require_level(wanted) else wanted
    sandbox = open_sandbox(level, workers=settings.share, packages=settings.packages)
    return sandbox, sandbox.level


def programs_line(plan: RunPlan, settings: RunSettings) -> str:
    """Return a line that states the sandbox level for programs, and whether they can run."""
    how = f": NOT HERE: {plan.no_programs}" if plan.no_programs else ", probed"
    return f"lmeval: programs run at sandbox level {settings.sandbox}{how}"


class _OnFirstUse:
    """A sandbox that opens on first use, because a project's code may run a program even if no task does."""

    def __init__(self, wanted: str) -> None:
        self._wanted = wanted
        self._lock = threading.Lock()
        self._opened: Sandbox | None = None

    def __enter__(self) -> _OnFirstUse:
        return self

    def __exit__(self, *_: object) -> None:
        if self._opened is not None:
            self._opened.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with self._lock:
            if self._opened is None:
                from pytest_lmeval.sandbox import open_sandbox

                self._opened = open_sandbox(self._wanted)
        return getattr(self._opened, name)
