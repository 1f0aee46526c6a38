"""Define the ``openai`` adapter's options, and check them when the adapter is created."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pytest_lmeval.adapters.http.options import CHECKS, ServerOptions, extra_body, read, temperature
from pytest_lmeval.adapters.options import Check, choice, fault, flag, text
from pytest_lmeval.numbers import Number, is_count

# Body fields that have their own options, and fields that would change the response.
_OWNED = frozenset(
    {"model", "messages", "prompt", "temperature", "top_p", "stop", "seed", "logprobs"}
    | {"max_tokens", "max_completion_tokens", "stream", "stream_options"}
)
_FORBIDDEN = frozenset({"n", "best_of", "echo"})


@dataclass(frozen=True, slots=True)
class OpenAIOptions(ServerOptions):
    """The options of :class:`ServerOptions`, and options that only OpenAI's interface has.

    If a log-likelihood request has no context, its context is ``begin``, the model's first token. ``price_cached`` is
    the price of prompt tokens that the server has cached.
    """

    base_url: str = "https://api.openai.com/v1"
    api_key_env: str = "OPENAI_API_KEY"
    endpoint: str = "chat"
    max_tokens_field: str = "max_tokens"
    seed: int | None = None
    logprobs: bool = False
    begin: str | None = None
    price_cached: float | None = None

    @property
    def url(self) -> str:
        """The address that receives requests."""
        return self.base_url + ("/chat/completions" if self.endpoint == "chat" else "/completions")

    def discount(self, prompt_tokens: int, usage: Mapping[str, object]) -> float:
        """Return a million times the amount that cached tokens save."""
        if self.price_cached is None or self.price_input is None:
            return 0.0
        details = usage.get("prompt_tokens_details")
        stated = details.get("cached_tokens") if isinstance(details, dict) else usage.get("prompt_cache_hit_tokens")
        cached = min(stated, prompt_tokens) if is_count(stated) else 0
        return cached * (self.price_input - self.price_cached)


_CHECKS: Mapping[str, Check] = {
    **CHECKS,
    "temperature": temperature(math.inf),
    "extra_body": extra_body("{top_k = 50}", _OWNED, _FORBIDDEN),
    "endpoint": choice("chat", "completions"),
    "max_tokens_field": choice("max_tokens", "max_completion_tokens"),
    "seed": Number(0, whole=True).check,
    "logprobs": flag,
    "begin": text,
    "price_cached": Number(0).check,
}


def read_options(given: Mapping[str, object]) -> OpenAIOptions:
    """Check the options; raise a UsageError that names an invalid option and the expected value."""
    options = read("openai", OpenAIOptions, _CHECKS, given)
    if options.system is not None and options.endpoint == "completions":
        raise fault("openai", "option system cannot be combined with endpoint 'completions'; expected endpoint 'chat'")
    if options.price_cached is not None and options.price_input is None:
        raise fault("openai", "option price_cached expected price_input and price_output")
    return options
