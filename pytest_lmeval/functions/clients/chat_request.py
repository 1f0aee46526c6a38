"""What the body of a request for a chat completion asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_lmeval.functions.clients.body import (
    FLAG,
    LIMIT,
    NUMBER,
    OBJECT,
    TEXT,
    Checks,
    ClientRequest,
    check,
    is_texts,
    named,
    of,
    options_of,
    parsed,
    text_of,
)
from pytest_lmeval.numbers import is_whole
from pytest_lmeval.types import Message, ToolCall

# Of a message, what servers give and no model receives; thoughts are never sent back in a conversation.
_NEVER_SENT = frozenset({"annotations", "id", "reasoning", "reasoning_content"})
_OF_MESSAGES = frozenset({"role", "content", "tool_calls", "tool_call_id"})


def read_request(body: bytes) -> ClientRequest:
    """Return what ``body`` asks; raise ValueError, with the field and what was expected, for what cannot be asked."""
    fields = parsed(body, "messages")
    check(fields, _FIELDS)
    options = options_of(fields, _READ)
    tools = tuple(map(_tool, fields.get("tools") or ()))
    return ClientRequest(
        messages=_messages(fields.get("messages")),
        fields={
            "stop": _stops(fields.get("stop")),
            "max_tokens": _limit(fields),
            "options": options,
            "tools": tools,
            "tool_choice": _tool_choice(fields.get("tool_choice"), [tool["name"] for tool in tools]),
        },
        model=fields.get("model") or "",
        streams=bool(fields.get("stream")),
        wants_usage=bool((fields.get("stream_options") or {}).get("include_usage")),
        dropped=_dropped(fields),
    )


_GONE = (lambda _: False, "nothing: functions are asked for as tools")
_FIELDS: Checks = {
    "model": TEXT,
    "n": (lambda value: is_whole(value) and value == 1, "1: one answer per request is given here"),
    "stop": (lambda value: isinstance(value, str) or is_texts(value), "a text or a list of texts"),
    "max_tokens": LIMIT,
    "max_completion_tokens": LIMIT,
    "tools": (of(list), "a list of functions"),
    "tool_choice": (of(str, dict), "auto, none, required, or an object that names a function"),
    "functions": _GONE,
    "function_call": _GONE,
    "stream": FLAG,
    "stream_options": OBJECT,
    "logprobs": FLAG,
    "temperature": NUMBER,
    "top_p": NUMBER,
    "frequency_penalty": NUMBER,
    "presence_penalty": NUMBER,
    "seed": (is_whole, "a whole number"),
    "response_format": OBJECT,
}
# All others are options.
_READ = frozenset(
    {"messages", "model", "n", "stop", "max_tokens", "max_completion_tokens", "tools", "tool_choice"}
    | {"functions", "function_call", "stream", "stream_options"}
)


def _limit(fields: Mapping[str, Any]) -> Any:
    given = {fields.get(name) for name in ("max_completion_tokens", "max_tokens")} - {None}
    if len(given) > 1:
        raise ValueError("max_completion_tokens and max_tokens: expected one of them, or two equal numbers")
    return next(iter(given), None)


def _stops(given: Any) -> tuple[str, ...]:
    return tuple(filter(None, [given] if isinstance(given, str) else given or ()))


def _tool(given: Any) -> Mapping[str, Any]:
    function = given.get("function") if isinstance(given, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise ValueError(f"tools: expected functions with a name, got {given!r:.120}")
    if not isinstance(function.get("parameters") or {}, dict):
        raise ValueError(f"tools: {function['name']}: expected parameters to be an object")
    return {name: value for name, value in function.items() if value is not None}


def _tool_choice(given: Any, names: list[str]) -> str:
    if given is None or given == "":
        return ""
    if isinstance(given, dict):
        function = given.get("function") if given.get("type", "function") == "function" else None
        name = function.get("name") if isinstance(function, dict) else None
        if isinstance(name, str) and name in names:
            return name
    return named(given, [])


def _messages(given: Any) -> tuple[Message, ...]:
    if not isinstance(given, list) or not given:
        raise ValueError(f"messages: expected a list of messages, got {given!r:.80}")
    return tuple(map(_message, given))


def _message(given: Any) -> Message:
    if not isinstance(given, dict) or not isinstance(given.get("role"), str):
        raise ValueError(f"messages: expected objects with role and content, got {given!r:.120}")
    calls = given.get("tool_calls") or ()
    content = text_of(given.get("content"), "text")
    if content is None and not (calls and given.get("content") is None):
        raise ValueError(f"messages: expected content that is text, got {given.get('content')!r:.120}")
    answers = given.get("tool_call_id") or ""
    if not isinstance(calls, list | tuple) or not isinstance(answers, str):
        raise ValueError("messages: expected tool_calls to be a list and tool_call_id a text")
    return Message(given["role"], content or "", tuple(map(_call, calls)), answers)


def _call(given: Any) -> ToolCall:
    function = given.get("function") if isinstance(given, dict) else None
    parts: tuple[Any, ...] = (None,)
    if isinstance(function, dict):
        parts = (given.get("id") or "", function.get("name"), function.get("arguments") or "")
    if not all(isinstance(part, str) for part in parts):
        raise ValueError(f"messages: expected tool_calls with id and function, all text, got {given!r:.120}")
    return ToolCall(*parts)


def _dropped(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of what no adapter is sent: other parts of messages than text and calls, and ``logprobs``."""
    found = {
        f"messages[].{name}"
        for message in fields["messages"]
        for name, value in message.items()
        if value not in (None, "", [], {}, False) and name not in _OF_MESSAGES and name not in _NEVER_SENT
    }
    found |= {"choices[].logprobs"} if fields.get("logprobs") else set()
    return tuple(sorted(found))
