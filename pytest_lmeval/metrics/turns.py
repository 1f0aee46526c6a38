"""The metric of conversations: the share of their scored turns that pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.metrics.parts.declare import metric


@metric(extras=("tools", "tool_choice", "responses", "max_rounds"), takes_calls=True)
def turns(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Refuse: a record with ``turns`` is scored turn by turn, by the metric of each."""
    raise ScoringError("turns is the metric of records with turns; another record is not scored by it")
