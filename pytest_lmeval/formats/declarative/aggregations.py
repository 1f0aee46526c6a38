"""From the scores of many rows to a few numbers: small pure functions.

A share whose divisor is 0 is 0.0, as with scikit-learn's ``zero_division=0``. Labels are compared as text.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import TypedDict


class ClassScores(TypedDict):
    """One label: shares in [0, 1], and how many rows have it."""

    precision: float
    recall: float
    f1: float
    n: int


Classes = dict[str, ClassScores]


def ratio(part: float, whole: float) -> float:
    """Return ``part / whole``; 0.0 where ``whole`` is 0."""
    return part / whole if whole else 0.0


def f1(true_positives: float, false_positives: float, false_negatives: float) -> float:
    """Return the harmonic mean of precision and recall: ``2 tp / (2 tp + fp + fn)``."""
    return ratio(2 * true_positives, 2 * true_positives + false_positives + false_negatives)


def std_dev(values: Sequence[float]) -> float:
    """Return the standard deviation of a sample of two values or more: its divisor is one less than their number."""
    return statistics.stdev(values)


def frequencies(values: Sequence[str]) -> dict[str, float]:
    """Return the share of each value, the most frequent first."""
    return {value: count / len(values) for value, count in Counter(values).most_common()}


def weighted_average(values: Sequence[str], weights: dict[str, float]) -> float:
    """Return the mean of the weights of ``values``, each of which has one."""
    return math.fsum(weights[value] for value in values) / len(values)


def classify(true: Sequence[str], predicted: Sequence[str]) -> Classes:
    """Return precision, recall, F1 and number of every label that is either true or predicted of some row."""
    trues, guesses = Counter(true), Counter(predicted)
    hits = Counter(label for label, guess in zip(true, predicted, strict=True) if label == guess)
    return {
        label: {
            "precision": ratio(hits[label], guesses[label]),
            "recall": ratio(hits[label], trues[label]),
            "f1": ratio(2 * hits[label], trues[label] + guesses[label]),
            "n": trues[label],
        }
        for label in sorted({*trues, *guesses})
    }
