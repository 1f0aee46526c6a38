"""Send requests over HTTP; import this module only when necessary, because it imports aiohttp.

The transport returns errors instead of raising them, because a traceback with local variables would show the headers
in aiohttp's frames.
"""

from __future__ import annotations

import asyncio
import re
import time
import zlib
from collections.abc import Callable, Mapping

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

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
_MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_EITHER_HEADER = 32 + zlib.MAX_WBITS
_ENCODINGS = frozenset({"gzip", "x-gzip", "deflate"})


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply with a 2xx status; error messages quote ``where`` (the reply's status and the request's path).

    For a streamed reply, ``body`` is the assembled document and ``ttft_ms`` is the time to the first content. For a
    forwarded reply, ``kind`` is the content type without parameters.
    """

    body: bytes
    where: str
    latency_ms: float
    ttft_ms: float | None = None
    status: int = 200
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request to send; ``is_raw`` keeps the reply unchanged, even if the reply is a stream of events."""

    method: str
    url: URL
    payload: bytes
    headers: Mapping[str, str] | None = None
    is_raw: bool = False


class HttpTransport:
    """Sends requests to a server, and keeps connections open between an event loop's requests.

    ``headers`` contains the interface's headers, including the key. ``assembly`` joins a stream's events.
    """

    def __init__(
        self, options: ServerOptions, key: ApiKey, headers: Mapping[str, str], assembly: Callable[[], Assembly]
    ) -> None:
        self._url = URL(options.url)
        self._options = options
        self._key = key
        self._headers = headers
        self._assembly = assembly
        self._cancelled_after_s = 0.0
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def expect_cancellation(self, seconds: float) -> None:
        """Omit the transport's time limit unless it is below ``seconds``, after which the caller cancels requests."""
        self._cancelled_after_s = max(self._cancelled_after_s, seconds)

    async def post(self, payload: bytes) -> Reply | AdapterError:
        """Send ``payload`` once; return the reply or an error."""
        return await self._send(Outgoing("POST", self._url, payload))

    async def forward(self, method: str, url: str, payload: bytes, headers: Mapping[str, str]) -> Reply | AdapterError:
        """Send a request to another address on the server; return the unchanged reply or an error."""
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
        """Close the connections; call this method in the event loop that used the connections."""
        session, self._session = self._session, None
        if session is not None and self._loop is asyncio.get_running_loop():
            await session.close()

    async def _follow(self, sent: Outgoing, started: float) -> Reply | AdapterError:
        url, data, headers = sent.url, sent.payload or None, sent.headers
        for _ in range(_MAX_REDIRECTS + 1):
            session = self._open()
            async with session.request(sent.method, url, data=data, headers=headers, allow_redirects=False) as response:
                where = self._key.scrub(f"HTTP {response.status} from {url.raw_path}")[:250]
                if response.status not in _REDIRECTS:
                    return await self._read(response, where, started, sent.is_raw)
                try:
                    url = redirected(url, response.status, response.headers.get("Location"))
                except ValueError as error:
                    return AdapterError(self._key.scrub(f"{where}: {one_line(str(error))}"))
        return AdapterError(f"{where}: more than {_MAX_REDIRECTS} redirects")

    async def _read(
        self, response: aiohttp.ClientResponse, where: str, started: float, is_raw: bool
    ) -> Reply | AdapterError:
        encoding, limit = response.headers.get("Content-Encoding", ""), self._options.max_response_bytes
        if response.status // 100 != 2:
            error = refused(
                where, response.status, await self._read_error(response, encoding), retry_after(response.headers)
            )
            if response.status == 404 and not _VERSION.search(self._url.path):
                error.args = (f"{error}; base_url has no /v1; try {self._options.base_url}/v1",)
            return error
        content = response.content
        events = EventStream(self._assembly()) if self._options.stream and not is_raw else None
        try:
            body = CappedBody(encoding, limit, None if events is None else events.feed)
            # A server may close the connection after it sends an error; that error says more than the broken
            # connection.
            while not (events and events.fault) and not content.at_eof() and (chunk := await content.readany()):
                if not body.feed(chunk):
                    return AdapterError(f"{where}: the reply has more than {limit} bytes; see max_response_bytes")
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
        """Return the part of an error's body that can be read; ignore errors, because the status matters more."""
        content, cut_off = b"", False
        try:
            body = CappedBody(encoding, min(self._options.max_response_bytes, _ERROR_BODY))
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
        timeout = self._options.timeout
        is_limited = 0 < self._cancelled_after_s <= timeout
        return aiohttp.ClientSession(
            headers={**headers, **self._headers},
            timeout=aiohttp.ClientTimeout(
                total=None if is_limited else timeout, sock_connect=min(timeout, _CONNECT_SECONDS)
            ),
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        )

    def _describe(self, error: BaseException, url: URL) -> str:
        """Describe an aiohttp error; omit messages that may quote the server."""
        if isinstance(error, aiohttp.ClientPayloadError):
            what = "the body was cut off or is malformed"
        elif isinstance(error, aiohttp.ServerDisconnectedError):
            what = "the server closed the connection"
        elif isinstance(error, OSError | UnicodeError):
            what = f"{type(error).__name__}: {error}"
        else:
            what = f"the reply is not HTTP ({type(error).__name__})"
        return f"no usable reply from {url.raw_path}: {one_line(self._key.scrub(what))}"


class CappedBody:
    """Collects chunks up to ``limit`` bytes, before and after decompression, so that a zip bomb stops at the limit.

    ``watch`` receives each decompressed chunk. The constructor raises ValueError for an unsupported content encoding.
    """

    def __init__(self, encoding: str, limit: int, watch: Callable[[bytes], None] | None = None) -> None:
        encoding = encoding.strip().lower()
        if encoding not in ("", "identity") and encoding not in _ENCODINGS:
            raise ValueError(f"content encoding {encoding[:40]!r}; expected gzip or none")
        self._inflate = zlib.decompressobj(_EITHER_HEADER) if encoding in _ENCODINGS else None
        self._limit = limit
        self._watch = watch
        self._arrived = 0
        self._size = 0
        self._chunks: list[bytes] = []

    def feed(self, chunk: bytes) -> bool:
        """Add a chunk; return False once the body exceeds the limit; raise ValueError if it cannot be decompressed."""
        self._arrived += len(chunk)
        if self._inflate is not None:
            try:
                chunk = self._inflate.decompress(chunk, self._limit - self._size + 1)
            except zlib.error as error:
                raise ValueError(f"the body cannot be decompressed ({error})") from None
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._watch is not None:
            self._watch(chunk)
        return self._size <= self._limit and self._arrived <= self._limit

    @property
    def whole(self) -> bool:
        """False if the compressed data ended too early."""
        return self._inflate is None or self._inflate.eof or not self._arrived

    def content(self) -> bytes:
        """Return the collected bytes, at most ``limit``."""
        return b"".join(self._chunks)[: self._limit]


def redirected(url: URL, status: int, location: str | None) -> URL:
    """Return the target of a redirect; raise ValueError if the target must not receive the API key.

    The target must have the scheme, host and port of the original URL, or change only http to https on the same host.
    The method and the body must stay the same, so the function also refuses status 303. Error messages omit the
    target's path and query.
    """
    if location is None:
        raise ValueError("redirect without a Location")
    if status == 303:
        raise ValueError("a redirect that drops the request's body is not followed")
    try:
        target = url.join(URL(location))
        fine = target.user is None and target.password is None and (_is_same(url, target) or _is_upgrade(url, target))
        # Not target.origin(): it raises for a URL without a host.
        shown = f"{target.scheme}://{target.host or ''}:{target.port or ''}"
    except (ValueError, TypeError):
        raise ValueError("redirect to an invalid URL") from None
    if not fine:
        raise ValueError(f"a redirect to another host, {shown}, is not followed")
    return target


def _is_same(url: URL, target: URL) -> bool:
    return (url.scheme, url.host, url.port) == (target.scheme, target.host, target.port)


def _is_upgrade(url: URL, target: URL) -> bool:
    default_ports = url.is_default_port() and target.is_default_port()
    return url.host == target.host and (url.scheme, target.scheme) == ("http", "https") and default_ports
