"""An adapter that asks a server: one attempt per call; limits, retries and concurrency are the engine's."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from pytest_lmeval.adapters.http.forward import Forward, completion_of, model_in
from pytest_lmeval.adapters.http.models import Prices, asked_model, check_model, priced, read_prices
from pytest_lmeval.adapters.http.options import Given
from pytest_lmeval.adapters.http.reply import Document, parse
from pytest_lmeval.adapters.http.secret import ApiKey, read_key
from pytest_lmeval.adapters.options import fault
from pytest_lmeval.adapters.protocol import without_best_effort
from pytest_lmeval.compact_json import compact_encoder
from pytest_lmeval.errors import AdapterDown, AdapterError, UsageError
from pytest_lmeval.types import Completion, Generate, LogProb

if TYPE_CHECKING:
    from pytest_lmeval.adapters.http.events import Assembly
    from pytest_lmeval.adapters.http.transport import HttpTransport, Reply

_encode = compact_encoder(allow_nan=True)
_REVISIONS, _LONGEST_NAME = 5, 200
_REFUSES = frozenset({400, 422, 501})
"""What servers answer to an option that they do not have."""
Answered = TypeVar("Answered", Completion, LogProb)


class HttpAdapter(ABC, Generic[Given]):
    """A model behind a server; a subclass says by which interface it is asked.

    ``model`` is the name that the server knows it by; if it is empty, each request names a model. The key is read from
    the environment here and now. Raise UsageError for an option that cannot be used, a key that is missing, or without
    aiohttp.

    ``manifest["revision"]`` is what the server calls the model that answered, once it has.
    """

    kind: ClassVar[str]
    """The adapter's name in a spec."""
    assembly: ClassVar[type[Assembly]]
    """Makes what puts the events of a stream together."""

    hostable = True
    forwards = True

    def __init__(self, model: str, options: Given) -> None:
        self._options = options
        check_model(self.kind, model, self._options)
        key = read_key(self.kind, self._options.api_key_env, self._options.needs_key)
        if key.stands_in((model, self._options)):
            raise UsageError(f"adapter {self.kind!r}: the API key itself is in the model's name or in an option")
        self._key = key
        _check_address(self.kind, self._options.url)
        self._refuses_wishes = False
        self._model = model
        self._prices: Prices = read_prices()
        self.model_by_request = not model
        self.name = model or self.kind
        self.base_url = self._options.base_url
        self.options = self._options.public()
        self.manifest: dict[str, str] = {"id": model} if model else {}
        self.tells_cost = self._priced(model).price_input is not None if model else bool(self._prices)
        self.requests_per_minute = self._options.requests_per_minute
        self.tokens_per_minute = self._options.tokens_per_minute

    @abstractmethod
    def _headers(self, key: ApiKey) -> Mapping[str, str]:
        """Return the headers that the interface wants, the key's among them where there is one."""

    @abstractmethod
    def _fields(self, model: str, request: Generate) -> Mapping[str, object]:
        """Return the fields of the body of a request to ``model``; raise AdapterError if it cannot be asked so."""

    @abstractmethod
    def _completion_of(self, document: Document, request: Generate, reply: Reply, options: Given) -> Completion:
        """Return the answer in a reply, at the prices of ``options``; raise AdapterError where it holds no answer."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, base_url={self._options.base_url!r})"

    @property
    def known_secrets(self) -> tuple[str, ...]:
        """The API key, for what shows or keeps answers."""
        return self._key.known()

    @property
    def cancelled_after_s(self) -> float:
        """0, as the adapter does not keep it: the transport does."""
        return 0.0

    @cancelled_after_s.setter
    def cancelled_after_s(self, seconds: float) -> None:
        # Set where requests will be sent, and before the time of the first one begins: an import takes a part of it.
        with suppress(AdapterDown):
            self._transport.expect_cancellation(seconds)

    def __reduce__(self) -> tuple[Any, ...]:
        temperature = "default" if self._options.temperature is None else self._options.temperature
        options = self.options | {"temperature": temperature}
        return _remake, (type(self), self._model, options, self._prices)

    async def complete(self, request: Generate) -> Completion:
        """Ask once and return the completion.

        Raise TransientError where asking again may help (408, 409, 429, 5xx, resets, timeouts, a cut-off body),
        AdapterError where it would not.
        """
        return raised(await self._completion(request))

    async def _completion(self, request: Generate) -> Completion | AdapterError:
        plain = without_best_effort(request)
        if plain is request or self._refuses_wishes:
            return await self._attempt(plain)
        answer = await self._attempt(request)
        if not isinstance(answer, AdapterError) or answer.status not in _REFUSES:
            return answer
        # Servers differ in what they say of an option that they do not have: what helps shows it.
        again = await self._attempt(plain)
        self._refuses_wishes = isinstance(again, Completion)
        return again

    async def _attempt(self, request: Generate) -> Completion | AdapterError:
        # Errors leave as values: a traceback through here would show the reply, in which the key may be.
        try:
            if isinstance(request, Forward):
                return await self._forwarded(request)
            model = asked_model(self.kind, self._model, request)
            document, reply = await self._ask(self._fields(model, request))
            return self._completion_of(document, request, reply, self._priced(model))
        except AdapterError as error:
            return error

    async def _ask(self, fields: Mapping[str, object]) -> tuple[Document, Reply]:
        reply = await self._transport.post(encoded(fields))
        if isinstance(reply, AdapterError):
            raise reply
        document = parse(reply.body, reply.where, self._key)
        self._note_revision(document)
        return document, reply

    async def _forwarded(self, request: Forward) -> Completion:
        url = f"{self._options.root}{request.target}"
        reply = await self._transport.forward(request.method, url, request.content, request.headers)
        if isinstance(reply, AdapterError):
            raise reply
        return completion_of(reply, request, self._priced(model_in(request.content)), self._key)

    async def aclose(self) -> None:
        """Close the connections, in the event loop that used them; a later request opens new ones."""
        if "_transport" in vars(self):
            await self._transport.aclose()

    def _priced(self, model: str) -> Given:
        return priced(self._options, self._model, model, self._prices)

    def _note_revision(self, document: Document) -> None:
        """Note the model that answered; a server that changes it midway shows in the manifest."""
        served = document.fields.get("model")
        known = self.manifest.get("revision", "").split(", ") if "revision" in self.manifest else []
        if not isinstance(served, str) or not served.isprintable() or not 0 < len(served) <= _LONGEST_NAME:
            return
        if served not in known and len(known) < _REVISIONS:
            self.manifest["revision"] = ", ".join([*known, served])

    @cached_property
    def _transport(self) -> HttpTransport:
        # Where a process of its own asks, this one never needs aiohttp, whose import takes as long as that of pytest.
        try:
            from pytest_lmeval.adapters.http.transport import HttpTransport
        except ImportError as error:
            raise AdapterDown(f"stopped: {_needs_aiohttp(self.kind, f'cannot be imported ({error})')}") from error
        return HttpTransport(self._options, self._key, self._headers(self._key), self.assembly)


def _check_address(kind: str, url: str) -> None:
    """Raise UsageError where no request can be sent to ``url``, as far as is known without the import of aiohttp."""
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
        raise fault(kind, f"option base_url is no address that can be asked: {error}") from None


def _needs_aiohttp(kind: str, why: str) -> str:
    return f"adapter {kind!r} needs aiohttp, which {why}: pip install aiohttp"


def encoded(fields: Mapping[str, object]) -> bytes:
    """Return the JSON of a body; in ASCII any text survives, lone surrogates included."""
    return _encode(fields).encode("ascii")


def raised(answer: Answered | AdapterError) -> Answered:
    """Return an answer; raise an error anew, without what led to it."""
    if isinstance(answer, AdapterError):
        answer.__context__ = answer.__traceback__ = None
        raise answer from None
    return answer


def _remake(kind: Any, model: str, options: Mapping[str, object], prices: Prices) -> HttpAdapter[Any]:
    made: HttpAdapter[Any] = kind(model, **options)
    # Another process does not know the project.
    made._prices = prices
    return made
