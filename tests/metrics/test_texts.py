"""Metrics over what a text contains: patterns, parts, its last number."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval import default_registry
from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.jsonl import read_records
from pytest_lmeval.metrics.texts import contains_all, contains_any, last_number, number, regex, starts_with
from pytest_lmeval.postprocess import apply_metric
from pytest_lmeval.types import Score
from tests.tables import each_row

FOLDED = {"ignore_case": True}


@each_row(
    ("metric", "prediction", "targets", "extras", "expected"),
    [
        (contains_all, "Tea and milk", ["Tea", "milk"], {}, 1.0),
        (contains_all, "Tea and milk", ["tea", "milk"], {}, 0.0),
        (contains_all, "Tea and milk", ["tea", "MILK"], FOLDED, 1.0),
        (contains_all, "Tea", ["Tea", "milk"], {}, 0.0),
        (contains_any, "Tea", ["milk", "Tea"], {}, 1.0),
        (contains_any, "Tea", ["milk", "tea"], {}, 0.0),
        (contains_any, "STRASSE", ["straße"], FOLDED, 1.0),
        (starts_with, " \nYes, of course", ["No", "Yes"], {}, 1.0),
        (starts_with, "yes", ["Yes"], {}, 0.0),
        (starts_with, "yes", ["Yes"], FOLDED, 1.0),
        (starts_with, "Oh yes", ["yes"], {}, 0.0),
    ],
)
def test_parts_of_a_text(
    metric: Any, prediction: str, targets: Sequence[str], extras: Mapping[str, Any], expected: float
) -> None:
    assert expected == metric(prediction, targets, extras)


def test_any_pattern_may_be_found_anywhere() -> None:
    assert [1.0, 1.0, 0.0, 1.0] == [
        regex("order 42", [r"\d{3}", r"\d+"], {}),
        regex("a\norder", [r"(?m)^order$"], {}),
        regex("Order", ["order"], {}),
        regex("Order", ["order"], FOLDED),
    ]


@each_row(
    ("text", "expected"),
    [
        ("It is 1,234.50 dollars", "1234.50"),
        ("between 3 and 5", "5"),
        ("3 - 5", "5"),
        ("1-5", "5"),
        ("x = -5", "-5"),
        ("-$5", "-5"),
        ("$-5.5", "-5.5"),
        ("€1,000,000", "1000000"),
        ("50%", "50"),
        ("1.5e-3", "0.0015"),
        ("1E3", "1000"),
        (".5", "0.5"),
        ("+7", "7"),
        ("\u22127", "-7"),
        ("It is 5.", "5"),
        ("(10,000).", "10000"),
        ("12,34", "34"),
        ("no number", None),
        ("", None),
        ("x5", None),
        ("v1.2.3", None),
        ("9" * 500, None),
    ],
)
def test_the_last_number_of_a_text(text: str, expected: str | None) -> None:
    assert (None if expected is None else Decimal(expected)) == last_number(text)


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=3))
def test_a_number_is_read_as_it_is_written(value: Decimal) -> None:
    assert value == last_number(f"the answer is {value:,}.") == last_number(f"{value:f}")


@each_row(
    ("prediction", "target", "extras", "expected"),
    [
        ("The total is $1,000.00", "1000", {}, 1.0),
        ("0.3", "0.30", {}, 1.0),
        ("0.31", "0.3", {}, 0.0),
        ("0.31", "0.3", {"tolerance": 0.01}, 1.0),
        ("0.3101", "0.3", {"tolerance": 0.01}, 0.0),
        ("101", "100", {"relative": 0.01}, 1.0),
        ("-101", "-100", {"relative": 0.01}, 1.0),
        ("102", "100", {"relative": 0.01}, 0.0),
        ("102", "100", {"relative": 0.01, "tolerance": 2}, 1.0),
    ],
)
def test_numbers_are_compared_by_value_and_tolerance(
    prediction: str, target: str, extras: Mapping[str, Any], expected: float
) -> None:
    found: Score = number(prediction, ["x", target], extras)
    assert (expected, False) == (found.value, found.unparsed)


def test_a_text_without_a_number_is_unparsed() -> None:
    assert (0.0, True) == ((found := number("none", ["1"], {})).value, found.unparsed)


@each_row(
    ("name", "targets", "extras", "message"),
    [
        ("number", ["1", "one"], {}, "expected a number in each target, got 'one' at index 1"),
        ("number", ["1"], {"tolerance": -1}, "expected a number of at least 0, got -1"),
        ("number", ["1"], {"relative": True}, "expected a number of at least 0, got True"),
        ("number", ["1"], {"relative": float("nan")}, "expected a number of at least 0, got nan"),
        ("regex", ["a", "(b"], {}, "expected regular expressions, got '(b' at index 1"),
        ("regex", ["a"], {"ignore_case": "yes"}, "expected true or false, got 'yes'"),
        ("contains_all", ["a", ""], {}, "every text contains an empty target"),
        ("contains_any", [""], {}, "every text contains an empty target"),
        ("starts_with", [""], {}, "every text contains an empty target"),
    ],
)
def test_what_no_answer_could_be_scored_by_is_refused(
    name: str, targets: Sequence[str], extras: Mapping[str, Any], message: str
) -> None:
    check = default_registry(entry_points=False).metrics[name].check
    assert check is not None
    with pytest.raises(RecordRefused) as caught:
        check(targets, extras)
    assert message in str(caught.value)


def test_not_turns_a_right_or_wrong_metric_round_but_what_is_unparsed_stays_wrong() -> None:
    registry = default_registry(entry_points=False)

    def turned(name: str, rule: str, text: str) -> tuple[float, bool]:
        score = apply_metric(registry.metric(name), registry.rule(rule)(text), ["Tea"], {"not": True})
        return score.value, score.unparsed

    assert (0.0, False) == turned("contains_any", "none", "Tea")
    assert (1.0, False) == turned("contains_any", "none", "Milk")
    assert (0.0, True) == turned("exact_match", "extract_letter", "?")
    assert (0.0, True) == turned("number", "none", "none")


@each_row(
    ("record", "message"),
    [
        ({"metric": "f1", "extras": {"not": True}}, "bad_value extras.not: f1 is graded"),
        ({"metric": "regex", "extras": {"not": 1}}, "bad_type extras.not: expected true or false, got a number"),
        ({"metric": "number", "extras": {"not": True}, "targets": ["a"]}, "expected a number in each target"),
    ],
)
def test_records_with_bad_extras_are_refused(record: dict[str, Any], message: str) -> None:
    registry = default_registry(entry_points=False)
    line = json.dumps({"prompt": "p", "targets": ["5"], **record}).encode()
    (error,) = read_records(line, registry).errors
    assert message in error.at("t.jsonl")
