"""Turn a request into the body of a Messages request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_lmeval.adapters.anthropic.options import ADAPTIVE, MessagesOptions
from pytest_lmeval.errors import RequestRefused
from pytest_lmeval.extra import BLOCKS, Extra, lacks_thoughts
from pytest_lmeval.types import Generate, Message

# Clients of OpenAI's interface use either name.
_SYSTEM = ("system", "developer")
_CHOICES: Mapping[str, Mapping[str, str]] = {"none": {"type": "none"}, "required": {"type": "any"}}


def request_fields(model: str, options: MessagesOptions, request: Generate) -> dict[str, object]:
    """Return the body's fields; the request's ``max_tokens`` and ``options`` override the adapter's options.

    Raise RequestRefused if the interface cannot represent a message of the conversation.
    """
    prompt = (Message("user", request.prompt),) if isinstance(request.prompt, str) else request.prompt
    thinking = _thinking(options, prompt)
    max_tokens = options.max_tokens if request.max_tokens is None else request.max_tokens
    fields = {
        "model": model,
        "max_tokens": (max_tokens or 0) + thinking.get("budget_tokens", 0),
        "system": "\n\n".join(message.content for message in prompt if message.role in _SYSTEM)
        or options.system
        or None,
        "messages": _messages(prompt),
        "temperature": options.temperature,
        "top_p": options.top_p,
        "top_k": options.top_k,
        "stop_sequences": [stop for stop in options.stops(request) if stop.strip()] or None,
        "thinking": thinking or None,
        **_tools(request),
        "stream": options.stream or None,
    }
    return options.whole(fields, request.options)


def _thinking(options: MessagesOptions, prompt: Sequence[Message]) -> dict[str, Any]:
    if options.thinking in (None, ADAPTIVE):
        return {"type": ADAPTIVE} if options.thinking else {}
    # With a budget, the interface requires a call's result to come with the thoughts before the call.
    return {} if lacks_thoughts(prompt) else {"type": "enabled", "budget_tokens": options.thinking}


def _messages(prompt: Sequence[Message]) -> list[dict[str, object]]:
    """Convert the conversation into user and assistant turns; merge adjacent messages with the same role."""
    turns: list[dict[str, Any]] = []
    for message in prompt:
        if message.role in _SYSTEM:
            if message.parts:
                raise RequestRefused("a system message with media; the Messages interface takes text there")
            if turns:
                raise RequestRefused("a system message after a message of another role; Messages takes it first")
            continue
        blocks = [*_blocks(message)]
        role = "assistant" if message.role == "assistant" else "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(message: Message) -> Iterator[dict[str, object]]:
    if message.role == "tool":
        content = _written(message) if message.parts else message.content
        yield {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": content}
        return
    extra = Extra.of(message.extra)
    blocks: Any = extra.message.get(BLOCKS, [])
    yield from blocks
    if message.parts:
        yield from _written(message)
    # Omit a blank answer, which the interface refuses as a block; let it refuse a blank question.
    elif message.content.strip() or message.role != "assistant":
        yield {"type": "text", "text": message.content}
    for number, call in enumerate(message.tool_calls):
        # The interface accepts only objects, but the model may have written anything.
        given = {"INVALID_JSON": call.arguments} if call.values is None else call.values
        more = extra.calls[number] if number < len(extra.calls) else {}
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": given, **more}


def _written(message: Message) -> list[dict[str, object]]:
    from pytest_lmeval.adapters.anthropic.media import blocks_of

    return blocks_of(message.parts)


def _tools(request: Generate) -> Mapping[str, object]:
    if not request.tools:
        return {}
    tools = {"tools": [_tool(tool) for tool in request.tools]}
    choice = request.tool_choice
    if choice in ("", "auto"):
        return tools  # the server's default
    return {**tools, "tool_choice": _CHOICES.get(choice) or {"type": "tool", "name": choice}}


def _tool(tool: Mapping[str, Any]) -> dict[str, object]:
    own = {name: value for name, value in tool.items() if name != "parameters"}
    return own | {"input_schema": {"type": "object", **(tool.get("parameters") or {})}}
