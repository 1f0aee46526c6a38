"""A scorer's metrics: numbers computed from the scores of all rows.

A ratio with divisor 0 is 0.0, as with scikit-learn's ``zero_division=0``. Labels are compared as text.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypedDict

from pydantic import Field

from pytest_lmeval.errors import ScoringError, nearest
from pytest_lmeval.formats.declarative.faults import Fault
from pytest_lmeval.formats.declarative.models.base import Block, Data, Key
from pytest_lmeval.formats.yaml.document import Keys
from pytest_lmeval.judging.summary import confusion


class ClassScores(TypedDict):
    """A label's scores, each in [0, 1], and the number of rows with this true label."""

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
    """A scorer's fields for each row; a metric may add notes and a table of classes."""

    scorer: str
    rows: Sequence[Mapping[str, Any]]
    notes: dict[str, Any]
    table: tuple[Classes, Confusion] | None = None

    def note(self, what: str, of: str, value: Any) -> None:
        """Add a note to the task."""
        self.notes.setdefault(what, {})[of] = value

    def values(self, name: str) -> list[Any]:
        """Return a field's values, without nulls."""
        for each in self.rows:
            if name not in each:
                hint = nearest(name, each, "it has")
                raise ScoringError(f"a metric takes the field {name!r}, which a row lacks{hint}")
        values = [each[name] for each in self.rows if each[name] is not None]
        if not values:
            raise NoValue(f"{name} has no value in any row")
        return values

    def numbers(self, name: str) -> list[float]:
        """Return a field's values as numbers; booleans become 0 and 1."""
        values = self.values(name)
        wrong = next((value for value in values if not isinstance(value, bool | int | float)), None)
        if wrong is not None:
            raise ScoringError(f"a metric takes numbers, and the field {name!r} is {wrong!r:.80}")
        return [float(value) for value in values]

    def labels(self, name: str) -> list[str]:
        """Return a field's values as labels."""
        return [as_label(value) for value in self.values(name)]

    def pairs(self, true: str, predicted: str) -> list[tuple[str, str]]:
        """Return the labels in two fields, for the rows that have both."""
        self.values(true), self.values(predicted)
        both = [(each[true], each[predicted]) for each in self.rows]
        return [(as_label(one), as_label(other)) for one, other in both if one is not None and other is not None]


def as_label(value: Any) -> str:
    """Return a label as text; true and false are in lower case, as in YAML."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def ratio(part: float, whole: float) -> float:
    """Return ``part / whole``, or 0.0 if ``whole`` is 0."""
    return part / whole if whole else 0.0


def f1(true_positives: float, false_positives: float, false_negatives: float) -> float:
    """Return the harmonic mean of precision and recall, ``2 tp / (2 tp + fp + fn)``."""
    return ratio(2 * true_positives, 2 * true_positives + false_positives + false_negatives)


NUMBERS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": lambda values: sum(values) / len(values),
    "min": min,
    "max": max,
    "std_dev": statistics.stdev,
}


def classify(true: Sequence[str], predicted: Sequence[str]) -> Classes:
    """Return precision, recall, F1 and the row count of every label that is true or predicted in any row."""
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


_MOST_VALUES = 50
_NO_CLASS: ClassScores = {"precision": 0.0, "recall": 0.0, "f1": 0.0, "n": 0}
_TRUE, _FALSE, _MISSED = "num_true_positives_field", "num_false_positives_field", "num_false_negatives_field"
_COUNTS = {"precision": (_TRUE, _FALSE), "recall": (_TRUE, _MISSED), "f1_score": (_TRUE, _FALSE, _MISSED)}


class MetricBase(Block):
    """A metric over the scores of all rows.

    ``WORDS`` lists the default names of the metric's numbers, such as ``{self.field}_{self.type}``.
    """

    WORDS: ClassVar[tuple[str, ...]] = ()
    key: Key | None = Field(default=None, description="Its name on the board; name takes precedence.")
    name: str | None = Field(default=None, min_length=1, max_length=100, description="Its name on the board.")

    @property
    def fields(self) -> dict[str, str]:
        """The scorer's fields that the metric reads, by the metric's keys."""
        named = {key: getattr(self, key) for key in type(self).model_fields if key.startswith("field")}
        counts = {key: getattr(self, key) for key in type(self).model_fields if key.endswith("_field")}
        return {key: field for key, field in (named | counts).items() if field is not None}

    def named(self, *others: str) -> str:
        """Return the metric's name on the board, by default the first non-empty name in ``others``."""
        return self.name or self.key or next(filter(None, others), "")

    def prefixed(self, word: str) -> str:
        """Return the board's name for the metric's number ``word``."""
        return f"{self.named()}.{word}" if self.named() else word

    def names(self, default: str) -> list[str]:
        """Return the names of the metric's numbers on the board; empty if they are known only after the computation."""
        words = [word.format(self=self) for word in self.WORDS]
        return [self.named(default, *words)] if len(words) == 1 else [*map(self.prefixed, words)]

    def check(self, here: Keys) -> Iterator[Fault]:
        """Yield the errors in the metric at ``here``."""
        yield from ()

    def aggregate(self, scores: Scores, default: str) -> dict[str, float]:
        """Return the metric's numbers by name; raise NoValue if the rows yield no number."""
        return dict(zip(self.names(default), self.numbers(scores, default), strict=True))

    def numbers(self, scores: Scores, default: str) -> tuple[float, ...]:
        """Return a number for each name in ``WORDS``."""
        raise NotImplementedError


class FieldMetric(MetricBase):
    """A number computed from a field of the scores; booleans count as 0 and 1."""

    WORDS = ("{self.field}_{self.type}",)
    type: Literal["mean", "min", "max", "std_dev"] = Field(description="mean, min, max or std_dev (of a sample).")
    field: str = Field(description="The field of the scorer.")

    def numbers(self, scores: Scores, default: str) -> tuple[float, ...]:
        values = scores.numbers(self.field)
        if self.type == "std_dev" and len(values) < 2:
            raise NoValue("a standard deviation needs two rows")
        return (float(NUMBERS[self.type](values)),)


class Frequency(MetricBase):
    """The share of each value in a field."""

    type: Literal["frequency"] = Field(description="The share of each value: FIELD_VALUE.")
    field: str = Field(description="The field of the scorer.")

    def aggregate(self, scores: Scores, default: str) -> dict[str, float]:
        labels = scores.labels(self.field)
        counts = Counter(labels).most_common()
        if len(counts) > _MOST_VALUES:
            raise NoValue(f"{len(counts)} values; at most {_MOST_VALUES} shares are shown")
        return {f"{self.named(self.field)}_{value}": count / len(labels) for value, count in counts}


class CountMetric(MetricBase):
    """Precision, recall or F1, computed from each row's counts or labels."""

    WORDS = ("{self.type}",)
    type: Literal["precision", "recall", "f1_score"] = Field(description="precision, recall or f1_score.")
    num_true_positives_field: str | None = Field(
        default=None, description="The field with the true positives of a row."
    )
    num_false_positives_field: str | None = Field(default=None, description="The field with its false positives.")
    num_false_negatives_field: str | None = Field(default=None, description="The field with its false negatives.")
    field_gt: str | None = Field(default=None, description="The field with the true label, if labels are compared.")
    field_pred: str | None = Field(default=None, description="The field with the predicted label.")
    positive_answer: str | bool | int | None = Field(default=None, description="The positive label.")

    def check(self, here: Keys) -> Iterator[Fault]:
        wanted = _COUNTS[self.type]
        by_label = None not in (self.field_gt, self.field_pred, self.positive_answer)
        if not by_label and any(getattr(self, name) is None for name in wanted):
            detail = f"expected {', '.join(wanted)}; or field_gt, field_pred and positive_answer"
            yield Fault((*here, wanted[0]), "missing_required", detail)

    def numbers(self, scores: Scores, default: str) -> tuple[float, ...]:
        true, false, missed = self._counts(scores)
        if self.type == "f1_score":
            return (f1(true, false, missed),)
        return (ratio(true, true + (false if self.type == "precision" else missed)),)

    def _counts(self, scores: Scores) -> tuple[float, ...]:
        if self.field_gt is None or self.field_pred is None:
            names = (getattr(self, name) for name in (_TRUE, _FALSE, _MISSED))
            return tuple(0.0 if name is None else sum(scores.numbers(name)) for name in names)
        sought = as_label(self.positive_answer)
        pairs = Counter(
            (true == sought, guess == sought) for true, guess in scores.pairs(self.field_gt, self.field_pred)
        )
        return pairs[True, True], pairs[False, True], pairs[True, False]


class BinaryClassification(MetricBase):
    """Accuracy, precision, recall, F1 and the confusion matrix of two labels."""

    WORDS = ("accuracy", "precision", "recall", "f1_score")
    type: Literal["binary_classification", "binary-classification"] = Field(description="Two labels.")
    field_gt: str = Field(description="The field with the true label.")
    field_pred: str = Field(description="The field with the predicted label.")
    positive_answer: str | bool | int = Field(description="The positive label.")
    negative_answer: str | bool | int = Field(description="The other label.")

    def numbers(self, scores: Scores, default: str) -> tuple[float, ...]:
        pairs = scores.pairs(self.field_gt, self.field_pred)
        answers = {as_label(self.positive_answer), as_label(self.negative_answer)}
        known = [pair for pair in pairs if answers.issuperset(pair)]
        if len(known) < len(pairs):
            scores.note("neither_answer", scores.scorer, len(pairs) - len(known))
        accuracy, classes = _classified(scores, known)
        own = classes.get(as_label(self.positive_answer), _NO_CLASS)
        return accuracy, own["precision"], own["recall"], own["f1"]


class MulticlassClassification(MetricBase):
    """Accuracy, macro-averaged precision, recall and F1, and the confusion matrix of labels."""

    WORDS = ("accuracy", "macro_precision", "macro_recall", "macro_f1_score")
    type: Literal["multiclass_classification", "multiclass-classification"] = Field(description="Labels.")
    field_gt: str = Field(description="The field with the true label.")
    field_pred: str = Field(description="The field with the predicted label.")

    def numbers(self, scores: Scores, default: str) -> tuple[float, ...]:
        accuracy, classes = _classified(scores, scores.pairs(self.field_gt, self.field_pred))
        each = [(one["precision"], one["recall"], one["f1"]) for one in classes.values()]
        return accuracy, *(sum(values) / len(each) for values in zip(*each, strict=True))


class WeightedAverage(MetricBase):
    """The mean weight of the rows' labels."""

    WORDS = ("{self.field}_weighted_average",)
    type: Literal["weighted_average"] = Field(description="The mean of the weights of the labels.")
    field: str = Field(description="The field with the label.")
    weights: dict[str, float] = Data(min_length=1, description="The weight of each label.")

    def numbers(self, scores: Scores, default: str) -> tuple[float, ...]:
        labels = scores.labels(self.field)
        others = Counter(label for label in labels if label not in self.weights)
        if others:
            scores.note("without_weight", f"{scores.scorer}.{self.names(default)[0]}", dict(sorted(others.items())))
        if not (weighed := [label for label in labels if label in self.weights]):
            raise NoValue(f"no weight for any label of {self.field}: {', '.join(sorted(others))[:200]}")
        return (math.fsum(self.weights[label] for label in weighed) / len(weighed),)


class PythonMetric(MetricBase):
    """A metric that a Python function computes from all scores."""

    type: Literal["python"] = Field(description="A Python function.")
    compute_metrics_snippet: str = Field(
        min_length=1, description="Python with a function compute_metrics(scores), or compute_scores(scores)."
    )
    timeout_s: float = Field(default=60.0, gt=0, le=3600, description="Seconds after which it is an error.")


Metric = Annotated[
    FieldMetric
    | Frequency
    | CountMetric
    | BinaryClassification
    | MulticlassClassification
    | WeightedAverage
    | PythonMetric,
    Field(discriminator="type"),
]


def _classified(scores: Scores, pairs: list[tuple[str, str]]) -> tuple[float, Classes]:
    """Return the accuracy and the scores of each label; store the table for the board."""
    if not pairs:
        raise NoValue("no row has both labels")
    true, predicted = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    classes = classify(true, predicted)
    scores.table = classes, confusion(true, predicted)
    return sum(one == other for one, other in pairs) / len(pairs), classes
