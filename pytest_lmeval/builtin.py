"""What is built in, and what installed packages add: the registry that a run starts with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.postprocess import RULES
from pytest_lmeval.registry import MetricFunction, Registry

__all__ = ["default_registry"]

_FORMAT_METRICS = ("is_json", "only_json", "json_schema", "json_exact", "has_csv", "csv_separator", "csv_columns")


@dataclass(slots=True)
class _OnFirstUse:
    """A metric that is imported and made when it first scores: most runs never need it."""

    make: Callable[[], MetricFunction]
    made: MetricFunction | None = None

    def __call__(self, *arguments: Any) -> Any:
        self.made = self.made or self.make()
        return self.made(*arguments)


def _make_math_equal() -> MetricFunction:
    from pytest_lmeval.metrics.math_equal import MathEqual

    return MathEqual()


def default_registry(*, entry_points: bool = True) -> Registry:
    """Return a registry of everything built in, and of what installed packages add.

    A package adds by an entry point of the group ``pytest_lmeval_register`` that names a function of the registry.
    """
    from pytest_lmeval import metrics
    from pytest_lmeval.adapters import builtin
    from pytest_lmeval.formats import jsonl, python, yaml

    registry = Registry(rules=dict(RULES))
    for function in (metrics.exact_match, metrics.exact_match_normalized, metrics.accuracy):
        registry.add_metric(function.__name__, function)
    registry.add_metric("substring_contains", metrics.substring_contains)
    registry.add_metric("multiple_choice", metrics.multiple_choice)
    registry.add_metric("f1", metrics.f1, threshold=0.5)
    registry.add_metric("rouge_l", metrics.rouge_l, threshold=0.5)
    # Add-one smoothing gives a wrong one-word answer 0.84.
    registry.add_metric("bleu_4", metrics.bleu_4, threshold=0.9)
    registry.add_metric("code_exec", _code_exec, needs_sandbox=True)
    for name in ("rouge_1", "rouge_2", "bleu", "squad_f1"):
        registry.add_metric(name, getattr(metrics, name), threshold=0.5)
    for name in ("completion_accuracy", "squad_em", *_FORMAT_METRICS):
        registry.add_metric(name, getattr(metrics, name))
    registry.add_metric("math_equal", _OnFirstUse(_make_math_equal))
    builtin.register(registry)
    registry.add_format(".jsonl", jsonl.load)
    registry.add_format(".yaml", yaml.load)
    registry.add_format(".py", python.load, pattern="task_*.py")
    if entry_points:
        _register_entry_points(registry)
    return registry


def _register_entry_points(registry: Registry) -> None:
    from importlib.metadata import entry_points

    # Of all groups at once: to look through what is installed takes longer than to make the rest of the registry.
    installed = entry_points()
    for entry_point in installed.select(group="pytest_lmeval_register"):
        entry_point.load()(registry)
    registry.loaders += [entry_point.load() for entry_point in installed.select(group="pytest_lmeval_load_task")]
    registry.listeners += installed.select(group="pytest_lmeval_leaderboard")


def _code_exec(prediction: str, targets: Sequence[str], extras: Mapping[str, Any], sandbox: Any) -> Any:
    # Imported when the first program runs: most runs execute none.
    from pytest_lmeval.metrics import code_exec

    # The forms of a compact record stand in its extras; the targets of a spec record are expressions.
    by_extras = not extras.keys().isdisjoint({"io_pairs", "tests", "stdouts"})
    score = code_exec.code_exec if by_extras else code_exec.code_exec_expressions
    return score(prediction, targets, extras, sandbox)
