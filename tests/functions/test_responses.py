"""Requests and replies of OpenAI's Responses interface: what of them reaches a model, and what comes back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_lmeval.functions.clients.body import ClientRequest
from pytest_lmeval.functions.clients.responses_reply import document, events_of
from pytest_lmeval.functions.clients.responses_request import read_request
from pytest_lmeval.types import Completion, Message, ToolCall
from tests.tables import each_row

CALL = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": 1}'}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "tea"}]}
LOOK = {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": True, "description": None}
SCHEMA = {"type": "json_schema", "name": "said", "schema": {"type": "object"}, "strict": True}


def read(talks: Any = None, **fields: Any) -> ClientRequest:
    return read_request(json.dumps({"model": "m", "input": "hi"} | fields).encode(), talks or {})


def said(*texts: str, kind: str = "output_text") -> list[dict[str, Any]]:
    return [{"type": kind, "text": text} for text in texts]


TURNS = (
    ("a text", "hi", [Message("user", "hi")]),
    ("parts", [{"role": "developer", "content": said("a", "b", kind="input_text")}], [Message("developer", "ab")]),
    (
        "an answer and its calls are one message, thoughts are left out",
        [
            {"role": "user", "content": "q"},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "message", "id": "msg_1", "role": "assistant", "content": said("I look")},
            CALL,
            CALL | {"call_id": "c2"},
            RESULT,
        ],
        [
            Message("user", "q"),
            Message("assistant", "I look", (ToolCall("c1", "look", '{"at": 1}'), ToolCall("c2", "look", '{"at": 1}'))),
            Message("tool", "tea", (), "c1"),
        ],
    ),
    ("calls alone", [CALL], [Message("assistant", "", (ToolCall("c1", "look", '{"at": 1}'),))]),
    (
        "two answers are two",
        [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}],
        [Message("assistant", "a"), Message("assistant", "b")],
    ),
    (
        "a refusal is what was said",
        [{"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}],
        [Message("assistant", "no")],
    ),
)


@each_row(("what", "given", "wanted"), TURNS)
def test_the_items_of_the_input_are_messages(what: str, given: Any, wanted: list[Message]) -> None:
    assert wanted == list(read(input=given).messages), what


def test_options_become_those_that_chat_completions_have() -> None:
    asked = read(
        tools=[LOOK],
        tool_choice={"type": "function", "name": "look"},
        max_output_tokens=7,
        reasoning={"effort": "low", "summary": "auto"},
        text={"format": SCHEMA, "verbosity": "low"},
        temperature=0.5,
        top_k=5,
        store=True,
        metadata={"run": "1"},
        include=["reasoning.encrypted_content"],
        truncation="auto",
        stream=True,
    )
    wanted = {
        "max_tokens": 7,
        "tools": ({"name": "look", "parameters": {"type": "object"}, "strict": True},),
        "tool_choice": "look",
        "options": {
            "reasoning_effort": "low",
            "verbosity": "low",
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "said", "schema": {"type": "object"}, "strict": True},
            },
            "temperature": 0.5,
            "top_k": 5,
        },
    }
    assert wanted == asked.fields
    assert ("reasoning.summary", "truncation") == asked.dropped
    assert asked.streams


def test_a_response_goes_on_with_one_that_was_stored() -> None:
    talks = {"resp_1": (Message("user", "a"), Message("assistant", "b"))}
    asked = read(talks, previous_response_id="resp_1", instructions="Be brief.")
    assert ["system", "user", "assistant", "user"] == [each.role for each in asked.messages]
    # As servers have it: the instructions of one request are not those of the next.
    assert asked.messages[1:] == asked.talk
    assert read(store=False).talk is None


REFUSED: Any = (
    ({"input": None}, "input: the field 'input' is required here"),
    ({"input": []}, "input: expected at least one, got []"),
    ({"input": 5}, "input: expected a text or a list, got 5"),
    ({"input": [5]}, "input[0]: expected a mapping, got a number 5"),
    ({"input": [{"type": "item_reference"}]}, "input[0].type: 'item_reference' is not one of message, function_call"),
    ({"input": [{"role": "user", "content": [{"type": "input_video"}]}]}, "input[0].content: expected text content"),
    ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role: 'tool' is not one of user, assistant, system, dev"),
    ({"input": [CALL | {"arguments": {}}]}, "input[0].arguments: expected text, got an object"),
    ({"input": [CALL, RESULT | {"call_id": 5}]}, "input[1].call_id: expected text, got a number 5"),
    (
        {"tools": [{"type": "web_search"}]},
        "tools[0].type: expected a function of the application: custom tools (free text)",
    ),
    ({"tools": [LOOK | {"parameters": 5}]}, "tools[0].parameters: expected a mapping, got a number 5"),
    ({"tool_choice": {"type": "mcp"}}, "tool_choice: expected auto, none, required or one of the tools"),
    ({"tools": [LOOK], "tool_choice": {"type": "function", "name": "see"}}, "tool_choice: expected auto"),
    ({"text": {"format": {"type": "grammar"}}}, "text.format.type: 'grammar' is not one of text, json_object, json_sc"),
    ({"text": {"format": {"type": "json_schema"}}}, "text.format.name: the field 'name' is required here"),
    ({"background": True}, "background: expected false: background responses are not supported, got True"),
    ({"conversation": "c"}, "conversation: expected nothing: stored conversations are not supported"),
    ({"previous_response_id": "resp_0"}, "previous_response_id: expected the id of a response of this example"),
    ({"max_output_tokens": 0}, "max_output_tokens: expected a whole number from 1, got 0"),
)


@each_row(("fields", "message"), REFUSED)
def test_what_cannot_be_asked_is_refused_by_name(fields: Any, message: str) -> None:
    with pytest.raises(ValueError) as raised:  # the message is compared below
        read(**fields)
    assert str(raised.value).startswith(message)


ANSWERS = (
    (Completion("yes"), ["message"], "completed"),
    (Completion(""), ["message"], "completed"),
    (Completion("ye", finish_reason="length"), ["message"], "incomplete"),
    (Completion("no", finish_reason="refusal"), ["message"], "completed"),
    (Completion("", tool_calls=(ToolCall("c", "look", ""),)), ["function_call"], "completed"),
    (
        Completion("I look", thoughts="hm", tool_calls=(ToolCall("c", "look", '{"at": 1}'), ToolCall("d", "see", "{"))),
        ["reasoning", "message", "function_call", "function_call"],
        "completed",
    ),
)


@each_row(("answer", "kinds", "status"), ANSWERS)
def test_the_events_of_a_stream_end_with_the_reply_in_one_piece(answer: Completion, kinds: Any, status: str) -> None:
    asked = read()
    whole = document(answer, asked)
    events = [*events_of(whole, asked)]
    assert (kinds, status) == ([item["type"] for item in whole["output"]], whole["status"])
    assert ("response.created", f"response.{status}") == (events[0]["type"], events[-1]["type"])
    assert [*range(len(events))] == [event["sequence_number"] for event in events]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == events[-1]["response"]["output"]
    pieces = "".join(event["delta"] for event in events if event["type"].endswith(".delta"))
    assert answer.thoughts + answer.text + "".join(call.arguments for call in answer.tool_calls) == pieces


def test_the_usage_of_a_response_adds_up() -> None:
    usage = document(Completion("a", prompt_tokens=7, completion_tokens=4, reasoning_tokens=2), read({}))["usage"]
    assert (7, 4, 11, 2) == (
        *(usage[name] for name in ("input_tokens", "output_tokens", "total_tokens")),
        usage["output_tokens_details"]["reasoning_tokens"],
    )
