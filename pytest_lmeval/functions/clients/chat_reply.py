"""An answer, or an error, as chat-completions interfaces have it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from typing import Any

from aiohttp import web

from pytest_lmeval.errors import AdapterError, AdapterTimeout, BudgetSpent
from pytest_lmeval.functions.clients.body import ClientRequest
from pytest_lmeval.functions.clients.events import begun, pieces
from pytest_lmeval.types import Completion

_REFUSAL = "refusal"
# What clients make exceptions of, by status; what is not here is invalid_request_error or, from 500 on, server_error.
_KINDS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def error_reply(error: Exception) -> web.Response:
    """Return a server's refusal as it was, as far as it is known, and any other error with a status of its own."""
    given = error.said if isinstance(error, AdapterError) else {}
    status = status_of(error)
    kind = given.get("type") or _KINDS.get(status, "invalid_request_error" if status < 500 else "server_error")
    fault = {
        "message": given.get("message") or str(error) or type(error).__name__,
        "type": kind,
        "code": given.get("code"),
        "param": given.get("param"),
    }
    # What was worth trying again has been tried again already.
    return web.json_response({"error": fault}, status=status, headers={"x-should-retry": "false"})


def status_of(error: Exception) -> int:
    """Return the status that a client gets for an error."""
    if isinstance(error, AdapterError):
        return error.status or (504 if isinstance(error, AdapterTimeout) else 502)
    return 402 if isinstance(error, BudgetSpent) else 500


def whole_reply(answer: Completion, asked: ClientRequest) -> web.Response:
    """Return an answer in one piece."""
    message = {"role": "assistant", **_message_of(answer), **_calls(answer)}
    choice = {"index": 0, "message": message, "finish_reason": _reason(answer), "logprobs": None}
    head = _head("chat.completion", asked.model)
    return web.json_response({**head, "choices": [choice], "usage": _usage(answer)})


async def stream_reply(request: web.Request, answer: Completion, asked: ClientRequest) -> web.StreamResponse:
    """Send an answer that is there as events, its text in a few pieces."""
    stream = await begun(request)
    head = _head("chat.completion.chunk", asked.model)
    for delta, reason in _deltas(answer):
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        await stream.send({**head, "choices": [choice]})
    if asked.wants_usage:
        await stream.send({**head, "choices": [], "usage": _usage(answer)})
    return await stream.end(b"data: [DONE]\n\n")


def _deltas(answer: Completion) -> Iterator[tuple[dict[str, Any], str | None]]:
    message = _message_of(answer)
    yield {"role": "assistant", "content": ""}, None
    for name in ("reasoning_content", "content", "refusal"):
        for piece in pieces(message.get(name) or ""):
            yield {name: piece}, None
    calls = [{"index": number, **call} for number, call in enumerate(_calls(answer).get("tool_calls", ()))]
    if calls:
        yield {"tool_calls": calls}, None
    yield {}, _reason(answer)


def _message_of(answer: Completion) -> dict[str, Any]:
    """Return the text where servers have it: the answer, or a refusal, and the thoughts before it."""
    refuses = answer.finish_reason == _REFUSAL
    message: dict[str, Any] = {"content": None, "refusal": answer.text} if refuses else {"content": answer.text}
    message.setdefault("refusal", None)
    return {**message, "reasoning_content": answer.thoughts} if answer.thoughts else message


def _calls(answer: Completion) -> dict[str, Any]:
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in answer.tool_calls
    ]
    return {"tool_calls": calls} if calls else {}


def _reason(answer: Completion) -> str:
    if answer.tool_calls:
        return "tool_calls"
    return "stop" if answer.finish_reason in ("", _REFUSAL) else answer.finish_reason


def _usage(answer: Completion) -> dict[str, Any]:
    prompt, completion = answer.prompt_tokens or 0, answer.completion_tokens or 0
    usage: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    if answer.reasoning_tokens is not None:
        usage["completion_tokens_details"] = {"reasoning_tokens": answer.reasoning_tokens}
    return usage


def _head(kind: str, model: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{secrets.token_hex(12)}", "object": kind, "created": int(time.time()), "model": model}
