"""What a run reads of an adapter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.redaction import SHORTEST_IN_ANSWERS, Scrubber, is_secret_name, secrets_among

LARGEST_WINDOW = 1_000_000
"""Requests that an adapter may want to know together, or have in flight."""
ANSWERING_METHODS = ("complete", "generate_requests", "generate", "loglikelihood")


def check_adapter(adapter: Any, spec: str) -> None:
    """Raise UsageError unless ``adapter`` has one of the answering methods."""
    if isinstance(adapter, str):
        raise UsageError(f"expected an adapter, got the name {adapter!r}: make_adapter({adapter!r}) makes one")
    if not any(callable(getattr(adapter, method, None)) for method in ANSWERING_METHODS):
        wanted = ", ".join(ANSWERING_METHODS)
        raise UsageError(f"adapter {spec!r} is a {type(adapter).__name__} without any of the methods {wanted}")
    for attribute in ("request_window", "requests_in_flight"):
        if getattr(adapter, attribute, None) is not None:
            wanted_requests(adapter, attribute)


def wanted_requests(adapter: Any, attribute: str) -> int:
    """Return how many requests an adapter wants by ``attribute``; raise UsageError for what is no such number."""
    wanted = getattr(adapter, attribute)
    if isinstance(wanted, bool) or not isinstance(wanted, int) or not 1 <= wanted <= LARGEST_WINDOW:
        expected = f"expected a whole number from 1 to {LARGEST_WINDOW}"
        raise UsageError(f"adapter {adapter_name(adapter)}: {attribute} is {wanted!r:.80}; {expected}")
    return wanted


def adapter_name(adapter: Any) -> str:
    """Return the adapter's ``name``, or its class's where it has none, as text without control characters."""
    name = getattr(adapter, "name", None)
    text = name if isinstance(name, str) and name else type(adapter).__name__
    return "".join(char if char.isprintable() else "?" for char in text)


def scrubber_of_objects(*adapters: Any) -> Scrubber:
    """Return what hides the secrets that adapters hold: ``known_secrets``, and attributes such as ``_token``."""
    scrubber = Scrubber.of_options(*map(_held, adapters))
    scrubber.learn(secret for adapter in adapters for secret in known_secrets(adapter))
    return scrubber


def secrets_of(adapter: Any) -> list[str]:
    """Return the secrets that an adapter holds; of attributes those that are no common words."""
    held = secrets_among(_held(adapter))
    return [*known_secrets(adapter), *(secret for secret in held if len(secret) >= SHORTEST_IN_ANSWERS)]


def known_secrets(adapter: Any) -> Iterable[str]:
    """Return what an adapter says is to be hidden; raise UsageError where that is no list of texts."""
    given = getattr(adapter, "known_secrets", ())
    if not isinstance(given, list | tuple | set | frozenset) or not all(isinstance(one, str) for one in given):
        raise UsageError(
            f"adapter {adapter_name(adapter)}: known_secrets is {type(given).__name__}; expected a list of texts"
        )
    return given


def _held(adapter: Any) -> Mapping[str, Any]:
    # Of what is not named like a secret, texts alone: a model's tables are no place for a password, and are long.
    held: Mapping[str, Any] = getattr(adapter, "__dict__", {})
    return {name: one for name, one in held.items() if isinstance(one, str) or is_secret_name(name)}
