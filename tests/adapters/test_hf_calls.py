"""The calls in a text, as families of models write them: valid, several, broken, and beside other text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.adapters.hf.calls import FAMILIES, family_of, parse_calls

F = {"name": "f", "arguments": {"a": 1}}
G = {"name": "g", "arguments": {}}
MARKS = ("<tool_call>", "</tool_call>", "[TOOL_CALLS]", "[ARGS]", "<|python_tag|>", '"name": "f"')


def found(text: str, family: str) -> tuple[str, list[tuple[str, Any]]]:
    rest, calls = parse_calls(text, family)
    return rest, [(call.name, call.arguments if call.values is None else call.values) for call in calls]


def hermes(call: Any) -> str:
    return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"


def llama(call: Any) -> str:
    return json.dumps({"name": call["name"], "parameters": call["arguments"]})


@pytest.mark.parametrize(
    ("family", "text", "expected"),
    [
        ("hermes", hermes(F), ("", [("f", {"a": 1})])),
        ("hermes", f"Let me see.\n{hermes(F)}\n{hermes(G)}", ("Let me see.", [("f", {"a": 1}), ("g", {})])),
        (
            "hermes",
            '<tool_call>{"name": "f", "arguments": {"a": 1}',
            ("", [("f", '{"name": "f", "arguments": {"a": 1}')]),
        ),
        ("hermes", "<tool_call>f(1)</tool_call>", ("", [("", "f(1)")])),
        ("hermes", '{"name": "f", "arguments": {}}', ('{"name": "f", "arguments": {}}', [])),
        ("llama", llama(F), ("", [("f", {"a": 1})])),
        ("llama", f"<|python_tag|>{llama(F)}; {llama(G)}", ("", [("f", {"a": 1}), ("g", {})])),
        ("llama", f"{llama(F)}\n{llama(G)}", ("", [("f", {"a": 1}), ("g", {})])),
        ("llama", '{"name": "f", "parameters": {"a": ', ("", [("f", '{"name": "f", "parameters": {"a":')])),
        ("llama", "It is {so}.", ("It is {so}.", [])),
        ("mistral", f"[TOOL_CALLS][{json.dumps(F)}, {json.dumps(G)}]", ("", [("f", {"a": 1}), ("g", {})])),
        ("mistral", '[TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g{}', ("", [("f", {"a": 1}), ("g", {})])),
        ("mistral", '[TOOL_CALLS]f[ARGS]{"a": 1', ("", [("f", '{"a": 1')])),
        ("mistral", "No call.", ("No call.", [])),
    ],
)
def test_calls_are_read_and_what_is_no_json_is_a_call_all_the_same(family: str, text: str, expected: Any) -> None:
    assert expected == found(text, family)


@pytest.mark.parametrize(
    ("template", "family"),
    [
        ("... <tool_call> ...", "hermes"),
        ("[TOOL_CALLS]", "mistral"),
        ('{"name": n, "parameters": p}', "llama"),
        ("", ""),
    ],
)
def test_the_family_is_told_by_the_template(template: str, family: str) -> None:
    assert family == family_of(template)


@given(st.sampled_from(sorted(FAMILIES)), st.lists(st.sampled_from([*"{}[], f", *MARKS])).map("".join))
def test_any_text_is_read(family: str, text: str) -> None:
    rest, calls = parse_calls(text, family)
    assert isinstance(rest, str)
    assert len({call.id for call in calls}) == len(calls)
