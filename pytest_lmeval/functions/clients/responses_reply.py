"""Write an answer in the format of OpenAI's Responses interface, in one piece or as events."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_lmeval.extra import for_client
from pytest_lmeval.functions.clients.body import ClientRequest, pieces
from pytest_lmeval.functions.clients.chat_reply import details_of
from pytest_lmeval.types import Completion

_REFUSAL = "refusal"
_REPEATED = (
    *("instructions", "max_output_tokens", "max_tool_calls", "metadata", "parallel_tool_calls"),
    *("previous_response_id", "prompt_cache_key"),
    *("reasoning", "safety_identifier", "service_tier", "store", "temperature", "text", "top_p", "truncation", "user"),
)
_DEFAULTS: Mapping[str, Any] = {
    "metadata": {},
    "parallel_tool_calls": True,
    "reasoning": {"effort": None, "summary": None},
    "store": True,
    "text": {"format": {"type": "text"}},
    "truncation": "disabled",
}
Event = dict[str, Any]


def document(answer: Completion, asked: ClientRequest) -> dict[str, Any]:
    """Return an answer as a response with a new id, which later requests may name."""
    given = asked.given
    is_cut = answer.finish_reason == "length"
    return {
        "id": _new("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "model": asked.model,
        "status": "incomplete" if is_cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "output": [*_items(answer)],
        "usage": _usage(answer),
        "background": False,
        "error": None,
        **{name: given.get(name) for name in _REPEATED},
        **{name: value for name, value in _DEFAULTS.items() if given.get(name) is None},
        "tool_choice": given.get("tool_choice") or "auto",
        "tools": given.get("tools") or [],
    }


def events_of(done: dict[str, Any], _: ClientRequest) -> Iterator[dict[str, Any]]:
    """Yield the numbered stream events of a response."""
    yield from ({**event, "sequence_number": number} for number, event in enumerate(_events_of(done)))


def _events_of(done: Mapping[str, Any]) -> Iterator[Event]:
    empty = {**done, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    yield {"type": "response.created", "response": empty}
    yield {"type": "response.in_progress", "response": empty}
    for index, item in enumerate(done["output"]):
        yield from _events_of_item(index, item)
    yield {"type": f"response.{done['status']}", "response": done}


def _events_of_item(index: int, item: Mapping[str, Any]) -> Iterator[Event]:
    is_call = item["type"] == "function_call"
    start = {**item, "status": "in_progress", **({"arguments": ""} if is_call else {"content": []})}
    yield {"type": "response.output_item.added", "output_index": index, "item": start}
    at = {"item_id": item["id"], "output_index": index}
    if is_call:
        kind = "response.function_call_arguments"
        yield from ({"type": f"{kind}.delta", **at, "delta": piece} for piece in pieces(item["arguments"]))
        yield {"type": f"{kind}.done", **at, "name": item["name"], "arguments": item["arguments"]}
    for place, part in enumerate(item.get("content") or ()):
        yield from _events_of_part({**at, "content_index": place}, part)
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _events_of_part(at: Mapping[str, Any], part: Mapping[str, Any]) -> Iterator[Event]:
    name = "refusal" if part["type"] == "refusal" else "text"
    beside: Event = {"logprobs": []} if part["type"] == "output_text" else {}
    yield {"type": "response.content_part.added", **at, "part": {**part, name: ""}}
    for piece in pieces(part[name]):
        yield {"type": f"response.{part['type']}.delta", **at, "delta": piece, **beside}
    yield {"type": f"response.{part['type']}.done", **at, name: part[name], **beside}
    yield {"type": "response.content_part.done", **at, "part": part}


def _items(answer: Completion) -> Iterator[dict[str, Any]]:
    """Yield an answer's thoughts, text and calls as output items; an empty answer yields empty text.

    The encrypted content of the thoughts contains the fields that the model's server expects in the next request.
    Clients send this content back without reading it.
    """
    carried = for_client(answer.extra, answer.thoughts)
    if answer.thoughts or (carried and answer.tool_calls):
        thoughts = [{"type": "reasoning_text", "text": answer.thoughts}] if answer.thoughts else []
        sealed = {"encrypted_content": carried} if carried else {}
        yield {
            "id": _new("rs"),
            "type": "reasoning",
            "summary": [],
            "content": thoughts,
            "status": "completed",
        } | sealed
    status = "incomplete" if answer.finish_reason == "length" else "completed"
    if answer.text or not answer.tool_calls:
        part: dict[str, Any] = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
        if answer.finish_reason == _REFUSAL:
            part = {"type": "refusal", "refusal": answer.text}
        yield {"id": _new("msg"), "type": "message", "role": "assistant", "status": status, "content": [part]}
    for call in answer.tool_calls:
        yield {
            "id": _new("fc"),
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
            "status": status,
        }


def _usage(answer: Completion) -> dict[str, Any]:
    prompt, completion = answer.prompt_tokens or 0, answer.completion_tokens or 0
    details = details_of(answer)
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": 0, **details.get("prompt_tokens_details", {})},
        "output_tokens": completion,
        "output_tokens_details": {
            "reasoning_tokens": answer.reasoning_tokens or 0,
            **details.get("completion_tokens_details", {}),
        },
        "total_tokens": prompt + completion,
    }


def _new(kind: str) -> str:
    return f"{kind}_{secrets.token_hex(24)}"
