"""How often two who gave the same things a label agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any


def agreement(people: Sequence[Any], judged: Sequence[Any]) -> dict[str, Any]:
    """Return how many labels there are of both, the share that is equal, Cohen's kappa and the confusion; {} of none.

    Labels are compared as text: 4, 4.0 and "4" are the same one.
    """
    if not people:
        return {}
    first, second = [*map(label_text, people)], [*map(label_text, judged)]
    return {
        "labelled": len(first),
        "agreement": sum(a == b for a, b in zip(first, second, strict=True)) / len(first),
        "kappa": cohen_kappa(first, second),
        "confusion": confusion(first, second),
    }


def label_text(value: Any) -> str:
    """Return a label as text; 4, 4.0 and "4" are the same one."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        return f"{float(value):g}"
    except (TypeError, ValueError):
        return str(value).strip()


def confusion(true: Sequence[str], predicted: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return ``{label: {predicted label: count}}``, without the zeros, sorted."""
    table: dict[str, Counter[str]] = {label: Counter() for label in sorted(set(true))}
    for label, guess in zip(true, predicted, strict=True):
        table[label][guess] += 1
    return {label: {guess: row[guess] for guess in sorted(row)} for label, row in table.items()}


def cohen_kappa(first: Sequence[str], second: Sequence[str]) -> float | None:
    """Return the agreement of two people who gave the same rows a label each, beyond chance, in [-1, 1].

    ``(observed - expected) / (1 - expected)``: J. Cohen, "A Coefficient of Agreement for Nominal Scales", 1960. None
    where both gave all rows one and the same label: chance alone would agree as well.
    """
    n = len(first)
    if not n:
        return None
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    left, right = Counter(first), Counter(second)
    expected = sum(left[label] * right[label] for label in left) / (n * n)
    return None if expected == 1.0 else (observed - expected) / (1.0 - expected)
