"""Represent a client's request in any interface, and the paths to forward to the adapter's server."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_lmeval.errors import RequestRefused, UsageError
from pytest_lmeval.numbers import is_number
from pytest_lmeval.types import Message

_ALWAYS = ("POST /embeddings", "POST /moderations", "POST /rerank", "GET /models")
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_SEGMENT = r"(?!\.{1,2}(/|$))[A-Za-z0-9_.:~-]+"
_GIVEN = re.compile(rf"(?:({'|'.join(_METHODS)}) +)?/?((?:\*|{_SEGMENT})(?:/(?:\*|{_SEGMENT}))*)")
_PIECES = 8
_COMPARED = ("temperature", "top_p", "seed")
_NESTED = ("reasoning", "thinking", "output_config")
_LONGEST_VALUE = 60
Talks = dict[str, tuple[Message, ...]]
"""The conversations of an example that later requests may continue, by the id of the last reply."""


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A client's request; ``fields`` are fields of :class:`Generate` other than the messages.

    ``model`` is the model that the request names, and ``dropped`` names the fields that adapters cannot receive.
    ``given`` is the body, for replies that repeat its fields. ``talk`` is the conversation that a later request may
    continue, or None if the conversation is not stored. ``limit`` is the name of the body's field for the token limit,
    if servers have several names for this field.
    """

    messages: tuple[Message, ...]
    fields: Mapping[str, Any]
    model: str
    streams: bool
    wants_usage: bool = False
    dropped: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    talk: tuple[Message, ...] | None = None
    limit: str = ""

    @property
    def named(self) -> dict[str, float | str]:
        """The request options that comparisons use; ``schema`` is a hash of the requested answer format."""
        options = self.fields["options"]
        more = {name: value for name in _NESTED if isinstance(value := options.get(name), Mapping)}
        reasoning, thinking, output = (more.get(name, {}) for name in _NESTED)
        known = {name: options.get(name) for name in _COMPARED} | {
            "max_tokens": self.fields["max_tokens"],
            "reasoning_effort": options.get("reasoning_effort") or reasoning.get("effort") or output.get("effort"),
            "thinking": thinking.get("budget_tokens") or thinking.get("type"),
            "schema": _schema(options.get("response_format") or output.get("format")),
        }
        return {name: _short(value) for name, value in known.items() if value is not None}


class ForwardPaths:
    """The methods and paths to forward; ``given`` contains the entries of the ini option ``lm_forward_paths``.

    An entry is ``METHOD PATH``, or only ``PATH`` for POST. A ``*`` matches one path segment. Raise UsageError for an
    invalid entry.
    """

    def __init__(self, given: Iterable[str] = ()) -> None:
        self.known = (*_ALWAYS, *map(_path, given))
        self._patterns = [re.compile(re.escape(each).replace(r"\*", _SEGMENT)) for each in self.known]

    def has(self, method: str, path: str) -> bool:
        """Return True for a request to forward; a path with an escape or ``..`` is never forwarded."""
        return any(pattern.fullmatch(f"{method} {path}") for pattern in self._patterns)


def refused(status: int, message: str) -> RequestRefused:
    """Return an error for a rejected request."""
    # Keep it short: tables of failures only show the beginning.
    error = RequestRefused(f"lm.base_url: {message}")
    error.status, error.said = status, {"message": message}
    return error


def pieces(text: str) -> Iterator[str]:
    """Split text into at most eight pieces."""
    size = max(1, -(-len(text) // _PIECES))
    for start in range(0, len(text), size):
        yield text[start : start + size]


def _short(value: object) -> float | str:
    return value if is_number(value) else str(value)[:_LONGEST_VALUE]


def _schema(form: object) -> str | None:
    """Return a hash of a format's schema, the format's kind if it has no schema, or None if there is no format."""
    if not isinstance(form, Mapping) or form.get("type") in (None, "text"):
        return None
    schema = form.get("json_schema", form.get("schema"))
    text = None if schema is None else json.dumps(schema, sort_keys=True)
    return str(form["type"]) if text is None else hashlib.sha256(text.encode("ascii")).hexdigest()[:12]


def _path(line: str) -> str:
    found = _GIVEN.fullmatch(line.strip())
    if found is None:
        expected = "a path below the server's address, such as completions, GET models/* or POST audio/speech"
        raise UsageError(f"ini lm_forward_paths: expected {expected}, got {line!r:.80}")
    return f"{found[1] or 'POST'} /{found[2]}"
