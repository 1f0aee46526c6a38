"""One request over HTTP. Imports aiohttp, so it is imported only where requests are sent.

Faults are returned, not raised, up to the adapter: the frames of aiohttp hold headers, and a traceback that shows
local variables would show them.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from pytest_lmeval.adapters.http import redirects
from pytest_lmeval.adapters.http.body import CappedBody
from pytest_lmeval.adapters.http.events import Assembly, EventStream
from pytest_lmeval.adapters.http.faults import AttemptTimeout, one_line, refused, retry_after
from pytest_lmeval.adapters.http.options import ServerOptions
from pytest_lmeval.adapters.http.secret import ApiKey
from pytest_lmeval.errors import AdapterError, TransientError
from pytest_lmeval.frozen import dataclass

_ERROR_BODY = 64 * 1024
_CONNECT_SECONDS = 10.0
_VERSION = re.compile(r"/v\d")
_PERMANENT = (aiohttp.ClientSSLError, aiohttp.ClientResponseError, HttpProcessingError, ValueError)
_TRANSIENT = (aiohttp.ClientError, OSError)


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of the class 2xx; ``where`` says for messages which and from what path.

    Of one that was streamed, ``body`` is the document in one piece and ``ttft_ms`` the time until its first content.
    ``kind`` is the type of the content of one that was wanted as it comes, without parameters.
    """

    body: bytes
    where: str
    latency_ms: float
    ttft_ms: float | None = None
    status: int = 200
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What is sent: ``is_raw`` says that its reply is wanted as it comes, events included."""

    method: str
    url: URL
    payload: bytes
    headers: Mapping[str, str] | None = None
    is_raw: bool = False


class HttpTransport:
    """Sends bodies to one address, over connections that are kept open between requests of one event loop.

    ``headers`` are those of the interface, the key's among them; ``assembly`` makes what puts events together.
    """

    def __init__(
        self, options: ServerOptions, key: ApiKey, headers: Mapping[str, str], assembly: Callable[[], Assembly]
    ) -> None:
        self._url = URL(options.url)
        self._base_url = options.base_url
        self._key = key
        self._headers = headers
        self._assembly = assembly
        self._limit = options.max_response_bytes
        self._stream = options.stream
        self._timeout = options.timeout
        self._cancelled_after_s = 0.0
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def expect_cancellation(self, seconds: float) -> None:
        """Know that whoever asks cancels a request after ``seconds``: no time limit that is longer is watched over."""
        self._cancelled_after_s = max(self._cancelled_after_s, seconds)

    async def post(self, payload: bytes) -> Reply | AdapterError:
        """Send ``payload`` once and return the reply, or why it is missing."""
        return await self._send(Outgoing("POST", self._url, payload))

    async def forward(self, method: str, url: str, payload: bytes, headers: Mapping[str, str]) -> Reply | AdapterError:
        """Send a request to another address of the server, and return its reply as it comes, or why it is missing."""
        own = {name.lower() for name in self._headers}
        also = {name: value for name, value in headers.items() if name.lower() not in own}
        return await self._send(Outgoing(method, URL(url, encoded=True), payload, also, is_raw=True))

    async def _send(self, sent: Outgoing) -> Reply | AdapterError:
        started = time.perf_counter()
        try:
            return await self._follow(sent, started)
        except TimeoutError:
            seconds = time.perf_counter() - started
            return AttemptTimeout(f"no reply from {sent.url.raw_path} within {seconds:.1f} s")
        except _PERMANENT as error:
            return AdapterError(self._describe(error, sent.url))
        except _TRANSIENT as error:
            return TransientError(self._describe(error, sent.url))
        except asyncio.CancelledError as error:
            error.__context__ = None
            raise error.with_traceback(None) from None

    async def aclose(self) -> None:
        """Close the connections; to be awaited in the event loop that used them."""
        session, self._session = self._session, None
        if session is not None and self._loop is asyncio.get_running_loop():
            await session.close()

    async def _follow(self, sent: Outgoing, started: float) -> Reply | AdapterError:
        url, data, headers = sent.url, sent.payload or None, sent.headers
        for _ in range(redirects.MAX_REDIRECTS + 1):
            session = self._open()
            async with session.request(sent.method, url, data=data, headers=headers, allow_redirects=False) as response:
                where = self._key.scrub(f"HTTP {response.status} from {url.raw_path}")[:250]
                if response.status not in redirects.REDIRECTS:
                    return await self._read(response, where, started, sent.is_raw)
                try:
                    url = redirects.follow(url, response.status, response.headers.get("Location"))
                except ValueError as error:
                    return AdapterError(self._key.scrub(f"{where}: {one_line(str(error))}"))
        return AdapterError(f"{where}: more than {redirects.MAX_REDIRECTS} redirects")

    async def _read(
        self, response: aiohttp.ClientResponse, where: str, started: float, is_raw: bool
    ) -> Reply | AdapterError:
        encoding = response.headers.get("Content-Encoding", "")
        if response.status // 100 != 2:
            excuse = await self._read_error(response, encoding)
            error = refused(where, response.status, excuse, retry_after(response.headers))
            if response.status == 404 and not _VERSION.search(self._url.path):
                error.args = (f"{error}; base_url has no /v1: is the server's {self._base_url}/v1?",)
            return error
        content = response.content
        events = EventStream(self._assembly()) if self._stream and not is_raw else None
        try:
            body = CappedBody(encoding, self._limit, None if events is None else events.feed)
            # A server may hang up on what it called an error, and the error says more.
            while not (events and events.fault) and not content.at_eof() and (chunk := await content.readany()):
                if not body.feed(chunk):
                    return AdapterError(f"{where}: more than {self._limit} bytes; not read to the end")
        except ValueError as error:
            return AdapterError(self._key.scrub(f"{where}: {error}"))
        if not (events and events.fault) and not (body.whole and (events is None or events.end())):
            return TransientError(f"{where}: the body ended too early")
        document = None if events is None else events.document()
        whole = body.content() if document is None else document
        ttft_ms = None if events is None or events.first is None else (events.first - started) * 1000
        latency_ms = (time.perf_counter() - started) * 1000
        return Reply(whole, where, latency_ms, ttft_ms, response.status, response.content_type if is_raw else "")

    async def _read_error(self, response: aiohttp.ClientResponse, encoding: str) -> bytes:
        """Return what can be read of an error's body: the status counts, whatever becomes of the rest."""
        content, cut_off = b"", False
        try:
            body = CappedBody(encoding, min(self._limit, _ERROR_BODY))
            try:
                while chunk := await response.content.readany():
                    if cut_off := not body.feed(chunk):
                        break
            finally:
                content = body.content()
        except (*_PERMANENT, *_TRANSIENT):
            cut_off = True
        return self._key.scrub_bytes(content, cut_off)

    def _open(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            self._loop = loop
            self._session = self._make_session()
        return self._session

    def _make_session(self) -> aiohttp.ClientSession:
        headers = {"Content-Type": "application/json", "Accept-Encoding": "gzip", "User-Agent": "pytest-lmeval"}
        connect = min(self._timeout, _CONNECT_SECONDS)
        is_limited = 0 < self._cancelled_after_s <= self._timeout
        return aiohttp.ClientSession(
            headers={**headers, **self._headers},
            timeout=aiohttp.ClientTimeout(total=None if is_limited else self._timeout, sock_connect=connect),
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        )

    def _describe(self, error: BaseException, url: URL) -> str:
        """Say what happened; of the client's own words only those that cannot quote what the server sent."""
        if isinstance(error, aiohttp.ClientPayloadError):
            what = "the body was cut off or is malformed"
        elif isinstance(error, aiohttp.ServerDisconnectedError):
            what = "the server closed the connection"
        elif isinstance(error, OSError | UnicodeError):
            what = f"{type(error).__name__}: {error}"
        else:
            what = f"what came is not HTTP ({type(error).__name__})"
        return f"no usable reply from {url.raw_path}: {one_line(self._key.scrub(what))}"
