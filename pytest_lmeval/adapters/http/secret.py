"""Read the API key from an environment variable, send it to the server, and never show it."""

from __future__ import annotations

from typing import Any, NoReturn

from pytest_lmeval.adapters.resolve import making
from pytest_lmeval.errors import UsageError
from pytest_lmeval.redaction import HIDDEN, Scrubber


class ApiKey:
    """An API key, which may be empty; only :meth:`header` and :meth:`known` return its text."""

    __slots__ = ("_scrubber", "_value")

    def __init__(self, value: str) -> None:
        self._value = value
        self._scrubber = Scrubber([value])

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return f"ApiKey({HIDDEN})" if self._value else "ApiKey(none)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an API key is not pickled; make the adapter again from its model and options")

    def header(self, scheme: str = "") -> str:
        """Return the header's value, which contains the key, as a string with a masked repr."""
        return _Masked(f"{scheme}{self._value}")

    def known(self) -> tuple[str, ...]:
        """Return the secrets that a run must hide: the key, unless it is empty."""
        return (self._value,) if self._value else ()

    def scrub(self, text: str) -> str:
        """Mask the key in a message."""
        return self._scrubber.scrub(text)

    def scrub_bytes(self, data: bytes, cut_off: bool = False) -> bytes:
        """Mask the key in ``data``; drop the end of ``cut_off`` data, because the end may be part of the key."""
        # Latin-1 keeps every byte of any encoding.
        data = self.scrub(data.decode("latin-1")).encode("latin-1")
        return data[: max(0, len(data) - 2 * len(self._value))] if cut_off else data

    def stands_in(self, value: Any) -> bool:
        """Return True if the key occurs in the repr of ``value``."""
        text = repr(value)
        return self._scrubber.scrub_answer(text) != text


class _Masked(str):
    """A string with a masked repr, because tracebacks may show the repr of local variables."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(HIDDEN)


def read_key(adapter: str, variable: str, needed: bool) -> ApiKey:
    """Read the key from the environment variable ``variable``; if ``variable`` is '', return an empty key.

    Raise UsageError if a ``needed`` key is missing, or if a header cannot contain the key.
    """
    value = (making().read(variable) or "").strip() if variable else ""
    if needed and variable and not value and not making().offline:
        raise UsageError(
            f"adapter {adapter!r}: environment variable {variable} holds no API key; set it, name another variable "
            "with api_key_env=NAME, or send no key with api_key_env=''"
        )
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise UsageError(
            f"adapter {adapter!r}: environment variable {variable} contains blanks or characters that no key contains"
        )
    return ApiKey(value)
