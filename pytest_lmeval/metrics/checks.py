"""The metric of records with several checks: the mean of their scores, all of which have to reach their thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.metrics.parts.declare import metric


@metric(threshold=0.0, extras=("tools", "tool_choice"), takes_calls=True)
def checks(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Refuse: a record with ``checks`` is scored by the metric of each."""
    raise ScoringError("checks is the metric of records with checks; another record is not scored by it")
