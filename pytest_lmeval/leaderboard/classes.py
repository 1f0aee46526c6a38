"""Metrics of a task with a few labels: precision, recall and F1 per label, and the confusion matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.details import first_details, first_score
from pytest_lmeval.metrics.parts.texts import tokenize
from pytest_lmeval.types import ExampleResult

MAX_LABELS = 30
_LONGEST = 60
_CATEGORIES = frozenset({"classification", "mcq"})


@dataclass(frozen=True, slots=True)
class Labelled:
    """Label and prediction of every example that has both, and the ``names`` of all labels."""

    pairs: Sequence[tuple[str, str]]
    names: Collection[str]


class ClassRow(TypedDict):
    """Metrics of one label: shares in [0, 1], 0.0 if the divisor is 0, and the number of examples."""

    precision: float
    recall: float
    f1: float
    n: int


def by_label(
    results: Sequence[ExampleResult],
) -> tuple[Mapping[str, ClassRow], Mapping[str, Mapping[str, int]]] | None:
    """Return the metrics of each label and the confusion matrix, or None if the examples have no labels."""
    found = labelled(results)
    return (class_metrics(found), confusion(found)) if found else None


def labelled(results: Sequence[ExampleResult]) -> Labelled | None:
    """Return label and prediction of the scored examples that have labels.

    Examples have labels if they have the category ``classification`` or ``mcq``, or a chosen option. The result is None
    without such examples, or with more than MAX_LABELS labels. An example's label is its first target. Only its first
    prediction counts; it counts as that label if it matches any of the targets. A short prediction that is no example's
    label adds a label, unless that makes more than MAX_LABELS.
    """
    asked = [
        result
        for result in results
        if _has_label(result) and result.score is not None and result.targets and result.predictions
    ]
    labels = _labels(asked)
    if not 0 < len(labels.names) <= MAX_LABELS:
        return None
    guessed = _guessed(asked, labels)
    labels = replace(labels, names=guessed) if len(guessed) <= MAX_LABELS else labels
    labels = _with_free_names(labels)
    return Labelled([(labels.true(result), labels.predicted(result)) for result in asked], {*labels.names.values()})


def class_metrics(found: Labelled) -> dict[str, ClassRow]:
    """Return precision, recall, F1 and ``n`` per label."""
    true, predicted = Counter(label for label, _ in found.pairs), Counter(label for _, label in found.pairs)
    hits = Counter(label for label, guess in found.pairs if label == guess)
    return {
        label: {
            "precision": hits[label] / predicted[label] if predicted[label] else 0.0,
            "recall": hits[label] / true[label] if true[label] else 0.0,
            "f1": 2 * hits[label] / (true[label] + predicted[label]),
            "n": true[label],
        }
        for label in sorted(found.names)
    }


def confusion(found: Labelled) -> dict[str, dict[str, int]]:
    """Return ``{label: {predicted label: count}}`` without zeros.

    Rows are the examples' labels. A prediction that is not a label counts as ``other``, or as ``unparsed`` if the
    post-process rule found nothing in it; as ``(other)`` and ``(unparsed)`` if these names are labels.
    """
    table: dict[str, Counter[str]] = {label: Counter() for label in sorted({label for label, _ in found.pairs})}
    for label, guess in found.pairs:
        table[label][guess] += 1
    return {label: {guess: row[guess] for guess in sorted(row)} for label, row in table.items()}


@dataclass(frozen=True, slots=True)
class _Labels:
    """A task's labels by their normal form, and the names of other predictions."""

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


def _has_label(result: ExampleResult) -> bool:
    # The details contain the number of the chosen option: None if the answer is no option.
    return result.category in _CATEGORIES or "chosen" in first_details(result)


def _labels(results: Sequence[ExampleResult]) -> _Labels:
    normal = _folded if _folds_case(results) else _normal
    names: dict[str, str] = {}
    for text, key in sorted((each.targets[0].strip(), normal(each.metric, each.targets[0])) for each in results):
        names.setdefault(key, text)
    return _Labels(names, normal)


def _guessed(results: Sequence[ExampleResult], labels: _Labels) -> Mapping[str, str]:
    """Return the labels, with labels that only occur as predictions."""
    found = dict(labels.names)
    wrong = (each for each in results if not each.unparsed and labels.predicted(each) == labels.other)
    texts = [(each.predictions[0].strip(), each.metric) for each in wrong]
    keys = [(text, labels.normal(metric, text), metric) for text, metric in texts if _is_short(text)]
    for text, key, metric in sorted(keys):
        # The text of an option may follow its letter.
        found.setdefault(key, key if metric == "multiple_choice" else text)
    return found


def _is_short(text: str) -> bool:
    return 0 < len(text) <= _LONGEST and text.isprintable()


def _with_free_names(labels: _Labels) -> _Labels:
    taken = {*labels.names.values()}
    other, unparsed = (f"({name})" if name in taken else name for name in ("other", "unparsed"))
    return replace(labels, other=other, unparsed=unparsed)


def _folds_case(results: Sequence[ExampleResult]) -> bool:
    """Return True if the ``exact_match`` behind the scores ignores case, as it does in compact files.

    If no score distinguishes the two, only wrong answers can show the difference.
    """
    exact = [result for result in results if result.metric == "exact_match"]
    lax = (any(_folded("", each.predictions[0]) == _folded("", target) for target in each.targets) for each in exact)
    return all(first_score(result) == 1.0 for result, met in zip(exact, lax, strict=True) if met)


def _normal(metric: str, text: str) -> str:
    """Return the form in which ``metric`` compares texts: equal forms score 1."""
    if metric == "multiple_choice":
        return text.strip()[:1].upper()
    if metric == "f1":
        return " ".join(sorted(tokenize(text)))
    if metric in {"exact_match_normalized", "substring_contains"}:
        return " ".join(text.lower().split())
    return text.strip()


def _folded(metric: str, text: str) -> str:
    return _normal("exact_match_normalized" if metric in {"", "exact_match"} else metric, text)
