"""Scorers that compare the answer with a text: equality, options, and every registered metric."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.formats.declarative.models.scorers import (
    JsonSchema,
    MetricScorer,
    Rouge,
    StringEquals,
    StringEqualsMcqa,
)
from pytest_lmeval.formats.declarative.scoring.outcome import ScorerOutput, Scoring
from pytest_lmeval.formats.declarative.templates import Kit
from pytest_lmeval.metrics.parts.texts import found
from pytest_lmeval.metrics.parts.worker import shared_worker
from pytest_lmeval.postprocess import Extraction, apply_metric, share_of

_EQUALITY = ("prediction_is_correct", "answer_gt", "answer_pred")
_ROUGE = ("rouge_1", "rouge_2", "rouge_l")
_MOST_PAIRS = 10_000_000


@dataclass(frozen=True, slots=True)
class _TextScorer:
    """A scorer that compares a text: the model's answer, or what its ``prediction`` gives, after its rule."""

    key: str
    model: Any
    kit: Kit

    def _predicted(self, scoring: Scoring) -> Extraction:
        prediction = self.model.prediction
        text = scoring.row.text if prediction is None else self._text(prediction, scoring)
        return self.kit.registry.rules[self.model.post_process or "none"](text)

    def _text(self, template: str, scoring: Scoring) -> str:
        return self.kit.template(template).render(scoring.variables)

    def _targets(self, scoring: Scoring) -> tuple[str, ...]:
        templates = self.model.ground_truth
        if isinstance(templates, str):
            value = self.kit.template(templates).value(scoring.variables)
            # A column may hold a list of right answers.
            if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
                return tuple(value)
            templates = [templates]
        return tuple(self._text(each, scoring) for each in templates or ())

    def _filled(self, value: Any, scoring: Scoring) -> Any:
        if isinstance(value, str):
            return self.kit.template(value).value(scoring.variables)
        if isinstance(value, list):
            return [self._filled(each, scoring) for each in value]
        if isinstance(value, dict):
            return {key: self._filled(each, scoring) for key, each in value.items()}
        return value


@dataclass(frozen=True, slots=True)
class EqualityScorer(_TextScorer):
    """``string_equals``."""

    model: StringEquals
    fields: tuple[str, ...] = _EQUALITY
    candidates: tuple[str, ...] = ("prediction_is_correct",)

    def score(self, scoring: Scoring) -> ScorerOutput:
        """Return whether the answer equals the expected one, whitespace at both ends aside."""
        predicted = self._predicted(scoring)
        expected = self._text(self.model.ground_truth, scoring).strip()
        answer = predicted.text.strip()
        equal = self._folded(answer) == self._folded(expected)
        fields = {"prediction_is_correct": equal, "answer_gt": expected, "answer_pred": answer}
        return ScorerOutput(fields, answer, unparsed=not predicted.found)

    def _folded(self, text: str) -> str:
        return text.casefold() if self.model.ignore_case else text


@dataclass(frozen=True, slots=True)
class McqaScorer(_TextScorer):
    """``string_equals_mcqa``."""

    model: StringEqualsMcqa
    fields: tuple[str, ...] = _EQUALITY
    candidates: tuple[str, ...] = ("prediction_is_correct",)

    def score(self, scoring: Scoring) -> ScorerOutput:
        """Return whether the answer names the right option; one that names none is unparsed."""
        predicted = self._predicted(scoring)
        choices = self._choices(scoring.row.sample)
        expected = self._expected(scoring).strip()
        if expected not in choices:
            raise ScoringError(f"the right option {expected!r:.80} is none of {', '.join(choices)[:200]}")
        answer = _named_choice(predicted.text, choices)
        fields = {"prediction_is_correct": answer == expected, "answer_gt": expected, "answer_pred": answer}
        return ScorerOutput(fields, answer or "", unparsed=answer is None)

    def _choices(self, sample: Mapping[str, Any]) -> list[str]:
        column = self.model.choices_field
        if column is None:
            return [chr(code) for code in range(ord("A"), ord("Z") + 1)]
        value = sample.get(column)
        if isinstance(value, str):
            value = _listed(value)
        if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
            raise ScoringError(f"column {column!r}: expected a list of options, got {value!r:.80}")
        return [each.strip() for each in value]

    def _expected(self, scoring: Scoring) -> str:
        if self.model.ground_truth is not None:
            return self._text(self.model.ground_truth, scoring)
        return str(scoring.row.sample.get(self.model.ground_truth_choice_field or ""))


def _listed(text: str) -> Any:
    # As a csv file has it.
    try:
        return json.loads(text.replace("'", '"'))
    except (ValueError, RecursionError):
        return [each.strip() for each in text.strip("[] ").split(",")]


def _named_choice(text: str, choices: Sequence[str]) -> str | None:
    answer = text.strip()
    for choice in choices:
        if answer.casefold() == choice.casefold():
            return choice
    if all(len(choice) == 1 for choice in choices):
        letters = "".join(re.escape(choice) for choice in choices)
        alone = re.search(rf"(?<![^\W_])[{letters}](?![^\W_])", answer)
        return alone[0] if alone else None
    # The time is the product of the lengths: an instant for a sentence, an hour for two texts of a megabyte.
    long = len(answer) * sum(map(len, choices)) > _MOST_PAIRS
    places = shared_worker().ask("string_equals_mcqa", choices, answer) if long else found(choices, answer)
    return choices[places[0]] if len(places) == 1 else None


@dataclass(frozen=True, slots=True)
class RegistryScorer(_TextScorer):
    """Any metric of the registry."""

    model: MetricScorer
    fields: tuple[str, ...] = ("score", "answer_gt", "answer_pred")
    candidates: tuple[str, ...] = ("score",)
    tools: tuple[Mapping[str, Any], ...] = ()

    def score(self, scoring: Scoring) -> ScorerOutput:
        """Return the metric's score; one that takes calls judges them by the schemas of the ``tools``, too."""
        metric = self.kit.registry.metric(self.model.type)
        if metric.takes_calls and self.model.prediction is None:
            predicted = Extraction(scoring.row.output, True)
        else:
            predicted = self._predicted(scoring)
        targets = self._targets(scoring)
        extras = {name: self._filled(value, scoring) for name, value in self.model.extras.items()}
        if metric.takes_calls and self.tools:
            extras["tools"] = list(self.tools)
        score = apply_metric(metric, predicted, targets, extras, scoring.tools.sandbox)
        expected = targets[0] if len(targets) == 1 else list(targets)
        value = share_of(score.value, self.model.type)
        fields = {"score": value, "answer_gt": expected, "answer_pred": predicted.text}
        return ScorerOutput(fields, predicted.text, score.unparsed, details=dict(score.details))


@dataclass(frozen=True, slots=True)
class RougeScorer(_TextScorer):
    """``rouge``."""

    model: Rouge
    fields: tuple[str, ...] = _ROUGE
    candidates: tuple[str, ...] = _ROUGE

    def score(self, scoring: Scoring) -> ScorerOutput:
        """Return ROUGE-1, ROUGE-2 and ROUGE-L."""
        predicted = self._predicted(scoring)
        references = self._targets(scoring)
        metrics = {name: self.kit.registry.metric(name) for name in _ROUGE}
        fields = {name: apply_metric(metric, predicted, references, {}).value for name, metric in metrics.items()}
        return ScorerOutput(fields, predicted.text, unparsed=not predicted.found)


@dataclass(frozen=True, slots=True)
class SchemaScorer(_TextScorer):
    """``json_schema``."""

    model: JsonSchema
    fields: tuple[str, ...] = ("is_valid",)
    candidates: tuple[str, ...] = ("is_valid",)

    def score(self, scoring: Scoring) -> ScorerOutput:
        """Return whether the JSON in the answer fulfils the schema."""
        predicted = self._predicted(scoring)
        extras = {"json_schema": self._schema(scoring)}
        score = apply_metric(self.kit.registry.metric("json_schema"), predicted, (), extras)
        return ScorerOutput(
            {"is_valid": score.value == 1.0}, predicted.text, score.unparsed, details=dict(score.details)
        )

    def _schema(self, scoring: Scoring) -> Any:
        given = self.model.json_schema
        value = self._filled(given, scoring)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except (ValueError, RecursionError) as error:
            raise ScoringError(f"json_schema is not JSON: {error}") from None
