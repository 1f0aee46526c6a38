"""A loopback server that clients of applications can be shown with: it speaks the interfaces of OpenAI and Anthropic.

It answers with ``The answer to "QUESTION" is 42.``, after it has called the first of the tools that it is offered, with
``{"q": QUESTION}``. A format that is a JSON schema is answered by ``{"answer": 42}``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.adapters.anthropic.messages_server import call, message, speaks, text
from tests.adapters.openai.scripted_server import Exchange, Step, json_reply, replies, status

__all__ = ["serves"]


def serves() -> Step:
    """Answer a request by its path, as a server of its interface would."""
    by_path: dict[str, Callable[[Mapping[str, Any]], Step]] = {
        "POST /v1/chat/completions": _chat,
        "POST /v1/embeddings": lambda body: json_reply(_embeddings(body)),
        "POST /v1/moderations": lambda body: json_reply({"results": [{"flagged": False}]}),
        "POST /v1/rerank": lambda body: json_reply({"results": [{"index": 0, "relevance_score": 0.5}]}),
        "GET /v1/models": lambda body: json_reply({"object": "list", "data": [{"id": "mock", "object": "model"}]}),
    }

    async def step(exchange: Exchange) -> None:
        seen = exchange.seen
        if seen.target == "/v1/messages":
            await speaks(_message)(exchange)
            return
        answer = by_path.get(f"{seen.method} {seen.target.partition('?')[0]}")
        await (status(404) if answer is None else answer(seen.json if seen.body else {}))(exchange)

    return step


def _chat(body: Mapping[str, Any]) -> Step:
    said = next((turn["content"] for turn in reversed(body["messages"]) if turn["role"] == "user"), "")
    reply: dict[str, Any] = {"role": "assistant", "content": f'The answer to "{_text(said)}" is 42.'}
    if body.get("response_format", {}).get("type") == "json_schema":
        reply["content"] = '{"answer": 42}'
    elif body.get("tools") and body["messages"][-1]["role"] == "user":
        function = {"name": body["tools"][0]["function"]["name"], "arguments": json.dumps({"q": _text(said)})}
        reply = {**reply, "content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
    reason = "tool_calls" if "tool_calls" in reply else "stop"
    head = {"id": "chatcmpl-1", "created": 1, "model": body["model"]}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    if not body.get("stream"):
        choice = {"index": 0, "message": reply, "finish_reason": reason}
        return json_reply({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
    events: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": reply, "finish_reason": reason}]}]
    events.append({"choices": [], "usage": usage})
    sent = [f"data: {json.dumps({**head, 'object': 'chat.completion.chunk', **event})}\n\n" for event in events]
    return replies(200, "".join([*sent, "data: [DONE]\n\n"]).encode(), {"Content-Type": "text/event-stream"})


def _embeddings(body: Mapping[str, Any]) -> dict[str, Any]:
    given = body["input"] if isinstance(body["input"], list) else [body["input"]]
    each = [{"object": "embedding", "index": n, "embedding": _vector(str(of))} for n, of in enumerate(given)]
    usage = {"prompt_tokens": 3 * len(given), "total_tokens": 3 * len(given)}
    return {"object": "list", "model": body["model"], "data": each, "usage": usage}


def _vector(said: str) -> list[float]:
    return [byte / 256 for byte in hashlib.sha256(said.encode()).digest()[:4]]


def _message(body: dict[str, Any]) -> dict[str, Any]:
    last = body["messages"][-1]["content"]
    blocks = last if isinstance(last, list) else [text(last)]
    said = next((block["text"] for block in blocks if block["type"] == "text"), "")
    if body.get("tools") and said:
        return message(call("toolu_1", body["tools"][0]["name"], q=said), stop_reason="tool_use")
    return message(text(f'The answer to "{said}" is 42.'))


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
