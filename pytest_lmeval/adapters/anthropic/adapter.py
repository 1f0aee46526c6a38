"""The adapter ``anthropic``, for Anthropic's Messages interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_lmeval.adapters.anthropic.options import MessagesOptions, read_options
from pytest_lmeval.adapters.anthropic.request import request_fields
from pytest_lmeval.adapters.anthropic.response import completion
from pytest_lmeval.adapters.anthropic.stream import StreamedMessage
from pytest_lmeval.adapters.http.adapter import HttpAdapter
from pytest_lmeval.adapters.http.reply import Document
from pytest_lmeval.adapters.http.secret import ApiKey
from pytest_lmeval.types import Completion, Generate

if TYPE_CHECKING:
    from pytest_lmeval.adapters.http.transport import Reply

_VERSION = "2023-06-01"


class AnthropicAdapter(HttpAdapter[MessagesOptions]):
    """A model on a server with Anthropic's Messages interface; :class:`MessagesOptions` describes the options."""

    kind = "anthropic"
    assembly = StreamedMessage
    takes_messages = True
    media = frozenset({"image", "file"})
    # The server refuses requests with unknown options, such as options that clients of other interfaces send.
    request_options = frozenset(
        {"model", "temperature", "top_p", "top_k", "thinking", "metadata", "service_tier", "output_config"}
    )

    def __init__(self, model: str, /, **options: object) -> None:
        super().__init__(model, read_options(options))

    def _headers(self, key: ApiKey) -> Mapping[str, str]:
        return {"anthropic-version": _VERSION, **({"x-api-key": key.header()} if key else {})}

    def _fields(self, model: str, request: Generate) -> Mapping[str, object]:
        return request_fields(model, self._options, request)

    def _completion_of(
        self, document: Document, request: Generate, reply: Reply, options: MessagesOptions
    ) -> Completion:
        return completion(document, options, options.stops(request), reply.latency_ms, reply.ttft_ms)
