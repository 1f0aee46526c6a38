"""Find a request's interface by its method and path."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiohttp import web

from pytest_lmeval.extra import for_client
from pytest_lmeval.functions.clients import (
    chat_reply,
    chat_request,
    messages_reply,
    messages_request,
    responses_reply,
    responses_request,
)
from pytest_lmeval.functions.clients.body import ClientRequest, Talks
from pytest_lmeval.types import Completion, Message

KNOWN = ("/chat/completions", "/responses")
"""The paths, for POST requests, of the interfaces that every adapter supports."""
MESSAGES = "/messages"
"""The path of Anthropic's interface, for adapters with ``takes_messages``."""
_BASE = "/v1"
_AZURE = re.compile(r"(?:/v1)?(?:/openai(?:/v1)?(?:/deployments/[^/]+)?|/deployments/[^/]+)(?=/)")


@dataclass(frozen=True, slots=True)
class Interface:
    """The functions of an interface that parse requests, and that write answers, events and errors.

    The endpoint sends ``last`` after all events of an answer.
    """

    read: Callable[[bytes], ClientRequest]
    document: Callable[[Completion, ClientRequest], dict[str, Any]]
    events: Callable[[dict[str, Any], ClientRequest], Iterable[dict[str, Any]]]
    error: Callable[[Exception], web.Response]
    last: bytes = b""

    async def reply(self, request: web.Request, answer: Completion, asked: ClientRequest) -> web.StreamResponse:
        """Send an answer as one document or, if the request asks for a stream, as events."""
        whole = self.document(answer, asked)
        if not asked.streams:
            return web.json_response(whole)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        await response.prepare(request)
        for event in self.events(whole, asked):
            name = f"event: {event['type']}\n" if "type" in event else ""
            await response.write(f"{name}data: {json.dumps(event)}\n\n".encode())
        if self.last:
            await response.write(self.last)
        await response.write_eof()
        return response


_CHAT = Interface(
    chat_request.read_request,
    chat_reply.document,
    chat_reply.events_of,
    chat_reply.error_reply,
    last=b"data: [DONE]\n\n",
)


def path_of(request: web.Request) -> str:
    """Return the path that a client requested, relative to the base URL, without the token and the query.

    Return a target that is not a path, such as a whole URL, unchanged.
    """
    path = _AZURE.sub("", _sent(request), count=1) if is_of_azure(request) else _sent(request)
    # Remove the prefix twice: the base URL has it, and some clients add it again.
    for _ in range(2):
        path = path.removeprefix(_BASE) if path.startswith(f"{_BASE}/") else path
    return path


def is_of_azure(request: web.Request) -> bool:
    """Return True for an Azure client's path, which names the deployment."""
    return _AZURE.match(_sent(request)) is not None


def _sent(request: web.Request) -> str:
    return request.raw_path.partition("?")[0].removeprefix(f"/e/{request.match_info.get('token')}")


def interface_of(request: web.Request, path: str, talks: Talks) -> Interface | None:
    """Return a request's interface, or None if it is unknown; ``talks`` are the example's conversations."""
    if request.method != "POST":
        return None
    if path == MESSAGES:
        read = partial(messages_request.read_request, beta=request.headers.get("anthropic-beta", ""))
        return Interface(read, messages_reply.document, messages_reply.events_of, messages_reply.error_reply)
    if path == "/responses":
        read = partial(responses_request.read_request, talks=talks)
        return Interface(read, partial(_response, talks), responses_reply.events_of, chat_reply.error_reply)
    # Some servers add a prefix to the path.
    if path.endswith("/chat/completions"):
        return _CHAT
    return None


def _response(talks: Talks, answer: Completion, asked: ClientRequest) -> dict[str, Any]:
    """Return the response for an answer, and store the conversation for a request that continues it."""
    whole = responses_reply.document(answer, asked)
    if asked.talk is not None:
        carried = for_client(answer.extra, answer.thoughts)
        talks[whole["id"]] = (*asked.talk, Message("assistant", answer.text, answer.tool_calls, extra=carried))
    return whole
