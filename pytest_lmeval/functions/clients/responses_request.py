"""What the body of a request for a response asks, as OpenAI's Responses interface has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_lmeval.functions.clients.body import (
    FLAG,
    LIMIT,
    NUMBER,
    OBJECT,
    TEXT,
    Checks,
    ClientRequest,
    Talks,
    check,
    is_texts,
    named,
    of,
    options_of,
    parsed,
    text_of,
)
from pytest_lmeval.types import Message, ToolCall

_ROLES = ("user", "assistant", "system", "developer")
_TEXTS = ("input_text", "output_text", "text")
_OF_TOOLS = frozenset({"type", "name", "description", "parameters", "strict"})


def read_request(body: bytes, talks: Talks) -> ClientRequest:
    """Return what ``body`` asks, after one of the ``talks`` where it names one.

    Raise ValueError, with the field and what was expected, for what cannot be asked.
    """
    fields = parsed(body, "input")
    check(fields, _FIELDS)
    options = options_of(fields, _READ) | _reasoning(fields) | _text_options(fields)
    tools = tuple(map(_tool, fields.get("tools") or ()))
    talk = _earlier(fields, talks) + _messages(fields.get("input"))
    instructions = fields.get("instructions")
    return ClientRequest(
        messages=(Message("system", instructions), *talk) if instructions else talk,
        fields={
            "max_tokens": fields.get("max_output_tokens"),
            "options": options,
            "tools": tools,
            "tool_choice": _tool_choice(fields.get("tool_choice"), [tool["name"] for tool in tools]),
        },
        model=fields.get("model") or "",
        streams=bool(fields.get("stream")),
        dropped=tuple(sorted({*_dropped(fields)})),
        given=fields,
        talk=None if fields.get("store") is False else talk,
    )


def _server_side(what: str) -> tuple[Any, str]:
    return lambda _: False, f"nothing: {what} is the server's own, and no other has it"


_FIELDS: Checks = {
    "model": TEXT,
    "input": (of(str, list), "a text or a list of items"),
    "instructions": TEXT,
    "max_output_tokens": LIMIT,
    "tools": (of(list), "a list of functions"),
    "tool_choice": (of(str, dict), "auto, none, required, or an object that names a function"),
    "parallel_tool_calls": FLAG,
    "temperature": NUMBER,
    "top_p": NUMBER,
    "text": OBJECT,
    "reasoning": OBJECT,
    "include": (is_texts, "a list of texts"),
    "stream": FLAG,
    "stream_options": OBJECT,
    "store": FLAG,
    "background": (lambda value: value is False, "false: an answer is waited for here"),
    "previous_response_id": TEXT,
    "conversation": _server_side("a conversation"),
    "prompt": _server_side("a stored prompt"),
}
# All others are options: those of chat completions that have the same names, and those that a server alone knows.
_READ = frozenset(
    {"model", "input", "instructions", "max_output_tokens", "tools", "tool_choice", "text", "reasoning", "include"}
    | {"stream", "stream_options", "background", "previous_response_id", "conversation", "prompt", "truncation"}
    | {"max_tool_calls", "context_management"}
    # What the server keeps, and under what labels: not every server takes them with a chat completion.
    | {"store", "metadata"}
)


def _reasoning(fields: Mapping[str, Any]) -> dict[str, Any]:
    effort = (fields.get("reasoning") or {}).get("effort")
    return {} if effort is None else {"reasoning_effort": effort}


def _text_options(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return how long and of which form the text is to be, as chat completions say it."""
    text = fields.get("text") or {}
    verbosity, form = text.get("verbosity"), text.get("format")
    found = {} if verbosity is None else {"verbosity": verbosity}
    if form is None:
        return found
    kind = form.get("type") if isinstance(form, dict) else None
    if kind == "json_schema":
        if not isinstance(form.get("name"), str) or not isinstance(form.get("schema"), dict):
            raise ValueError(f"text.format: expected a json_schema with name and schema, got {form!r:.80}")
        schema = {name: value for name, value in form.items() if name != "type" and value is not None}
        return {**found, "response_format": {"type": kind, "json_schema": schema}}
    if kind == "json_object":
        return {**found, "response_format": {"type": kind}}
    if kind == "text":
        return found
    raise ValueError(f"text.format: expected the type text, json_object or json_schema, got {form!r:.80}")


def _tool(given: Any) -> Mapping[str, Any]:
    kind = given.get("type") if isinstance(given, dict) else None
    if kind != "function" or not isinstance(given.get("name"), str):
        raise ValueError(f"tools: expected functions with a name, those of a server are not here, got {given!r:.120}")
    if not isinstance(given.get("parameters") or {}, dict):
        raise ValueError(f"tools: {given['name']}: expected parameters to be an object")
    return {name: value for name, value in given.items() if value is not None and name in _OF_TOOLS - {"type"}}


def _tool_choice(given: Any, names: list[str]) -> str:
    if given is None or given == "":
        return ""
    if isinstance(given, dict) and given.get("type") == "function" and given.get("name") in names:
        return str(given["name"])
    return named(given, [])


def _earlier(fields: Mapping[str, Any], talks: Talks) -> tuple[Message, ...]:
    """Return the conversation that the request goes on with."""
    previous = fields.get("previous_response_id")
    if previous is None:
        return ()
    if previous not in talks:
        raise ValueError(
            f"previous_response_id: expected the id of a response of this example that was stored, got {previous!r:.80}"
        )
    return talks[previous]


def _messages(given: Any) -> tuple[Message, ...]:
    """Return the items of the input as messages: an answer and the calls that follow it are one."""
    if isinstance(given, str):
        return (Message("user", given),)
    if not given:
        raise ValueError(f"input: expected a text or a list of items, got {given!r:.80}")
    found: list[Message] = []
    for message in _each_item(given):
        if found and _is_one(found[-1], message):
            last = found.pop()
            message = Message("assistant", last.content + message.content, last.tool_calls + message.tool_calls)
        found.append(message)
    return tuple(found)


def _is_one(last: Message, message: Message) -> bool:
    is_of_model = last.role == message.role == "assistant"
    return is_of_model and bool(message.tool_calls or not last.content)


def _each_item(items: list[Any]) -> Iterator[Message]:
    for item in items:
        kind = item.get("type", "message") if isinstance(item, dict) else None
        if kind == "message":
            yield _message(item)
        elif kind == "function_call":
            yield Message("assistant", "", (_call(item),))
        elif kind == "function_call_output":
            yield _result(item)
        elif kind != "reasoning":  # thoughts are never sent back in a conversation
            raise ValueError(
                f"input: expected items message, function_call, function_call_output or reasoning, got {item!r:.120}"
            )


def _message(item: Mapping[str, Any]) -> Message:
    content = item.get("content")
    text = text_of(_plain(content), *_TEXTS)
    if item.get("role") not in _ROLES or text is None:
        raise ValueError(f"input: expected a message with role and content that is text, got {item!r:.120}")
    return Message(item["role"], text)


def _plain(content: Any) -> Any:
    """Return content with a refusal as the text that it is."""
    if not isinstance(content, list):
        return content
    return [
        {"type": "output_text", "text": part.get("refusal")}
        if isinstance(part, dict) and part.get("type") == "refusal"
        else part
        for part in content
    ]


def _call(item: Mapping[str, Any]) -> ToolCall:
    parts = (item.get("call_id"), item.get("name"), item.get("arguments"))
    if not all(isinstance(part, str) for part in parts):
        raise ValueError(
            f"input: expected a function_call with call_id, name and arguments, all text, got {item!r:.120}"
        )
    return ToolCall(*map(str, parts))


def _result(item: Mapping[str, Any]) -> Message:
    text, id = text_of(item.get("output"), *_TEXTS), item.get("call_id")
    if text is None or not isinstance(id, str):
        raise ValueError(
            f"input: expected a function_call_output with call_id and output, both text, got {item!r:.120}"
        )
    return Message("tool", text, (), id)


def _dropped(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of what no adapter is sent."""
    yield from (f"include: {name}" for name in fields.get("include") or ())
    for name in ("max_tool_calls", "context_management"):
        if fields.get(name) is not None:
            yield name
    if fields.get("truncation") not in (None, "disabled"):
        yield "truncation"
    for name in ("reasoning", "text"):
        known = {"reasoning": ("effort",), "text": ("format", "verbosity")}[name]
        yield from (f"{name}.{key}" for key, value in (fields.get(name) or {}).items() if value and key not in known)
    for tool in fields.get("tools") or ():
        yield from (f"tools[].{name}" for name, value in tool.items() if value is not None and name not in _OF_TOOLS)
