"""What the body of a request for a chat completion asks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from pytest_lmeval.numbers import is_number, is_whole
from pytest_lmeval.types import Message, ToolCall

_DEEPEST = 50
_CHOICES = ("auto", "none", "required")
# Of a message, what servers give and no model receives; thoughts are never sent back in a conversation.
_NEVER_SENT = frozenset({"annotations", "id", "reasoning", "reasoning_content"})
_OF_MESSAGES = frozenset({"role", "content", "tool_calls", "tool_call_id"})


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a client asks for: messages, the other ``fields`` of :class:`Generate`, and how it wants the answer.

    ``model`` is the name that it gives; ``dropped`` names what it sent and no request to an adapter has.
    """

    messages: tuple[Message, ...]
    fields: Mapping[str, Any]
    model: str
    streams: bool
    wants_usage: bool
    dropped: tuple[str, ...]


def read_request(body: bytes) -> ChatRequest:
    """Return what ``body`` asks; raise ValueError, with the field and what was expected, for what cannot be asked."""
    fields = _parsed(body)
    for name, (fits, expected) in _FIELDS.items():
        if fields.get(name) is not None and not fits(fields[name]):
            raise ValueError(f"{name}: expected {expected}, got {fields[name]!r:.80}")
    options = {name: value for name, value in fields.items() if name not in _READ and value is not None}
    for name, value in {**options, "tools": fields.get("tools")}.items():
        _check_json(value, name)
    tools = tuple(map(_tool, fields.get("tools") or ()))
    return ChatRequest(
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


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("the body is nested too deep") from None
    except ValueError as error:
        raise ValueError(f"the body is no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError(f"expected a JSON object with messages, got {type(fields).__name__}")
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _is_text_or_texts(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value))


def _of(*kinds: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kinds)


_LIMIT = (lambda value: is_whole(value) and value > 0, "a whole number from 1")
_NUMBER = (is_number, "a finite number")
_FLAG = (_of(bool), "true or false")
_OBJECT = (_of(dict), "an object")
_GONE = (lambda _: False, "nothing: functions are asked for as tools")
_FIELDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "model": (_of(str), "a text"),
    "n": (lambda value: is_whole(value) and value == 1, "1: one answer per request is given here"),
    "stop": (_is_text_or_texts, "a text or a list of texts"),
    "max_tokens": _LIMIT,
    "max_completion_tokens": _LIMIT,
    "tools": (_of(list), "a list of functions"),
    "tool_choice": (_of(str, dict), "auto, none, required, or an object that names a function"),
    "functions": _GONE,
    "function_call": _GONE,
    "stream": _FLAG,
    "stream_options": _OBJECT,
    "logprobs": _FLAG,
    "temperature": _NUMBER,
    "top_p": _NUMBER,
    "frequency_penalty": _NUMBER,
    "presence_penalty": _NUMBER,
    "seed": (is_whole, "a whole number"),
    "response_format": _OBJECT,
}
# All others are options.
_READ = frozenset(
    {"messages", "model", "n", "stop", "max_tokens", "max_completion_tokens", "tools", "tool_choice"}
    | {"functions", "function_call", "stream", "stream_options"}
)


def _check_json(value: Any, place: str, left: int = _DEEPEST) -> None:
    """Raise ValueError for what is nested too deep, and for numbers that JSON has not."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{place}: expected finite numbers, got {value}")
    if isinstance(value, list | dict):
        if not left:
            raise ValueError(f"{place}: nested deeper than {_DEEPEST}")
        for each in value.values() if isinstance(value, dict) else value:
            _check_json(each, place, left - 1)


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
    elif given in _CHOICES:
        return str(given)
    raise ValueError(f"tool_choice: expected auto, none, required or one of the tools, got {given!r:.80}")


def _messages(given: Any) -> tuple[Message, ...]:
    if not isinstance(given, list) or not given:
        raise ValueError(f"messages: expected a list of messages, got {given!r:.80}")
    return tuple(map(_message, given))


def _message(given: Any) -> Message:
    if not isinstance(given, dict) or not isinstance(given.get("role"), str):
        raise ValueError(f"messages: expected objects with role and content, got {given!r:.120}")
    calls = given.get("tool_calls") or ()
    content = _text(given.get("content"))
    if content is None and not (calls and given.get("content") is None):
        raise ValueError(f"messages: expected content that is text, got {given.get('content')!r:.120}")
    answers = given.get("tool_call_id") or ""
    if not isinstance(calls, list | tuple) or not isinstance(answers, str):
        raise ValueError("messages: expected tool_calls to be a list and tool_call_id a text")
    return Message(given["role"], content or "", tuple(map(_call, calls)), answers)


def _text(content: Any) -> str | None:
    """Return text, or the text of parts that are all text; None for anything else."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    texts = [part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in content]
    found = [text for text in texts if isinstance(text, str)]
    return "".join(found) if len(found) == len(texts) else None


def _call(given: Any) -> ToolCall:
    function = given.get("function") if isinstance(given, dict) else None
    parts = (given.get("id") or "", function.get("name"), function.get("arguments") or "") if function else ()
    if len(parts) != 3 or not all(isinstance(part, str) for part in parts):
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
