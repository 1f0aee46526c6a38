"""What each option may be: one small function per kind, from what the user gave to what the adapter uses.

They raise ValueError with what was expected, and never show the value: it may be a key in the wrong place.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from pytest_lmeval.redaction import is_secret_name

# Body fields with options of their own, and those that would change what a response is.
_OWNED = frozenset(
    {"model", "messages", "prompt", "temperature", "top_p", "stop", "seed", "logprobs"}
    | {"max_tokens", "max_completion_tokens", "stream", "stream_options"}
)
_FORBIDDEN = frozenset({"n", "best_of", "echo"})
_NAME_OF_VARIABLE = re.compile(r"[A-Z_][A-Z0-9]{0,15}(_[A-Z0-9]{1,15})*")


def base_url(value: Any) -> str:
    """Take an http or https URL without user, query or fragment, as given but for a trailing slash."""
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


def environment_name(value: Any) -> str:
    """Take the name of an environment variable, or '' for none."""
    if not isinstance(value, str):
        raise ValueError("the name of an environment variable")
    if not value or value in os.environ or (_NAME_OF_VARIABLE.fullmatch(value) and _few_digits(value)):
        return value
    raise ValueError("the name of the environment variable that holds the key, not a key")


def _few_digits(name: str) -> bool:
    return len(name) <= 64 and sum(char.isdigit() for char in name) <= 4


def text(value: Any) -> str:
    """Take any text."""
    if not isinstance(value, str):
        raise ValueError("text")
    return value


def flag(value: Any) -> bool:
    """Take true or false."""
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def choice(*choices: str) -> Callable[[Any], str]:
    """Take one of ``choices``."""

    def check(value: Any) -> str:
        if value not in choices:
            raise ValueError(" or ".join(map(repr, choices)))
        return str(value)

    return check


def number(low: float, high: float = math.inf, above: bool = False) -> Callable[[Any], float]:
    """Take a finite number from ``low`` (or only ``above`` it) to ``high``."""
    span = f"above {low:g}" if above else f"from {low:g}"
    limit = "" if high == math.inf else f" to {high:g}"

    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"a number {span}{limit}")
        if not low <= value <= high or (above and value == low):
            raise ValueError(f"a number {span}{limit}")
        return value

    return check


def temperature(value: Any) -> float | None:
    """Take a number from 0, or 'default' (None) to send none and leave it to the server."""
    if value == "default":
        return None
    try:
        return number(0)(value)
    except ValueError as error:
        raise ValueError(f"{error}, or 'default'") from None


def integer(low: int) -> Callable[[Any], int]:
    """Take a whole number from ``low``, of 64 bits."""

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value < 2**63:
            raise ValueError(f"a whole number from {low}")
        return value

    return check


def stops(value: Any) -> tuple[str, ...]:
    """Take one text or several, none of them empty."""
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(item, str) and item for item in texts):
        raise ValueError("a non-empty text or a list of them")
    return tuple(texts)


def extra_body(value: Any) -> dict[str, Any]:
    """Take a table of JSON values for the body; no field that has an option, changes the response, or is a secret."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ValueError("a table such as {top_k = 50}")
    if owned := sorted(_OWNED & value.keys()):
        raise ValueError(f"no {', '.join(owned)} in it: there are options for these")
    if forbidden := sorted(_FORBIDDEN & value.keys()):
        raise ValueError(f"no {', '.join(forbidden)} in it: one whole completion is asked for at a time")
    if name := _secret_name(value):
        raise ValueError(f"no {name} in it: a key is named with api_key_env, never given")
    try:
        fields: dict[str, Any] = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise ValueError("a table of JSON values") from None
    return fields


def _secret_name(value: Any, depth: int = 20) -> str:
    if isinstance(value, Mapping) and depth:
        own = next((name for name in value if isinstance(name, str) and is_secret_name(name)), "")
        return own or _secret_name(list(value.values()), depth - 1)
    if isinstance(value, list | tuple) and depth:
        return next((name for item in value if (name := _secret_name(item, depth - 1))), "")
    return ""
