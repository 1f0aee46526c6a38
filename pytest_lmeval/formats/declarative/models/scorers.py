"""What a row's answer is worth, what else is found out about it, and what is made of that over all rows."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from pytest_lmeval.errors import UnknownName
from pytest_lmeval.formats.checks import TURNS
from pytest_lmeval.formats.declarative.models.base import FAULTS, Block, Data, Key, Template, TemplateText
from pytest_lmeval.leaderboard.details import CHECKS


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


_BUILT_IN_TYPES = (
    "string_equals",
    "string_equals_mcqa",
    "rouge",
    "json_schema",
    "python",
    "labeler_via_model",
    "model_as_a_judge_classifier",
    "model_as_a_judge_scorer",
)


class ScorerBase(Block):
    """One scorer."""

    type: str = Field(description="What it does.")
    key: Key | None = Field(default=None, description="What scores.KEY calls it; else its type.")
    purpose: Literal["score", "qa"] = Field(default="score", description="score: it may decide; qa: it is only shown.")
    metrics: list[Metric] | None = Field(default=None, description="What is made of it over all rows.")
    score_field: str | None = Field(
        default=None, description="The field that is the row's score; else the only one that can be."
    )
    score_metric: str | None = Field(
        default=None, min_length=1, description="The metric that is the task's score where no field is a row's."
    )
    threshold: float | None = Field(default=None, ge=0, le=1, description="The score that a row must reach.")


class TextScorer(ScorerBase):
    """A scorer that compares a text."""

    prediction: TemplateText | None = Template(default=None, description="The text to score; else the model's answer.")
    post_process: str | None = Field(default=None, description="A post-process rule that is applied to it first.")


class StringEquals(TextScorer):
    """Whether the answer is the expected one, whitespace at both ends aside."""

    type: Literal["string_equals"] = Field(description="Whether two texts are equal.")
    ground_truth: TemplateText = Template(description="The expected answer, filled for every row.")
    ignore_case: bool = Field(default=False, description="Whether upper and lower case are the same.")


class StringEqualsMcqa(TextScorer):
    """Whether the answer is the letter of the right option."""

    type: Literal["string_equals_mcqa"] = Field(description="Whether the right option was named.")
    ground_truth_choice_field: str | None = Field(default=None, description="The column with the right option.")
    ground_truth: TemplateText | None = Template(default=None, description="The right option, filled for every row.")
    choices_field: str | None = Field(
        default=None, description="The column with the options to choose from; else A to Z."
    )


class MetricScorer(TextScorer):
    """Any metric that is registered."""

    type: str = Field(
        description="The name of a metric: exact_match, f1, rouge_l, bleu, is_json, code_exec ...",
        json_schema_extra={"not": {"enum": list(_BUILT_IN_TYPES)}},
    )
    ground_truth: TemplateText | list[TemplateText] | None = Template(
        default=None, description="The targets, filled for every row; the best one counts."
    )
    extras: dict[str, Any] = Template(default_factory=dict, description="What else the metric needs.")

    @field_validator("type")
    @classmethod
    def _known(cls, value: str, info: ValidationInfo) -> str:
        if info.context is not None and value not in scorer_types(info.context.registry):
            detail = str(UnknownName("scorer type", value, scorer_types(info.context.registry)))
            raise PydanticCustomError(FAULTS, "faults of fields", {"faults": [["", "bad_value", detail]]})
        return value


class Rouge(TextScorer):
    """ROUGE-1, ROUGE-2 and ROUGE-L."""

    type: Literal["rouge"] = Field(description="rouge_1, rouge_2 and rouge_l.")
    ground_truth: TemplateText | list[TemplateText] = Template(description="The references, filled for every row.")


class JsonSchema(TextScorer):
    """Whether the JSON in the answer fulfils a schema."""

    type: Literal["json_schema"] = Field(description="Whether a JSON Schema is fulfilled.")
    json_schema: dict[str, Any] | str = Template(
        description="The schema: a mapping, or JSON text (!include schema.json), or a template that gives one."
    )


class PythonScorer(ScorerBase):
    """A Python function."""

    type: Literal["python"] = Field(description="A Python function.")
    compute_scores_snippet: str = Field(
        min_length=1,
        description="Python with a function compute_scores(sample, model_input, model_output) or "
        "compute_scores(sample, solver_output), or compute_scores(sample) where data sets are evaluated.",
    )
    timeout_s: float = Field(default=30.0, gt=0, le=3600, description="Seconds after which the row is an error.")


class JudgeBase(ScorerBase):
    """A scorer that asks a model."""

    model_key: str | None = Field(
        None, min_length=1, description="The judge, as --lm-adapter names it; else --lm-judge."
    )
    system_prompt: TemplateText | None = Template(default=None, description="The system message of the judge.")
    user_prompt: TemplateText | None = Template(default=None, description="What the judge is asked; a default exists.")
    use_structured_outputs: bool = Field(
        default=False, description="Read, and of no effect: answers are always checked."
    )
    max_tokens: int | None = Field(default=None, ge=1, description="The longest answer of the judge, in tokens.")
    human_label: TemplateText | None = Template(
        default=None, description="What a person said of the row; agreement is worked out from it."
    )


class Labeler(JudgeBase):
    """A label out of a list."""

    type: Literal["labeler_via_model"] = Field(description="A label out of a list.")
    labels: list[str] | None = Field(default=None, min_length=1, description="The labels to choose from.")
    valid_labels: list[str] | None = Field(default=None, min_length=1, description="Another name of labels.")
    user_prompt: TemplateText = Template(description="What the judge is asked.")


class JudgeClassifier(JudgeBase):
    """Whether an answer is right, as a judge sees it."""

    type: Literal["model_as_a_judge_classifier"] = Field(description="Right or wrong, as a judge sees it.")
    correct_labels: list[str] = Field(min_length=1, description="The labels that mean right.")
    incorrect_labels: list[str] = Field(min_length=1, description="The labels that mean wrong.")
    ground_truth: TemplateText | None = Template(default=None, description="What the judge may compare with.")


class JudgeScorer(JudgeBase):
    """A number, as a judge sees it."""

    type: Literal["model_as_a_judge_scorer"] = Field(description="A number, as a judge sees it.")
    score_min: float = Field(default=0.0, description="The worst score there is.")
    score_max: float = Field(default=1.0, description="The best score there is.")
    ground_truth: TemplateText | None = Template(default=None, description="What the judge may compare with.")


def scorer_types(registry: Any) -> list[str]:
    """Return every type that a scorer may have, sorted."""
    # Turns are scored by what a record says of each; a scorer does not see that.
    return sorted({*_BUILT_IN_TYPES, *registry.metrics} - {TURNS, CHECKS})


def _tag(value: Any) -> str | None:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    if not isinstance(kind, str):
        return None
    return kind if kind in _BUILT_IN_TYPES else "metric"


Scorer = Annotated[
    Annotated[StringEquals, Tag("string_equals")]
    | Annotated[StringEqualsMcqa, Tag("string_equals_mcqa")]
    | Annotated[Rouge, Tag("rouge")]
    | Annotated[JsonSchema, Tag("json_schema")]
    | Annotated[PythonScorer, Tag("python")]
    | Annotated[Labeler, Tag("labeler_via_model")]
    | Annotated[JudgeClassifier, Tag("model_as_a_judge_classifier")]
    | Annotated[JudgeScorer, Tag("model_as_a_judge_scorer")]
    | Annotated[MetricScorer, Tag("metric")],
    Discriminator(_tag),
]
