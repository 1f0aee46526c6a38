"""A loopback server that speaks Anthropic's Messages interface, and refuses what the interface has no place for.

``speaks`` makes steps for a :class:`ScriptedServer`: each checks its request as the interface would, then answers with
a message, in one piece or as events, as the request asks. The package ``anthropic`` reads its replies and errors,
streamed or not; that was last tried with 0.125.0, and with 2.12.0 by the headers of version 2023-06-01.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.adapters.openai.scripted_server import Exchange, Step, json_reply

__all__ = ["call", "events_of", "fault", "message", "refuses", "speaks", "text", "thought"]

Message = dict[str, Any]
_FIELDS = {
    *("model", "max_tokens", "messages", "system", "temperature", "top_p", "top_k", "stop_sequences", "stream"),
    *("thinking", "tools", "tool_choice", "metadata", "service_tier", "output_config"),
}
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_CHOICES = {"auto": {"type"}, "any": {"type"}, "none": {"type"}, "tool": {"type", "name"}}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said, "citations": None}


def thought(said: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": said, "signature": "c2lnbmVk"}


def call(id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def message(*blocks: dict[str, Any], stop_reason: str = "end_turn", **fields: Any) -> Message:
    """Return a message as the interface answers it; ``usage`` among ``fields`` is added to the usual one."""
    usage = {"input_tokens": 11, "output_tokens": 7, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "claude-scripted-2026",
        "content": list(blocks),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        **fields,
        "usage": usage | fields.get("usage", {}),
    }


def fault(code: int, kind: str, said: str) -> Step:
    """Answer with an error of the interface."""
    return json_reply({"type": "error", "error": {"type": kind, "message": said}, "request_id": "req_01"}, code)


def speaks(answer: Message | Callable[[dict[str, Any]], Message]) -> Step:
    """Check a request, and answer with ``answer``, or with what it returns for the request's body."""

    async def step(exchange: Exchange) -> None:
        seen = exchange.seen
        if not seen.headers.get("x-api-key"):
            await fault(401, "authentication_error", "x-api-key header is required")(exchange)
        elif (seen.method, seen.target) != ("POST", "/v1/messages"):
            await fault(404, "not_found_error", "Not Found")(exchange)
        elif wrong := refuses(seen.headers, seen.json):
            await fault(400, "invalid_request_error", wrong)(exchange)
        else:
            found = answer(seen.json) if callable(answer) else answer
            await (_streams(found) if seen.json.get("stream") else json_reply(found))(exchange)

    return step


def _streams(answer: Message) -> Step:
    async def step(exchange: Exchange) -> None:
        body = b"".join(sent(event) for event in events_of(answer))
        await exchange.reply(200, body, {"Content-Type": "text/event-stream"})

    return step


def sent(event: Mapping[str, Any]) -> bytes:
    """Return an event as the interface sends it."""
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def events_of(answer: Message) -> Iterator[dict[str, Any]]:
    """Yield the events of a message, its texts in pieces of three characters."""
    usage = answer["usage"]
    start = {**answer, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield {"type": "message_start", "message": start}
    yield {"type": "ping"}
    for index, block in enumerate(answer["content"]):
        yield from _events_of_block(index, block)
    ended = {"stop_reason": answer["stop_reason"], "stop_sequence": answer["stop_sequence"]}
    yield {
        "type": "message_delta",
        "delta": ended,
        "usage": {"input_tokens": None, "output_tokens": usage["output_tokens"]},
    }
    yield {"type": "message_stop"}


def _events_of_block(index: int, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    empty: dict[str, dict[str, Any]] = {
        "text": {"text": ""},
        "thinking": {"thinking": "", "signature": ""},
        "tool_use": {"input": {}},
    }
    yield {"type": "content_block_start", "index": index, "content_block": block | empty.get(block["type"], {})}
    deltas: list[dict[str, Any]] = []
    if block["type"] == "text":
        deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
    elif block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    elif block["type"] == "tool_use":
        written = ["", *_pieces(json.dumps(block["input"]) if block["input"] else "")]
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in written]
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _pieces(whole: str) -> list[str]:
    return [whole[start : start + 3] for start in range(0, len(whole), 3)]


# What a request may be


def refuses(headers: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """Return what the interface would refuse a request for; "" for a good one."""
    if headers.get("anthropic-version") != "2023-06-01":
        return "anthropic-version: header is required"
    if unknown := sorted(body.keys() - _FIELDS):
        return f"{unknown[0]}: Extra inputs are not permitted"
    checks = (_wrong_numbers, _wrong_texts, _wrong_tools, _wrong_turns, _wrong_thinking)
    return next((wrong for check in checks if (wrong := check(body))), "")


def _wrong_numbers(body: Mapping[str, Any]) -> str:
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        return "max_tokens: Field required"
    if not 0 <= body.get("temperature", 1) <= 1:
        return "temperature: range: 0..1"
    return "" if isinstance(body.get("stream", False), bool) else "stream: Input should be a valid boolean"


def _wrong_texts(body: Mapping[str, Any]) -> str:
    if not isinstance(body.get("model"), str):
        return "model: Field required"
    if not isinstance(body.get("system", "-"), str) or not body.get("system", "-"):
        return "system: text content blocks must be non-empty"
    stops = body.get("stop_sequences", ["-"])
    blank = not stops or not all(isinstance(stop, str) and stop.strip() for stop in stops)
    return "stop_sequences: each stop sequence must contain non-whitespace" if blank else ""


def _wrong_tools(body: Mapping[str, Any]) -> str:
    for tool in body.get("tools", []):
        if tool.keys() - {"name", "description", "input_schema", "strict"} or not _NAME.fullmatch(tool["name"]):
            return f"tools: {sorted(tool)}"
        if tool.get("input_schema", {}).get("type") != "object":
            return "tools.0.input_schema.type: Field required"
    choice = body.get("tool_choice")
    if choice is not None and (not body.get("tools") or choice.keys() != _CHOICES.get(choice["type"])):
        return "tool_choice: may only be specified while providing tools"
    return ""


def _wrong_turns(body: Mapping[str, Any]) -> str:
    turns = body.get("messages")
    if not turns:
        return "messages: at least one message is required"
    if [turn["role"] for turn in turns] != [("user", "assistant")[place % 2] for place in range(len(turns))]:
        return "messages: roles must alternate between user and assistant, beginning with user"
    asked: set[str] = set()
    for turn in turns:
        blocks = turn["content"] if isinstance(turn["content"], list) else [text(turn["content"])]
        if wrong := _wrong_blocks(turn["role"], blocks, asked, "tools" in body):
            return f"messages: {wrong}"
        asked = {block["id"] for block in blocks if block["type"] == "tool_use"}
    return "messages: `tool_use` ids were found without `tool_result` blocks" if asked else ""


def _wrong_blocks(role: str, blocks: Sequence[Mapping[str, Any]], asked: set[str], has_tools: bool) -> str:
    kinds = [block["type"] for block in blocks]
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    allowed = {"user": {"text", "tool_result"}, "assistant": {"text", "tool_use", "thinking", "redacted_thinking"}}[
        role
    ]
    if not blocks or {*kinds} - allowed:
        return f"a turn of {role} with {kinds}"
    if any(not block["text"].strip() for block in blocks if block["type"] == "text"):
        return "text content blocks must contain non-whitespace text"
    if {*answered} != asked or len(answered) != len(asked) or "tool_result" in kinds[len(answered) :]:
        return f"`tool_result` blocks {answered}, expected first and one for each of {sorted(asked)}"
    if {"tool_use", "tool_result"} & {*kinds} and not has_tools:
        return "requests with tool blocks must define tools"
    calls = [block for block in blocks if block["type"] == "tool_use"]
    if not all(_NAME.fullmatch(block["id"]) and isinstance(block["input"], dict) for block in calls):
        return "tool_use: id or input"
    return ""


def _wrong_thinking(body: Mapping[str, Any]) -> str:
    thinking = body.get("thinking", {"type": "disabled"})
    if thinking["type"] == "disabled":
        return ""
    if body.get("temperature", 1) != 1 or "top_k" in body or body.get("tool_choice", {}).get("type") in ("any", "tool"):
        return "temperature may only be set to 1, no top_k and no forced tool, when thinking is enabled"
    if thinking["type"] == "adaptive":
        return ""
    if not 1024 <= thinking["budget_tokens"] < body["max_tokens"]:
        return "max_tokens must be greater than thinking.budget_tokens"
    *_, asked, last = [{"content": ""}, *(turn for turn in body["messages"])]
    if isinstance(last["content"], list) and last["content"][0]["type"] == "tool_result":
        first = asked["content"][0]
        if first["type"] not in ("thinking", "redacted_thinking"):
            return f"Expected `thinking` or `redacted_thinking`, but found `{first['type']}`"
        if not (first.get("signature") or first.get("data")):
            return "messages.1.content.0: Invalid `signature` in `thinking` block"
    return ""
