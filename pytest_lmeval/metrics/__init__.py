"""Metrics: what one prediction is worth, from 0 to 1.

Every metric is ``(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float``, pure, and takes
the best target. It sees the prediction, which is the completion after the post-process rule.
"""

from __future__ import annotations

from pytest_lmeval.metrics.bleu import bleu_4
from pytest_lmeval.metrics.exact import (
    accuracy,
    exact_match,
    exact_match_normalized,
    multiple_choice,
    substring_contains,
)
from pytest_lmeval.metrics.f1 import f1
from pytest_lmeval.metrics.lcs import lcs_length
from pytest_lmeval.metrics.rouge import rouge_l

__all__ = [
    "accuracy",
    "bleu_4",
    "exact_match",
    "exact_match_normalized",
    "f1",
    "lcs_length",
    "multiple_choice",
    "rouge_l",
    "substring_contains",
]
