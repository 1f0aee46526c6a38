"""An endpoint on this machine, for the client that an application brings itself.

Each example has a token of its own, in the path or as the bearer key: what a request belongs to is never guessed.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import threading
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from pytest_lmeval.errors import AdapterError, LmevalError, RequestRefused
from pytest_lmeval.functions.clients.body import ClientRequest, Talks, refused
from pytest_lmeval.functions.clients.paths import ForwardPaths
from pytest_lmeval.functions.example import ExampleState
from pytest_lmeval.functions.loop import Loop
from pytest_lmeval.text import printable

if TYPE_CHECKING:
    from aiohttp import web

    from pytest_lmeval.functions.clients.forwarding import Forwarded
    from pytest_lmeval.functions.clients.interfaces import Interface
    from pytest_lmeval.types import Completion

_GONE = 410
_MISDIRECTED = 421
_LARGEST_BODY = 64 << 20
_LONGEST_PATH = 200
_KEPT = 100_000
_Read = TypeVar("_Read")
_PATIENCE_S = 2.0
_BASE = "/v1"
_HOW = (
    "give the client base_url=lm.base_url, or api_key=lm.token, for instance client.with_options(base_url=lm.base_url)"
)


class Answers(Protocol):
    """What the requests of an example are handed to."""

    @property
    def takes_messages(self) -> bool:
        """Whether clients may speak Anthropic's interface."""

    async def answer(self, state: ExampleState, asked: ClientRequest) -> Completion:
        """Return the answer; raise LmevalError without one."""

    async def forward(self, state: ExampleState, asked: Forwarded) -> web.Response:
        """Return the reply of the adapter's server; raise LmevalError without one."""

    def refuse(self, state: ExampleState, what: str, error: AdapterError) -> None:
        """Note a request that was refused, ``what`` being its method and path."""


class _Example(NamedTuple):
    """An example that requests may belong to, what they are handed to, and what it has talked of."""

    state: ExampleState
    answers: Answers
    talks: Talks


class Endpoint:
    """The endpoint of one process, begun when the first example wants it.

    ``strays`` says which requests came in that belong to no running example, and so are on no result. ``paths`` are
    those that go to the adapter's server as they are.
    """

    def __init__(self, loop: Loop, paths: ForwardPaths | None = None) -> None:
        self._loop = loop
        self._paths = paths or ForwardPaths()
        self._examples: dict[str, _Example] = {}
        self._gone: dict[str, str] = {}
        self.strays: dict[str, None] = {}
        self._port = 0
        self._starting = threading.Lock()
        self.server: Any = None

    def close(self) -> None:
        """Stop answering, while the loop still runs."""
        if self.server is not None:
            # What a request of somebody else's keeps open is closed with the loop.
            with contextlib.suppress(TimeoutError, asyncio.CancelledError):
                self._loop.submit(_stop(self.server)).result(_PATIENCE_S)

    def register(self, state: ExampleState, answers: Answers) -> str:
        """Return a new token, for an example whose requests are handed to ``answers``."""
        token = secrets.token_urlsafe(24)
        self._examples[token] = _Example(state, answers, {})
        return token

    def forget(self, token: str) -> None:
        """Answer requests with ``token`` with 410 from now on."""
        known = self._examples.pop(token, None)
        if known is not None:
            self._gone[token] = f"{known.state.task}: {known.state.id}"
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
            # Bound here and now, and accepted as soon as the loop turns: it may be the loop that waits for the lock.
            with self._starting:
                self._port = self._port or _bind(self, self._loop.events)
        return f"http://127.0.0.1:{self._port}"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one HTTP request."""
        # Once, with the first request: what asks aiohttp for its types is not imported before.
        from pytest_lmeval.functions.clients.chat_reply import error_reply
        from pytest_lmeval.functions.clients.interfaces import MESSAGES, interface_of

        token = _token_of(request)
        if token not in self._examples:
            return error_reply(self._unknown(token))
        example = self._examples[token]
        path = _path_of(request)
        what = f"{request.method} {printable(path[:_LONGEST_PATH], keep='')}"
        interface = interface_of(request, path, example.talks)
        if path == MESSAGES and not example.answers.takes_messages:
            interface = None
        if interface is not None:
            return await _answered(request, interface, example, what)
        try:
            if not self._paths.has(request.method, path):
                raise refused(404, f"{what} is not answered here; {_expected(self._paths, path)}")
            asked = await _forwarded(request, path)
        except RequestRefused as error:
            example.answers.refuse(example.state, what, error)
            return error_reply(error)
        try:
            return await example.answers.forward(example.state, asked)
        except LmevalError as error:
            return error_reply(error)

    def _unknown(self, token: str) -> RequestRefused:
        ended = self._gone.get(token)
        if ended is not None:
            self.strays[f"a request to lm.base_url after its example had ended ({ended})"] = None
            return refused(_GONE, f"the example that this address belongs to has ended ({ended})")
        self.strays[f"a request to the endpoint that names no example: {_HOW}"] = None
        return refused(_MISDIRECTED, f"no example is known by this address: {_HOW}")


def _bind(endpoint: Endpoint, events: asyncio.AbstractEventLoop) -> int:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    port: int = listener.getsockname()[1]
    endpoint.server = asyncio.run_coroutine_threadsafe(_serve(endpoint, listener), events)
    return port


async def _serve(endpoint: Endpoint, listener: Any) -> web.AppRunner:
    from aiohttp import web

    application = web.Application(client_max_size=_LARGEST_BODY)
    application.router.add_route("*", "/e/{token}/{rest:.*}", endpoint.handle)
    application.router.add_route("*", "/{rest:.*}", endpoint.handle)
    # A client that hangs up has cancelled its request.
    runner = web.AppRunner(application, access_log=None, handle_signals=False, handler_cancellation=True)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    return runner


async def _stop(server: Any) -> None:
    runner = await asyncio.wrap_future(server)
    await runner.cleanup()


async def _answered(request: web.Request, interface: Interface, example: _Example, what: str) -> web.StreamResponse:
    try:
        asked = await _asked(request, interface)
    except RequestRefused as error:
        example.answers.refuse(example.state, what, error)
        return interface.error(error)
    try:
        answer = await example.answers.answer(example.state, asked)
    except LmevalError as error:
        return interface.error(error)
    return await interface.reply(request, answer, asked)


async def _asked(request: web.Request, interface: Interface) -> ClientRequest:
    """Return what a request asks; raise RequestRefused, with a status, for one that nobody can be asked."""

    async def read() -> ClientRequest:
        return interface.read(await request.read())

    return await _refusing(read())


async def _forwarded(request: web.Request, path: str) -> Forwarded:
    from pytest_lmeval.functions.clients.forwarding import read_forwarded

    return await _refusing(read_forwarded(request, path))


async def _refusing(reading: Awaitable[_Read]) -> _Read:
    """Return what was read; raise RequestRefused, with a status, where that cannot be."""
    from aiohttp import web

    try:
        return await reading
    except web.HTTPRequestEntityTooLarge:
        raise refused(413, f"the body is larger than {_LARGEST_BODY >> 20} MiB") from None
    except (ValueError, web.RequestPayloadError) as error:
        raise refused(400, str(error)) from None
    except Exception as error:  # an application that catches a fault of ours must not be scored for it
        raise refused(400, f"the request cannot be read: {type(error).__name__}: {error}") from None


def _expected(paths: ForwardPaths, path: str) -> str:
    from pytest_lmeval.functions.clients.interfaces import KNOWN, MESSAGES

    if path == MESSAGES:
        return "Anthropic's interface needs an anthropic: adapter"
    known = [*(f"POST {path}" for path in KNOWN), *paths.known]
    return f"expected {', '.join(known)}; ini lm_forward_paths names more"


def _token_of(request: web.Request) -> str:
    """Return the token in the path, as the bearer key, or where clients of Anthropic's interface have their key."""
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    bearer = key.strip() if scheme.lower() == "bearer" else ""
    return str(request.match_info.get("token") or bearer or request.headers.get("x-api-key", ""))


def _path_of(request: web.Request) -> str:
    """Return the path that a client of the base URL asked for, as it was sent, without token and query.

    What is no path, such as a whole URL, is returned as it is.
    """
    path = request.raw_path.partition("?")[0].removeprefix(f"/e/{request.match_info.get('token')}")
    # Once for the base URL, once for clients that add it themselves.
    for _ in range(2):
        path = path.removeprefix(_BASE) if path.startswith(f"{_BASE}/") else path
    return path
