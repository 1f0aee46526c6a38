"""What can be known of a run before anything is asked: what is asked together, and what is missing."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pytest_lmeval.adapters.resolve import adapter_name
from pytest_lmeval.errors import UsageError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.details import METRIC
from pytest_lmeval.scoring.evaluate import runs_code
from pytest_lmeval.text import portable_path, printable

if TYPE_CHECKING:
    from pytest_lmeval.registry import Registry
    from pytest_lmeval.run.settings import RunSettings
    from pytest_lmeval.sandbox import Sandbox
    from pytest_lmeval.task import Task
    from pytest_lmeval.types import Example

_LEVELS = ("confined", "process", "container")
_NO_JUDGE = "asks a judge, and the run has no judge: name a model with --lm-judge SPEC (in Python: judge=ADAPTER)"
NO_USER = (
    "talks with a simulated user, and the run has no model for it: name one with --lm-user SPEC, or a judge with "
    "--lm-judge SPEC, which plays it, too"
)
_NO_COST = "--lm-max-cost needs to know what requests cost"
_Key = TypeVar("_Key")


class Unit(Protocol):
    """What is asked and scored at one turn: an example, with the task it is of."""

    @property
    def task(self) -> Task: ...

    @property
    def example(self) -> Example: ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The units of a run, and what is known of them before anything is asked.

    ``batches`` are the units that are asked together. ``lacking`` says by a task's name why its examples are not asked:
    the adapter cannot do what they need. ``runs_programs`` says that a unit runs what the model wrote,
    ``no_programs`` why no such unit is asked, if there is a reason, and ``is_trusted`` that those programs are ours.
    """

    registry: Registry
    units: Sequence[Unit] = ()
    batches: Sequence[Sequence[Unit]] = ()
    lacking: Mapping[str, str] = field(default_factory=dict)
    runs_programs: bool = False
    no_programs: str = ""
    is_trusted: bool = False

    def refusal(self, unit: Unit) -> str:
        """Return why a unit is not asked, or an empty text."""
        if self.no_programs and runs_code(unit.task, unit.example, self.registry):
            return self.no_programs
        return self.lacking.get(unit.task.name, "")


@dataclass(frozen=True, slots=True)
class Requirements:
    """What scoring the units of a run needs besides the answers.

    ``judges`` and ``metrics`` are by name, each with a unit that needs it; the judge "" is the run's. ``user`` is a
    unit that talks with a simulated user, None without one.
    """

    judges: Mapping[str, Any]
    metrics: Mapping[str, Any]
    user: Any = None


def requirements_of(units: Iterable[Unit], has_judge: Callable[[Any], bool], registry: Registry) -> Requirements:
    """Return what ``units`` need; a unit that ``has_judge`` does not need the run's.

    Raise UsageError where there is no judge for the units that ask one, or a metric's package is missing.
    """
    judges: dict[str, Any] = {}
    metrics: dict[str, Any] = {}
    user = None
    for unit in units:
        task, example = unit.task, unit.example
        if task.asks_user:
            user = unit
        for spec in task.judges(example):
            if spec not in judges and (spec or not has_judge(unit)):
                judges[spec] = unit
        for name in (task.metric_name(example), *task.further_metrics(example)):
            metrics.setdefault(name, unit)
    needed = Requirements(judges, metrics, user)
    _check(needed, registry)
    return needed


def plan_run(
    units: Sequence[Unit],
    needed: Requirements,
    settings: RunSettings,
    registry: Registry,
    adapter: Any,
    group_of: Callable[[Any], Any],
) -> RunPlan:
    """Return the plan of a run that needs what ``needed`` says; the parameters are those of :meth:`Run.plan`."""
    programs = any(name in registry.metrics and registry.metrics[name].needs_sandbox for name in needed.metrics)
    programs = programs and any(runs_code(unit.task, unit.example, registry) for unit in units)
    trusted = bool(getattr(adapter, "trusted", False))
    grouped = ((group, unit) for unit in units if (group := group_of(unit)) is not None)
    return RunPlan(
        registry,
        units,
        plan_batches(grouped, settings.batch_size),
        {} if adapter is None else lacking_in(adapter, tasks_of(units)),
        programs,
        missing_sandbox(settings.sandbox) if programs and not trusted else "",
        trusted,
    )


def task_name(unit: Unit) -> str:
    """Return the name of the task of ``unit``."""
    return unit.task.name


def tasks_of(units: Iterable[Unit]) -> list[Task]:
    """Return the tasks of ``units``, each once."""
    return list({unit.task.name: unit.task for unit in units}.values())


def plan_batches(keyed: Iterable[tuple[Hashable, _Key]], size: int) -> list[list[_Key]]:
    """Return batches of at most ``size`` keys; ``keyed`` yields ``(group, key)`` and a batch never mixes groups.

    A group is a task file: its examples share fixtures, so they can be rendered together. Keys of one group fill its
    batches in order even where other groups come in between.

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


def lacking_in(adapter: Any, tasks: Iterable[Task]) -> dict[str, str]:
    """Return why tasks are not asked, by name: those that need a method, or a model, that ``adapter`` does not have."""
    lacking = {}
    for task in tasks:
        if task.needs and not callable(getattr(adapter, task.needs, None)):
            missing = f"adapter {adapter_name(adapter)} has no {task.needs}, which this task is scored by"
            lacking[task.name] = f"{missing}; nothing was asked"
        elif reason := no_model_for(task, adapter):
            lacking[task.name] = f"{reason}; nothing was asked"
    return lacking


def no_model_for(task: Task, adapter: Any) -> str:
    """Return why a task has no model to ask: it names none, and neither does ``adapter``; "" if it has one."""
    if not names_no_model(adapter) or task.metric == METRIC or not task.asks_model:
        return ""
    name = adapter_name(adapter)
    return f"{called(task)} names no model, and {name}: has none of its own: say --lm-adapter={name}:MODEL"


def names_no_model(adapter: Any) -> bool:
    """Tell whether an adapter asks for the model that each request names."""
    return getattr(adapter, "model_by_request", False) is True


def check_named(judges: Iterable[Any]) -> None:
    """Raise UsageError if the adapter of a judge, or of who plays users, has no model: what these ask names none."""
    for adapter in judges:
        if names_no_model(adapter):
            name = adapter_name(adapter)
            raise UsageError(
                f"{name}: has no model of its own, and what a judge or a simulated user is asked names none: say "
                f"{name}:MODEL with --lm-judge or --lm-user"
            )


def check_selection(units: Sequence[Unit], adapter: Any) -> None:
    """Raise UsageError where ``adapter`` refuses ``units``, or answers nothing and any but a function needs it to."""
    if not getattr(adapter, "answers", True):
        _check_no_answers(units, adapter)
    if names_no_model(adapter):
        reasons = [no_model_for(task, adapter) for task in tasks_of(units)]
        if all(reasons) and reasons:
            raise UsageError("; ".join(reasons))
    # A conftest may refuse, before anything is asked, what was selected.
    check = getattr(adapter, "check_selection", None)
    if callable(check):
        check([(unit.task.name, unit.example.id) for unit in units])


def _check_no_answers(units: Sequence[Unit], adapter: Any) -> None:
    asking = Counter(unit.task.name for unit in units if unit.task.metric != METRIC and unit.task.asks_model)
    if asking:
        tasks = ", ".join(f"{task} ({count})" for task, count in asking.items())
        raise UsageError(
            f"adapter {adapter_name(adapter)} asks no model, and these examples need one: {tasks}; say which with "
            "--lm-adapter=SPEC, or select eval functions alone"
        )


def _check(needed: Requirements, registry: Registry) -> None:
    faults = [f"{called(needed.judges[''].task)} {_NO_JUDGE}"] if "" in needed.judges else []
    for name, unit in needed.metrics.items():
        metric = registry.metrics.get(name)
        if metric is not None and metric.package and find_spec(metric.package) is None:
            install = f"pip install '{metric.install or metric.package}'"
            missing = f"the metric {name!r} needs {metric.package}, which is not installed"
            faults.append(f"{called(unit.task)}: {missing}: {install}")
    if faults:
        raise UsageError("; ".join(faults))


def check_costs(adapters: Iterable[Any], tasks: Iterable[Task]) -> None:
    """Raise UsageError where an adapter, or the way that a task is asked, leaves the cost of a request unknown."""
    for adapter in adapters:
        if adapter is not None and not _tells_cost(adapter):
            options = "price_input and price_output, per million tokens"
            where = f"[tool.lmeval.prices.MODEL]: {options}" if names_no_model(adapter) else options
            raise UsageError(
                f"{_NO_COST}, which adapter {adapter_name(adapter)} does not say: give it prices ({where}), or leave "
                "the option out"
            )
    for task in tasks:
        if task.needs == "loglikelihood":
            raise UsageError(f"{_NO_COST}: {called(task)} is scored by log-probabilities, of which no cost is known")


def _tells_cost(adapter: Any) -> bool:
    own = getattr(adapter, "tells_cost", None)
    if own is not None:
        return bool(own)
    # ``generate`` returns texts. What the others return may have a cost.
    return any(callable(getattr(adapter, method, None)) for method in ("complete", "generate_requests"))


def called(task: Task) -> str:
    """Return how messages name a task: by its file and its name."""
    return printable(f"{portable_path(str(task.path))}: task {task.name!r}", keep="")


def missing_sandbox(level: str) -> str:
    """Return why programs cannot be run at ``level``; empty where they can."""
    from pytest_lmeval.sandbox import require_level

    return require_level(level) or ""


def opened_sandbox(plan: RunPlan, settings: RunSettings) -> tuple[Any, str]:
    """Return the place where programs are run, and its level: a sandbox, or what becomes one when it is first used."""
    wanted = settings.sandbox
    if not plan.runs_programs and wanted in _LEVELS:
        return _OnFirstUse(wanted), ""
    from pytest_lmeval.sandbox import open_sandbox, require_level

    # Programs that are ours run at the best level there is.
    level = None if plan.is_trusted and require_level(wanted) else wanted
    sandbox = open_sandbox(level, workers=settings.share, packages=settings.packages)
    return sandbox, sandbox.level


def programs_line(plan: RunPlan, settings: RunSettings) -> str:
    """Return how the programs of a run will be run."""
    how = f": NOT HERE: {plan.no_programs}" if plan.no_programs else ", probed"
    return f"lmeval: programs run at sandbox level {settings.sandbox}{how}"


class _OnFirstUse:
    """A sandbox in a run that has no programs of its own: a project's code may still run one."""

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
