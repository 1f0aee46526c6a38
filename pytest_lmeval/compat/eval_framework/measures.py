"""Metrics for a model's confidence (from log-probabilities of answers) and for the model's language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from pytest_lmeval.metrics.parts.probability import softmax
from pytest_lmeval.tasks.judging import JudgedAnswer

_LANGUAGES = ("ENGLISH", "GERMAN", "SPANISH", "ITALIAN", "FRENCH", "DUTCH", "PORTUGUESE", "FINNISH")


class ConfidenceWeightedAccuracy:
    """The probability of the chosen answer if it is right, and 0 otherwise, from log-probabilities per character."""

    NAME = "confidence_weighted_accuracy"
    THRESHOLD = 0.5

    def of_loglikelihoods(self, loglikelihoods: Mapping[str, float], targets: Sequence[str]) -> float:
        """Return the score in [0, 1]."""
        probable = _probabilities(loglikelihoods)
        chosen = _chosen(loglikelihoods)
        return probable[chosen] if _is_right(chosen, targets) else 0.0


class DistributionalCorrectnessScore:
    """The probability of right answers minus the probability of wrong answers, scaled to [0, 1].

    The last completion means "I do not know": it is not a wrong answer, but its probability reduces the difference. The
    original metric's number is twice this score minus 1.
    """

    NAME = "distributional_correctness"
    THRESHOLD = 0.5

    def of_loglikelihoods(self, loglikelihoods: Mapping[str, float], targets: Sequence[str]) -> float:
        """Return the score in [0, 1]."""
        probable = _probabilities(loglikelihoods)
        unsure = _normal(list(loglikelihoods)[-1])
        right = sum(share for text, share in probable.items() if _is_right(text, targets))
        wrong = sum(
            share for text, share in probable.items() if not _is_right(text, targets) and _normal(text) != unsure
        )
        # The lookup needs the normal form of the completion, without a leading space, as for the published numbers.
        return (1 + (right - wrong) * (1 - probable.get(unsure, 0.0))) / 2


class TernaryScore:
    """A score of 1 for a right choice, 0.5 for the last completion ("I do not know"), or 0 for a wrong choice.

    The original metric's number, which is 1, 0 or -1, is twice this score minus 1.
    """

    NAME = "ternary_score"

    def of_loglikelihoods(self, loglikelihoods: Mapping[str, float], targets: Sequence[str]) -> float:
        """Return the score in [0, 1]."""
        chosen = _chosen(loglikelihoods)
        if _is_right(chosen, targets):
            return 1.0
        return 0.5 if _normal(chosen) == _normal(list(loglikelihoods)[-1]) else 0.0


class PartialEvalAccuracy:
    """A score of 1 if an item's right sample, from ``_create_samples``, is more probable than the wrong sample."""

    NAME = "partial_eval_accuracy"
    COMPARES_SAMPLES = True


def _per_character(loglikelihoods: Mapping[str, float]) -> dict[str, float]:
    return {text: total / (len(text) or 1) for text, total in loglikelihoods.items()}


def _probabilities(loglikelihoods: Mapping[str, float]) -> dict[str, float]:
    values = _per_character(loglikelihoods)
    return dict(zip(values, softmax(list(values.values())), strict=True))


def _chosen(loglikelihoods: Mapping[str, float]) -> str:
    values = _per_character(loglikelihoods)
    return max(values, key=lambda text: values[text])


def _is_right(text: str, targets: Sequence[str]) -> bool:
    return _normal(text) in {_normal(target) for target in targets}


def _normal(text: str) -> str:
    return text.strip().lower()


class LanguageRawConsistencyChecker:
    """A score of 1 if the model's unprocessed text has the same language as the user's messages, and 0 otherwise.

    The detector knows eight languages. If it recognizes the language of neither text, the metric has no value. If the
    metric context has a ``language``, the value is always 1.
    """

    NAME = "language_consistency_raw"
    PACKAGE = "lingua"
    INSTALL = "lingua-language-detector"

    def of_answer(self, answer: JudgedAnswer) -> float | None:
        """Return 1.0 or 0.0."""
        if "language" in answer.extras:
            return 1.0
        asked = "\n\n".join(message.content for message in answer.messages if message.role == "user")
        found = (_language_of(answer.raw), _language_of(asked))
        return None if found == ("", "") else float(found[0] == found[1])


@cache
def _language_of(text: str) -> str:
    language = _detector().detect_language_of(text)
    return "" if language is None else str(language.iso_code_639_1.name)


@cache
def _detector() -> Any:
    lingua = import_module("lingua")
    return lingua.LanguageDetectorBuilder.from_languages(
        *(getattr(lingua.Language, name) for name in _LANGUAGES)
    ).build()
