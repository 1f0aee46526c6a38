"""What the body of a request for a message asks, as Anthropic's Messages interface has it."""

from __future__ import annotations

import json
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
    check,
    is_texts,
    of,
    options_of,
    parsed,
    text_of,
)
from pytest_lmeval.types import Message, ToolCall

_THOUGHTS = ("thinking", "redacted_thinking")
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_OF_TOOLS = frozenset({"type", "name", "description", "input_schema", "cache_control"})


def read_request(body: bytes, beta: str = "") -> ClientRequest:
    """Return what ``body`` asks; ``beta`` is the header that asks for parts of the interface which are not for all.

    Raise ValueError, with the field and what was expected, for what cannot be asked.
    """
    fields = parsed(body, "messages")
    check(fields, _FIELDS)
    if fields.get("max_tokens") is None:
        raise ValueError("max_tokens: expected a whole number from 1, got None")
    tools = tuple(map(_tool, fields.get("tools") or ()))
    messages = (*_system(fields.get("system")), *_messages(fields.get("messages")))
    options = options_of(fields, _READ)
    dropped = {*_dropped(fields), *([f"anthropic-beta: {beta}"] if beta else ())}
    if _lacks_thoughts(options, messages):
        del options["thinking"]
        dropped.add("thinking")
    return ClientRequest(
        messages=messages,
        fields={
            "stop": tuple(filter(None, fields.get("stop_sequences") or ())),
            "max_tokens": fields["max_tokens"],
            "options": options,
            "tools": tools,
            "tool_choice": _tool_choice(fields.get("tool_choice"), [tool["name"] for tool in tools]),
        },
        model=fields.get("model") or "",
        streams=bool(fields.get("stream")),
        dropped=tuple(sorted(dropped)),
    )


def _server_side(what: str) -> tuple[Any, str]:
    return lambda _: False, f"nothing: {what} is the server's own"


_FIELDS: Checks = {
    "model": TEXT,
    "max_tokens": LIMIT,
    "system": (of(str, list), "a text or a list of blocks"),
    "messages": (of(list), "a list of messages"),
    "stop_sequences": (is_texts, "a list of texts"),
    "stream": FLAG,
    "temperature": NUMBER,
    "top_p": NUMBER,
    "tools": (of(list), "a list of tools"),
    "tool_choice": OBJECT,
    "thinking": OBJECT,
    "mcp_servers": _server_side("a tool of another server"),
    "container": _server_side("a container"),
}
# All others are options.
_READ = frozenset(
    {"model", "max_tokens", "system", "messages", "stop_sequences", "stream", "tools", "tool_choice"}
    | {"mcp_servers", "container"}
)


def _lacks_thoughts(options: Mapping[str, Any], messages: tuple[Message, ...]) -> bool:
    """Tell whether thoughts are asked for that the server would miss before the calls that were just answered."""
    thinks = (options.get("thinking") or {}).get("type") == "enabled"
    return thinks and messages[-1].role == "tool"


def _system(given: Any) -> Iterator[Message]:
    for block in [{"type": "text", "text": given}] if isinstance(given, str) else given or ():
        text = text_of([block], "text")
        if text is None:
            raise ValueError(f"system: expected a text or blocks of text, got {block!r:.120}")
        if text:
            yield Message("system", text)


def _messages(given: Any) -> Iterator[Message]:
    if not given:
        raise ValueError(f"messages: expected a list of messages, got {given!r:.80}")
    for message in given:
        role = message.get("role") if isinstance(message, dict) else None
        content = message.get("content") if isinstance(message, dict) else None
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if role not in ("user", "assistant") or not isinstance(blocks, list):
            raise ValueError(
                f"messages: expected objects with role user or assistant and content, got {message!r:.120}"
            )
        yield from (_of_user(blocks) if role == "user" else _of_assistant(blocks))


def _of_user(blocks: list[Any]) -> Iterator[Message]:
    """Yield a message for each block: neighbours are one turn where they are sent on."""
    for block in blocks:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "tool_result":
            text = text_of(block.get("content") or "", "text")
            if text is None or not isinstance(block.get("tool_use_id"), str):
                raise ValueError(f"messages: expected a tool_result with tool_use_id and text, got {block!r:.120}")
            yield Message("tool", text, (), block["tool_use_id"])
        elif kind == "text" and isinstance(block.get("text"), str):
            yield Message("user", block["text"])
        else:
            raise ValueError(f"messages: expected blocks text and tool_result of a user, got {block!r:.120}")


def _of_assistant(blocks: list[Any]) -> Iterator[Message]:
    texts, calls = [], []
    for block in blocks:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text" and isinstance(block.get("text"), str):
            texts.append(block["text"])
        elif kind == "tool_use" and isinstance(block.get("name"), str) and isinstance(block.get("input"), dict):
            calls.append(ToolCall(str(block.get("id") or ""), block["name"], json.dumps(block["input"])))
        elif kind not in _THOUGHTS:  # which are never sent back in a conversation
            raise ValueError(f"messages: expected blocks text, tool_use and thinking of a model, got {block!r:.120}")
    yield Message("assistant", "".join(texts), tuple(calls))


def _tool(given: Any) -> Mapping[str, Any]:
    kind = given.get("type") or "custom" if isinstance(given, dict) else None
    if kind != "custom" or not isinstance(given.get("name"), str):
        raise ValueError(f"tools: expected tools with a name, those of a server are not here, got {given!r:.120}")
    if not isinstance(given.get("input_schema") or {}, dict):
        raise ValueError(f"tools: {given['name']}: expected input_schema to be an object")
    more = {name: value for name, value in given.items() if name not in _OF_TOOLS and value is not None}
    own = {"name": given["name"], "description": given.get("description"), "parameters": given.get("input_schema")}
    return {**{name: value for name, value in own.items() if value is not None}, **more}


def _tool_choice(given: Any, names: list[str]) -> str:
    if given is None:
        return ""
    kind = str(given.get("type"))
    if kind in _CHOICES:
        return _CHOICES[kind]
    if kind == "tool" and given.get("name") in names:
        return str(given["name"])
    raise ValueError(f"tool_choice: expected auto, any, none or one of the tools, got {given!r:.80}")


def _dropped(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of what no adapter is sent."""
    if (fields.get("tool_choice") or {}).get("disable_parallel_tool_use"):
        yield "tool_choice.disable_parallel_tool_use"
    system = fields.get("system")
    contents = [message.get("content") for message in fields["messages"]]
    blocks = [block for content in [system, *contents] if isinstance(content, list) for block in content]
    for block in [*blocks, *(fields.get("tools") or ())]:
        yield from (name for name in ("cache_control", "citations") if block.get(name))
        if block.get("is_error"):
            yield "tool_result.is_error"
