"""Filters: what holds, and what cannot be decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.formats.declarative.making import EQUALS, document, faults, make, score

ROW = {"q": "q", "a": "1", "n": 3, "t": "text", "b": True, "l": ["x", "y"], "none": None, "truths": [True]}


def _status(folder: Path, filter: dict[str, Any], row: dict[str, Any] = ROW) -> tuple[str, str]:
    action = {"key": "rule", "action": "exclude_from_metrics", "filter": filter}
    (result,) = score(make(folder, [EQUALS], [row], actions=[action]), "1")
    assert (
        1.0
        == result.details.get("scorers", {}).get("string_equals", {"prediction_is_correct": 1.0})[
            "prediction_is_correct"
        ]
    )
    return result.status, result.error


def _compare(op: str, name: str, value: Any) -> dict[str, Any]:
    return {"op": op, "expression": f"{{{{ sample.{name} }}}}", "value": value}


@pytest.mark.parametrize(
    ("filter", "holds"),
    [
        (_compare("equals", "t", "text"), True),
        (_compare("equals", "t", "Text"), False),
        (_compare("equals", "n", 3.0), True),
        (_compare("equals", "b", True), True),
        (_compare("equals", "l", ["x", "y"]), True),
        (_compare("equals", "none", None), True),
        (_compare("not_equals", "n", 4), True),
        (_compare("not_equals", "n", 3), False),
        (_compare("in", "t", ["a", "text"]), True),
        (_compare("in", "n", [1, 2]), False),
        (_compare("contains", "t", "ex"), True),
        (_compare("contains", "l", "y"), True),
        (_compare("contains", "l", "z"), False),
        (_compare("contains", "truths", 1), False),
        (_compare("contains", "truths", True), True),
        (_compare("greater", "n", 2.5), True),
        (_compare("greater", "n", 3), False),
        (_compare("less", "t", "u"), True),
        (_compare("less", "n", 3), False),
        ({"op": "not", "filter": _compare("equals", "n", 3)}, False),
        ({"op": "and", "filters": [_compare("equals", "n", 3), _compare("equals", "t", "x")]}, False),
        ({"op": "or", "filters": [_compare("equals", "n", 1), _compare("equals", "t", "text")]}, True),
        ({"op": "not", "filter": {"op": "or", "filters": [_compare("equals", "n", 1)]}}, True),
        ({"op": "equals", "expression": "{{ scores.string_equals.prediction_is_correct }}", "value": True}, True),
        ({"op": "equals", "expression": "{{ input_prompt }}", "value": "1"}, True),
        ({"op": "equals", "expression": "n is {{ sample.n }}", "value": "n is 3"}, True),
        ({"op": "greater", "expression": "{{ model_output.choices[0].message.content | length }}", "value": 0}, True),
    ],
)
def test_a_filter_holds_or_not(tmp_path: Path, filter: dict[str, Any], holds: bool) -> None:
    assert ("excluded" if holds else "passed") == _status(tmp_path, filter)[0]


@pytest.mark.parametrize(
    ("filter", "problem"),
    [
        (_compare("equals", "n", "3"), "{{ sample.n }} is a number, 3; it is compared with text"),
        (_compare("equals", "b", 1), "is a boolean, True; it is compared with a number"),
        (_compare("in", "t", [1]), "is text, 'text'; it is compared with a number"),
        (_compare("greater", "t", 3), "greater compares numbers with numbers, or text with text"),
        (_compare("less", "b", "true"), "less compares numbers with numbers"),
        (_compare("contains", "n", 3), "contains looks into text for text, or into a list"),
        (_compare("equals", "none", "x"), "{{ sample.none }} has no value"),
        ({"op": "or", "filters": [_compare("equals", "n", 3), _compare("equals", "none", 1)]}, "has no value"),
        ({"op": "equals", "expression": "{{ sample.l[9] }}", "value": 1}, "has no element 9"),
    ],
)
def test_what_cannot_be_decided_is_an_error_of_the_row(tmp_path: Path, filter: dict[str, Any], problem: str) -> None:
    status, error = _status(tmp_path, filter)
    assert "error" == status
    assert error.startswith("action rule: ")
    assert problem in error


def test_a_value_that_one_row_lacks_spoils_that_row_alone(tmp_path: Path) -> None:
    action = {"key": "rule", "action": "exclude_from_metrics", "filter": _compare("equals", "n", 3)}
    rows = [ROW, {"q": "q", "a": "1"}, {**ROW, "n": 4}]
    results = score(make(tmp_path, [EQUALS], rows, actions=[action]), "1", "1", "1")
    assert ["excluded", "error", "passed"] == [result.status for result in results]
    assert "action rule: template '{{ sample.n }}': there is no 'n'; there is q, a, sample_id" == results[1].error


@pytest.mark.parametrize(
    ("op", "value", "wanted"),
    [
        ("in", [], "a list of at least one value"),
        ("in", ["a", 1], "all texts, all numbers or all booleans"),
        ("in", [None], "all texts, all numbers or all booleans"),
        ("in", {"a": 1}, "a list of at least one value"),
        ("contains", ["x"], "a text, number or boolean for 'contains', got an array ['x']"),
        ("contains", "", "a text, number or boolean for 'contains'"),
        ("contains", None, "a text, number or boolean for 'contains', got null"),
        ("greater", True, "a number or a text for 'greater', got"),
        ("less", [1], "a number or a text for 'less', got an array [1]"),
        ("less", None, "a number or a text for 'less', got null"),
    ],
)
def test_a_value_that_could_only_be_misread_is_refused(tmp_path: Path, op: str, value: Any, wanted: str) -> None:
    inner = {"op": "not", "filter": _compare(op, "q", value)}
    (found,) = faults(tmp_path, document(actions=[{"key": "rule", "action": "exclude_from_metrics", "filter": inner}]))
    assert found.startswith("bad_type definition.actions[0].filter.filter.value: expected ")
    assert wanted in found
