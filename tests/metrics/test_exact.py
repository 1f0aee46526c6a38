"""Metrics that are 1.0 or 0.0."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pytest_lmeval.metrics
from pytest_lmeval.metrics import accuracy, exact_match, exact_match_normalized, multiple_choice, substring_contains
from tests.examples import examples
from tests.tables import each_row

Metric = Callable[[str, Sequence[str], Mapping[str, Any]], float]
ALL: list[Metric] = [accuracy, exact_match, exact_match_normalized, multiple_choice, substring_contains]
TEXT = st.text(st.sampled_from("aAbB \n\tßİ"), max_size=6)


def test_the_public_names_are_sorted_and_there() -> None:
    names = pytest_lmeval.metrics.__all__
    assert sorted(names) == names
    assert all(callable(getattr(pytest_lmeval.metrics, name)) for name in names)


@pytest.mark.parametrize("metric", [exact_match, accuracy])
@pytest.mark.parametrize(
    ("prediction", "targets", "expected"),
    [
        (" 41\n", ["41"], 1.0),
        ("41", ["\t41 "], 1.0),
        ("b", ["a", "b"], 1.0),
        ("Paris", ["paris"], 0.0),
        ("a  b", ["a b"], 0.0),
        ("41.", ["41"], 0.0),
        ("", ["41"], 0.0),
        ("", ["  "], 1.0),
    ],
)
def test_exact_match_strips_both_sides_and_nothing_else(
    metric: Metric, prediction: str, targets: list[str], expected: float
) -> None:
    assert expected == metric(prediction, targets, {})


@each_row(
    ("prediction", "targets", "expected"),
    [
        (" New\n\tYORK ", ["new york"], 1.0),
        ("x", ["y", " X "], 1.0),
        ("newyork", ["new york"], 0.0),
        ("new york!", ["new york"], 0.0),
        ("", ["a"], 0.0),
    ],
)
def test_exact_match_normalized_ignores_case_and_amount_of_whitespace(
    prediction: str, targets: list[str], expected: float
) -> None:
    assert expected == exact_match_normalized(prediction, targets, {})


@each_row(
    ("prediction", "targets", "expected"),
    [
        ("It is New\nYork, I think", ["new  york"], 1.0),
        ("rain", ["sun", "AI"], 1.0),
        ("newyork", ["new york"], 0.0),
        ("anything", [""], 0.0),
        ("", [" \n"], 0.0),
        ("anything", ["", "thing"], 1.0),
    ],
)
def test_substring_contains_never_counts_a_blank_target(prediction: str, targets: list[str], expected: float) -> None:
    assert expected == substring_contains(prediction, targets, {})


@each_row(
    ("prediction", "targets", "expected"),
    [
        ("b", ["B"], 1.0),
        ("\n C) Paris", ["C"], 1.0),
        ("C", ["c) Paris"], 1.0),
        ("B", ["A", "B"], 1.0),
        ("The answer is B", ["B"], 0.0),
        ("", ["A"], 0.0),
        (" ", [" "], 0.0),
        ("A", [""], 0.0),
    ],
)
def test_multiple_choice_compares_first_characters(prediction: str, targets: list[str], expected: float) -> None:
    assert expected == multiple_choice(prediction, targets, {})


@each_row("metric", ALL)
def test_no_target_is_never_met(metric: Metric) -> None:
    assert 0.0 == metric("", [], {})


@examples(300)
@given(TEXT, st.lists(TEXT, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_the_best_target_counts_whatever_the_order(prediction: str, targets: list[str], random: Any) -> None:
    shuffled = random.sample(targets, len(targets))
    for metric in ALL:
        score = metric(prediction, targets, {})
        assert type(score) is float
        assert max(metric(prediction, [target], {}) for target in targets) == score
        assert score == metric(prediction, shuffled, {})


@examples(300)
@given(TEXT, TEXT)
def test_a_match_that_is_stricter_implies_the_laxer_one(prediction: str, target: str) -> None:
    strict = exact_match(prediction, [target], {})
    normalized = exact_match_normalized(prediction, [target], {})
    assert strict <= normalized
    if target.strip():
        assert normalized <= substring_contains(prediction, [target], {})
