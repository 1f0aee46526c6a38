"""The calls that a model makes against those that it should make, and the first difference in words."""

from __future__ import annotations

import json
import re
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import pytest_lmeval
from pytest_lmeval.errors import RecordRefused, ScoringError
from pytest_lmeval.formats.tools import check_call_extras, tools_of
from pytest_lmeval.metrics.parts import worker
from pytest_lmeval.metrics.tool_calls import tool_calls
from pytest_lmeval.types import Completion, ToolCall
from tests.tables import each_row

ADD = {"name": "add", "arguments": {"a": 1, "b": 2}}
SUB = {"name": "sub", "arguments": {"a": 1}}


def score(made: Any, expected: list[dict[str, Any]], said: str = "", **extras: Any) -> tuple[float, str]:
    """Return the score of calls, each a name and arguments (a text is what the model wrote), and the difference."""
    calls = tuple(
        ToolCall(str(number), name, given if isinstance(given, str) else json.dumps(given))
        for number, (name, given) in enumerate(made)
    )
    found = tool_calls(Completion(said, tool_calls=calls).output, (), {"calls": expected, **extras})
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
    assert (1.0, "") == score([("add", ADD["arguments"])], [ADD], said="Let me add that up.")
    assert 0.0 == score([], [ADD], said='{"name": "add", "arguments": {"a": 1, "b": 2}}')[0]


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


WEATHER = {
    "name": "weather",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "unit": {"enum": ["C", "F"]},
            "days": {"type": "integer", "minimum": 1},
            "at": {"type": "object", "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}}},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["city"],
    },
}
TOOLS = [{"type": "function", "function": WEATHER}, {"name": "now"}]
RIGA = {"name": "weather", "arguments": {"city": "Riga"}}


@each_row(
    ("call", "says"),
    [
        ({**RIGA, "accept": {"unit": ["K"]}}, 'argument unit: expected one of "C", "F", got "K"'),
        ({**RIGA, "optional": ["city"]}, "argument city: it is required, and missing"),
        ({**RIGA, "accept": {"unit": []}}, "accept: expected lists of values"),
        ({**RIGA, "optional": "unit"}, "optional: expected a list of names"),
        ({**RIGA, "optional": ["unit"]}, "optional: 'unit' has no value, neither in arguments nor in accept"),
        ({**RIGA, "accept": {"/at/lat": [1]}}, "the arguments contain no 'at/lat'"),
        ({**RIGA, "accept": {"/city/0": ["R"]}}, "the arguments contain no 'city/0'"),
    ],
)
def test_an_expected_call_that_cannot_be_right_is_refused(call: dict[str, Any], says: str) -> None:
    with pytest.raises(ScoringError, match=re.escape(says)):
        score([], [call], tools=TOOLS)
    with pytest.raises(RecordRefused) as refused:
        check_call_extras({"calls": [call]}, "extras", tools_of(TOOLS, "tools"))
    assert says in refused.value.detail
    assert refused.value.field.startswith("extras.calls[0]")


def test_a_subset_may_leave_out_what_is_required() -> None:
    wanted = {"name": "weather", "arguments": {"unit": "C"}}
    check_call_extras({"calls": [wanted], "arguments": "subset"}, "extras", tools_of(TOOLS, "tools"))
    assert (1.0, "") == score([("weather", {"city": "Riga", "unit": "C"})], [wanted], tools=TOOLS, arguments="subset")


ALLOWED = {
    "name": "weather",
    "arguments": {"city": "Riga", "unit": "C", "at": {"lat": 1, "lon": 2}},
    "accept": {"city": ["Rīga"], "days": [1, 2], "/at/lat": [1.5]},
    "optional": ["unit", "days", "/at/lon"],
}


@each_row(
    ("given", "right"),
    [
        ({"city": "Riga", "unit": "C", "at": {"lat": 1, "lon": 2}}, True),
        ({"city": "Rīga", "days": 2, "at": {"lat": 1.5}}, True),
        ({"city": "Riga", "days": 3, "at": {"lat": 1}}, False),
        ({"city": "Riga", "unit": "F", "at": {"lat": 1}}, False),
        ({"city": "Riga", "at": {"lat": 2}}, False),
        ({"city": "Riga", "at": {"lon": 2}}, False),
        ({"city": "Riga", "tags": [], "at": {"lat": 1}}, False),
        ({"at": {"lat": 1}}, False),
    ],
)
def test_other_values_may_be_accepted_and_arguments_optional(given: dict[str, Any], right: bool) -> None:
    found, said = score([("weather", given)], [ALLOWED], tools=TOOLS)
    assert right == bool(found), said


def test_what_is_accepted_is_shown_where_it_was_not_met() -> None:
    found = score([("weather", {"city": "Rome", "at": {"lat": 1}})], [ALLOWED], tools=TOOLS)
    assert (0.0, 'call of weather: argument city: expected "Riga" or "Rīga", got "Rome"') == found


@each_row(
    ("given", "bfcl", "exact"),
    [
        ("New York, NY", 1, 0),
        ("new-york  ny", 1, 0),
        ("New York NY", 1, 1),
        ("New York", 0, 0),
        (["new.york", "ny"], 0, 0),
    ],
)
def test_texts_may_be_compared_without_case_and_punctuation(given: Any, bfcl: float, exact: float) -> None:
    wanted = {"name": "weather", "arguments": {"city": "New York NY"}}
    made = [("weather", {"city": given})]
    assert (bfcl, exact) == tuple(score(made, [wanted], text=text)[0] for text in ("bfcl", "exact"))


def test_a_pattern_that_takes_for_ever_makes_the_call_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "shared_worker", partial(worker.MetricWorker, 0.2))
    tool = {"name": "note", "parameters": {"properties": {"text": {"type": "string", "pattern": "^(a+)+$"}}}}
    wanted = [{"name": "note", "arguments": {"text": "aa"}}]
    assert (1.0, "") == score([("note", {"text": "aa"})], wanted, tools=[tool])
    found, said = score([("note", {"text": "a" * 40 + "!"})], wanted, tools=[tool])
    assert (0.0, True) == (found, "cannot search for a pattern of the schema: pattern took more than" in said)


def test_a_call_is_of_one_type_its_arguments_are_read_once_and_so_are_pointers_into_them() -> None:
    package = {path: path.read_text("utf-8") for path in Path(pytest_lmeval.__file__).parent.rglob("*.py")}
    classes = {name for text in package.values() for name in re.findall(r"^class (\w*Calls?)\b", text, re.MULTILINE)}
    # One that a model wrote, as adapters give it; one that was made; one that is expected; the calls of a trace. A
    # server sends parts of one, a client has one in its history, a ledger records one, and one is no call of a tool.
    recorded = {"RecordedCall", "KnownCalls"}
    assert {"ToolCall", "Call", "WantedCall", "_Calls", "_Call", "_ChatCall"} | recorded == classes
    core = {path.stem: text for path, text in package.items() if path.parts[-3] in ("metrics", "pytest_lmeval")}
    assert ["tool_schema"] == [name for name, text in core.items() if '"~1"' in text]
    assert "json.loads" not in core["calls"]
