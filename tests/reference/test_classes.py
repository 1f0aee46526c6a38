"""Rows by label and confusions, against scikit-learn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from pytest_lmeval.leaderboard.classes import MAX_LABELS, ClassRow, by_label
from pytest_lmeval.metrics import exact_match, f1, multiple_choice
from pytest_lmeval.types import ExampleResult
from tests.examples import examples

LABELS = ["negative", "neutral", "positive"]
PAIRS = st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from([*LABELS, "dunno", ""])), min_size=1, max_size=30)
METRICS = {"exact_match": exact_match, "multiple_choice": multiple_choice, "f1": f1}
many = examples(150)


def class_metrics(results: list[ExampleResult]) -> Mapping[str, ClassRow] | None:
    found = by_label(results)
    return found and found[0]


def confusion(results: list[ExampleResult]) -> Mapping[str, Mapping[str, int]] | None:
    found = by_label(results)
    return found and found[1]


def _result(target: str, prediction: str, **fields: Any) -> ExampleResult:
    values: dict[str, Any] = {
        "task": "t",
        "id": "a",
        "status": "passed",
        "score": exact_match(prediction, [target], {}),
        "threshold": 1.0,
        "metric": "exact_match",
        "hash": "",
        "category": "classification",
        "targets": (target,),
        "predictions": (prediction,),
    }
    return ExampleResult(**{**values, **fields})


@many
@given(PAIRS)
def test_rows_agree_with_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    true, predicted = [label for label, _ in pairs], [guess for _, guess in pairs]
    labels = sorted({*true, *filter(None, predicted)})
    expected = precision_recall_fscore_support(true, predicted, labels=labels, zero_division=0)
    rows = class_metrics([_result(*pair) for pair in pairs])
    assert rows is not None
    assert labels == list(rows)
    for name, column in zip(("precision", "recall", "f1", "n"), expected, strict=True):
        assert pytest.approx(list(column)) == [dict(row)[name] for row in rows.values()]


@many
@given(PAIRS)
def test_confusions_agree_with_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    true, guesses = [label for label, _ in pairs], [guess or "other" for _, guess in pairs]
    columns = sorted({*true, *guesses, "other"})
    matrix = confusion_matrix(true, guesses, labels=columns)
    expected = {
        label: {guess: int(count) for guess, count in zip(columns, row, strict=True) if count}
        for label, row in zip(columns, matrix, strict=True)
        if label in true
    }
    assert expected == confusion([_result(*pair) for pair in pairs])


@many
@given(st.sampled_from(sorted(METRICS)), PAIRS)
def test_a_label_is_met_exactly_where_the_metric_gives_one(metric: str, pairs: list[tuple[str, str]]) -> None:
    """For labels that differ in their first letter and share no word."""
    names = {"negative": "a-negative", "neutral": "b neutral", "positive": "C. positive"}
    results = [
        _result(names[label], guess, metric=metric, score=METRICS[metric](guess, [names[label]], {}))
        for label, guess in ((label, f" {names.get(guess, guess)}\n") for label, guess in pairs)
    ]
    table = confusion(results)
    assert table is not None
    hits = sum(row.get(label, 0) for label, row in table.items())
    assert sum(result.score == 1.0 for result in results) == hits


def test_the_metric_s_own_normalisation_decides_what_a_label_is() -> None:
    def predicted(metric: str, target: str, guess: str, score: float) -> list[str]:
        table = confusion([_result(target, guess, metric=metric, score=score)])
        assert table is not None
        return list(table[target])

    assert ["yes"] == predicted("exact_match", "yes", " yes\n", 1.0)
    assert ["Yes"] == predicted("exact_match", "yes", "Yes", 0.0)
    assert ["yes"] == predicted("exact_match", "yes", "Yes", 1.0)  # a compact file's exact_match
    assert ["yes"] == predicted("exact_match_normalized", "yes", "YES", 1.0)
    assert ["Yes"] == predicted("accuracy", "yes", "Yes", 0.0)
    assert ["C"] == predicted("multiple_choice", "B", "c) Rome", 0.0)
    assert ["B"] == predicted("multiple_choice", "B", "b) Paris", 1.0)
    assert ["not spam"] == predicted("f1", "not spam", "Spam, not!", 1.0)


def test_which_exact_match_it_was_is_read_off_the_scores_of_all_examples() -> None:
    wrong = _result("no", "Yes", score=0.0)
    right = [_result("yes", "Yes", score=1.0)]
    assert {"no": {"yes": 1}, "yes": {"yes": 1}} == confusion([wrong, *right])
    strict = [_result("yes", "YES", score=0.0)]
    assert {"no": {"Yes": 1}, "yes": {"YES": 1}} == confusion([wrong, *strict])


def test_what_is_predicted_alone_is_a_label_while_there_are_few() -> None:
    always = [_result(label, "C") for label in "BAA"]
    assert {"A": {"C": 2}, "B": {"C": 1}} == confusion(always)
    assert {"precision": 0.0, "recall": 0.0, "f1": 0.0, "n": 0} == (class_metrics(always) or {})["C"]
    many = [_result("A", f"guess {number}") for number in range(MAX_LABELS)]
    assert {"A": {"other": MAX_LABELS}} == confusion(many)
    assert ["A"] == [*(class_metrics(many) or {})]
    assert {"A": {"other": 1}} == confusion([_result("A", "x" * 61)])


def test_any_target_that_is_met_counts_as_the_first() -> None:
    several = _result("spam", "junk", targets=("spam", "junk"), score=1.0)
    assert {"ham": {"ham": 1}, "spam": {"spam": 1}} == confusion([several, _result("ham", "ham")])


def test_what_is_no_label_is_told_from_what_could_not_be_parsed() -> None:
    unparsed = [_result("A", "", unparsed=True), _result("A", "A", unparsed=True)]
    results = [_result("A", "A"), _result("A", "A\nor B"), *unparsed]
    assert {"A": {"A": 2, "other": 1, "unparsed": 1}} == confusion(results)
    rows = class_metrics(results)
    assert rows is not None
    assert {"precision": 1.0, "recall": 0.5, "f1": 2 / 3, "n": 4} == rows["A"]


def test_labels_called_other_and_unparsed_keep_their_names() -> None:
    results = [
        *(_result("other", "other"), _result("unparsed", "unparsed")),
        *(_result("other", ""), _result("unparsed", "", unparsed=True)),
    ]
    expected = {"other": {"(other)": 1, "other": 1}, "unparsed": {"(unparsed)": 1, "unparsed": 1}}
    assert expected == confusion(results)


def test_only_scored_examples_of_the_categories_with_labels_count() -> None:
    left_out = [
        _result("x", "x", category="summary"),
        _result("x", "x", category=""),
        _result("x", "x", score=None, status="error"),
        _result("x", "x", predictions=(), score=None, status="timeout"),
    ]
    assert None is class_metrics(left_out)
    assert None is confusion(left_out)
    assert {"B": {"B": 1}} == confusion([*left_out, _result("B", "B", category="mcq")])


def test_of_several_responses_the_first_counts() -> None:
    result = _result("yes", "", predictions=("no", "yes"), score=0.5, details={"scores": [0.0, 1.0]})
    assert {"no": {"no": 1}, "yes": {"no": 1}} == confusion([result, _result("no", "no")])


@pytest.mark.parametrize(("labels", "told"), [(MAX_LABELS, True), (MAX_LABELS + 1, False)])
def test_a_task_of_too_many_labels_has_no_rows(labels: int, told: bool) -> None:
    results = [_result(str(number), str(number)) for number in range(labels)]
    assert told == (class_metrics(results) is not None)
    assert told == (confusion(results) is not None)


def test_the_order_of_the_results_does_not_matter() -> None:
    results = [_result(label, guess) for label in LABELS for guess in (*LABELS, "x")]
    assert class_metrics(results) == class_metrics(results[::-1])
    assert list(confusion(results) or ()) == LABELS
    assert Counter(map(sum, (row.values() for row in (confusion(results) or {}).values()))) == {4: 3}
