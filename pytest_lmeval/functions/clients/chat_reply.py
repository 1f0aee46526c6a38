"""Write answers and errors in the format of chat completions."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from typing import Any

from aiohttp import web

from pytest_lmeval.errors import AdapterError, AdapterTimeout, BudgetSpent
from pytest_lmeval.extra import AS_THOUGHTS, Extra, added, for_client
from pytest_lmeval.functions.clients.body import ClientRequest, pieces
from pytest_lmeval.types import Completion, Message

_REFUSAL = "refusal"
_IN_PIECES = (*AS_THOUGHTS, "content", "refusal")
# Clients' error types by status; all others are invalid_request_error, or server_error from 500 on.
_KINDS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def error_reply(error: Exception) -> web.Response:
    """Return the reply for an error, including details that the model's server provided."""
    return refusal({"error": fault_of(error, _KINDS, "server_error")}, error)


def refusal(document: dict[str, Any], error: Exception) -> web.Response:
    """Return an error reply that asks the client not to retry, because the engine has already retried."""
    return web.json_response(document, status=status_of(error), headers={"x-should-retry": "false"})


def fault_of(error: Exception, kinds: Mapping[int, str], of_server: str) -> dict[str, Any]:
    """Return the error object of a reply; ``kinds`` maps statuses to types, in case the server sent no type."""
    given, status = error.said if isinstance(error, AdapterError) else {}, status_of(error)
    return {
        "message": given.get("message") or str(error) or type(error).__name__,
        "type": given.get("type") or kinds.get(status, "invalid_request_error" if status < 500 else of_server),
        "code": given.get("code"),
        "param": given.get("param"),
    }


def status_of(error: Exception) -> int:
    """Return the HTTP status of the reply for an error."""
    if isinstance(error, AdapterError):
        return error.status or (504 if isinstance(error, AdapterTimeout) else 502)
    return 402 if isinstance(error, BudgetSpent) else 500


def document(answer: Completion, asked: ClientRequest) -> dict[str, Any]:
    """Return an answer as a chat completion."""
    message = {**Message("assistant", answer.text, answer.tool_calls).to_json(), "refusal": None}
    if answer.extra:
        message = added(message, for_client(answer.extra, answer.thoughts))
    if answer.finish_reason == _REFUSAL:
        message |= {"content": None, "refusal": answer.text}
    if answer.thoughts and message.keys().isdisjoint(AS_THOUGHTS):
        message[AS_THOUGHTS[0]] = answer.thoughts
    return {
        "id": f"chatcmpl-{secrets.token_hex(12)}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": asked.model,
        "choices": [{"index": 0, "message": message, "finish_reason": _reason(answer), "logprobs": None}],
        "usage": _usage(answer),
    }


def events_of(whole: dict[str, Any], asked: ClientRequest) -> Iterator[dict[str, Any]]:
    """Yield the stream events of a chat completion."""
    head = {name: whole[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    (choice,) = whole["choices"]
    ends = [(delta, None) for delta in _deltas(choice["message"])] + [({}, choice["finish_reason"])]
    for delta, reason in ends:
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}]}
    if asked.wants_usage:
        yield {**head, "choices": [], "usage": whole["usage"]}


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    texts = [name for name in _IN_PIECES if isinstance(message.get(name), str)]
    for name in texts:
        yield from ({name: piece} for piece in pieces(message[name]))
    known = {*texts, "role", "content", "refusal", "tool_calls"}
    yield from ({name: value} for name, value in message.items() if name not in known)
    if "tool_calls" in message:
        yield {"tool_calls": [{"index": number, **call} for number, call in enumerate(message["tool_calls"])]}


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
    return usage | details_of(answer)


def details_of(answer: Completion) -> dict[str, Any]:
    """Return the details of token counts that the model's server sent."""
    given = Extra.of(answer.extra).usage
    return {name: value for name, value in given.items() if name.endswith("_tokens_details")}
