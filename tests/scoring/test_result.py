"""A result is made of groups, and is read, made and replaced as if it had the fields of all of them."""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields, replace

import pytest

from pytest_lmeval import ExampleResult
from pytest_lmeval.types import RESULT_FIELDS, ExampleAnswer, ExampleOutcome, ExampleQuestion

GROUPS = {"question": ExampleQuestion, "answer": ExampleAnswer, "outcome": ExampleOutcome}
RESULT = ExampleResult("sums", "a", "passed", 1.0, 0.5, "exact_match", "f" * 64, outputs=("5",), line=3)


def test_every_field_is_of_one_group_and_in_the_ledger() -> None:
    names = [each.name for kind in GROUPS.values() for each in fields(kind)]
    assert sorted(RESULT_FIELDS) == sorted(names)
    assert len(names) == len({*names})


@pytest.mark.parametrize("name", RESULT_FIELDS)
def test_a_field_of_a_group_is_one_of_the_result(name: str) -> None:
    (group,) = (group for group, kind in GROUPS.items() if name in {each.name for each in fields(kind)})
    assert getattr(getattr(RESULT, group), name) == getattr(RESULT, name)


def test_a_result_of_fields_is_the_result_of_its_groups() -> None:
    assert RESULT == ExampleResult(question=RESULT.question, answer=RESULT.answer, outcome=RESULT.outcome)
    assert (
        RESULT == ExampleResult.from_json(RESULT.to_json()) == pickle.loads(pickle.dumps(RESULT)) == copy.copy(RESULT)
    )


def test_fields_and_groups_are_replaced() -> None:
    below = replace(RESULT, status="below", score=0.0)
    assert ("below", 0.0, "sums", ("5",)) == (below.status, below.score, below.task, below.outputs)
    assert below == replace(RESULT, outcome=replace(RESULT.outcome, status="below", score=0.0))


def test_a_field_that_there_is_not_is_refused_by_its_name() -> None:
    with pytest.raises(TypeError, match="no field 'scores'"):
        replace(RESULT, scores=(1.0,))  # type: ignore[call-arg]  # the fault
    with pytest.raises(TypeError, match="missing"):
        ExampleResult(task="sums")
    with pytest.raises((AttributeError, TypeError)):
        RESULT.score = 0.0  # type: ignore[misc]  # the fault
