"""Write answers and errors in the format of Anthropic's Messages interface."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from aiohttp import web

from pytest_lmeval.extra import BLOCKS, Extra, for_client
from pytest_lmeval.functions.clients.body import ClientRequest, pieces
from pytest_lmeval.functions.clients.chat_reply import fault_of, refusal
from pytest_lmeval.types import Completion, ToolCall

_REASONS = {"": "end_turn", "stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
_CACHED = ("cache_creation_input_tokens", "cache_read_input_tokens")
_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def error_reply(error: Exception) -> web.Response:
    """Return the reply for an error, including details that the model's server provided."""
    fault = fault_of(error, _KINDS, "api_error")
    return refusal({"type": "error", "error": {name: fault[name] for name in ("type", "message")}}, error)


def document(answer: Completion, asked: ClientRequest) -> dict[str, Any]:
    """Return an answer as a message of the interface."""
    reason = "tool_use" if answer.tool_calls else _REASONS.get(answer.finish_reason, answer.finish_reason)
    given: Mapping[str, Any] = Extra.of(answer.extra).usage
    cached = {name: given[name] for name in _CACHED if name in given}
    return {
        "id": f"msg_{secrets.token_hex(12)}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [*_blocks(answer)],
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": (answer.prompt_tokens or 0) - sum(cached.values()),
            "output_tokens": answer.completion_tokens or 0,
            **dict.fromkeys(_CACHED, 0),
            **cached,
        },
    }


def events_of(message: dict[str, Any], _: ClientRequest) -> Iterator[dict[str, Any]]:
    """Yield the stream events of a message."""
    usage = {**message["usage"], "output_tokens": 0}
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "usage": usage}}
    for index, block in enumerate(message["content"]):
        start, deltas = _parts(block)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {name: message[name] for name in ("stop_reason", "stop_sequence")}
    yield {"type": "message_delta", "delta": ended, "usage": message["usage"]}
    yield {"type": "message_stop"}


def _parts(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    kind = block["type"]
    if kind == "tool_use":
        written = pieces(json.dumps(block["input"]))
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in written]
    if kind not in ("text", "thinking"):
        return block, []
    deltas = [{"type": f"{kind}_delta", kind: piece} for piece in pieces(block[kind])]
    if signature := block.get("signature"):
        return {**block, kind: "", "signature": ""}, [*deltas, {"type": "signature_delta", "signature": signature}]
    return {**block, kind: ""}, deltas


def _blocks(answer: Completion) -> Iterator[dict[str, Any]]:
    extra = Extra.of(for_client(answer.extra, answer.thoughts))
    signed: Any = extra.message.get(BLOCKS, [])
    yield from signed
    if answer.thoughts and not signed:
        # Without the server's signature, thoughts that a client sends back are dropped.
        yield {"type": "thinking", "thinking": answer.thoughts, "signature": ""}
    if answer.text:
        yield {"type": "text", "text": answer.text, "citations": None}
    for number, call in enumerate(answer.tool_calls):
        more = extra.calls[number] if number < len(extra.calls) else {}
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call), **more}


def _input(call: ToolCall) -> dict[str, Any]:
    """Return a call's arguments as an object, because the interface requires one."""
    return {"INVALID_JSON": call.arguments} if call.values is None else call.values
