"""Completion accuracy."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.metrics import completion_accuracy, exact_match
from tests.tables import each_row

TEXT = st.text(st.sampled_from("aA \n"), max_size=3)


@each_row(
    ("prediction", "targets", "expected"),
    [
        ("Paris", ["Paris"], 1.0),
        ("Paris", ["Rome", "Paris"], 1.0),
        ("Paris ", ["Paris"], 0.0),
        ("paris", ["Paris"], 0.0),
        ("Par", ["Paris"], 0.0),
        ("", [""], 1.0),
        ("a", [], 0.0),
    ],
)
def test_only_the_very_same_text_counts(prediction: str, targets: list[str], expected: float) -> None:
    assert expected == completion_accuracy(prediction, targets, {})


@given(TEXT, st.lists(TEXT, max_size=3))
def test_is_never_laxer_than_exact_match(prediction: str, targets: list[str]) -> None:
    assert completion_accuracy(prediction, targets, {}) <= exact_match(prediction, targets, {})
