"""Measures of pairs of a gold label and a prediction, as scikit-learn has them; its tests compare with that."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

Pairs = Sequence[tuple[Any, Any]]


def f1_of(pairs: Pairs, label: Any) -> float:
    """Return the F1 of ``label``, in [0, 1]: 2 TP / (2 TP + FP + FN), 0 where it is neither gold nor predicted."""
    hits = sum(gold == label == predicted for gold, predicted in pairs)
    either = sum((gold == label) + (predicted == label) for gold, predicted in pairs)
    return 2 * hits / either if either else 0.0


def binary_f1(pairs: Pairs) -> float:
    """Return the F1 of the label 1; raise ValueError where there are more labels than two."""
    labels = {label for pair in pairs for label in pair}
    if len(labels) > 2 or (len(labels) == 2 and 1 not in labels):
        shown = ", ".join(sorted(map(str, labels)))
        raise ValueError(f"f1 is of the labels 0 and 1; the labels are {shown}")
    return f1_of(pairs, 1)


def matthews(pairs: Pairs) -> float:
    """Return Matthews' correlation of golds and predictions, in [-1, 1]; 0 where either is constant."""
    n = len(pairs)
    golds, predicted = Counter(gold for gold, _ in pairs), Counter(guess for _, guess in pairs)
    hits = sum(gold == guess for gold, guess in pairs)
    shared = sum(golds[label] * predicted[label] for label in golds)
    spread = (n * n - sum(k * k for k in golds.values())) * (n * n - sum(k * k for k in predicted.values()))
    return (hits * n - shared) / math.sqrt(spread) if spread else 0.0
