"""The adapter itself: one attempt per call; limits, retries and concurrency are the engine's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_lmeval.adapters.http.secret import read_key
from pytest_lmeval.adapters.openai.echo import echo_body, echoed
from pytest_lmeval.adapters.openai.options import read_options
from pytest_lmeval.adapters.openai.request import request_body
from pytest_lmeval.adapters.openai.response import Document, completion, parse
from pytest_lmeval.adapters.protocol import ANY_OPTION
from pytest_lmeval.errors import AdapterError, UsageError
from pytest_lmeval.types import Completion, Generate, LogLikelihood, LogProb

if TYPE_CHECKING:
    from pytest_lmeval.adapters.http.transport import Reply

_REVISIONS = 5
Answered = TypeVar("Answered", Completion, LogProb)


class OpenAIAdapter:
    """A model behind a server that speaks the chat or completions interface of OpenAI.

    ``model`` is the name that the server knows it by; the options are those of
    :class:`~pytest_lmeval.adapters.openai.options.OpenAIOptions`. The key is read from the environment here and now.
    Raise UsageError for an option that cannot be used, a key that is missing, or without aiohttp.

    With the endpoint ``completions`` it has ``loglikelihood``, too, for servers that repeat the prompt with
    log-probabilities (``echo``).

    ``manifest["revision"]`` is what the server calls the model that answered, once it has.
    """

    exact = False
    trusted = False
    hostable = True
    request_options = frozenset({ANY_OPTION})

    def __init__(self, model: str, /, **options: Any) -> None:
        if not isinstance(model, str) or not model.strip() or not model.isprintable():
            raise UsageError("adapter 'openai' needs the name of a model: openai:MODEL")
        self._options = read_options(options)
        key = read_key(self._options.api_key_env, self._options.needs_key)
        if key.stands_in((model, self._options)):
            raise UsageError("adapter 'openai': the API key itself is in the model's name or in an option")
        self._key = key
        self._transport = _make_transport(self._options, key)
        self.name = model
        self.base_url = self._options.base_url
        self.options = self._options.public()
        self.manifest: dict[str, Any] = {"id": model}
        self.tells_cost = self._options.price_input is not None
        self.requests_per_minute = self._options.requests_per_minute
        self.tokens_per_minute = self._options.tokens_per_minute
        if self._options.endpoint == "completions":
            # A chat does not echo its prompt: there the adapter has no such method, and is not asked.
            self.loglikelihood = self._loglikelihood

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, base_url={self._options.base_url!r})"

    @property
    def known_secrets(self) -> tuple[str, ...]:
        """The API key, for what shows or keeps answers."""
        return self._key.known()

    def __reduce__(self) -> tuple[Any, ...]:
        return _remake, (type(self), self.name, self.options | {"temperature": self._temperature()})

    async def complete(self, request: Generate) -> Completion:
        """Ask once and return the completion.

        Raise TransientError where asking again may help (408, 409, 429, 5xx, resets, timeouts, a cut-off body),
        AdapterError where it would not.
        """
        return raised(await self._completion(request))

    async def _completion(self, request: Generate) -> Completion | AdapterError:
        # Errors leave as values: a traceback through here would show the reply, in which the key may be.
        try:
            document, reply = await self._ask(request_body(self.name, self._options, request))
            return completion(document, self._options, reply.latency_ms, reply.ttft_ms)
        except AdapterError as error:
            return error

    async def _loglikelihood(self, requests: Sequence[LogLikelihood]) -> list[LogProb]:
        """Ask for one after the other, once, and return their log-probabilities; raise as :meth:`complete` does."""
        return [raised(await self._log_prob(request)) for request in requests]

    async def _log_prob(self, request: LogLikelihood) -> LogProb | AdapterError:
        try:
            document, reply = await self._ask(echo_body(self.name, self._options, request))
            return echoed(document, request, reply.latency_ms)
        except AdapterError as error:
            return error

    async def _ask(self, body: bytes) -> tuple[Document, Reply]:
        reply = await self._transport.post(body)
        if isinstance(reply, AdapterError):
            raise reply
        document = parse(reply.body, reply.where, self._key)
        self._note_revision(document)
        return document, reply

    async def aclose(self) -> None:
        """Close the connections, in the event loop that used them; a later request opens new ones."""
        await self._transport.aclose()

    def _temperature(self) -> float | str:
        return "default" if self._options.temperature is None else self._options.temperature

    def _note_revision(self, document: Document) -> None:
        """Note the model that answered; a server that changes it midway shows in the manifest."""
        served = document.fields.get("model")
        known = self.manifest.get("revision", "").split(", ") if "revision" in self.manifest else []
        if isinstance(served, str) and served not in known and len(known) < _REVISIONS and _is_plain(served):
            self.manifest["revision"] = ", ".join([*known, served])


def raised(answer: Answered | AdapterError) -> Answered:
    """Return an answer; raise an error anew, without what led to it."""
    if isinstance(answer, AdapterError):
        answer.__context__ = answer.__traceback__ = None
        raise answer from None
    return answer


def _is_plain(name: str) -> bool:
    return bool(name) and name.isprintable() and len(name) <= 200


def _remake(kind: type[OpenAIAdapter], model: str, options: dict[str, Any]) -> OpenAIAdapter:
    return kind(model, **options)


def _make_transport(options: Any, key: Any) -> Any:
    try:
        from pytest_lmeval.adapters.http.transport import HttpTransport
    except ImportError as error:
        raise UsageError(
            f"adapter 'openai' needs aiohttp, which cannot be imported ({error}): pip install aiohttp"
        ) from error
    return HttpTransport(options, key)
