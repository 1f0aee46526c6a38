"""The targets and extras of a record that its metric scores by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.errors import RecordRefused, ScoringError
from pytest_lmeval.formats import checks
from pytest_lmeval.registry import Registry
from pytest_lmeval.types import Metric

READ_EXTRAS = frozenset({"csv_columns", "csv_separator", "has_csv", "json_exact", "json_schema"})
"""The metrics that read their rules in the extras as they score."""


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
