"""The metrics of a scorer, which are numbers over the scores of all rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pytest_lmeval.formats.declarative import aggregations as pure
from pytest_lmeval.formats.declarative.faults import Fault
from pytest_lmeval.formats.declarative.models.base import Block, Data, Key
from pytest_lmeval.formats.yaml.document import Keys
from pytest_lmeval.judging.summary import confusion

_MOST_VALUES = 50
_NO_CLASS: pure.ClassScores = {"precision": 0.0, "recall": 0.0, "f1": 0.0, "n": 0}
_TRUE, _FALSE, _MISSED = "num_true_positives_field", "num_false_positives_field", "num_false_negatives_field"
_COUNTS = {"precision": (_TRUE, _FALSE), "recall": (_TRUE, _MISSED), "f1_score": (_TRUE, _FALSE, _MISSED)}


class MetricBase(Block):
    """A metric; ``WORDS`` has the default names of its numbers, such as ``{self.field}_mean``."""

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
        """Return the metric's name on the board, by default the first of ``others``."""
        return self.name or self.key or next(filter(None, others), "")

    def prefixed(self, word: str) -> str:
        """Return the name on the board of one of the metric's numbers."""
        return f"{self.named()}.{word}" if self.named() else word

    def names(self, default: str) -> list[str]:
        """Return the names of the metric's numbers on the board; empty if only the computation gives them."""
        words = [word.format(self=self) for word in self.WORDS]
        return [self.named(default, *words)] if len(words) == 1 else [*map(self.prefixed, words)]

    def check(self, here: Keys) -> Iterator[Fault]:
        """Yield the faults of the metric at ``here``."""
        yield from ()

    def aggregate(self, scores: pure.Scores, default: str) -> dict[str, float]:
        """Return the metric's numbers by name; raise NoValue if the rows give no number."""
        return dict(zip(self.names(default), self.numbers(scores, default), strict=True))

    def numbers(self, scores: pure.Scores, default: str) -> tuple[float, ...]:
        """Return a number for each of ``WORDS``."""
        raise NotImplementedError


class FieldMetric(MetricBase):
    """A number over a field of the scores: booleans count as 0 and 1."""

    WORDS = ("{self.field}_{self.type}",)
    type: Literal["mean", "min", "max", "std_dev"] = Field(description="mean, min, max or std_dev (of a sample).")
    field: str = Field(description="The field of the scorer.")

    def numbers(self, scores: pure.Scores, default: str) -> tuple[float, ...]:
        values = scores.numbers(self.field)
        if self.type == "std_dev" and len(values) < 2:
            raise pure.NoValue("a standard deviation needs two rows")
        return (float(pure.NUMBERS[self.type](values)),)


class Frequency(MetricBase):
    """The share of each value of a field."""

    type: Literal["frequency"] = Field(description="The share of each value: FIELD_VALUE.")
    field: str = Field(description="The field of the scorer.")

    def aggregate(self, scores: pure.Scores, default: str) -> dict[str, float]:
        labels = scores.labels(self.field)
        counts = Counter(labels).most_common()
        if len(counts) > _MOST_VALUES:
            raise pure.NoValue(f"{len(counts)} values; at most {_MOST_VALUES} shares are shown")
        return {f"{self.named(self.field)}_{value}": count / len(labels) for value, count in counts}


class CountMetric(MetricBase):
    """Precision, recall or F1, from counts of each row or from labels."""

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

    def numbers(self, scores: pure.Scores, default: str) -> tuple[float, ...]:
        true, false, missed = self._counts(scores)
        if self.type == "f1_score":
            return (pure.f1(true, false, missed),)
        return (pure.ratio(true, true + (false if self.type == "precision" else missed)),)

    def _counts(self, scores: pure.Scores) -> tuple[float, ...]:
        if self.field_gt is None or self.field_pred is None:
            names = (getattr(self, name) for name in (_TRUE, _FALSE, _MISSED))
            return tuple(0.0 if name is None else sum(scores.numbers(name)) for name in names)
        sought = pure.as_label(self.positive_answer)
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

    def numbers(self, scores: pure.Scores, default: str) -> tuple[float, ...]:
        pairs = scores.pairs(self.field_gt, self.field_pred)
        answers = {pure.as_label(self.positive_answer), pure.as_label(self.negative_answer)}
        known = [pair for pair in pairs if answers.issuperset(pair)]
        if len(known) < len(pairs):
            scores.note("neither_answer", scores.scorer, len(pairs) - len(known))
        accuracy, classes = _classified(scores, known)
        own = classes.get(pure.as_label(self.positive_answer), _NO_CLASS)
        return accuracy, own["precision"], own["recall"], own["f1"]


class MulticlassClassification(MetricBase):
    """Accuracy, macro-averaged precision, recall and F1, and the confusion matrix of labels."""

    WORDS = ("accuracy", "macro_precision", "macro_recall", "macro_f1_score")
    type: Literal["multiclass_classification", "multiclass-classification"] = Field(description="Labels.")
    field_gt: str = Field(description="The field with the true label.")
    field_pred: str = Field(description="The field with the predicted label.")

    def numbers(self, scores: pure.Scores, default: str) -> tuple[float, ...]:
        accuracy, classes = _classified(scores, scores.pairs(self.field_gt, self.field_pred))
        each = [(one["precision"], one["recall"], one["f1"]) for one in classes.values()]
        return accuracy, *(sum(values) / len(each) for values in zip(*each, strict=True))


class WeightedAverage(MetricBase):
    """The mean of the weights of the labels."""

    WORDS = ("{self.field}_weighted_average",)
    type: Literal["weighted_average"] = Field(description="The mean of the weights of the labels.")
    field: str = Field(description="The field with the label.")
    weights: dict[str, float] = Data(min_length=1, description="The weight of each label.")

    def numbers(self, scores: pure.Scores, default: str) -> tuple[float, ...]:
        labels = scores.labels(self.field)
        others = Counter(label for label in labels if label not in self.weights)
        if others:
            scores.note("without_weight", f"{scores.scorer}.{self.names(default)[0]}", dict(sorted(others.items())))
        if not (weighed := [label for label in labels if label in self.weights]):
            raise pure.NoValue(f"no weight for any label of {self.field}: {', '.join(sorted(others))[:200]}")
        return (math.fsum(self.weights[label] for label in weighed) / len(weighed),)


class PythonMetric(MetricBase):
    """A Python function over all scores."""

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


def _classified(scores: pure.Scores, pairs: list[tuple[str, str]]) -> tuple[float, pure.Classes]:
    """Return the accuracy and the scores of each label; store the table for the board."""
    if not pairs:
        raise pure.NoValue("no row has both labels")
    true, predicted = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    classes = pure.classify(true, predicted)
    scores.table = classes, confusion(true, predicted)
    return sum(one == other for one, other in pairs) / len(pairs), classes
