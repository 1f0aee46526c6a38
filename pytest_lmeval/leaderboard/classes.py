"""Compute precision, recall and F1 per label, and a confusion matrix, for tasks with a few labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

from pytest_lmeval.frozen import dataclass
from pytest_lmeval.judging.summary import confusion
from pytest_lmeval.leaderboard.details import first_details, first_score
from pytest_lmeval.metrics.parts.texts import tokenize
from pytest_lmeval.types import ExampleResult

MAX_LABELS = 30
_LONGEST = 60
_CATEGORIES = frozenset({"classification", "mcq"})


class ClassRow(TypedDict):
    """One label's metrics: shares in [0, 1], or 0.0 if the divisor is 0, and ``n``, the number of examples."""

    precision: float
    recall: float
    f1: float
    n: int


def by_label(
    results: Sequence[ExampleResult],
) -> tuple[Mapping[str, ClassRow], Mapping[str, Mapping[str, int]]] | None:
    """Return each label's metrics, and the confusion matrix, for the scored examples that have labels.

    An example has a label if its category is ``classification`` or ``mcq``, or if the model chose an option. The result
    is None if no example has a label, or if there are more than MAX_LABELS labels. An example's label is its first
    target. Only an example's first prediction counts; if it matches any target, it counts as the example's label. Short
    predictions that match no label become labels, too, unless there would be more than MAX_LABELS labels. The confusion
    matrix counts any other prediction as ``other``, or as ``unparsed`` if the post-process rule found nothing in the
    text. If ``other`` or ``unparsed`` is itself a label, the matrix uses ``(other)`` or ``(unparsed)`` instead.
    """
    asked = [
        result
        for result in results
        if (result.category in _CATEGORIES or "chosen" in first_details(result))
        and result.score is not None
        and result.targets
        and result.predictions
    ]
    labels = _labels(asked)
    if not 0 < len(labels.names) <= MAX_LABELS:
        return None
    guessed = _guessed(asked, labels)
    labels = _with_free_names(replace(labels, names=guessed) if len(guessed) <= MAX_LABELS else labels)
    true, predicted = [*map(labels.true, asked)], [*map(labels.predicted, asked)]
    return _class_metrics(true, predicted, {*labels.names.values()}), confusion(true, predicted)


def _class_metrics(true: Sequence[str], predicted: Sequence[str], names: Collection[str]) -> dict[str, ClassRow]:
    wanted, guessed = Counter(true), Counter(predicted)
    hits = Counter(label for label, guess in zip(true, predicted, strict=True) if label == guess)
    return {
        label: {
            "precision": hits[label] / guessed[label] if guessed[label] else 0.0,
            "recall": hits[label] / wanted[label] if wanted[label] else 0.0,
            "f1": 2 * hits[label] / (wanted[label] + guessed[label]),
            "n": wanted[label],
        }
        for label in sorted(names)
    }


@dataclass(frozen=True, slots=True)
class _Labels:
    """A task's labels by their normal form, and the two names under which other predictions are counted."""

    names: Mapping[str, str]
    normal: Callable[[str, str], str]
    # Placeholders that no model writes, until the names are set.
    other: str = "\0other"
    unparsed: str = "\0unparsed"

    def true(self, result: ExampleResult) -> str:
        return self.names[self.normal(result.metric, result.targets[0])]

    def predicted(self, result: ExampleResult) -> str:
        guess = self.normal(result.metric, result.predictions[0])
        if any(guess == self.normal(result.metric, target) for target in result.targets):
            return self.true(result)
        return self.names.get(guess, self.unparsed if result.unparsed else self.other)


def _labels(results: Sequence[ExampleResult]) -> _Labels:
    normal = _folded if _folds_case(results) else _normal
    names: dict[str, str] = {}
    for text, key in sorted((each.targets[0].strip(), normal(each.metric, each.targets[0])) for each in results):
        names.setdefault(key, text)
    return _Labels(names, normal)


def _guessed(results: Sequence[ExampleResult], labels: _Labels) -> Mapping[str, str]:
    """Return the targets' labels, and labels that occur only as predictions."""
    found = dict(labels.names)
    wrong = (each for each in results if not each.unparsed and labels.predicted(each) == labels.other)
    texts = [(each.predictions[0].strip(), each.metric) for each in wrong]
    short = [each for each in texts if 0 < len(each[0]) <= _LONGEST and each[0].isprintable()]
    keys = [(text, labels.normal(metric, text), metric) for text, metric in short]
    for text, key, metric in sorted(keys):
        # The text of an option may follow its letter.
        found.setdefault(key, key if metric == "multiple_choice" else text)
    return found


def _with_free_names(labels: _Labels) -> _Labels:
    taken = {*labels.names.values()}
    other, unparsed = (f"({name})" if name in taken else name for name in ("other", "unparsed"))
    return replace(labels, other=other, unparsed=unparsed)


def _folds_case(results: Sequence[ExampleResult]) -> bool:
    """Return True if the scores fit an ``exact_match`` that ignores case, as in compact files."""
    exact = [result for result in results if result.metric == "exact_match"]
    lax = (any(_folded("", each.predictions[0]) == _folded("", target) for target in each.targets) for each in exact)
    return all(first_score(result) == 1.0 for result, met in zip(exact, lax, strict=True) if met)


def _normal(metric: str, text: str) -> str:
    """Return ``text`` in the form that ``metric`` compares; two texts with equal forms score 1."""
    if metric == "multiple_choice":
        return text.strip()[:1].upper()
    if metric == "f1":
        return " ".join(sorted(tokenize(text)))
    if metric in {"exact_match_normalized", "substring_contains"}:
        return " ".join(text.lower().split())
    return text.strip()


def _folded(metric: str, text: str) -> str:
    return _normal("exact_match_normalized" if metric in {"", "exact_match"} else metric, text)
