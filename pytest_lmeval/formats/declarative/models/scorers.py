"""A task's scorers, each of which assigns a score or other fields to every row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, ValidationInfo, field_validator

from pytest_lmeval.errors import UnknownName, not_one_of
from pytest_lmeval.formats.checks import TURNS
from pytest_lmeval.formats.declarative.faults import Fault
from pytest_lmeval.formats.declarative.models.base import Block, Key, Template, TemplateText, field_error
from pytest_lmeval.formats.declarative.models.metrics import FieldMetric, Frequency, Metric
from pytest_lmeval.formats.yaml.document import Keys
from pytest_lmeval.leaderboard.details import CHECKS
from pytest_lmeval.registry import Registry

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
    """A scorer of a declarative task.

    ``USUAL`` pairs each field whose mean is a default metric with the name of that metric.
    """

    USUAL: ClassVar[tuple[tuple[str, str], ...]] = (("score", "{key}_mean"),)
    VARIABLES: ClassVar[tuple[str, ...]] = ()
    type: str = Field(description="The kind of scorer.")
    key: Key | None = Field(default=None, description="Its name in scores.KEY; by default its type.")
    purpose: Literal["score", "qa"] = Field(default="score", description="score: it may decide; qa: it is only shown.")
    metrics: list[Metric] | None = Field(default=None, description="Its metrics over all rows.")
    score_field: str | None = Field(
        default=None, description="The field that is the row's score; by default the only one that can be."
    )
    score_metric: str | None = Field(
        default=None, min_length=1, description="The metric that is the task's score if no field is a row's."
    )
    threshold: float | None = Field(default=None, ge=0, le=1, description="The score that a row must reach.")

    def usual_metrics(self, key: str) -> Sequence[tuple[Metric, str]]:
        """Return the default metrics and their names on the board."""
        return [(FieldMetric(type="mean", field=field), name.format(key=key)) for field, name in self.USUAL]

    def check(self, here: Keys, entity: str, registry: Registry) -> Iterator[Fault]:
        """Yield the errors that can be found in the scorer at ``here`` before any row is read."""
        for number, metric in enumerate(self.metrics or ()):
            yield from metric.check((*here, "metrics", number))


class TextScorer(ScorerBase):
    """A scorer of text, by default the model's answer."""

    prediction: TemplateText | None = Template(
        default=None, description="The text to score; by default the model's answer."
    )
    post_process: str | None = Field(default=None, description="The post-process rule, applied before scoring.")

    def check(self, here: Keys, entity: str, registry: Registry) -> Iterator[Fault]:
        if self.post_process is not None and self.post_process not in registry.rules:
            yield Fault((*here, "post_process"), "bad_value", not_one_of(self.post_process, sorted(registry.rules)))
        if entity == "dataset" and self.prediction is None:
            hint = "prediction: '{{ sample.COLUMN }}'"
            yield Fault((*here, "prediction"), "missing_required", f"there is no model's answer here; set {hint}")
        yield from super().check(here, entity, registry)


class StringEquals(TextScorer):
    """Compares the answer with the expected answer, ignoring whitespace at both ends."""

    USUAL = (("prediction_is_correct", "string_equality_mean"),)
    type: Literal["string_equals"] = Field(description="Compares two texts for equality.")
    ground_truth: TemplateText = Template(description="The expected answer, filled for every row.")
    ignore_case: bool = Field(default=False, description="true: upper and lower case are the same.")


class StringEqualsMcqa(TextScorer):
    """Compares the option named in the answer with the right option."""

    USUAL = StringEquals.USUAL
    type: Literal["string_equals_mcqa"] = Field(description="Compares the named option with the right one.")
    ground_truth_choice_field: str | None = Field(default=None, description="The column with the right option.")
    ground_truth: TemplateText | None = Template(default=None, description="The right option, filled for every row.")
    choices_field: str | None = Field(
        default=None, description="The column with the options to choose from; by default A to Z."
    )

    def check(self, here: Keys, entity: str, registry: Registry) -> Iterator[Fault]:
        if (self.ground_truth is None) == (self.ground_truth_choice_field is None):
            detail = "expected ground_truth or ground_truth_choice_field"
            yield Fault((*here, "ground_truth"), "missing_required", detail)
        yield from super().check(here, entity, registry)


class MetricScorer(TextScorer):
    """Any registered metric."""

    type: str = Field(
        description="The name of a metric: exact_match, f1, rouge_l, bleu, is_json, code_exec ...",
        json_schema_extra={"not": {"enum": list(_BUILT_IN_TYPES)}},
    )
    ground_truth: TemplateText | list[TemplateText] | None = Template(
        default=None, description="The targets, filled for every row; the best one counts."
    )
    extras: dict[str, Any] = Template(default_factory=dict, description="Further values that the metric needs.")

    @field_validator("type")
    @classmethod
    def _known(cls, value: str, info: ValidationInfo) -> str:
        if info.context is not None and value not in scorer_types(info.context.registry):
            raise field_error("bad_value", str(UnknownName("scorer type", value, scorer_types(info.context.registry))))
        return value


class Rouge(TextScorer):
    """ROUGE-1, ROUGE-2 and ROUGE-L."""

    USUAL = (("rouge_1", "rouge_1_mean"), ("rouge_2", "rouge_2_mean"), ("rouge_l", "rouge_l_mean"))
    type: Literal["rouge"] = Field(description="rouge_1, rouge_2 and rouge_l.")
    ground_truth: TemplateText | list[TemplateText] = Template(description="The references, filled for every row.")


class JsonSchema(TextScorer):
    """Validates the JSON in the answer against a schema."""

    USUAL = (("is_valid", "{key}_mean"),)
    type: Literal["json_schema"] = Field(description="Validates JSON against a JSON Schema.")
    json_schema: dict[str, Any] | str = Template(
        description="The schema: a mapping, or JSON text (!include schema.json), or a template that gives one."
    )


class PythonScorer(ScorerBase):
    """A Python function."""

    USUAL = ()
    type: Literal["python"] = Field(description="A Python function.")
    compute_scores_snippet: str = Field(
        min_length=1,
        description="Python with a function compute_scores(sample, model_input, model_output) or "
        "compute_scores(sample, solver_output), or compute_scores(sample) if a data set is evaluated.",
    )
    timeout_s: float = Field(default=30.0, gt=0, le=3600, description="Seconds after which the row is an error.")


class JudgeBase(ScorerBase):
    """A scorer that asks a judge."""

    VARIABLES = ("labels", "score_min", "score_max", "ground_truth", "material")
    model_key: str | None = Field(
        None, min_length=1, description="The judge, as --lm-adapter names it; by default that of --lm-judge."
    )
    system_prompt: TemplateText | None = Template(default=None, description="The system message of the judge.")
    user_prompt: TemplateText | None = Template(default=None, description="The judge's prompt; a default exists.")
    use_structured_outputs: bool = Field(default=False, description="Ignored: replies are always checked.")
    max_tokens: int | None = Field(default=None, ge=1, description="The longest reply of the judge, in tokens.")
    human_label: TemplateText | None = Template(
        default=None, description="A person's label of the row, to compute agreement."
    )

    def check(self, here: Keys, entity: str, registry: Registry) -> Iterator[Fault]:
        if entity == "dataset" and self.user_prompt is None:
            detail = "the field 'user_prompt' is required without a model"
            yield Fault((*here, "user_prompt"), "missing_required", detail)
        yield from super().check(here, entity, registry)


class Labeler(JudgeBase):
    """A scorer that asks a judge for a label from a list."""

    type: Literal["labeler_via_model"] = Field(description="A label from a list.")
    labels: list[str] | None = Field(default=None, min_length=1, description="The labels to choose from.")
    valid_labels: list[str] | None = Field(default=None, min_length=1, description="An alias of labels.")
    user_prompt: TemplateText = Template(description="The judge's prompt.")

    def usual_metrics(self, key: str) -> Sequence[tuple[Metric, str]]:
        return [(Frequency(type="frequency", field="label"), "")]

    def check(self, here: Keys, entity: str, registry: Registry) -> Iterator[Fault]:
        if (self.labels is None) == (self.valid_labels is None):
            yield Fault((*here, "labels"), "missing_required", "the field 'labels' is required: the judge's choices")
        yield from super().check(here, entity, registry)


class JudgeClassifier(JudgeBase):
    """A scorer whose judge decides whether the answer is right or wrong."""

    USUAL = (("is_correct", "{key}_mean"),)
    type: Literal["model_as_a_judge_classifier"] = Field(description="A judge decides if the answer is right or wrong.")
    correct_labels: list[str] = Field(min_length=1, description="The labels that mean right.")
    incorrect_labels: list[str] = Field(min_length=1, description="The labels that mean wrong.")
    ground_truth: TemplateText | None = Template(default=None, description="A reference for the judge.")

    def check(self, here: Keys, entity: str, registry: Registry) -> Iterator[Fault]:
        labels = [*self.correct_labels, *self.incorrect_labels]
        repeated = next((label for label in labels if labels.count(label) > 1), None)
        if repeated is not None:
            yield Fault((*here, "incorrect_labels"), "bad_value", f"the label {repeated!r} is listed twice")
        yield from super().check(here, entity, registry)


class JudgeScorer(JudgeBase):
    """A scorer whose judge gives a number."""

    type: Literal["model_as_a_judge_scorer"] = Field(description="A judge gives a number.")
    score_min: float = Field(default=0.0, description="The worst score.")
    score_max: float = Field(default=1.0, description="The best score.")
    ground_truth: TemplateText | None = Template(default=None, description="A reference for the judge.")

    def check(self, here: Keys, entity: str, registry: Registry) -> Iterator[Fault]:
        if self.score_min >= self.score_max:
            yield Fault((*here, "score_max"), "bad_value", f"expected more than score_min, {self.score_min:g}")
        yield from super().check(here, entity, registry)


def scorer_types(registry: Any) -> list[str]:
    """Return every type that a scorer may have, sorted."""
    # Records, not scorers, have turns or checks.
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
