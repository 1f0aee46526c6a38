"""The request of a client, in any interface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_lmeval.errors import RequestRefused
from pytest_lmeval.types import Message

_PIECES = 8
Talks = dict[str, tuple[Message, ...]]
"""The conversations of one example that later requests may continue, by the id of the last reply."""


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A request of a client: messages, further ``fields`` of :class:`Generate`, and the form of the answer.

    ``model`` is the model it names; ``dropped`` names the fields that no request to an adapter has. ``given`` is the
    body, for replies that repeat its fields. ``talk`` is the conversation a later request may continue after the
    answer, None if it may not.
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
    """Return the error of a refused request."""
    # Keep it short: a table of failures shows the beginning.
    error = RequestRefused(f"lm.base_url: {message}")
    error.status, error.said = status, {"message": message}
    return error


def pieces(text: str) -> Iterator[str]:
    """Yield a text in a few pieces."""
    size = max(1, -(-len(text) // _PIECES))
    for start in range(0, len(text), size):
        yield text[start : start + size]
