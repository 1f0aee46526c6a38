"""Test cases as datasets write them down."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.sandbox import open_sandbox
from pytest_lmeval.tasks import CodeExecutionPassAtOne
from pytest_lmeval.tasks.scores import plan_test_cases

RIGHT = "Like so:\n```python\ndef add(a, b):\n    return a + b\n```"
WRONG = "def add(a, b):\n    return a - b"
CHECK = "def check(candidate):\n    assert candidate(1, 2) == 3\n"
FORMS: list[Any] = [
    ["assert add(1, 2) == 3, 'three'", "add(0, 4) == 4"],
    [[1, 2, 3], [0, 4, 4]],
    [{"input": [1, 2], "output": 3}],
    CHECK,
    "assert add(1, 2) == 3\nassert add(0, 4) == 4",
    ["total = add(1, 2)\nassert total == 3"],
]


@pytest.mark.parametrize("cases", FORMS, ids=range(len(FORMS)))
def test_every_form_passes_the_right_program_and_fails_another(cases: Any) -> None:
    extras = {"test_cases": cases, "entry_point": "add"}
    CodeExecutionPassAtOne.check(extras)

    with open_sandbox("process") as sandbox:
        scores = [CodeExecutionPassAtOne()(program, (), extras, sandbox) for program in (RIGHT, WRONG)]

    assert [1.0, 0.0] == [score.value for score in scores]
    assert ["pass", "assertion_fail"] == [score.details["code_status"] for score in scores]


def test_one_case_that_is_not_met_is_no_pass() -> None:
    extras = {"test_cases": ["add(1, 2) == 3", "add(0, 4) == 5"]}

    with open_sandbox("process") as sandbox:
        score = CodeExecutionPassAtOne()(RIGHT, (), extras, sandbox)

    assert 0.0 == score.value
    assert [1, 2] == [score.details["passed"], score.details["total"]]


def test_a_program_scored_by_unittests_shows_what_it_printed_and_is_forgeable() -> None:
    tests = (
        "import unittest\nclass T(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(3, add(1, 2))"
    )
    program = "def add(a, b):\n    print('adds', a, b)\n    return a - b"

    with open_sandbox("process") as sandbox:
        score = CodeExecutionPassAtOne()(program, (), {"test_code": tests}, sandbox)

    assert (0.0, "adds 1 2\n", True) == (score.value, score.details["stdout"], score.details["forgeable"])


def test_a_time_limit_of_the_context_is_passed_on() -> None:
    assert {"timeout_s": 7} == plan_test_cases({"test_cases": ["f() == 1"], "timeout_s": 7}).extras


@pytest.mark.parametrize(
    ("context", "field", "detail"),
    [
        ({}, "test_cases", "expected source, or a list of test cases, got None"),
        ({"test_cases": []}, "test_cases", "expected source, or a list of test cases, got []"),
        ({"test_code": ["x"]}, "test_code", "expected unittest source, got ['x']"),
        ({"test_code": "x", "benchmark_timeout": "soon"}, "benchmark_timeout", "expected seconds above 0, got 'soon'"),
        ({"test_code": "x", "benchmark_timeout": -1}, "benchmark_timeout", "expected seconds above 0, got -1"),
        ({"test_cases": ["add(1,"]}, "test_cases", "expected Python, got 'add(1,'"),
        ({"test_cases": [{"in": 1}], "entry_point": "f"}, "test_cases", "case 0: expected a list"),
        (
            {"test_cases": [[1, 2]]},
            "extras.entry_point",
            "expected the name of a function, or of a method as 'Solution.f', got None",
        ),
        (
            {"test_cases": CHECK},
            "extras.entry_point",
            "expected the name of a function, or of a method as 'Solution.f', got None",
        ),
        ({"test_cases": ["f() == 1"], "timeout_s": 99}, "extras.timeout_s", "at most 30, got 99"),
    ],
)
def test_what_cannot_be_asked_is_refused(context: dict[str, Any], field: str, detail: str) -> None:
    with pytest.raises(RecordRefused) as caught:
        CodeExecutionPassAtOne.check(context)

    assert field == caught.value.field
    assert detail in caught.value.detail
