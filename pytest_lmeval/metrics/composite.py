"""The metrics of records with several checks or turns, each of which has its own metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.metrics.parts.declare import metric


@metric(threshold=0.0, extras=("tools", "tool_choice"), takes_calls=True)
def checks(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Score a record by the mean of its checks, each of which must reach its threshold.

    Each check has its own metric; calling this function raises ScoringError.
    """
    raise ScoringError("checks is the metric of records with checks; it cannot score another record")


@metric(extras=("tools", "tool_choice", "responses", "max_rounds"), takes_calls=True)
def turns(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Score a conversation by the share of its scored turns that pass.

    Each turn has its own metric; calling this function raises ScoringError.
    """
    raise ScoringError("turns is the metric of records with turns; it cannot score another record")
