"""The options of the adapter, checked once, when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.adapters.http.options import CHECKS, ServerOptions, extra_body, read, temperature
from pytest_lmeval.adapters.options import Check, fault
from pytest_lmeval.numbers import Number

ADAPTIVE = "adaptive"
"""The option ``thinking`` of a model that decides itself how much to think."""
# Body fields with options of their own.
_OWNED = frozenset(
    {"model", "messages", "system", "temperature", "top_p", "top_k", "stop_sequences", "max_tokens", "stream"}
)
_BUDGET = Number(1024, whole=True)


@dataclass(frozen=True, slots=True)
class MessagesOptions(ServerOptions):
    """How to ask the server, by :class:`ServerOptions`, and what Anthropic's interface has besides.

    ``max_tokens`` is a number always: the interface wants one with every request. ``temperature`` is the server's own
    unless it is given, since newer models refuse any. ``thinking`` is how many tokens the model may use for its
    thoughts, besides ``max_tokens``, or ``adaptive``; None leaves it to the server.
    """

    base_url: str = "https://api.anthropic.com"
    api_key_env: str = "ANTHROPIC_API_KEY"
    temperature: float | None = None
    max_tokens: int | None = 4096
    top_k: int | None = None
    thinking: int | str | None = None
    price_cache_write: float | None = None
    price_cache_read: float | None = None

    @property
    def url(self) -> str:
        """The address that requests are sent to."""
        return f"{self.root}/messages"

    @property
    def root(self) -> str:
        """The address that the paths of the interface are below; a ``base_url`` may end with the version, or not."""
        return self.base_url.removesuffix("/v1") + "/v1"


def _thinking(value: Any) -> int | str:
    if value != ADAPTIVE and not _BUDGET.allows(value):
        raise ValueError(f"{_BUDGET}, or {ADAPTIVE!r}")
    return value  # type: ignore[no-any-return]  # what was just checked


_CHECKS: Mapping[str, Check] = {
    **CHECKS,
    "temperature": temperature(1),
    "extra_body": extra_body('{service_tier = "auto"}', _OWNED),
    "top_k": Number(1, whole=True).check,
    "thinking": _thinking,
    "price_cache_write": Number(0).check,
    "price_cache_read": Number(0).check,
}


def read_options(given: Mapping[str, object]) -> MessagesOptions:
    """Return the options that were ``given``; raise UsageError that names the option and what was expected."""
    options = read("anthropic", MessagesOptions, _CHECKS, given)
    if options.thinking is not None and (options.temperature not in (None, 1) or options.top_k is not None):
        raise fault("anthropic", "option temperature or top_k has no place with thinking; expected neither")
    if options.price_input is None and (options.price_cache_write, options.price_cache_read) != (None, None):
        raise fault("anthropic", "option price_cache_write or price_cache_read expected price_input and price_output")
    return options
