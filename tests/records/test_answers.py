"""What a model wrote, as ledger, replay and digest have it, and the answers of several requests found again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.hashes import request_hash
from pytest_lmeval.records.answers import KnownAnswers, Recall, exchange_record, recorded_answer
from pytest_lmeval.types import Completion, ExampleResult, Exchange, Generate, Message, ToolCall

CALL = ToolCall("a1", "add", '{"b": 2, "a": 1}')
REQUEST = Generate((Message("user", "1 + 2?"),), "sums", "x")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
CALLS = st.builds(
    ToolCall, st.just("id"), st.text(), st.text() | st.dictionaries(st.text(), JSON, max_size=3).map(json.dumps)
)


def _shape(completion: Completion) -> tuple[str, list[tuple[str, Any]]]:
    calls = [(call.name, call.arguments if call.values is None else call.values) for call in completion.tool_calls]
    return completion.text, calls


def test_the_output_of_calls_is_canonical_json_without_their_ids() -> None:
    expected = '{"text":"","tool_calls":[{"arguments":{"a":1,"b":2},"name":"add"}]}'
    assert {expected} == {Completion("", tool_calls=(CALL._replace(id=id),)).output for id in ("a1", "b2")}


def test_arguments_that_are_no_json_stay_as_they_were_written() -> None:
    output = Completion("", tool_calls=(ToolCall("", "add", '{"a": 1'),)).output
    assert {"text": "", "tool_calls": [{"name": "add", "arguments": '{"a": 1'}]} == json.loads(output)
    assert '{"a": 1' == Completion.of_output(output).tool_calls[0].arguments


@pytest.mark.parametrize("arguments", ['{"a": NaN}', '{"a": 1e999}', "[1]", "7", "{" * 5000])
def test_what_is_no_json_object_has_no_values(arguments: str) -> None:
    assert ToolCall("", "add", arguments).values is None


@pytest.mark.parametrize("arguments", ["", " \n", "null", " null ", "{}"])
def test_nothing_and_null_are_no_arguments(arguments: str) -> None:
    assert {} == ToolCall("", "add", arguments).values


def test_a_text_that_looks_like_the_json_of_calls_is_not_read_as_calls() -> None:
    text = Completion("", tool_calls=(CALL,)).output
    again = Completion.of_output(Completion(text).output)
    assert (text, ()) == (again.text, again.tool_calls)


@given(st.text() | st.builds(json.dumps, JSON), st.lists(CALLS, max_size=3))
def test_a_completion_is_read_back_from_its_output(text: str, calls: list[ToolCall]) -> None:
    completion = Completion(text, tool_calls=tuple(calls))
    again = Completion.of_output(completion.output)
    assert _shape(completion) == _shape(again)
    assert completion.output == again.output


def test_ids_of_calls_that_are_read_back_are_told_apart() -> None:
    output = Completion("", tool_calls=(CALL, CALL)).output
    ids = [call.id for call in Completion.of_output(output).tool_calls]
    assert 2 == len(set(ids))
    assert all(len(id) == 9 and id.isalnum() for id in ids)


def test_ids_of_calls_are_told_apart_among_the_answers_to_an_example() -> None:
    answers = [Completion("", tool_calls=(CALL, CALL)), Completion("", tool_calls=(CALL,))]
    recall = Recall([exchange_record(Exchange(REQUEST, each)) for each in answers])
    ids = [call.id for _ in answers for call in (recall.take(REQUEST) or Completion("")).tool_calls]
    assert 3 == len(set(ids))
    assert all(len(id) == 9 and id.isalnum() for id in ids)


def test_the_request_hash_depends_on_tools_and_calls_but_not_on_the_ids_of_calls() -> None:
    def asked(call: ToolCall, tools: tuple[dict[str, Any], ...] = ()) -> str:
        talk = (Message("user", "?"), Message("assistant", "", (call,)), Message("tool", "3", tool_call_id=call.id))
        return request_hash([Generate(talk, tools=tools)])

    assert asked(CALL) == asked(CALL._replace(id="other"))
    assert asked(CALL) == asked(CALL._replace(arguments='{"a": 1, "b": 2}'))
    others = [asked(CALL, ({"name": "add"},)), asked(CALL, ({"name": "sub"},)), asked(CALL._replace(name="sub"))]
    assert 4 == len({asked(CALL), *others})


def _exchanges(*outputs: str) -> list[Exchange]:
    return [Exchange(REQUEST, Completion(output, thoughts="hm", cost=0.5)) for output in outputs]


def test_equal_requests_are_answered_in_their_order_each_once() -> None:
    recall = Recall([exchange_record(each) for each in _exchanges("one", "two")])
    assert ["one", "two", None] == [found and found.text for found in (recall.take(REQUEST) for _ in range(3))]


def test_another_request_another_repeat_and_another_example_have_no_answer() -> None:
    result = ExampleResult(
        "sums", "x", "passed", 1.0, 1.0, "turns", "h", exchanges=tuple(map(exchange_record, _exchanges("one")))
    )
    known = KnownAnswers([ExampleResult.from_json(result.to_json())])
    assert known.of("sums", "y").take(REQUEST) is None
    assert known.of("sums", "x").take(Generate("1 + 2?", "sums", "x")) is None
    assert known.of("sums", "x").take(Generate(REQUEST.prompt, "sums", "x", 1)) is None
    assert Completion("one", thoughts="hm", cost=0.5) == known.of("sums", "x").take(REQUEST)


@pytest.mark.parametrize(("held", "found"), [("", "one"), (None, "one"), ("k1", "one"), ("k2", None)])
def test_what_another_adapter_answered_is_not_known(held: str | None, found: str | None) -> None:
    (record,) = map(exchange_record, _exchanges("one"))
    result = ExampleResult("sums", "x", "passed", 1.0, 1.0, "turns", "h", exchanges=({**record, "adapter_key": held},))
    journal = {"": {("sums", "x"): [{**record, "adapter_key": held}]}}
    for known in (KnownAnswers([result], key="k1"), KnownAnswers(journal=journal, key="k1")):
        answer = known.of("sums", "x").take(REQUEST)
        assert found == (answer and answer.text)


@pytest.mark.parametrize(
    ("record", "wrong"),
    [
        ({"repeat": 0, "output": "a"}, "request and output"),
        ({"request": "h", "repeat": 0, "output": 3}, "request and output"),
        ({"request": "h", "repeat": True, "output": "a"}, "repeat"),
        ({"request": "h", "repeat": 0, "output": "a", "cost": "1"}, "exchanges.cost"),
        ({"request": "h", "repeat": 0, "output": "a", "thoughts": 1}, "exchanges.thoughts"),
    ],
)
def test_a_record_of_another_shape_is_refused_by_name(record: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        recorded_answer(record)
