"""What went wrong between here and the server, and whether asking again may help."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping

from pytest_lmeval.errors import AdapterError, AdapterTimeout, RequestRefused, TransientError

_EXCERPT = 300
_LONGEST = 2000
_OF_ERRORS = ("message", "type", "code", "param")
_RETRIED = frozenset({408, 409, 429})
_OF_EVERY_REQUEST = frozenset({401, 402, 403, 404, 405})
_OF_THE_PROMPT = re.compile(rb"content.?(filter|policy)|context.?length|too.?long", re.IGNORECASE)
_SECONDS = re.compile(r"\d{1,9}(\.\d{1,9})?")


class AttemptTimeout(TransientError, AdapterTimeout):
    """An attempt that took too long: asked again, and a timeout of its example if that does not help."""


def worth_retrying(status: int) -> bool:
    """Tell whether a request that got ``status`` may be sent again."""
    return status in _RETRIED or 500 <= status <= 599


def refused(where: str, status: int, body: bytes, wait: float | None) -> AdapterError:
    """Return the error of a reply with a ``status`` other than 2xx; ``wait`` is what it asked for, in seconds."""
    error = _refused(where, status, body, wait)
    error.status, error.said = status, said_in(body)
    return error


def said_in(body: bytes) -> dict[str, object]:
    """Return message, type, code and param of the error object in ``body``, as far as they are there."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    found = fields.get("error", fields) if isinstance(fields, dict) else None
    if isinstance(found, str):
        return {"message": found[:_LONGEST]}
    if not isinstance(found, dict):
        return {}
    kept = {name: found[name] for name in _OF_ERRORS if isinstance(found.get(name), str | int)}
    return {name: value[:_LONGEST] if isinstance(value, str) else value for name, value in kept.items()}


def _refused(where: str, status: int, body: bytes, wait: float | None) -> AdapterError:
    message = f"{where}: {excerpt(body) or 'empty body'}"
    if worth_retrying(status):
        return TransientError(message, wait)
    if _OF_THE_PROMPT.search(body):
        return RequestRefused(message)
    error = AdapterError(message)
    # The bodies may differ, such as in the id of the request.
    error.cause = where if status in _OF_EVERY_REQUEST else ""
    return error


def excerpt(body: bytes) -> str:
    """Return the beginning of ``body`` as one printable line of at most 300 characters."""
    return one_line(body[: 8 * _EXCERPT].decode("utf-8", "replace"))


def one_line(text: str) -> str:
    """Return ``text`` as one printable line of at most 300 characters."""
    line = text[: 8 * _EXCERPT]
    if not line.isprintable():
        line = "".join(char if char.isprintable() else " " for char in line)
    line = " ".join(line.split())
    return line if len(line) <= _EXCERPT else f"{line[:_EXCERPT]}..."


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return the seconds that the server asks to wait, from ``Retry-After`` (seconds or a date) or its ``-ms`` form.

    None where there is no such header or it means nothing; a date in the past is 0. ``now`` is seconds since 1970.
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
