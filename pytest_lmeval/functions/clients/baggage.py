"""Write and read an example's entry in the W3C ``baggage`` header, which services copy from request to request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import unquote

HEADER = "baggage"
_ENTRY = "lmeval.example"


def header_of(token: str) -> dict[str, str]:
    """Return the header that assigns a request to the example with ``token``."""
    return {HEADER: f"{_ENTRY}={token}"}


def tokens_in(values: Iterable[str]) -> set[str]:
    """Return the example tokens in the header's values."""
    return {unquote(entry.partition(";")[0].partition("=")[2].strip()) for entry in _entries(values) if _is_ours(entry)}


def without_tokens(values: Iterable[str]) -> str:
    """Return the header's value without examples' entries, or "" if the header has no other entry."""
    return ",".join(entry for entry in _entries(values) if not _is_ours(entry))


def _entries(values: Iterable[str]) -> Iterator[str]:
    for value in values:
        yield from filter(None, map(str.strip, value.split(",")))


def _is_ours(entry: str) -> bool:
    return unquote(entry.partition("=")[0].strip()) == _ENTRY
