"""The metrics that a task class lists, as functions to call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pytest_lmeval.errors import LmevalError, RecordRefused
from pytest_lmeval.formats.loglikelihood import Rule
from pytest_lmeval.formats.python.faults import called, scored
from pytest_lmeval.registry import Registry
from pytest_lmeval.tasks.scores import NamedMetrics
from pytest_lmeval.types import Score

BY_LOGLIKELIHOOD: Mapping[str, Rule] = MappingProxyType(
    {"accuracy_loglikelihood": "total", "accuracy_norm_loglikelihood": "characters"}
)
"""Metrics of which of several continuations a model finds most probable, and the rule that decides which that is."""

BYTE_PROBABILITY = "byte_probability"
"""The metric of how probable the right continuation is, whatever others there are."""

_Applies = Callable[[Sequence[str], Mapping[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class Measure:
    """One metric of a task; ``check`` raises RecordRefused for a context that it cannot be applied to."""

    name: str
    function: Callable[..., Any]
    threshold: float = 1.0
    needs_sandbox: bool = False
    applies: _Applies = field(default=lambda targets, extras: True)
    check: Callable[[Mapping[str, Any]], None] = field(default=lambda extras: None)


def resolve(metrics: object, registry: Registry) -> tuple[Measure, ...]:
    """Return what ``METRICS`` lists: names, classes and functions; raise RecordRefused for anything else."""
    if isinstance(metrics, str) or not isinstance(metrics, Sequence) or not metrics:
        raise RecordRefused("bad_type", "METRICS", f"expected a list of at least one metric, got {metrics!r:.80}")
    measures = [
        each for number, entry in enumerate(metrics) for each in _measures(f"METRICS[{number}]", entry, registry)
    ]
    names = [measure.name for measure in measures]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise RecordRefused("bad_value", "METRICS", f"the metric {twice!r} is listed twice")
    return tuple(measures)


def measured(
    measures: Sequence[Measure], prediction: str, targets: Sequence[str], extras: Mapping[str, Any], sandbox: Any
) -> Score:
    """Return the score by the first of ``measures``, with those of the others that apply as further metrics."""
    first, *others = [measure for measure in measures if measure.applies(targets, extras)]
    score = _score(first, prediction, targets, extras, sandbox)
    further = {each.name: _score(each, prediction, targets, extras, sandbox).value for each in others}
    return Score(score.value, score.details, prediction, metrics=further)


def _score(measure: Measure, *arguments: Any) -> Score:
    *given, sandbox = arguments
    used = (*given, sandbox) if measure.needs_sandbox else given
    value = scored(f"metric {measure.name!r}", measure.function, *used)
    return value if isinstance(value, Score) else Score(value)


def _measures(field: str, entry: Any, registry: Registry) -> list[Measure]:
    if isinstance(entry, str):
        return [_registered(field, entry, registry)]
    if isinstance(entry, type) and issubclass(entry, NamedMetrics):
        return [_of_class(field, entry, name, registry) for name in entry.NAMES]
    metric = called(field, entry) if isinstance(entry, type) else entry
    if not callable(metric):
        wanted = "a metric's name, a class of metrics, or a function (prediction, targets, extras)"
        raise RecordRefused("bad_type", field, f"expected {wanted}, got {entry!r:.80}")
    name = getattr(metric, "NAME", None) or getattr(metric, "__name__", None) or type(metric).__name__
    check = getattr(metric, "check", None)
    return [
        Measure(
            str(name),
            metric,
            float(getattr(metric, "THRESHOLD", 1.0)),
            bool(getattr(metric, "NEEDS_SANDBOX", False)),
            check=check if callable(check) else lambda extras: None,
        )
    ]


def _of_class(field: str, entry: type[NamedMetrics], name: str, registry: Registry) -> Measure:
    registered = _registered(field, name, registry)

    def applies(targets: Sequence[str], extras: Mapping[str, Any]) -> bool:
        return entry.applies(name, targets, extras)

    return Measure(name, registered.function, registered.threshold, registered.needs_sandbox, applies)


def _registered(field: str, name: str, registry: Registry) -> Measure:
    if name in BY_LOGLIKELIHOOD:
        return Measure(name, _by_loglikelihood)
    if name == BYTE_PROBABILITY:
        return Measure(name, _by_loglikelihood, threshold=0.0)
    try:
        metric = registry.metric(name)
    except LmevalError as error:
        raise RecordRefused("bad_value", field, str(error)) from None
    return Measure(metric.name, metric.function, metric.threshold, metric.needs_sandbox)


def _by_loglikelihood(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Tell whether the continuation that was chosen is right: who chose it has compared the probabilities."""
    return float(prediction in targets)
