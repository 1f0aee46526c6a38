"""Pure functions that reduce the scores of many rows to a few numbers.

A share whose divisor is 0 is 0.0, as with scikit-learn's ``zero_division=0``. Labels are compared as text.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from pytest_lmeval.errors import ScoringError, nearest


class ClassScores(TypedDict):
    """The scores of one label, each in [0, 1], and the number of rows with that true label."""

    precision: float
    recall: float
    f1: float
    n: int


Classes = dict[str, ClassScores]
Confusion = dict[str, dict[str, int]]


class NoValue(Exception):
    """The reason why a metric has no value for these rows."""


@dataclass(slots=True)
class Scores:
    """The fields that a scorer gave each row; a metric may add notes, and a table of its classes."""

    scorer: str
    rows: Sequence[Mapping[str, Any]]
    notes: dict[str, Any]
    table: tuple[Classes, Confusion] | None = None

    def note(self, what: str, of: str, value: Any) -> None:
        """Add a note to the task."""
        self.notes.setdefault(what, {})[of] = value

    def values(self, name: str) -> list[Any]:
        """Return the values of a field, without nulls."""
        for each in self.rows:
            if name not in each:
                hint = nearest(name, each, "it has")
                raise ScoringError(f"a metric takes the field {name!r}, which a row lacks{hint}")
        values = [each[name] for each in self.rows if each[name] is not None]
        if not values:
            raise NoValue(f"{name} has no value in any row")
        return values

    def numbers(self, name: str) -> list[float]:
        """Return the values of a field of numbers and booleans."""
        values = self.values(name)
        wrong = next((value for value in values if not isinstance(value, bool | int | float)), None)
        if wrong is not None:
            raise ScoringError(f"a metric takes numbers, and the field {name!r} is {wrong!r:.80}")
        return [float(value) for value in values]

    def labels(self, name: str) -> list[str]:
        """Return the values of a field as labels."""
        return [as_label(value) for value in self.values(name)]

    def pairs(self, true: str, predicted: str) -> list[tuple[str, str]]:
        """Return the labels in two fields, for the rows that have both."""
        self.values(true), self.values(predicted)
        both = [(each[true], each[predicted]) for each in self.rows]
        return [(as_label(one), as_label(other)) for one, other in both if one is not None and other is not None]


def as_label(value: Any) -> str:
    """Return a label as text; true and false in lower case, as in YAML."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def ratio(part: float, whole: float) -> float:
    """Return ``part / whole``; 0.0 if ``whole`` is 0."""
    return part / whole if whole else 0.0


def f1(true_positives: float, false_positives: float, false_negatives: float) -> float:
    """Return the harmonic mean of precision and recall: ``2 tp / (2 tp + fp + fn)``."""
    return ratio(2 * true_positives, 2 * true_positives + false_positives + false_negatives)


NUMBERS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": lambda values: sum(values) / len(values),
    "min": min,
    "max": max,
    "std_dev": statistics.stdev,
}


def classify(true: Sequence[str], predicted: Sequence[str]) -> Classes:
    """Return precision, recall, F1 and the number of rows of each label that is true or predicted in any row."""
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
