"""What can be known to be missing before anything is asked, and what becomes of the examples that need it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pytest_lmeval.adapters.resolve import adapter_name
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.functions import METRIC
from pytest_lmeval.scoring.evaluate import runs_code
from pytest_lmeval.text import portable_path, printable

if TYPE_CHECKING:
    from pytest_lmeval.registry import Registry
    from pytest_lmeval.run.settings import RunSettings
    from pytest_lmeval.sandbox import Sandbox
    from pytest_lmeval.task import Task
    from pytest_lmeval.types import Example

_LEVELS = ("confined", "process", "container")
_NO_JUDGE = "asks a judge, and there is none: name a model with --lm-judge SPEC (in Python: judge=ADAPTER)"
_NO_COST = "--lm-max-cost needs to know what requests cost"


class Refusals:
    """Why examples are not asked; empty of a run that can score everything."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._tasks: Mapping[str, str] = {}
        self.code = ""

    def look_at(self, tasks: Iterable[Task], adapter: Any) -> None:
        """Find the tasks that need what ``adapter`` cannot do."""
        lacking = {task.name: task.needs for task in tasks if task.needs and not _has(adapter, task.needs)}
        self._tasks = {name: _reason(adapter, need) for name, need in lacking.items()}

    def look_at_code(self, reason: str | None) -> None:
        """Refuse what runs code, for ``reason``, if there is one."""
        self.code = reason or ""

    def runs_code(self, task: Task, example: Example) -> bool:
        """Tell whether to score the example is to run what the model wrote."""
        return runs_code(task, example, self._registry)

    def reason(self, task: Task, example: Example) -> str:
        """Return why the example is not asked, or an empty text."""
        if self.code and self.runs_code(task, example):
            return self.code
        return self._tasks.get(task.name, "")


class Programs:
    """Probes the sandbox where there is a program to run, and nowhere else; ``level`` is what programs ran at."""

    def __init__(self, settings: RunSettings, refusals: Refusals) -> None:
        self._settings = settings
        self._refusals = refusals
        self._is_trusted = False
        self.any = False
        self.level = ""

    def prepare(self, units: Sequence[Any], *, trusted: bool) -> None:
        """Find out whether any of ``units`` runs programs, and refuse those that cannot be run as they should.

        ``trusted`` says that the programs are ours: they run at the best level there is.
        """
        self._is_trusted = trusted
        self.any = any(self._refusals.runs_code(unit.task, unit.example) for unit in units)
        if self.any and not trusted:
            from pytest_lmeval.sandbox import require_level

            self._refusals.look_at_code(require_level(self._settings.sandbox))

    def open(self) -> Any:
        """Return the place where programs are run: a sandbox, or what becomes one when it is first used."""
        wanted = self._settings.sandbox
        if not self.any and wanted in _LEVELS:
            return _OnFirstUse(wanted)
        from pytest_lmeval.sandbox import open_sandbox, require_level

        level = None if self._is_trusted and require_level(wanted) else wanted
        sandbox = open_sandbox(level, workers=self._settings.share, packages=self._settings.packages)
        self.level = sandbox.level
        return sandbox

    def report(self) -> str | None:
        """Return how programs will be run, where there are any."""
        if not self.any:
            return None
        missing = self._refusals.code
        return f"lmeval: programs run at sandbox level {self._settings.sandbox}" + (
            f": NOT HERE: {missing}" if missing else ", probed"
        )


class _OnFirstUse:
    """A sandbox in a run that has no programs of its own: a project's code may still run one."""

    def __init__(self, level: str) -> None:
        self._level = level
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

                self._opened = open_sandbox(self._level)
        return getattr(self._opened, name)


def check_answers(units: Sequence[Any], adapter: Any) -> None:
    """Raise UsageError where ``adapter`` answers nothing and any of ``units`` needs an answer: all but functions do."""
    if getattr(adapter, "answers", True):
        return
    asking = Counter(unit.task.name for unit in units if unit.task.metric != METRIC and unit.task.asks_model)
    if asking:
        tasks = ", ".join(f"{task} ({count})" for task, count in asking.items())
        raise UsageError(
            f"adapter {adapter_name(adapter)} asks no model, and these examples need one: {tasks}; say which with "
            "--lm-adapter=SPEC, or select eval functions alone"
        )


def _has(adapter: Any, method: str) -> bool:
    return callable(getattr(adapter, method, None))


def _reason(adapter: Any, need: str) -> str:
    return f"adapter {adapter_name(adapter)} has no {need}, which this task is scored by; nothing was asked"


@dataclass(frozen=True, slots=True)
class Needs:
    """What scoring the units of a run needs besides the answers.

    ``judges`` and ``metrics`` are by name, each with a unit that needs it; the judge "" is the run's.
    """

    judges: Mapping[str, Any]
    metrics: Mapping[str, Any]

    @classmethod
    def of(cls, units: Iterable[Any], has_judge: Callable[[Any], bool]) -> Needs:
        """Return what ``units`` need; a unit that ``has_judge`` does not need the run's."""
        judges: dict[str, Any] = {}
        metrics: dict[str, Any] = {}
        for unit in units:
            task, example = unit.task, unit.example
            for spec in task.judges(example):
                if spec not in judges and (spec or not has_judge(unit)):
                    judges[spec] = unit
            for name in (task.metric_name(example), *task.further_metrics(example)):
                metrics.setdefault(name, unit)
        return cls(judges, metrics)

    def check(self, registry: Registry) -> None:
        """Raise UsageError where there is no judge for the units that ask one, or a metric's package is missing."""
        faults = [f"{_called(self.judges[''].task)} {_NO_JUDGE}"] if "" in self.judges else []
        for name, unit in self.metrics.items():
            metric = registry.metrics.get(name)
            if metric is not None and metric.package and find_spec(metric.package) is None:
                install = f"pip install '{metric.install or metric.package}'"
                missing = f"the metric {name!r} needs {metric.package}, which is not installed"
                faults.append(f"{_called(unit.task)}: {missing}: {install}")
        if faults:
            raise UsageError("; ".join(faults))

    def programs(self, registry: Registry) -> bool:
        """Tell whether any of the metrics runs what the model wrote."""
        return any(name in registry.metrics and registry.metrics[name].needs_sandbox for name in self.metrics)


def check_costs(adapters: Sequence[Any], tasks: Iterable[Task]) -> None:
    """Raise UsageError where an adapter, or the way that a task is asked, leaves the cost of a request unknown."""
    for adapter in adapters:
        if not _tells_cost(adapter):
            raise UsageError(
                f"{_NO_COST}, which adapter {adapter_name(adapter)} does not say: give it prices "
                "(openai: price_input and price_output, per million tokens), or leave the option out"
            )
    for task in tasks:
        if task.needs == "loglikelihood":
            raise UsageError(f"{_NO_COST}: {_called(task)} is scored by log-probabilities, of which no cost is known")


def _tells_cost(adapter: Any) -> bool:
    told = getattr(adapter, "tells_cost", None)
    if told is not None:
        return bool(told)
    # ``generate`` returns texts. What the others return may have a cost.
    return any(callable(getattr(adapter, method, None)) for method in ("complete", "generate_requests"))


def _called(task: Task) -> str:
    return printable(f"{portable_path(str(task.path))}: task {task.name!r}", keep="")
