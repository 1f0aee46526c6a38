"""The adapter ``openai``, which requests completions, and also log-likelihoods if the server supports ``echo``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from pytest_lmeval.adapters.http.adapter import HttpAdapter, raised
from pytest_lmeval.adapters.http.reply import Document
from pytest_lmeval.adapters.http.secret import ApiKey
from pytest_lmeval.adapters.openai.echo import echo_fields, echoed
from pytest_lmeval.adapters.openai.options import OpenAIOptions, read_options
from pytest_lmeval.adapters.openai.request import request_fields
from pytest_lmeval.adapters.openai.response import completion
from pytest_lmeval.adapters.openai.stream import StreamedChoice
from pytest_lmeval.adapters.protocol import ANY_OPTION
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.types import MEDIA_KINDS, Completion, Generate, LogLikelihood, LogProb

if TYPE_CHECKING:
    from pytest_lmeval.adapters.http.transport import Reply


class OpenAIAdapter(HttpAdapter[OpenAIOptions]):
    """A model on a server with OpenAI's chat or completions interface; :class:`OpenAIOptions` describes the options.

    With the endpoint ``completions``, the adapter also has ``loglikelihood``, for servers that repeat the prompt with
    log-probabilities (``echo``).
    """

    kind = "openai"
    assembly = StreamedChoice
    remedies: ClassVar[Mapping[str, str]] = {
        "temperature": "temperature=default",
        "max_tokens": "max_tokens_field=max_completion_tokens",
    }
    request_options = frozenset({ANY_OPTION})
    media = frozenset(MEDIA_KINDS)

    def __init__(self, model: str, /, **options: object) -> None:
        super().__init__(model, read_options(options))
        if self._options.endpoint == "completions":
            # The chat endpoint cannot echo a prompt: without this method, no run asks for log-likelihoods.
            self.loglikelihood = self._loglikelihood
            self.media = frozenset()

    def _headers(self, key: ApiKey) -> Mapping[str, str]:
        return {"Authorization": key.header("Bearer ")} if key else {}

    def _fields(self, model: str, request: Generate) -> Mapping[str, object]:
        return request_fields(model, self._options, request)

    def _completion_of(self, document: Document, request: Generate, reply: Reply, options: OpenAIOptions) -> Completion:
        return completion(document, options, reply.latency_ms, reply.ttft_ms)

    async def _loglikelihood(self, requests: Sequence[LogLikelihood]) -> list[LogProb]:
        """Send the requests one after another; return log-probabilities, or raise the errors of :meth:`complete`."""
        return [raised(await self._log_prob(request)) for request in requests]

    async def _log_prob(self, request: LogLikelihood) -> LogProb | AdapterError:
        if not request.context:
            request = replace(request, context=self._options.begin or "")
        try:
            document, reply = await self._ask(echo_fields(self._asked_model(request), self._options, request))
            return echoed(document, request, reply.latency_ms)
        except AdapterError as error:
            return error
