"""Define the ``litellm`` adapter's options, and check them when the adapter is created."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pytest_lmeval.adapters.http.options import CHECKS, extra_body, read, temperature
from pytest_lmeval.adapters.openai.options import OpenAIOptions
from pytest_lmeval.adapters.options import Check
from pytest_lmeval.numbers import Number

# litellm arguments that have their own options, and arguments that would change the response.
_OWNED = frozenset(
    {"model", "messages", "temperature", "top_p", "stop", "seed", "max_tokens", "timeout", "api_base", "base_url"}
)
_FORBIDDEN = frozenset({"n", "stream", "num_retries", "max_retries", "fallbacks", "mock_response", "acompletion"})


@dataclass(frozen=True, slots=True)
class LiteLLMOptions(OpenAIOptions):
    """A subset of the ``openai`` adapter's options; ``extra_body`` holds further arguments for litellm.

    If ``base_url`` or ``api_key_env`` is empty, litellm uses its value for the provider.
    """

    base_url: str = ""
    api_key_env: str = ""

    @property
    def needs_key(self) -> bool:
        """True if ``api_key_env`` names a variable; otherwise, litellm itself finds keys."""
        return bool(self.api_key_env)

    def public(self) -> dict[str, object]:
        """Return the options that have a value, as JSON and without secrets."""
        # `super()` without arguments fails in a dataclass with slots.
        values = OpenAIOptions.public(self)
        return {name: value for name, value in values.items() if name in _CHECKS and value != ""}


_CHECKS: Mapping[str, Check] = {
    **{name: check for name, check in CHECKS.items() if name not in ("stream", "max_response_bytes")},
    "temperature": temperature(math.inf),
    "extra_body": extra_body('{api_version = "2024-10-21"}', _OWNED, _FORBIDDEN),
    "seed": Number(0, whole=True).check,
}


def read_options(given: Mapping[str, object]) -> LiteLLMOptions:
    """Check the options; raise a UsageError that names an invalid option and the expected value."""
    return read("litellm", LiteLLMOptions, _CHECKS, given)
