"""Answers of several spans: which are paired, what numbers and articles count, and what an answer is."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.metrics import drop_em, drop_f1
from pytest_lmeval.metrics.drop import best_sum
from pytest_lmeval.tasks import F1, AccuracyCompletionOLMES
from tests.examples import examples
from tests.tables import each_row


@each_row(
    ("prediction", "answers", "f1", "em"),
    [
        ("Mia Berg", [["the mia berg."]], 1.0, 1.0),
        ("blue, red", [["red", "blue"]], 1.0, 1.0),
        ("red", [["red", "blue"]], 0.5, 0.0),
        ("red, blue, green", [["red"], ["blue", "green"]], 0.67, 0.0),
        ("3", [["3.0"]], 1.0, 1.0),
        ("3 yards", [["3 metres"]], 0.5, 0.0),
        ("4 yards", [["3 yards"]], 0.0, 0.0),
        ("twenty-two", [["twenty two"]], 1.0, 1.0),
        ("", [["red"]], 0.0, 0.0),
        ("red", [["", "red"]], 0.0, 0.0),
        ("red", [], 0.0, 0.0),
    ],
)
def test_spans_are_paired_at_best(prediction: str, answers: list[list[str]], f1: float, em: float) -> None:
    extras = {"answer_tuples": answers}
    assert (f1, em) == (drop_f1(prediction, ["x"], extras), drop_em(prediction, ["x"], extras))


def test_without_tuples_each_target_is_an_answer_of_one_span() -> None:
    assert (1.0, 1.0) == (drop_f1("blue", ["red", "blue"], {}), drop_em("blue", ["red", "blue"], {}))
    assert (0.5, 0.0) == (drop_f1("red, blue", ["red", "blue"], {}), drop_em("red, blue", ["red", "blue"], {}))


@each_row("given", ["red", [["red", 3]], ["red"], [["x"] * 101]])
def test_what_is_no_list_of_answers_is_refused(given: Any) -> None:
    with pytest.raises(RecordRefused, match=r"extras\.answer_tuples"):
        drop_f1("red", ["red"], {"answer_tuples": given})


@examples(150)
@given(
    st.integers(1, 4).flatmap(
        lambda columns: st.lists(
            st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=columns, max_size=columns), max_size=columns
        )
    )
)
def test_the_pairing_is_the_best_of_all(worth: list[list[float]]) -> None:
    columns = range(len(worth[0]) if worth else 0)
    best = max(sum(row[at] for row, at in zip(worth, chosen, strict=True)) for chosen in _choices(columns, len(worth)))
    assert best == pytest.approx(best_sum(worth))


def _choices(columns: range, rows: int) -> list[tuple[int, ...]]:
    return list(itertools.permutations(columns, rows))


def test_an_answer_of_thousands_of_spans_takes_no_time() -> None:
    answers = {"answer_tuples": [[str(number) for number in range(20)]]}
    assert 0.0 == drop_f1("x, " * 20_000, [], answers)


def test_words_between_blanks_and_olmes_accuracy_are_those_of_eval_framework() -> None:
    assert (1.0, 0.0, 1.0) == (F1()("Red X", ["red x"], {}), F1()("red.", ["red"], {}), F1()("", [""], {}))
    accuracy = AccuracyCompletionOLMES()
    assert 1.0 == accuracy("so 5 * 200\n#### $1,000.", ["1000"], {})
    assert 0.5 == accuracy("7", ["7", "8"], {})
    assert (1.0, 0.0) == (accuracy("7.\n", ["7\n"], {}), accuracy("7..", ["7"], {}))
