"""The interfaces that are known: how each is read and answered, by method and path."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from aiohttp import web

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
"""The paths of interfaces that are known in front of any adapter; POST asks."""
MESSAGES = "/messages"
"""The path of Anthropic's interface, for adapters that have ``takes_messages``."""


@dataclass(frozen=True, slots=True)
class Interface:
    """What reads the body of a request, what answers it, and what says why there is no answer."""

    read: Callable[[bytes], ClientRequest]
    reply: Callable[[web.Request, Completion, ClientRequest], Awaitable[web.StreamResponse]]
    error: Callable[[Exception], web.Response]


def interface_of(request: web.Request, path: str, talks: Talks) -> Interface | None:
    """Return the interface that a request speaks; None where it is not known. ``talks`` are those of its example."""
    if request.method != "POST":
        return None
    if path == MESSAGES:
        beta = request.headers.get("anthropic-beta", "")
        return Interface(partial(messages_request.read_request, beta=beta), _message, messages_reply.error_reply)
    if path == "/responses":
        read = partial(responses_request.read_request, talks=talks)
        return Interface(read, partial(_respond, talks), chat_reply.error_reply)
    # Behind a path of a server's own, as some servers have it, too.
    if path.endswith("/chat/completions"):
        return Interface(chat_request.read_request, _chat, chat_reply.error_reply)
    return None


async def _chat(request: web.Request, answer: Completion, asked: ClientRequest) -> web.StreamResponse:
    if asked.streams:
        return await chat_reply.stream_reply(request, answer, asked)
    return chat_reply.whole_reply(answer, asked)


async def _message(request: web.Request, answer: Completion, asked: ClientRequest) -> web.StreamResponse:
    if asked.streams:
        return await messages_reply.stream_reply(request, answer, asked)
    return messages_reply.whole_reply(answer, asked)


async def _respond(talks: Talks, request: web.Request, answer: Completion, asked: ClientRequest) -> web.StreamResponse:
    id = f"resp_{secrets.token_hex(24)}"
    if asked.talk is not None:
        talks[id] = (*asked.talk, Message("assistant", answer.text, answer.tool_calls))
    if asked.streams:
        return await responses_reply.stream_reply(request, answer, asked, id)
    return responses_reply.whole_reply(answer, asked, id)
