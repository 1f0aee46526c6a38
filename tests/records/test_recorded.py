"""The values of a ledger or a board, each as a run writes it or refused by its name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_lmeval.records.recorded import recorded_info, recorded_result
from pytest_lmeval.types import RESULT_FIELDS, ExampleResult

RESULT = ExampleResult("sums", "a", "passed", 1.0, 0.5, "exact_match", "f" * 64)
FIELDS = json.loads(RESULT.to_json())


@pytest.mark.parametrize("name", RESULT_FIELDS)
def test_no_field_takes_a_value_of_another_type(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name}: expected .*, got <object"):
        recorded_result({**FIELDS, name: object()})


@pytest.mark.parametrize(
    ("name", "value", "inside"),
    [("usage", {"cost": "1"}, "cost"), ("metrics", {"f1": True}, "f1"), ("served_by", {"m": -1}, "m")],
)
def test_the_numbers_in_a_field_are_checked(name: str, value: Any, inside: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name}\.{inside}: expected"):
        recorded_result({**FIELDS, name: value})


@pytest.mark.parametrize("status", ["error", "timeout", "excluded", "measured"])
def test_a_status_without_a_score_has_none(status: str) -> None:
    assert recorded_result({**FIELDS, "status": status, "score": None}).score is None
    with pytest.raises(ValueError, match=f"^score: expected null, the status being {status}"):
        recorded_result({**FIELDS, "status": status})


def test_the_line_of_a_task_that_is_no_object_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^task: expected an object, got 5"):
        recorded_info(5)
