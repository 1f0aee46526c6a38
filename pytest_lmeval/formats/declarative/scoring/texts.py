"""Scorers that compare an answer with the expected text: for equality, as an option, or with a registered metric."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.formats.declarative.models.scorers import (
    JsonSchema,
    MetricScorer,
    Rouge,
    ScorerBase,
    StringEquals,
    StringEqualsMcqa,
)
from pytest_lmeval.formats.declarative.scoring.outcome import ScorerOutput, Scoring
from pytest_lmeval.metrics.parts.patterns import compiled
from pytest_lmeval.postprocess import Extraction, apply_metric, share_of
from pytest_lmeval.registry import Registry
from pytest_lmeval.templates.rows import walked
from pytest_lmeval.templates.template import compile_template

_ROUGE = ("rouge_1", "rouge_2", "rouge_l")
_Schemas = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ComparingScorer:
    """Compares the post-processed answer, or the post-processed ``prediction``, with the expected text.

    ``compute`` does the comparison. A metric for tool calls uses the schemas in ``tools``.
    """

    key: str
    model: Any
    registry: Registry
    compute: Callable[[ComparingScorer, Scoring], ScorerOutput]
    fields: tuple[str, ...]
    candidates: tuple[str, ...]
    tools: _Schemas = ()

    def score(self, scoring: Scoring) -> ScorerOutput:
        """Return the result of the comparison."""
        return self.compute(self, scoring)

    def predicted(self, scoring: Scoring) -> Extraction:
        """Return the text to compare."""
        prediction = self.model.prediction
        text = scoring.row.text if prediction is None else self.text(prediction, scoring)
        return self.registry.rules[self.model.post_process or "none"](text)

    def text(self, template: str, scoring: Scoring) -> str:
        """Return the text of ``template``, filled for the row."""
        return compile_template(template).render(scoring.variables)

    def targets(self, scoring: Scoring) -> tuple[str, ...]:
        """Return the right answers for the row."""
        templates = self.model.ground_truth
        if isinstance(templates, str):
            value = compile_template(templates).value(scoring.variables)
            # A column may hold a list of right answers.
            if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
                return tuple(value)
            templates = [templates]
        return tuple(self.text(each, scoring) for each in templates or ())

    def filled(self, value: Any, scoring: Scoring) -> Any:
        """Return ``value`` with its templates filled for the row, at any depth."""
        variables = scoring.variables
        return walked(value, lambda each: compile_template(each).value(variables) if isinstance(each, str) else each)


def text_scorer(key: str, model: ScorerBase, registry: Registry, tools: _Schemas) -> ComparingScorer:
    """Return the scorer for an entry that compares text."""
    compute, fields, candidates = _KINDS[type(model)]
    return ComparingScorer(key, model, registry, compute, fields, candidates, tools)


def _equality(scorer: ComparingScorer, scoring: Scoring) -> ScorerOutput:
    predicted = scorer.predicted(scoring)
    expected = scorer.text(scorer.model.ground_truth, scoring).strip()
    answer = predicted.text.strip()
    equal = answer.casefold() == expected.casefold() if scorer.model.ignore_case else answer == expected
    fields = {"prediction_is_correct": equal, "answer_gt": expected, "answer_pred": answer}
    return ScorerOutput(fields, answer, unparsed=not predicted.found)


def _option(scorer: ComparingScorer, scoring: Scoring) -> ScorerOutput:
    predicted = scorer.predicted(scoring)
    sample, template = scoring.row.sample, scorer.model.ground_truth
    choices = _choices(scorer.model.choices_field, sample)
    right = sample.get(scorer.model.ground_truth_choice_field or "")
    expected = (str(right) if template is None else scorer.text(template, scoring)).strip()
    if expected not in choices:
        raise ScoringError(f"the right option {expected!r:.80} is not one of {', '.join(choices)[:200]}")
    answer = _named_choice(predicted.text, choices)
    fields = {"prediction_is_correct": answer == expected, "answer_gt": expected, "answer_pred": answer}
    return ScorerOutput(fields, answer or "", unparsed=answer is None)


def _choices(column: str | None, sample: Mapping[str, Any]) -> list[str]:
    if column is None:
        return [chr(code) for code in range(ord("A"), ord("Z") + 1)]
    value = sample.get(column)
    if isinstance(value, str):
        value = _listed(value)
    if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
        raise ScoringError(f"column {column!r}: expected a list of options, got {value!r:.80}")
    return [each.strip() for each in value]


def _listed(text: str) -> Any:
    # A cell of a CSV file may hold JSON, a Python list, or words separated by commas.
    for read in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return read(text)
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
    words = [compiled(rf"(?<!\w){re.escape(choice)}(?!\w)", re.IGNORECASE) for choice in choices]
    named = [choice for choice, word in zip(choices, words, strict=True) if word.search(answer)]
    return named[0] if len(named) == 1 else None


def _metric(scorer: ComparingScorer, scoring: Scoring) -> ScorerOutput:
    metric = scorer.registry.metric(scorer.model.type)
    if metric.takes_calls and scorer.model.prediction is None:
        predicted = Extraction(scoring.row.output, True)
    else:
        predicted = scorer.predicted(scoring)
    targets = scorer.targets(scoring)
    extras = {name: scorer.filled(value, scoring) for name, value in scorer.model.extras.items()}
    if metric.takes_calls and scorer.tools:
        extras["tools"] = list(scorer.tools)
    score = apply_metric(metric, predicted, targets, extras, scoring.tools.sandbox)
    expected = targets[0] if len(targets) == 1 else list(targets)
    value = share_of(score.value, scorer.model.type)
    fields = {"score": value, "answer_gt": expected, "answer_pred": predicted.text}
    return ScorerOutput(fields, predicted.text, score.unparsed, details=dict(score.details))


def _rouge(scorer: ComparingScorer, scoring: Scoring) -> ScorerOutput:
    predicted, references = scorer.predicted(scoring), scorer.targets(scoring)
    rouge = scorer.registry.metric
    fields = {name: apply_metric(rouge(name), predicted, references, {}).value for name in _ROUGE}
    return ScorerOutput(fields, predicted.text, unparsed=not predicted.found)


def _validity(scorer: ComparingScorer, scoring: Scoring) -> ScorerOutput:
    predicted = scorer.predicted(scoring)
    schema = scorer.filled(scorer.model.json_schema, scoring)
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except (ValueError, RecursionError) as error:
            raise ScoringError(f"json_schema is not JSON: {error}") from None
    score = apply_metric(scorer.registry.metric("json_schema"), predicted, (), {"json_schema": schema})
    return ScorerOutput({"is_valid": score.value == 1.0}, predicted.text, score.unparsed, details=dict(score.details))


_EQUAL = ("prediction_is_correct",)
_COMPARED = ("answer_gt", "answer_pred")
_KINDS: Mapping[type[ScorerBase], tuple[Callable[..., ScorerOutput], tuple[str, ...], tuple[str, ...]]] = {
    StringEquals: (_equality, (*_EQUAL, *_COMPARED), _EQUAL),
    StringEqualsMcqa: (_option, (*_EQUAL, *_COMPARED), _EQUAL),
    MetricScorer: (_metric, ("score", *_COMPARED), ("score",)),
    Rouge: (_rouge, _ROUGE, _ROUGE),
    JsonSchema: (_validity, ("is_valid",), ("is_valid",)),
}
"""The function, the fields and the possible score fields of a scorer, by the class of its model."""
