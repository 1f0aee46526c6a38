"""The substitute of ``lm_eval.api.metrics``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pytest_lmeval.formats.harness.aggregates import mean

__all__ = ["mean", "metric_max_over_ground_truths"]


def metric_max_over_ground_truths(metric_fn: Callable[..., Any], prediction: Any, ground_truths: Iterable[Any]) -> Any:
    """Return the highest value of ``metric_fn(prediction, truth)``."""
    return max(metric_fn(prediction, truth) for truth in ground_truths)
