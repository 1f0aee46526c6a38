"""The adapter itself: what OpenAI's interface asks and answers, and log-likelihoods by echo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_lmeval.adapters.http.adapter import HttpAdapter, raised
from pytest_lmeval.adapters.http.models import asked_model
from pytest_lmeval.adapters.http.reply import Document
from pytest_lmeval.adapters.http.secret import ApiKey
from pytest_lmeval.adapters.openai.echo import echo_fields, echoed
from pytest_lmeval.adapters.openai.options import OpenAIOptions, read_options
from pytest_lmeval.adapters.openai.request import request_fields
from pytest_lmeval.adapters.openai.response import completion
from pytest_lmeval.adapters.openai.stream import StreamedChoice
from pytest_lmeval.adapters.protocol import ANY_OPTION
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.types import Completion, Generate, LogLikelihood, LogProb

if TYPE_CHECKING:
    from pytest_lmeval.adapters.http.transport import Reply


class OpenAIAdapter(HttpAdapter[OpenAIOptions]):
    """A model behind a server that speaks the chat or completions interface of OpenAI.

    The options are those of :class:`~pytest_lmeval.adapters.openai.options.OpenAIOptions`; see :class:`HttpAdapter`.

    With the endpoint ``completions`` it has ``loglikelihood``, too, for servers that repeat the prompt with
    log-probabilities (``echo``).
    """

    kind = "openai"
    assembly = StreamedChoice
    request_options = frozenset({ANY_OPTION})

    def __init__(self, model: str, /, **options: object) -> None:
        super().__init__(model, read_options(options))
        if self._options.endpoint == "completions":
            # A chat does not echo its prompt: there the adapter has no such method, and is not asked.
            self.loglikelihood = self._loglikelihood

    def _headers(self, key: ApiKey) -> Mapping[str, str]:
        return {"Authorization": key.header("Bearer ")} if key else {}

    def _fields(self, model: str, request: Generate) -> Mapping[str, object]:
        return request_fields(model, self._options, request)

    def _completion_of(self, document: Document, request: Generate, reply: Reply, options: OpenAIOptions) -> Completion:
        return completion(document, options, reply.latency_ms, reply.ttft_ms)

    async def _loglikelihood(self, requests: Sequence[LogLikelihood]) -> list[LogProb]:
        """Ask for one after the other, once, and return their log-probabilities; raise as :meth:`complete` does."""
        return [raised(await self._log_prob(request)) for request in requests]

    async def _log_prob(self, request: LogLikelihood) -> LogProb | AdapterError:
        if not request.context:
            request = replace(request, context=self._options.begin or "")
        try:
            model = asked_model(self.kind, self._model, request)
            document, reply = await self._ask(echo_fields(model, self._options, request))
            return echoed(document, request, reply.latency_ms)
        except AdapterError as error:
            return error
