"""What a record says of a metric: its name, and the targets and extras that it scores by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pytest_lmeval.errors import RecordRefused, ScoringError, UnknownName
from pytest_lmeval.formats import checks
from pytest_lmeval.leaderboard.details import CHECKS
from pytest_lmeval.registry import Registry
from pytest_lmeval.types import Metric

TURNS = "turns"
RENAMED: Mapping[str, str] = MappingProxyType({"exact_match": "exact_match_normalized"})
"""The metric names of a compact file that mean another metric of the registry: it ignores case and spacing."""
READ_EXTRAS = frozenset({"csv_columns", "csv_separator", "has_csv", "json_exact", "json_schema"})
"""The metrics that read their rules in the extras as they score."""


def known_metric(value: Any, field: str, registry: Registry) -> str:
    """Return the word of a file for a metric; raise RecordRefused for one that there is not, and for that of turns."""
    metric = checks.string(value, field)
    if RENAMED.get(metric, metric) not in registry.metrics:
        choices = registry.metrics.keys() - {TURNS, CHECKS}
        raise RecordRefused("bad_value", field, str(UnknownName("metric", metric, choices)))
    if metric == TURNS:
        raise RecordRefused("bad_value", field, "turns is the metric of a record that has turns in place of a prompt")
    if metric == CHECKS:
        raise RecordRefused("bad_value", field, "checks is the metric of a record that has checks in place of a metric")
    return metric


def check_metric(metric: Metric, word: str, targets: Sequence[str], extras: Mapping[str, Any], place: str) -> None:
    """Raise RecordRefused for what no answer could be scored by; ``word`` is what the file calls the metric."""
    if metric.check is not None:
        metric.check(targets, extras)
    turned = extras.get("not", False)
    if not isinstance(turned, bool):
        raise RecordRefused("bad_type", f"{place}.not", f"expected true or false, got {checks.type_name(turned)}")
    if turned and not (metric.binary or metric.asks_judge):
        raise RecordRefused(
            "bad_value", f"{place}.not", f"{word} is graded: only a right-or-wrong metric is turned round, and rubric"
        )


def check_read_extras(metric: str, targets: Sequence[str], extras: Mapping[str, Any], registry: Registry) -> None:
    """Raise RecordRefused for a metric that cannot read its rules in ``extras``, if it has any."""
    if metric not in READ_EXTRAS:
        return
    # The metric reads its rules there: a record of which no answer could be scored is refused now.
    try:
        registry.metric(metric).function("", targets, extras)
    except ScoringError as error:  # what the metric needs is not installed
        raise RecordRefused("bad_value", "metric", str(error)) from None
