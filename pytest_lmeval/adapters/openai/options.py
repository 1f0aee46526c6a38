"""The options of the adapter, checked once, when it is made."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import urlsplit

from pytest_lmeval.adapters.openai import checks
from pytest_lmeval.errors import UsageError, did_you_mean


@dataclass(frozen=True, slots=True)
class Options:
    """How to ask the server. Times are seconds, prices are per million tokens, limits are per minute.

    ``temperature`` None leaves it to the server. ``max_tokens`` and ``stop`` are for requests that have no
    ``max_tokens`` of their own, and besides the stops of their own. ``timeout`` limits one attempt.
    """

    base_url: str = "https://api.openai.com/v1"
    api_key_env: str = "OPENAI_API_KEY"
    endpoint: str = "chat"
    system: str | None = None
    temperature: float | None = 0
    top_p: float | None = None
    max_tokens: int | None = None
    max_tokens_field: str = "max_tokens"
    stop: tuple[str, ...] = ()
    seed: int | None = None
    logprobs: bool = False
    stream: bool = False
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    price_input: float | None = None
    price_output: float | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_response_bytes: int = 8 * 2**20
    timeout: float = 3600

    @property
    def url(self) -> str:
        """The address that requests are sent to."""
        return self.base_url + ("/chat/completions" if self.endpoint == "chat" else "/completions")

    @property
    def needs_key(self) -> bool:
        """False for plain http to this machine, where servers commonly ask for no key."""
        return self.base_url.startswith("https:") or not _is_loopback(urlsplit(self.base_url).hostname or "")

    def public(self) -> dict[str, Any]:
        """Return the options that are set, as JSON values; none of them is a secret."""
        values = {name: value for name, value in asdict(self).items() if value not in (None, (), {})}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "base_url": checks.base_url,
    "api_key_env": checks.environment_name,
    "endpoint": checks.choice("chat", "completions"),
    "system": checks.text,
    "temperature": checks.temperature,
    "top_p": checks.number(0, 1, above=True),
    "max_tokens": checks.integer(1),
    "max_tokens_field": checks.choice("max_tokens", "max_completion_tokens"),
    "stop": checks.stops,
    "seed": checks.integer(0),
    "logprobs": checks.flag,
    "stream": checks.flag,
    "extra_body": checks.extra_body,
    "price_input": checks.number(0),
    "price_output": checks.number(0),
    "requests_per_minute": checks.number(0, above=True),
    "tokens_per_minute": checks.number(0, above=True),
    "max_response_bytes": checks.integer(1),
    "timeout": checks.number(0, above=True),
}


def read_options(given: Mapping[str, Any]) -> Options:
    """Return the options that were ``given``; raise UsageError that names the option and what was expected."""
    options = Options(**{name: _check(name, value) for name, value in given.items()})
    if options.system is not None and options.endpoint == "completions":
        raise _fault("system", "has no place with endpoint 'completions'; expected endpoint 'chat'")
    if (options.price_input is None) != (options.price_output is None):
        raise _fault("price_input and price_output", "expected both or neither (0 for what is free)")
    return options


def _check(name: str, value: Any) -> Any:
    if name not in _CHECKS:
        raise _unknown(name)
    try:
        return _CHECKS[name](value)
    except ValueError as error:
        raise _fault(name, f"is {_shown(value)}; expected {error}") from None


def _unknown(name: str) -> UsageError:
    if re.fullmatch(r"(open_?ai_?)?(api_?)?key|authorization|token|api_token", name, re.I):
        hint = " a key is never given as a value: name its environment variable with api_key_env"
    else:
        hint = did_you_mean(name, _CHECKS)
    shown = repr(name) if re.fullmatch(r"[A-Za-z_]{1,32}", name) else f"of {len(name)} characters"
    choices = ", ".join(sorted(_CHECKS))
    return UsageError(f"adapter 'openai': unknown option {shown}{';' if hint else ''}{hint} (choices: {choices})")


def _fault(name: str, what: str) -> UsageError:
    return UsageError(f"adapter 'openai': option {name} {what}")


def _shown(value: Any) -> str:
    """Show a value that cannot be a key; describe any other."""
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, str):
        return repr(value) if len(value) <= 7 else f"a text of {len(value)} characters"
    return f"a {type(value).__name__}"


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
