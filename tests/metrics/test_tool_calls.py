"""The calls that a model makes against those that it should make, and the first difference in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.metrics.tool_calls import same, tool_calls
from pytest_lmeval.types import Completion, ToolCall
from tests.tables import each_row

DATA = Path(__file__).parents[1] / "data" / "bfcl_like.jsonl"
ADD = {"name": "add", "arguments": {"a": 1, "b": 2}}
SUB = {"name": "sub", "arguments": {"a": 1}}


def score(made: Any, expected: list[dict[str, Any]], text: str = "", **extras: Any) -> tuple[float, str]:
    """Return the score of calls, each a name and arguments (a text is what the model wrote), and the difference."""
    calls = tuple(
        ToolCall(str(number), name, given if isinstance(given, str) else json.dumps(given))
        for number, (name, given) in enumerate(made)
    )
    found = tool_calls(Completion(text, tool_calls=calls).output, (), {"calls": expected, **extras})
    return found.value, found.details.get("difference", "")


@each_row(
    ("made", "expected", "difference"),
    [
        ([("add", {"b": 2, "a": 1})], [ADD], ""),
        ([("add", {"a": 1.0, "b": 2})], [ADD], ""),
        ([], [], ""),
        ([("sub", {"a": 1}), ("add", {"a": 1, "b": 2})], [ADD, SUB], ""),
        ([], [ADD], "no call of add(a=1, b=2)"),
        ([("mul", {})], [ADD], "no call of add(a=1, b=2), got mul()"),
        ([("add", {"a": 1, "b": 3})], [ADD], "call of add: argument b: expected 2, got 3"),
        ([("add", {"a": True, "b": 2})], [ADD], "call of add: argument a: expected 1, got true"),
        ([("add", {"a": 1})], [ADD], "call of add: no argument b, expected 2"),
        ([("add", {"a": 1, "b": 2, "c": 3})], [ADD], "call of add: an argument too many: c"),
        ([("add", '{"a": 1,')], [ADD], 'call of add: arguments that are no JSON object: {"a": 1,'),
        ([("add", "[1, 2]")], [ADD], "call of add: arguments that are no JSON object: [1, 2]"),
        ([("add", ADD["arguments"]), ("sub", {})], [ADD], "a call too many: sub()"),
        ([("add", ADD["arguments"])] * 2, [ADD], "a call too many: add(a=1, b=2)"),
        ([("sub", {"a": 1})], [], "a call too many: sub(a=1)"),
    ],
)
def test_the_first_difference_is_named(made: Any, expected: list[dict[str, Any]], difference: str) -> None:
    assert (float(not difference), difference) == score(made, expected)


def test_the_text_beside_the_calls_does_not_matter() -> None:
    assert (1.0, "") == score([("add", ADD["arguments"])], [ADD], text="Let me add that up.")
    assert 0.0 == score([], [ADD], text='{"name": "add", "arguments": {"a": 1, "b": 2}}')[0]


def test_an_exact_order_is_kept() -> None:
    made = [("sub", {"a": 1}), ("add", ADD["arguments"])]
    assert (0.0, "call 1: expected add, got sub") == score(made, [ADD, SUB], order="exact")
    assert (1.0, "") == score(made, [SUB, ADD], order="exact")
    assert (0.0, "no call of add(a=1, b=2)") == score(made[:1], [SUB, ADD], order="exact")
    assert (0.0, "a call too many: add(a=1, b=2)") == score(made, [SUB], order="exact")


def test_a_subset_lets_further_arguments_be() -> None:
    assert (1.0, "") == score([("add", {"a": 1, "b": 2, "c": 3})], [ADD], arguments="subset")
    assert 0.0 == score([("add", {"a": 1, "c": 3})], [ADD], arguments="subset")[0]


def test_pairs_are_found_whichever_order_the_calls_come_in() -> None:
    expected = [{"name": "f", "arguments": each} for each in ({}, {"a": 1}, {"a": 1, "b": 2})]
    made = [("f", {"a": 1, "b": 2}), ("f", {"a": 1}), ("f", {"c": 3})]
    for each in permutations(made):
        assert (1.0, "") == score(each, expected, arguments="subset")


def test_a_thousand_calls_are_compared_at_once() -> None:
    assert 0.0 == score([("add", {"a": number}) for number in range(1000)], [ADD])[0]


@each_row(
    ("one", "other", "equal"),
    [(1, 1.0, True), (1, True, False), ([1, {"a": None}], [1.0, {"a": None}], True), ("1", 1, False), ({}, [], False)],
)
def test_json_values_are_equal_as_json_has_it(one: Any, other: Any, equal: bool) -> None:
    assert equal == same(one, other)


# Records in the format of the Berkeley Function Calling Leaderboard


def _bfcl() -> list[Any]:
    return list(_answers())


def _answers() -> Iterator[Any]:
    for line in DATA.read_text("utf-8").splitlines():
        record = json.loads(line)
        for answer in record["answers"]:
            yield pytest.param(record, answer, id=f"{record['id']}-{answer['note']}")


def expected_calls(ground_truth: list[dict[str, dict[str, list[Any]]]]) -> list[dict[str, Any]]:
    """Return the calls of a ground truth: of every argument the first of the values that are right, "" for none."""
    return [
        {"name": name, "arguments": {key: values[0] for key, values in arguments.items() if values[0] != ""}}
        for call in ground_truth
        for name, arguments in call.items()
    ]


@each_row(("record", "answer"), _bfcl())
def test_records_of_the_four_kinds_are_scored_as_their_checker_does(record: Any, answer: Any) -> None:
    made = [(name, arguments) for call in answer["calls"] for name, arguments in call.items()]
    assert answer["right"] == bool(score(made, expected_calls(record["ground_truth"]))[0])
