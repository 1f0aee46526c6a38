"""The base class of adapters for servers.

Each call of ``complete`` makes one attempt; the engine retries calls, limits their rate, and runs them concurrently.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pytest_lmeval.adapters.http.faults import with_hint
from pytest_lmeval.adapters.http.forward import Forward, completion_of, model_in
from pytest_lmeval.adapters.http.models import Prices, ServerModel
from pytest_lmeval.adapters.http.options import Given
from pytest_lmeval.adapters.http.reply import Document, parse
from pytest_lmeval.adapters.http.secret import ApiKey
from pytest_lmeval.adapters.options import fault
from pytest_lmeval.adapters.protocol import without_best_effort
from pytest_lmeval.compact_json import compact_encoder
from pytest_lmeval.errors import AdapterDown, AdapterError, UsageError
from pytest_lmeval.types import Completion, Generate, LogProb

if TYPE_CHECKING:
    from pytest_lmeval.adapters.http.events import Assembly
    from pytest_lmeval.adapters.http.transport import HttpTransport, Reply

_encode = compact_encoder(allow_nan=True)  # escapes keep lone surrogates
_REVISIONS, _LONGEST_NAME = 5, 200
_REFUSES = frozenset({400, 422, 501})
"""Statuses with which servers refuse an option that they do not support."""
Answered = TypeVar("Answered", Completion, LogProb)


class HttpAdapter(ServerModel[Given], ABC):
    """A model on a server; each subclass writes the requests and reads the replies of one interface.

    The constructor raises UsageError in the same cases as :class:`ServerModel`, and if aiohttp is missing. After the
    first answer, ``manifest["revision"]`` is the server's name for the model.
    """

    assembly: ClassVar[type[Assembly]]
    """Assembles a stream's events."""
    remedies: ClassVar[Mapping[str, str]] = {}
    """Maps each field that a server may reject to the option that avoids the field."""

    hostable = True
    forwards = True

    def __init__(self, model: str, options: Given) -> None:
        super().__init__(model, options)
        _check_address(self.kind, options.url)
        self._refuses_wishes = False
        self.tells_cost = self._priced(model).price_input is not None if model else bool(self._prices)

    @abstractmethod
    def _headers(self, key: ApiKey) -> Mapping[str, str]:
        """Return the interface's headers, with the API key if it is not empty."""

    @abstractmethod
    def _fields(self, model: str, request: Generate) -> Mapping[str, object]:
        """Return the fields of a request's body; raise AdapterError if the interface does not support the request."""

    @abstractmethod
    def _completion_of(self, document: Document, request: Generate, reply: Reply, options: Given) -> Completion:
        """Extract the answer from a reply, priced by ``options``; raise AdapterError if there is no answer."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, base_url={self._options.base_url!r})"

    @property
    def known_secrets(self) -> tuple[str, ...]:
        """The API key, which code that shows or stores answers must hide."""
        return self._key.known()

    @property
    def cancelled_after_s(self) -> float:
        """Always 0; setting this attribute passes the value to the transport, which stores it."""
        return 0.0

    @cancelled_after_s.setter
    def cancelled_after_s(self, seconds: float) -> None:
        # The run sets this before it starts to time the first request, so that the time excludes the import.
        with suppress(AdapterDown):
            self._transport.expect_cancellation(seconds)

    def __reduce__(self) -> tuple[Any, ...]:
        temperature = "default" if self._options.temperature is None else self._options.temperature
        options = self.options | {"temperature": temperature}
        return _remake, (type(self), self._model, options, self._prices)

    async def complete(self, request: Generate) -> Completion:
        """Send the request once and return the completion.

        Raise TransientError if a retry may help (408, 409, 429, 5xx, resets, timeouts, a cut-off body), otherwise
        AdapterError.
        """
        return raised(await self._completion(request))

    async def _completion(self, request: Generate) -> Completion | AdapterError:
        plain = without_best_effort(request)
        if plain is request or self._refuses_wishes:
            return await self._attempt(plain)
        answer = await self._attempt(request)
        if not isinstance(answer, AdapterError) or answer.status not in _REFUSES:
            return answer
        # Servers word the refusal of an option differently: only a request without the option shows the cause.
        again = await self._attempt(plain)
        self._refuses_wishes = isinstance(again, Completion)
        return again

    async def _attempt(self, request: Generate) -> Completion | AdapterError:
        # Return errors as values: a traceback through this frame would show the reply, which may hold the key.
        try:
            if isinstance(request, Forward):
                return await self._forwarded(request)
            model = self._asked_model(request)
            document, reply = await self._ask(self._fields(model, request))
            return self._completion_of(document, request, reply, self._priced(model))
        except AdapterError as error:
            return with_hint(error, request, {} if isinstance(request, Forward) else self.remedies)

    async def _ask(self, fields: Mapping[str, object]) -> tuple[Document, Reply]:
        reply = await self._transport.post(_encode(fields).encode("ascii"))
        if isinstance(reply, AdapterError):
            raise reply
        document = parse(reply.body, reply.where, self._key)
        self._record_revision(document)
        return document, reply

    async def _forwarded(self, request: Forward) -> Completion:
        url = f"{self._options.root}{request.target}"
        reply = await self._transport.forward(request.method, url, request.content, request.headers)
        if isinstance(reply, AdapterError):
            raise reply
        return completion_of(reply, request, self._priced(model_in(request.content)), self._key)

    async def aclose(self) -> None:
        """Close the connections, in the event loop that used them; a later request opens new connections."""
        if "_transport" in vars(self):
            await self._transport.aclose()

    def _record_revision(self, document: Document) -> None:
        """Add the answering model's name to the manifest, which then shows if the server changes models."""
        served = document.fields.get("model")
        known = self.manifest.get("revision", "").split(", ") if "revision" in self.manifest else []
        if not isinstance(served, str) or not served.isprintable() or not 0 < len(served) <= _LONGEST_NAME:
            return
        if served not in known and len(known) < _REVISIONS:
            self.manifest["revision"] = ", ".join([*known, served])

    @cached_property
    def _transport(self) -> HttpTransport:
        # If another process sends the requests, this process skips aiohttp, whose import takes as long as pytest's.
        try:
            from pytest_lmeval.adapters.http.transport import HttpTransport
        except ImportError as error:
            raise AdapterDown(f"stopped: {_needs_aiohttp(self.kind, f'cannot be imported ({error})')}") from error
        return HttpTransport(self._options, self._key, self._headers(self._key), self.assembly)


def _check_address(kind: str, url: str) -> None:
    """Raise UsageError if ``url`` is not a URL, or if aiohttp is missing; do not import aiohttp."""
    try:
        from yarl import URL

        is_installed = "aiohttp" in sys.modules or find_spec("aiohttp") is not None
    except ImportError as error:
        raise UsageError(_needs_aiohttp(kind, f"cannot be imported ({error})")) from error
    if not is_installed:
        raise UsageError(_needs_aiohttp(kind, "is not installed"))
    try:
        URL(url)
    except ValueError as error:
        raise fault(kind, f"option base_url is not a usable address: {error}") from None


def _needs_aiohttp(kind: str, why: str) -> str:
    return f"adapter {kind!r} needs aiohttp, which {why}: pip install aiohttp"


def raised(answer: Answered | AdapterError) -> Answered:
    """Return ``answer``; if it is an error, raise it without its traceback."""
    if isinstance(answer, AdapterError):
        answer.__context__ = answer.__traceback__ = None
        raise answer from None
    return answer


def _remake(kind: Any, model: str, options: Mapping[str, object], prices: Prices) -> HttpAdapter[Any]:
    made: HttpAdapter[Any] = kind(model, **options)
    # Another process does not know the project.
    made._prices = prices
    return made
