"""What can be known to be missing before anything is asked: judges, packages, prices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pytest_lmeval.adapters.resolve import adapter_name
from pytest_lmeval.errors import UsageError
from pytest_lmeval.text import portable_path, printable

if TYPE_CHECKING:
    from pytest_lmeval.formats.task import Task
    from pytest_lmeval.registry import Registry

_NO_JUDGE = "asks a judge, and there is none: name a model with --lm-judge SPEC (in Python: judge=ADAPTER)"
_NO_COST = "--lm-max-cost needs to know what requests cost"


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
