"""A chat-completions endpoint on this machine, for the client that an application brings itself.

Each example has a token of its own, in the path or as the bearer key: what a request belongs to is never guessed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_lmeval.adapters.protocol import REQUEST_OPTIONS
from pytest_lmeval.errors import AdapterError, LmevalError
from pytest_lmeval.functions.example import ExampleState
from pytest_lmeval.functions.loop import Loop

if TYPE_CHECKING:
    from aiohttp import web

    from pytest_lmeval.types import Completion

_GONE = 410
_MISDIRECTED = 421
_LARGEST_BODY = 64 << 20
_KEPT = 100_000
_PATIENCE_S = 2.0
# An application's client always names a model, and never the one under test.
_OPTIONS = sorted(REQUEST_OPTIONS - {"model"})
Ask = Callable[[ExampleState, Mapping[str, Any]], Any]
"""Awaited with an example and the fields of a request; returns its Completion."""


class Endpoint:
    """The endpoint of one process, begun when the first example wants it."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._examples: dict[str, tuple[ExampleState, Ask]] = {}
        self._gone: dict[str, None] = {}
        self._port = 0
        self._starting = threading.Lock()
        self.server: Any = None

    def close(self) -> None:
        """Stop answering, while the loop still runs."""
        if self.server is not None:
            # What a request of somebody else's keeps open is closed with the loop.
            with contextlib.suppress(TimeoutError, asyncio.CancelledError):
                self._loop.submit(_stop(self.server)).result(_PATIENCE_S)

    def register(self, state: ExampleState, ask: Ask) -> str:
        """Return a new token, for an example whose requests ``ask`` answers."""
        token = secrets.token_urlsafe(24)
        self._examples[token] = state, ask
        return token

    def forget(self, token: str) -> None:
        """Answer requests with ``token`` with 410 from now on."""
        if self._examples.pop(token, None) is not None:
            self._gone[token] = None
            if len(self._gone) > _KEPT:
                del self._gone[next(iter(self._gone))]

    def url(self, token: str) -> str:
        """Return the base URL for the example with ``token``."""
        return f"{self.root}/e/{token}/v1"

    @property
    def address(self) -> str:
        """Host and port; "" where no example has wanted it yet."""
        return f"127.0.0.1:{self._port}" if self._port else ""

    @property
    def root(self) -> str:
        """The address without a token: requests need one as their bearer key."""
        if not self._port:
            if self._loop.is_here():
                # Bound here and now; the loop accepts as soon as it turns.
                self._port = _bind(self)
            else:
                with self._starting:
                    self._port = self._port or self._loop.submit(_bound(self)).result()
        return f"http://127.0.0.1:{self._port}"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one HTTP request."""
        from aiohttp import web

        token = request.match_info.get("token") or request.headers.get("Authorization", "").removeprefix("Bearer ")
        known = self._examples.get(token)
        if known is None:
            return _refusal(*_unknown(token, is_gone=token in self._gone))
        if request.method != "POST" or not request.path.endswith("/chat/completions"):
            return _refusal(404, f"only POST .../v1/chat/completions is answered here, not {request.method}")
        try:
            body = json.loads(await request.read())
            fields = _fields(body)
        except (ValueError, web.HTTPRequestEntityTooLarge) as error:
            return _refusal(400, str(error))
        state, ask = known
        try:
            answer = await ask(state, fields)
        except AdapterError as error:
            return _refusal(502, str(error))
        except LmevalError as error:
            return _refusal(400, str(error))
        model = str(body.get("model", ""))
        if not body.get("stream"):
            return web.json_response(_whole(answer, model))
        return await _stream(request, answer, model, body)


def _bind(endpoint: Endpoint) -> int:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    port: int = listener.getsockname()[1]
    # Kept: a loop holds its tasks weakly.
    endpoint.server = asyncio.get_running_loop().create_task(_serve(endpoint, listener))
    return port


async def _bound(endpoint: Endpoint) -> int:
    return _bind(endpoint)


async def _serve(endpoint: Endpoint, listener: Any) -> web.AppRunner:
    from aiohttp import web

    application = web.Application(client_max_size=_LARGEST_BODY)
    application.router.add_route("*", "/e/{token}/{rest:.*}", endpoint.handle)
    application.router.add_route("*", "/{rest:.*}", endpoint.handle)
    runner = web.AppRunner(application, access_log=None, handle_signals=False)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    return runner


async def _stop(server: Any) -> None:
    runner = await server
    await runner.cleanup()


def _unknown(token: str, *, is_gone: bool) -> tuple[int, str]:
    if is_gone:
        return _GONE, "the example that this address belongs to has ended"
    return _MISDIRECTED, (
        "no example is known by this address: give the client base_url=lm.base_url, or api_key=lm.token, for instance "
        "client.with_options(base_url=lm.base_url)"
    )


def _refusal(status: int, message: str) -> web.Response:
    from aiohttp import web

    kind = "invalid_request_error" if status < 500 else "server_error"
    error = {"error": {"message": message, "type": kind, "code": None, "param": None}}
    # What an application's client would only try again in vain.
    return web.json_response(error, status=status, headers={"x-should-retry": "false"})


def _fields(body: Any) -> dict[str, Any]:
    """Return the messages and the options of a request; raise ValueError for a body that is none."""
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list) or not messages:
        raise ValueError("expected a JSON object with messages")
    if body.get("n") not in (None, 1):
        raise ValueError("n: only one answer per request is given here")
    stop = body.get("stop") or ()
    return {
        "messages": [_message(each) for each in messages],
        "stop": (stop,) if isinstance(stop, str) else tuple(stop),
        "max_tokens": body.get("max_completion_tokens", body.get("max_tokens")),
        "options": {name: body[name] for name in _OPTIONS if body.get(name) is not None},
        "tools": tuple(map(_tool, body.get("tools") or ())),
        "tool_choice": _tool_choice(body.get("tool_choice")),
    }


def _tool(given: Any) -> Mapping[str, Any]:
    function = given.get("function") if isinstance(given, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise ValueError(f"tools: expected functions with a name, got {given!r:.120}")
    return {name: function[name] for name in ("name", "description", "parameters") if name in function}


def _tool_choice(given: Any) -> str:
    if isinstance(given, dict):
        return str(given.get("function", {}).get("name", ""))
    return str(given or "")


def _message(given: Any) -> dict[str, Any]:
    content = given.get("content") if isinstance(given, dict) else None
    if isinstance(content, list) and all(isinstance(each, dict) and each.get("type") == "text" for each in content):
        content = "".join(str(each.get("text", "")) for each in content)
    calls = given.get("tool_calls") if isinstance(given, dict) else None
    is_whole = isinstance(content, str) or (content is None and calls)
    if not isinstance(given, dict) or not isinstance(given.get("role"), str) or not is_whole:
        raise ValueError(f"expected messages with role and content, both text, got {given!r:.120}")
    return {**given, "content": content or ""}


def _choice(answer: Completion) -> str:
    return "tool_calls" if answer.tool_calls else answer.finish_reason or "stop"


def _calls(answer: Completion) -> dict[str, Any]:
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in answer.tool_calls
    ]
    return {"tool_calls": calls} if calls else {}


def _usage(answer: Completion) -> dict[str, int]:
    prompt, completion = answer.prompt_tokens or 0, answer.completion_tokens or 0
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _head(kind: str, model: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{secrets.token_hex(12)}", "object": kind, "created": int(time.time()), "model": model}


def _whole(answer: Completion, model: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer.text, "refusal": None, **_calls(answer)}
    choice = {"index": 0, "message": message, "finish_reason": _choice(answer), "logprobs": None}
    return {**_head("chat.completion", model), "choices": [choice], "usage": _usage(answer)}


async def _stream(request: web.Request, answer: Completion, model: str, body: Mapping[str, Any]) -> web.StreamResponse:
    """Send an answer that is there as events, the text in a few pieces."""
    from aiohttp import web

    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    await response.prepare(request)
    head = _head("chat.completion.chunk", model)
    size = max(1, -(-len(answer.text) // 8))
    pieces = [answer.text[start : start + size] for start in range(0, len(answer.text), size)]
    deltas: list[tuple[dict[str, Any], str | None]] = [({"role": "assistant", "content": ""}, None)]
    deltas += [({"content": piece}, None) for piece in pieces]
    calls = [{"index": number, **call} for number, call in enumerate(_calls(answer).get("tool_calls", ()))]
    deltas += [({"tool_calls": calls}, None)] if calls else []
    deltas.append(({}, _choice(answer)))
    for delta, reason in deltas:
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        await _event(response, {**head, "choices": [choice]})
    options = body.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage"):
        await _event(response, {**head, "choices": [], "usage": _usage(answer)})
    await response.write(b"data: [DONE]\n\n")
    await response.write_eof()
    return response


async def _event(response: web.StreamResponse, value: Any) -> None:
    await response.write(f"data: {json.dumps(value)}\n\n".encode())
