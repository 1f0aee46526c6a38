"""Completion accuracy: the prediction is a target, character for character."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.metrics.parts.declare import metric

__all__ = ["completion_accuracy"]


@metric()
def completion_accuracy(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Return 1.0 if the prediction equals any target as it stands, else 0.0.

    For tasks that clean the completion themselves: what their own rule leaves is compared, and nothing is forgiven.
    """
    return float(prediction in targets)
