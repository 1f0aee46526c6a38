"""The context that an item's metrics get: its fields are checked where it is made."""

from __future__ import annotations

import pytest

from pytest_lmeval.tasks import BaseMetricContext, ResponseType


class Tests(BaseMetricContext):
    __test__ = False

    test_cases: list[str]
    entry_point: str


class Timed(Tests):
    timeout_s: float = 3.0


def test_a_context_keeps_its_fields_those_of_its_base_first() -> None:
    context = Timed(entry_point="add", test_cases=["add(1, 2) == 3"])

    assert {"test_cases": ["add(1, 2) == 3"], "entry_point": "add", "timeout_s": 3.0} == context.as_dict()
    assert ["test_cases", "entry_point", "timeout_s"] == list(context.as_dict())
    assert "add" == context.entry_point


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"test_cases": []}, "Tests lacks 'entry_point'; it has the fields test_cases, entry_point"),
        ({"test_cases": [], "entry_pont": "f"}, "Tests has no field 'entry_pont'; did you mean 'entry_point'?"),
        ({"timeout": 1}, "Tests has no field 'timeout'; expected test_cases, entry_point"),
    ],
)
def test_a_missing_or_unknown_field_is_named(fields: dict[str, object], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        Tests(**fields)

    assert message == str(caught.value)


def test_a_response_type_may_be_written_as_text() -> None:
    assert [ResponseType.COMPLETION, ResponseType.LOGLIKELIHOODS] == ["completion", "loglikelihoods"]
