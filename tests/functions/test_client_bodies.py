"""Whatever a client puts in any place of a body is read, or refused by a message: it is no fault of the endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.functions.clients import chat_request, messages_request, models, responses_request
from pytest_lmeval.functions.clients.body import ClientRequest

FUNCTION = {"name": "look", "parameters": {}}
CALL = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
CHAT = {
    "model": "m",
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "x", "type": "function", "function": FUNCTION}]},
        {"role": "tool", "tool_call_id": "x", "content": "r"},
    ],
    "tools": [{"type": "function", "function": FUNCTION}],
    "tool_choice": {"type": "function", "function": {"name": "look"}},
    "stop": ["a"],
    "stream_options": {"include_usage": True},
    "response_format": {"type": "x"},
}
RESPONSES = {
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
        {"type": "reasoning", "summary": []},
        CALL,
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "n"}]},
    ],
    "tools": [{"type": "function", **FUNCTION}],
    "tool_choice": {"type": "function", "name": "look"},
    "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}, "verbosity": "low"},
    "reasoning": {"effort": "low", "summary": "auto"},
    "include": ["a"],
    "previous_response_id": "r",
}
MESSAGES = {
    "max_tokens": 3,
    "system": [{"type": "text", "text": "s", "cache_control": {}}],
    "messages": [
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "a"},
                {"type": "tool_use", "id": "t", "name": "look", "input": {}},
                {"type": "thinking", "thinking": "x"},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "r"}]}],
        },
    ],
    "tools": [{"name": "look", "input_schema": {}}],
    "tool_choice": {"type": "tool", "name": "look", "disable_parallel_tool_use": True},
    "thinking": {"type": "enabled", "budget_tokens": 3},
}
JUNK: tuple[Any, ...] = (
    *(None, 5, True, "x", "", [], {}, [None], [5], ["x"], [[]], [{}]),
    *({"type": 5}, {"type": []}, {"type": {}}, {"type": "text", "text": 5}, {"role": []}, {"name": "look"}),
)
READERS: dict[str, tuple[Callable[[bytes], ClientRequest], Any]] = {
    "chat": (chat_request.read_request, CHAT),
    "responses": (partial(responses_request.read_request, talks={"r": ()}), RESPONSES),
    "messages": (messages_request.read_request, MESSAGES),
}


@pytest.mark.parametrize("name", READERS)
def test_junk_in_any_place_of_a_body_is_read_or_refused(name: str) -> None:
    read, body = READERS[name]
    read(json.dumps(body).encode())
    refused = 0
    for place in _places(body):
        for junk in JUNK:
            try:
                read(json.dumps(_with(body, place, junk)).encode())
            except ValueError:
                refused += 1
    assert refused > 300


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from _places(each, (*place, key))


def _with(value: Any, place: tuple[Any, ...], junk: Any) -> Any:
    """Return a copy of ``value`` with ``junk`` in a place."""
    if not place:
        return junk
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = _with(value[place[0]], place[1:], junk)
    return copy


OWNERS = {
    **dict.fromkeys(("json.loads(", "model_validate(", "validation_faults("), "models.py"),
    **dict.fromkeys(("web.StreamResponse(", ".prepare("), "interfaces.py"),
    "x-should-retry": "chat_reply.py",
}


def test_one_module_checks_bodies_one_sends_events_and_one_errors() -> None:
    sources = {path.name: path.read_text("utf-8") for path in Path(models.__file__).parent.glob("*.py")}
    assert {rule: [owner] for rule, owner in OWNERS.items()} == {
        rule: [name for name, text in sources.items() if rule in text] for rule in OWNERS
    }
