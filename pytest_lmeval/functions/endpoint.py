"""Serve the model under test at a local address, for clients that an application creates.

Each example has a token, which its requests contain in the path, as the bearer key or in the ``baggage`` header. The
token assigns a request to its example.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_lmeval.errors import LmevalError, RequestRefused, ScoringError
from pytest_lmeval.functions.clients.baggage import HEADER, tokens_in
from pytest_lmeval.functions.clients.body import ForwardPaths, Talks, refused
from pytest_lmeval.functions.example import ExampleState
from pytest_lmeval.functions.loop import Loop
from pytest_lmeval.text import printable

if TYPE_CHECKING:
    from aiohttp import web

    from pytest_lmeval.functions.clients.answering import Clients
    from pytest_lmeval.functions.clients.interfaces import Interface
    from pytest_lmeval.functions.service import Service

_CONFLICT = 409
_GONE = 410
_MISDIRECTED = 421
_LARGEST_BODY = 64 << 20
_LONGEST_PATH = 200
_MOST_ENDED = 100_000
_MOST_NAMES = 5
_PATIENCE_S = 2.0
_HOW = (
    "give the client base_url=lm.base_url, or api_key=lm.token, for instance client.with_options(base_url=lm.base_url)"
)


class _Example(NamedTuple):
    """A running example, its clients, and its stored conversations."""

    state: ExampleState
    answers: Clients
    talks: Talks


class _Ended(NamedTuple):
    """An example that has ended; ``had_turn`` is True if its token was in the environment variables."""

    name: str
    id: str
    had_turn: bool


@dataclass(slots=True)
class _Turn:
    """The token in the environment variables; ``kept`` is the id of an ended example whose client was used again."""

    token: str
    is_used: bool = False
    kept: str = ""


class Endpoint:
    """The endpoint of a process, which starts on first use.

    A request belongs to the example with its token. If that example has ended, and its token was in the environment
    variables, the application has kept a client. The request then belongs to the example whose token the variables
    contain now, unless the endpoint has already received a request with this token. Requests for ``paths`` are
    forwarded to the adapter's server. ``service`` handles requests outside of examples.
    """

    def __init__(self, loop: Loop, paths: ForwardPaths | None = None) -> None:
        self._loop = loop
        self._paths = paths or ForwardPaths()
        self._examples: dict[str, _Example] = {}
        self._ended: dict[str, _Ended] = {}
        self._turn: _Turn | None = None
        self._late: Counter[str] = Counter()
        self._nameless = 0
        self._outside = secrets.token_urlsafe(24)
        self.service: Service | None = None
        self._port = 0
        self._starting = threading.Lock()
        self.server: Any = None

    def close(self) -> None:
        """Stop the server; call this while the loop still runs."""
        if self.server is not None:
            # A request that another client keeps open ends with the loop.
            with contextlib.suppress(TimeoutError, asyncio.CancelledError):
                self._loop.submit(_stop(self.server)).result(_PATIENCE_S)

    def register(self, state: ExampleState, answers: Clients, *, has_turn: bool = False) -> str:
        """Return a new token for an example whose requests ``answers`` handles.

        If ``has_turn`` is true, the environment variables contain this token, and requests from kept clients belong to
        the example until it ends.
        """
        token = secrets.token_urlsafe(24)
        self._examples[token] = _Example(state, answers, {})
        if has_turn:
            self._turn = _Turn(token)
        return token

    def forget(self, token: str) -> None:
        """Mark the example with ``token`` as ended."""
        known = self._examples.pop(token, None)
        if known is not None:
            had_turn = self._turn is not None and self._turn.token == token
            self._ended[token] = _Ended(f"{known.state.task}: {known.state.id}", known.state.id, had_turn)
            if had_turn:
                self._turn = None
            if len(self._ended) > _MOST_ENDED:
                del self._ended[next(iter(self._ended))]

    @property
    def strays(self) -> list[str]:
        """Messages about requests that belonged to no running example and received no answer."""
        late, lines = self._late.copy(), []
        if late:
            names = ", ".join(list(late)[:_MOST_NAMES]) + (", ..." if len(late) > _MOST_NAMES else "")
            lines.append(f"{late.total()} request(s) to lm.base_url after their example had ended ({names})")
        if self._nameless:
            lines.append(f"{self._nameless} request(s) to the endpoint that name no example: {_HOW}")
        return lines if self.service is None else [*lines, *self.service.faults]

    def url(self, token: str) -> str:
        """Return the base URL for the example with ``token``."""
        return f"{self.root}/e/{token}/v1"

    @property
    def outside_url(self) -> str:
        """The base URL for requests outside of examples, which ``service`` handles."""
        return self.url(self._outside)

    @property
    def address(self) -> str:
        """The host and the port, or "" before the first use."""
        return f"127.0.0.1:{self._port}" if self._port else ""

    @property
    def root(self) -> str:
        """The address without a token; a request to this address needs a token as its bearer key."""
        if not self._port:
            # Bind now, but accept only once the loop turns: the loop itself may wait for the lock.
            with self._starting:
                self._port = self._port or _bind(self, self._loop.events)
        return f"http://127.0.0.1:{self._port}"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer an HTTP request."""
        # Import these modules only for a request, because they need aiohttp's types.
        from pytest_lmeval.functions.clients.chat_reply import error_reply
        from pytest_lmeval.functions.clients.forwarding import read_forwarded
        from pytest_lmeval.functions.clients.interfaces import MESSAGES, interface_of, path_of

        try:
            example = self._example_of(request)
        except RequestRefused as error:
            return error_reply(error)
        path = path_of(request)
        what = f"{request.method} {printable(path[:_LONGEST_PATH], keep='')}"
        interface = interface_of(request, path, example.talks)
        if path == MESSAGES and not example.answers.takes_messages:
            interface = None
        if interface is not None:
            return await _answered(request, interface, example, what)
        try:
            if not self._paths.has(request.method, path):
                raise refused(404, f"{what} is not answered here; {_expected(self._paths, path)}")
            with _refusing():
                asked = await read_forwarded(request, path)
        except RequestRefused as error:
            example.answers.refuse(example.state, what, error)
            return error_reply(error)
        try:
            return await example.answers.forward(example.state, asked)
        except LmevalError as error:
            return error_reply(error)

    def _example_of(self, request: web.Request) -> _Example:
        place, key = request.match_info.get("token", ""), _key_of(request)
        is_outside = self.service is not None and place == self._outside
        # At the address for requests outside of examples, a key that is not a token is a placeholder.
        token = place if place and not is_outside else key
        if HEADER in request.headers and (named := tokens_in(request.headers.getall(HEADER))):
            return self._passed_on(named, token)
        if self.service is not None and is_outside and token not in self._examples and token not in self._ended:
            return _Example(self.service.state, self.service.take(), self.service.talks)
        return self._of_token(token)

    def _passed_on(self, named: set[str], token: str) -> _Example:
        """Return the example that a request's baggage names; refuse a request whose address names another example."""
        found = {each: self._examples[each] for each in (*sorted(named), token) if each in self._examples}
        if len(found) > 1 or (found and len(named) > 1):
            ids = " and ".join(each.state.id for each in found.values())
            why = f"a request names several examples ({ids}), by its address and by its baggage"
            for each in found.values():
                each.state.fail(ScoringError(why))
            raise refused(_CONFLICT, why)
        for name in named:
            if name in found:
                return found[name]
            if name in self._ended:
                raise self._late_for(self._ended[name])
        self._nameless += 1
        raise refused(_MISDIRECTED, f"its baggage names no example of this process: {_HOW}")

    def _late_for(self, ended: _Ended) -> RequestRefused:
        self._late[ended.name] += 1
        return refused(_GONE, f"the example that this address belongs to has ended ({ended.name})")

    def _of_token(self, token: str) -> _Example:
        turn, example = self._turn, self._examples.get(token)
        if example is not None:
            if turn is not None and turn.token == token:
                turn.is_used = True
                if turn.kept:
                    raise _ambiguous(example.state, turn.kept)
            return example
        ended = self._ended.get(token)
        if ended is None:
            self._nameless += 1
            raise refused(_MISDIRECTED, f"no example has this address: {_HOW}")
        running = self._examples.get(turn.token) if turn is not None and not turn.is_used else None
        if turn is not None and running is not None and ended.had_turn:
            turn.kept = ended.id
            return running._replace(answers=running.answers.of_kept_client(ended.id))
        raise self._late_for(ended)


def _ambiguous(state: ExampleState, owner: str) -> RequestRefused:
    """Mark the example as an error; return the rejection of its own client's request after a kept client's requests."""
    why = (
        f"a client kept from the example {owner} has sent requests for this one, and now its own client does: it is "
        "unknown which of them asks for it; make one client for each example, or keep one for all"
    )
    state.fail(ScoringError(why))
    return refused(_CONFLICT, why)


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
    # A client that disconnects cancels its request.
    runner = web.AppRunner(application, access_log=None, handle_signals=False, handler_cancellation=True)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    return runner


async def _stop(server: Any) -> None:
    runner = await asyncio.wrap_future(server)
    await runner.cleanup()


async def _answered(request: web.Request, interface: Interface, example: _Example, what: str) -> web.StreamResponse:
    try:
        with _refusing():
            asked = interface.read(await request.read())
    except RequestRefused as error:
        example.answers.refuse(example.state, what, error)
        return interface.error(error)
    try:
        answer = await example.answers.answer(example.state, asked)
    except LmevalError as error:
        return interface.error(error)
    return await interface.reply(request, answer, asked)


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    """Turn an error while reading a request into RequestRefused with an HTTP status."""
    from aiohttp import web

    try:
        yield
    except web.HTTPRequestEntityTooLarge:
        raise refused(413, f"the body is larger than {_LARGEST_BODY >> 20} MiB") from None
    except (ValueError, web.RequestPayloadError) as error:
        raise refused(400, str(error)) from None
    except Exception as error:  # an application that catches our own error must not be scored for it
        raise refused(400, f"the request cannot be read: {type(error).__name__}: {error}") from None


def _expected(paths: ForwardPaths, path: str) -> str:
    from pytest_lmeval.functions.clients.interfaces import KNOWN, MESSAGES

    if path == MESSAGES:
        return "Anthropic's interface needs the adapter anthropic:, or replay: for a recorded run"
    known = [*(f"POST {path}" for path in KNOWN), *paths.known]
    return f"expected {', '.join(known)}; ini lm_forward_paths names more"


def _key_of(request: web.Request) -> str:
    """Return the bearer key, or the key in the header of Anthropic's or Azure's clients."""
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    bearer = key.strip() if scheme.lower() == "bearer" else ""
    return bearer or request.headers.get("x-api-key", "") or request.headers.get("api-key", "")
