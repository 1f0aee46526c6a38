"""A client's request, in any of the interfaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_lmeval.errors import RequestRefused
from pytest_lmeval.types import Message

_PIECES = 8
Talks = dict[str, tuple[Message, ...]]
"""The conversations of one example that a later request may go on with, by the id of the last reply."""


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """What a client asks for: messages, the other ``fields`` of :class:`Generate`, and how it wants the answer.

    ``model`` is the name that it gives; ``dropped`` names what it sent and no request to an adapter has. ``given`` are
    the fields of the body, for replies that repeat them. ``talk`` is what a later request goes on with, after the
    answer; None where there will be none.
    """

    messages: tuple[Message, ...]
    fields: Mapping[str, Any]
    model: str
    streams: bool
    wants_usage: bool = False
    dropped: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    talk: tuple[Message, ...] | None = None


def refused(status: int, message: str) -> RequestRefused:
    """Return the error of a request that nobody is asked."""
    # Short: a table of failures shows the beginning.
    error = RequestRefused(f"lm.base_url: {message}")
    error.status, error.said = status, {"message": message}
    return error


def pieces(text: str) -> Iterator[str]:
    """Yield a text in a few pieces."""
    size = max(1, -(-len(text) // _PIECES))
    for start in range(0, len(text), size):
        yield text[start : start + size]
