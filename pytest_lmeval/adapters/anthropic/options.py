"""Define the ``anthropic`` adapter's options, and check them when the adapter is created."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.adapters.http.options import CHECKS, ServerOptions, extra_body, read, temperature
from pytest_lmeval.adapters.options import Check, fault
from pytest_lmeval.numbers import Number

ADAPTIVE = "adaptive"
"""The value of the option ``thinking`` that lets the model decide how much to think."""
# Body fields that have their own options.
_OWNED = frozenset(
    {"model", "messages", "system", "temperature", "top_p", "top_k", "stop_sequences", "max_tokens", "stream"}
)
_BUDGET = Number(1024, whole=True)


@dataclass(frozen=True, slots=True)
class MessagesOptions(ServerOptions):
    """The options of :class:`ServerOptions`, and options that only Anthropic's interface has.

    ``max_tokens`` has a default because the interface requires a number. ``temperature`` has no default, because newer
    models reject any value. ``thinking`` is ``adaptive``, or a number of tokens for thoughts in addition to
    ``max_tokens``. If an option is None, the server chooses its value.
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
        """The address that receives requests."""
        return f"{self.root}/messages"

    @property
    def root(self) -> str:
        """The address before the interface's paths, which is ``base_url`` with the version added if it is missing."""
        return self.base_url.removesuffix("/v1") + "/v1"


def _thinking(value: Any) -> int | str:
    if value != ADAPTIVE and not _BUDGET.allows(value):
        raise ValueError(f"{_BUDGET}, or {ADAPTIVE!r}")
    return value  # type: ignore[no-any-return]  # just checked


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
    """Check the options; raise a UsageError that names an invalid option and the expected value."""
    options = read("anthropic", MessagesOptions, _CHECKS, given)
    if options.thinking is not None and (options.temperature not in (None, 1) or options.top_k is not None):
        raise fault("anthropic", "options temperature and top_k cannot be combined with thinking; expected neither")
    if options.price_input is None and (options.price_cache_write, options.price_cache_read) != (None, None):
        raise fault("anthropic", "option price_cache_write or price_cache_read expected price_input and price_output")
    return options
