"""What a task makes of the scores of all its rows."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pytest_lmeval.formats.declarative.models.base import Block, Data, Key


class MetricBase(Block):
    """One aggregation; ``WORDS`` are the default names of its numbers, such as ``{self.field}_mean``."""

    WORDS: ClassVar[tuple[str, ...]] = ()
    key: Key | None = Field(default=None, description="What the board calls it, where name does not say.")
    name: str | None = Field(default=None, min_length=1, max_length=100, description="What the board calls it.")

    @property
    def words(self) -> tuple[str, ...]:
        """The default names of its numbers; empty where they are known only after the computation."""
        return tuple(word.format(self=self) for word in self.WORDS)

    @property
    def fields(self) -> dict[str, str]:
        """The fields of the scorer that it takes, by the key that names each."""
        named = {key: getattr(self, key) for key in type(self).model_fields if key.startswith("field")}
        counts = {key: getattr(self, key) for key in type(self).model_fields if key.endswith("_field")}
        return {key: field for key, field in (named | counts).items() if field is not None}


class FieldMetric(MetricBase):
    """A number over a field of the scores: booleans count as 0 and 1."""

    WORDS = ("{self.field}_{self.type}",)
    type: Literal["mean", "min", "max", "std_dev"] = Field(description="mean, min, max or std_dev (of a sample).")
    field: str = Field(description="The field of the scorer.")


class Frequency(MetricBase):
    """The share of each value of a field."""

    type: Literal["frequency"] = Field(description="The share of each value: FIELD_VALUE.")
    field: str = Field(description="The field of the scorer.")


class CountMetric(MetricBase):
    """Precision, recall or F1, from counts of each row or from labels."""

    WORDS = ("{self.type}",)
    type: Literal["precision", "recall", "f1_score"] = Field(description="precision, recall or f1_score.")
    num_true_positives_field: str | None = Field(
        default=None, description="The field with the true positives of a row."
    )
    num_false_positives_field: str | None = Field(default=None, description="The field with its false positives.")
    num_false_negatives_field: str | None = Field(default=None, description="The field with its false negatives.")
    field_gt: str | None = Field(default=None, description="The field with the true label, where labels are compared.")
    field_pred: str | None = Field(default=None, description="The field with the predicted label.")
    positive_answer: str | bool | int | None = Field(default=None, description="The label that is sought.")


class BinaryClassification(MetricBase):
    """Accuracy, precision, recall, F1 and the confusion matrix of two labels."""

    WORDS = ("accuracy", "precision", "recall", "f1_score")
    type: Literal["binary_classification", "binary-classification"] = Field(description="Two labels.")
    field_gt: str = Field(description="The field with the true label.")
    field_pred: str = Field(description="The field with the predicted label.")
    positive_answer: str | bool | int = Field(description="The label that is sought.")
    negative_answer: str | bool | int = Field(description="The other label.")


class MulticlassClassification(MetricBase):
    """Accuracy, macro-averaged precision, recall and F1, and the confusion matrix of labels."""

    WORDS = ("accuracy", "macro_precision", "macro_recall", "macro_f1_score")
    type: Literal["multiclass_classification", "multiclass-classification"] = Field(description="Labels.")
    field_gt: str = Field(description="The field with the true label.")
    field_pred: str = Field(description="The field with the predicted label.")


class WeightedAverage(MetricBase):
    """The mean of the weights of the labels."""

    WORDS = ("{self.field}_weighted_average",)
    type: Literal["weighted_average"] = Field(description="The mean of the weights of the labels.")
    field: str = Field(description="The field with the label.")
    weights: dict[str, float] = Data(min_length=1, description="The weight of each label.")


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
