"""Classify a server's errors by whether a retry may help."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any

from pytest_lmeval.errors import AdapterError, AdapterTimeout, RequestRefused, TransientError
from pytest_lmeval.types import Generate

_EXCERPT = 300
_LONGEST = 2000
_OF_ERRORS = ("message", "type", "code", "param")
_RETRIED = frozenset({408, 409, 429})
_OF_EVERY_REQUEST = frozenset({401, 402, 403, 404, 405})
_OF_THE_PROMPT = re.compile(rb"content.?(filter|policy)|context.?length|too.?long", re.IGNORECASE)
_OF_THOUGHTS = re.compile(r"reasoning_(content|details)|\b(redacted_)?(reasoning|thinking)\b(?!\.\w)")
_UNSUPPORTED = re.compile(r"unsupported|n[o']t support", re.IGNORECASE)
_REFUSES_FIELDS = frozenset({400, 422})
_SECONDS = re.compile(r"\d{1,9}(\.\d{1,9})?")


class AttemptTimeout(TransientError, AdapterTimeout):
    """An attempt took too long. The engine retries the request; the example times out if no retry succeeds."""


def worth_retrying(status: int) -> bool:
    """Return True if a retry may help after a reply with this HTTP ``status``."""
    return status in _RETRIED or 500 <= status <= 599


def refused(where: str, status: int, body: bytes, wait: float | None) -> AdapterError:
    """Return the error for a reply with a ``status`` other than 2xx; ``wait`` is the delay that the server demands."""
    message = f"{where}: {excerpt(body) or 'empty body'}"
    error: AdapterError
    if worth_retrying(status):
        error = TransientError(message, wait)
    elif _OF_THE_PROMPT.search(body):
        error = RequestRefused(message)
    else:
        error = AdapterError(message)
        # The bodies may differ, for example in the request id.
        error.cause = where if status in _OF_EVERY_REQUEST else ""
    error.status, error.said = status, _error_fields(body)
    return error


def with_hint(error: AdapterError, request: Generate, remedies: Mapping[str, str]) -> AdapterError:
    """Return ``error``; if the server refused a field of ``request``, add the option to set to the message.

    For each field that the adapter adds to requests, ``remedies`` holds the option, with a value, that avoids it.
    """
    hint = _hint(error, request, remedies) if error.status in _REFUSES_FIELDS else ""
    if hint:
        error.args = (f"{error}; {hint}",)
    return error


def _hint(error: AdapterError, request: Generate, remedies: Mapping[str, str]) -> str:
    text = f"{error.said.get('code')} {error.said.get('message')}" if error.said else str(error)
    named = str(error.said.get("param") or next((name for name in remedies if re.search(rf"\b{name}\b", text)), ""))
    # The author of a request has to change an option that the request names.
    if _UNSUPPORTED.search(text) and named in remedies and request.options.get(named) is None:
        return f"set --lm-adapter-arg={remedies[named]}, for a judge --lm-judge-arg={remedies[named]}"
    answers = not isinstance(request.prompt, str) and any(each.role == "assistant" for each in request.prompt)
    if answers and _OF_THOUGHTS.search(str(error)):
        return "for turns and lm.ask, thoughts_back=calls|always|never decides which thoughts go back"
    return ""


def _error_fields(body: bytes) -> dict[str, object]:
    """Return the message, type, code and param of the error object in ``body``; some servers wrap it in a list."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    fields = _first(fields)
    found = _first(fields.get("error", fields)) if isinstance(fields, dict) else None
    if isinstance(found, str):
        return {"message": found[:_LONGEST]}
    if not isinstance(found, dict):
        return {}
    kept = {name: found[name] for name in _OF_ERRORS if isinstance(found.get(name), str | int)}
    return {name: value[:_LONGEST] if isinstance(value, str) else value for name, value in kept.items()}


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


def excerpt(body: bytes) -> str:
    """Return the start of ``body`` as one printable line of at most 300 characters."""
    return one_line(body[: 8 * _EXCERPT].decode("utf-8", "replace"))


def one_line(text: str) -> str:
    """Return ``text`` as one printable line of at most 300 characters."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text[: 8 * _EXCERPT]).split())
    return line if len(line) <= _EXCERPT else f"{line[:_EXCERPT]}..."


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return the delay in seconds from the header ``Retry-After`` (seconds or a date) or ``Retry-After-ms``.

    Return None if neither header is valid, and 0 for a date in the past. ``now`` is a time in seconds since 1970.
    """
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _SECONDS.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    value = headers.get("Retry-After", "").strip()
    if _SECONDS.fullmatch(value):
        return float(value)
    moment = _http_date(value)
    return None if moment is None else max(0.0, moment - (time.time() if now is None else now))


def _http_date(value: str) -> float | None:
    from email.utils import mktime_tz, parsedate_tz

    try:
        parsed = parsedate_tz(value)
        return None if parsed is None else float(mktime_tz(parsed))
    except (ValueError, OverflowError, IndexError, TypeError):
        return None
