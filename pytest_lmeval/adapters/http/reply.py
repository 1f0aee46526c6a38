"""Parse any interface's replies as JSON, and describe replies that are not answers.

A retry may help after an empty body, a proxy's HTML page, or an error object that does not blame the request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pytest_lmeval.adapters.http.faults import excerpt, one_line, worth_retrying
from pytest_lmeval.adapters.http.secret import ApiKey
from pytest_lmeval.errors import AdapterError, TransientError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.records.checked import count as whole

_FAULTS_OF_THE_REQUEST = (
    *("invalid", "auth", "permission", "forbidden", "not_found", "not found", "unsupported", "quota", "billing"),
    *("content_filter", "content_policy", "context_length"),
)

# The keys that determine an answer, at any depth in a reply.
_READ = frozenset(
    {
        *("choices", "message", "delta", "content", "text", "refusal", "finish_reason", "error", "model", "usage"),
        *("tool_calls", "function", "name", "arguments", "reasoning_content", "reasoning", "thinking", "logprobs"),
        *("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "stop_reason", "input"),
    }
)


@dataclass(frozen=True, slots=True)
class Document:
    """A reply as JSON; error messages contain ``where`` and ``body``, with ``key`` masked."""

    fields: Mapping[str, object]
    where: str
    body: bytes
    key: ApiKey

    def error(self, what: str, *, kind: type[AdapterError] = AdapterError) -> AdapterError:
        """Return an error about this reply; ``what`` describes the fault."""
        return kind(f"{self.where}: {self.key.scrub(what)}: {excerpt(self.key.scrub_bytes(self.body)) or 'empty body'}")


def parse(body: bytes, where: str, key: ApiKey) -> Document:
    """Parse the reply as JSON; raise AdapterError unless it is an object without an error."""
    try:
        fields = decode(body.decode("utf-8-sig"))
    except RepeatedKey as repeated:
        raise Document({}, where, body, key).error(str(repeated)) from None
    except (ValueError, RecursionError):
        # An empty body, or a page from a proxy in front of the server.
        kind = TransientError if body.strip()[:1] in (b"", b"<") else AdapterError
        raise Document({}, where, body, key).error("invalid JSON", kind=kind) from None
    document = Document(fields if isinstance(fields, dict) else {}, where, body, key)
    if not isinstance(fields, dict):
        raise document.error(f"expected a JSON object, got {type(fields).__name__}")
    if error := fields.get("error"):
        raise document.error("error object", kind=TransientError if may_pass(error) else AdapterError)
    return document


class RepeatedKey(ValueError):
    """A key that affects the answer occurs twice in a JSON object, so its value is ambiguous."""


def once_each(pairs: list[tuple[str, Any]]) -> dict[str, object]:
    """Build a JSON object from ``pairs``; raise RepeatedKey if a key that affects the answer occurs twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        if twice := next((name for name in names if name in _READ and names.count(name) > 1), None):
            raise RepeatedKey(f"the reply has {twice!r} twice")
    return found


decode = json.JSONDecoder(object_pairs_hook=once_each).decode
"""Parses JSON; raises the errors of :func:`json.loads` and :func:`once_each`."""


def shown_name(model: object, longest: int = 200) -> str:
    """Return the model's name from a reply in printable form, or ""."""
    return one_line(model)[:longest] if isinstance(model, str) and model else ""


def may_pass(error: Any) -> bool:
    """Return True if a retry may help after an error object in a reply with a 2xx status."""
    if not isinstance(error, dict):
        return True
    codes = [error.get(name) for name in ("code", "status", "status_code")]
    numbers = [int(code) for code in codes if isinstance(code, int | str) and re.fullmatch(r"\d{3}", str(code))]
    if numbers:
        return worth_retrying(numbers[0])
    words = " ".join(str(error.get(name)) for name in ("type", "code")).lower()
    return not any(word in words for word in _FAULTS_OF_THE_REQUEST)


def usage_of(document: Document) -> Mapping[str, object]:
    """Return a reply's usage, or {} if it is missing; raise AdapterError if it is not an object."""
    usage = document.fields.get("usage") or {}
    if not isinstance(usage, dict):
        raise document.error(f"expected usage to be an object, got {type(usage).__name__}")
    return usage


def count(document: Document, name: str) -> int | None:
    """Return the count called ``name`` from the usage, or None; raise AdapterError for an invalid value."""
    try:
        return None if (value := usage_of(document).get(name)) is None else whole(name, value)
    except ValueError as error:
        raise document.error(f"usage: {error}") from None
