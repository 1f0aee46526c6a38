"""Define the options that all adapters for servers share, and check them when an adapter is created."""

from __future__ import annotations

import ipaddress
import json
import os
import re
from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pytest_lmeval.adapters.options import Check, checked, choice, fault, flag, table, text
from pytest_lmeval.extra import THOUGHTS_BACK
from pytest_lmeval.numbers import Number, is_number
from pytest_lmeval.redaction import is_secret_name
from pytest_lmeval.types import NOTHING, Generate

_NAME_OF_VARIABLE = re.compile(r"[A-Z_][A-Z0-9]{0,15}(_[A-Z0-9]{1,15})*")
_KEY_NAMES = r"(api_?)?key|authorization|token|api_token"


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Options for requests to a server; times are in seconds, and prices are per million tokens.

    If ``temperature`` is None, the server chooses the temperature. ``max_tokens`` applies to requests that set no
    limit. The adapter adds ``stop`` to a request's stop texts. ``timeout`` limits one attempt. ``thoughts_back``
    selects the answers that the adapter sends back to the server with their thoughts, by default the answers with tool
    calls. ``given`` contains the names of the options that the user set.
    """

    base_url: str
    api_key_env: str
    system: str | None = None
    temperature: float | None = 0
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    stream: bool = False
    extra_body: Mapping[str, object] = field(default_factory=dict)
    price_input: float | None = None
    price_output: float | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_response_bytes: int = 8 * 2**20
    timeout: float = 3600
    thoughts_back: str | None = None
    given: frozenset[str] = frozenset()

    @property
    @abstractmethod
    def url(self) -> str:
        """The address that receives requests."""

    @property
    def root(self) -> str:
        """The address before the interface's paths."""
        return self.base_url

    @property
    def needs_key(self) -> bool:
        """False for plain http to this machine, because a local server seldom requires a key."""
        return self.base_url.startswith("https:") or not _is_loopback(urlsplit(self.base_url).hostname or "")

    def public(self) -> dict[str, object]:
        """Return the options that have a value, as JSON and without secrets."""
        values = {name: value for name, value in asdict(self).items() if value not in (None, (), {})}
        del values["given"]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @property
    def unnamed(self) -> frozenset[str]:
        """Request options that the user did not set; if a request does not set them either, the server decides."""
        names = {each.name for each in fields(self)} & {"temperature", "max_tokens_field"}
        return frozenset(names - self.given | ({"temperature"} if self.temperature is None else frozenset()))

    def stops(self, request: Generate) -> list[str]:
        """Return the request's stop texts, followed by those in the option ``stop``, without duplicates."""
        return [stop for stop in dict.fromkeys((*request.stop, *self.stop)) if stop]

    def whole(self, fields: Mapping[str, object], own: Mapping[str, object]) -> dict[str, object]:
        """Return ``fields`` without None values, overridden by ``extra_body`` and by ``own``, the request's options.

        If an option in ``own`` is None, the body omits it, and the server decides.
        """
        asked = {name: value for name, value in fields.items() if value is not None}
        unset = {name for name, value in own.items() if value is None}
        return {name: value for name, value in {**asked, **self.extra_body, **own}.items() if name not in unset}

    def cost(
        self, prompt_tokens: int | None, completion_tokens: int | None, usage: Mapping[str, object] = NOTHING
    ) -> float | None:
        """Return the price of the tokens; if there are no prices, return the ``cost`` in the server's ``usage``.

        Return None if neither the price nor the ``cost`` is known.
        """
        if self.price_input is None or self.price_output is None:
            stated = usage.get("cost")
            return float(stated) if is_number(stated) and stated >= 0 else None
        if prompt_tokens is None or completion_tokens is None:
            return None
        full = prompt_tokens * self.price_input + completion_tokens * self.price_output
        return (full - self.discount(prompt_tokens, usage)) / 1e6

    def discount(self, prompt_tokens: int, usage: Mapping[str, object]) -> float:
        """Return a million times the amount that the server's cache saves according to ``usage``."""
        return 0.0


Given = TypeVar("Given", bound=ServerOptions)


def read(adapter: str, kind: type[Given], checks: Mapping[str, Check], given: Mapping[str, object]) -> Given:
    """Check the options; raise a UsageError that names an invalid option and the expected value."""
    for name in given.keys() - checks.keys():
        _refuse_key(adapter, name, checks)
    options = kind(**checked(adapter, checks, given, show=_shown), given=frozenset(given))
    if (options.price_input is None) != (options.price_output is None):
        raise fault(adapter, "option price_input and price_output expected both or neither (0 if it is free)")
    return options


def temperature(highest: float) -> Check:
    """Accept a number from 0 to ``highest``, or 'default' (stored as None) for the server's default."""
    number = Number(0, highest)

    def check(value: Any) -> float | None:
        if value != "default" and not number.allows(value):
            raise ValueError(f"{number}, or 'default'")
        return None if value == "default" else value

    return check


def extra_body(example: str, owned: Collection[str], forbidden: Collection[str] = ()) -> Check:
    """Accept a table of JSON values for the body; reject secrets.

    Also reject ``owned`` names, which have separate options, and ``forbidden`` names, which change the response.
    """

    def check(value: Any) -> dict[str, object]:
        table(example)(value)
        if taken := sorted(value.keys() & {*owned}):
            raise ValueError(f"no {', '.join(taken)} in it: use the options with these names")
        if refused := sorted(value.keys() & {*forbidden}):
            raise ValueError(f"no {', '.join(refused)} in it: a request returns one completion")
        if name := _secret_name(value):
            raise ValueError(f"no {name} in it: name the variable of the key with api_key_env")
        try:
            fields: dict[str, object] = json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError, RecursionError):
            raise ValueError("a table of JSON values") from None
        return fields

    return check


def _base_url(value: Any) -> str:
    """Accept an http or https URL without user, query or fragment; remove a trailing slash."""
    expected = "an http or https URL without user, query or fragment, such as 'http://127.0.0.1:8000/v1'"
    if not isinstance(value, str) or not value.isprintable() or re.search(r"[\s\\]", value):
        raise ValueError(expected)
    try:
        parts = urlsplit(value)
        fine = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        fine = False
    if not fine or any(mark in value for mark in "@?#"):
        raise ValueError(expected)
    return value.rstrip("/")


def _environment_name(value: Any) -> str:
    """Accept the name of an environment variable, or '' for no variable."""
    if not isinstance(value, str):
        raise ValueError("the name of an environment variable")
    few_digits = len(value) <= 64 and sum(char.isdigit() for char in value) <= 4
    if not value or value in os.environ or (few_digits and _NAME_OF_VARIABLE.fullmatch(value)):
        return value
    raise ValueError("the name of the environment variable that holds the key, not a key")


def _stops(value: Any) -> tuple[str, ...]:
    """Accept a non-empty string, or a list of such strings."""
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(item, str) and item for item in texts):
        raise ValueError("a non-empty text or a list of them")
    return tuple(texts)


def _secret_name(value: Any, depth: int = 20) -> str:
    if isinstance(value, Mapping) and depth:
        own = next((name for name in value if isinstance(name, str) and is_secret_name(name)), "")
        return own or _secret_name(list(value.values()), depth - 1)
    if isinstance(value, list | tuple) and depth:
        return next((name for item in value if (name := _secret_name(item, depth - 1))), "")
    return ""


CHECKS: Mapping[str, Check] = MappingProxyType(
    {
        "base_url": _base_url,
        "api_key_env": _environment_name,
        "system": text,
        "top_p": Number(above=0, high=1).check,
        "max_tokens": Number(1, whole=True).check,
        "stop": _stops,
        "stream": flag,
        "price_input": Number(0).check,
        "price_output": Number(0).check,
        "requests_per_minute": Number(above=0).check,
        "tokens_per_minute": Number(above=0).check,
        "max_response_bytes": Number(1, whole=True).check,
        "timeout": Number(above=0).check,
        "thoughts_back": choice(*THOUGHTS_BACK),
    }
)
"""The checks of :class:`ServerOptions`, except for two options whose checks depend on the interface."""


def _refuse_key(adapter: str, name: str, checks: Mapping[str, Check]) -> None:
    """Raise UsageError if the unknown option ``name`` looks like an option for an API key, or like a key."""
    choices = f"(choices: {', '.join(sorted(checks))})"
    bare = re.sub(rf"^{adapter}_?|^open_?ai_?", "", name, flags=re.IGNORECASE)
    if re.fullmatch(_KEY_NAMES, bare, re.IGNORECASE):
        how = "a key is never an option: name its environment variable with api_key_env"
        raise fault(adapter, f"unknown option {name!r}; {how} {choices}")
    if not re.fullmatch(r"[A-Za-z_]{1,32}", name):
        raise fault(adapter, f"unknown option of {len(name)} characters {choices}")


def _shown(value: Any) -> str:
    """Return the repr of ``value`` if it cannot be an API key; otherwise, return a description."""
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
