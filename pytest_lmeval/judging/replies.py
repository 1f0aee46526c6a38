"""Read the label or the number in a judge's reply; refuse ambiguous replies."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.numbers import is_number

NUMBER = re.compile(r"[-+]?[0-9]{1,15}(?:\.[0-9]{1,15})?")
_AROUND = " \t\r\n\"'`*."
_FENCE = re.compile(r"`{3,}")
_INFO = re.compile(r"[ \t]*[\w+.-]*[ \t]*")
_APOSTROPHE = re.compile(r"(?<!\\)((?:\\\\)*)\\'")


def read_label(reply: str, labels: Sequence[str]) -> str | None:
    """Return the label that is the whole reply or the value in ``{"label": ...}``, or None for any other reply.

    Ignore quotes, asterisks and full stops around the label, and case if no two labels differ only in case. A label
    inside a sentence does not count, because the sentence may reject it.
    """
    text = _value(reply, "label")
    if not isinstance(text, str):
        return None
    for candidate in (text.strip(), text.strip(_AROUND)):
        if candidate in labels:
            return candidate
    folded = [label for label in labels if label.casefold() == text.strip(_AROUND).casefold()]
    return folded[0] if len(folded) == 1 else None


def read_number(reply: str, low: float, high: float) -> float | None:
    """Return the number that is the whole reply or the value in ``{"score": ...}``, or None for any other reply.

    A number below ``low`` or above ``high`` also gives None, because its meaning is unclear.
    """
    number = number_of(_value(reply, "score"))
    return number if number is not None and low <= number <= high else None


def number_of(value: object) -> float | None:
    """Return a finite number that is a JSON value or a whole string, or None for any other value."""
    if isinstance(value, str):
        text = value.strip(_AROUND)
        return float(text) if NUMBER.fullmatch(text) else None
    return float(value) if is_number(value) else None


def reason_in(reply: Mapping[str, object]) -> str | None:
    """Return the reason in a reply, "" without one, or None if it is neither a string nor a list of strings."""
    reason = reply.get("reason")
    texts = reason if isinstance(reason, list) else [] if reason is None else [reason]
    return None if any(not isinstance(text, str) for text in texts) else " ".join(map(str.strip, texts))


def object_in(reply: str) -> dict[str, Any] | None:
    """Return the JSON object in a reply, or None if there is no object, more than one, or a duplicate key.

    The object must be the whole reply, or the whole content of its only fenced block. Text around the block must not
    contain a brace. An object inside a sentence may be a quotation.
    """
    text = _unfenced(reply)
    if not text.startswith("{"):
        return None
    for each in (text, _APOSTROPHE.sub(r"\1'", text)):
        try:
            # Judges write line breaks within strings, which JSON does not allow.
            value = json.loads(each, object_pairs_hook=_once, strict=False)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else None
    return None


def _value(reply: str, name: str) -> object:
    """Return the member ``name`` of a reply in JSON, or else the text of the reply."""
    found = object_in(reply)
    return _unfenced(reply) if found is None else found.get(name)


def _unfenced(reply: str) -> str:
    """Return the content of the only fenced block in a reply, or else the reply."""
    text = reply.removeprefix("\ufeff").strip()
    fences = [*_FENCE.finditer(text)]
    if text.startswith("{") or len(fences) < 2:
        return text
    first, last = fences[0], fences[-1]
    outside = text[: first.start()] + text[last.end() :]
    body = text[first.end() : last.start()]
    # Text around the block may quote another verdict, and so may a second block.
    if first[0] != last[0] or "{" in outside or (outside and len(fences) > 2):
        return text
    inside = body[match.end() :] if (match := _INFO.match(body)) else body
    if outside:
        return inside.strip() if inside.lstrip().startswith("{") else text
    return inside.strip() if inside.lstrip().startswith(("{", "\r", "\n")) else text


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a duplicate key")
    return found
