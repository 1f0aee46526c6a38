"""The options of the adapter ``openai``, checked when it is made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pytest_lmeval.adapters.http.options import CHECKS, ServerOptions, extra_body, read, temperature
from pytest_lmeval.adapters.options import Check, choice, fault, flag, text
from pytest_lmeval.numbers import Number

# Body fields that have their own options, and fields that would change the response.
_OWNED = frozenset(
    {"model", "messages", "prompt", "temperature", "top_p", "stop", "seed", "logprobs"}
    | {"max_tokens", "max_completion_tokens", "stream", "stream_options"}
)
_FORBIDDEN = frozenset({"n", "best_of", "echo"})


@dataclass(frozen=True, slots=True)
class OpenAIOptions(ServerOptions):
    """:class:`ServerOptions` and the further options of OpenAI's interface.

    ``begin`` is the context of log-likelihood requests without one: the model's first token.
    """

    base_url: str = "https://api.openai.com/v1"
    api_key_env: str = "OPENAI_API_KEY"
    endpoint: str = "chat"
    max_tokens_field: str = "max_tokens"
    seed: int | None = None
    logprobs: bool = False
    begin: str | None = None

    @property
    def url(self) -> str:
        """The address of requests."""
        return self.base_url + ("/chat/completions" if self.endpoint == "chat" else "/completions")


_CHECKS: Mapping[str, Check] = {
    **CHECKS,
    "temperature": temperature(math.inf),
    "extra_body": extra_body("{top_k = 50}", _OWNED, _FORBIDDEN),
    "endpoint": choice("chat", "completions"),
    "max_tokens_field": choice("max_tokens", "max_completion_tokens"),
    "seed": Number(0, whole=True).check,
    "logprobs": flag,
    "begin": text,
}


def read_options(given: Mapping[str, object]) -> OpenAIOptions:
    """Return the checked options; raise UsageError that names a bad option and the expected value."""
    options = read("openai", OpenAIOptions, _CHECKS, given)
    if options.system is not None and options.endpoint == "completions":
        raise fault("openai", "option system cannot be combined with endpoint 'completions'; expected endpoint 'chat'")
    return options
