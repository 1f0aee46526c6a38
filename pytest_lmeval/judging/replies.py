"""Read the label or the number in a judge's reply, or nothing."""

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
    """Return the label that is the whole reply, or is in it as JSON: ``{"label": ...}``; None for anything else.

    Quotes, asterisks and a full stop around it do not matter, nor does case if no two labels differ by it alone. A
    label inside a sentence does not count: the sentence may reject it.
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
    """Return the number that is the whole reply, or is in it as JSON: ``{"score": ...}``; None for anything else.

    A number outside of ``low`` to ``high`` gives None, too: its meaning is unclear.
    """
    number = number_of(_value(reply, "score"))
    return number if number is not None and low <= number <= high else None


def number_of(value: object) -> float | None:
    """Return a finite number that is a JSON value, or the whole of a text; None for anything else."""
    if isinstance(value, str):
        text = value.strip(_AROUND)
        return float(text) if NUMBER.fullmatch(text) else None
    return float(value) if is_number(value) else None


def reason_in(reply: Mapping[str, object]) -> str | None:
    """Return the reason of a reply, "" without one; None for one that is neither a text nor a list of texts."""
    reason = reply.get("reason")
    texts = reason if isinstance(reason, list) else [] if reason is None else [reason]
    return None if any(not isinstance(text, str) for text in texts) else " ".join(map(str.strip, texts))


def object_in(reply: str) -> dict[str, Any] | None:
    """Return the JSON object of a reply; None for anything else, for two candidates, and for a duplicate key.

    The object is the whole reply, or the whole of its one fenced block, with any prose around that has no brace. An
    object inside a sentence may be a quotation.
    """
    text = _unfenced(reply)
    if not text.startswith("{"):
        return None
    for each in (text, _APOSTROPHE.sub(r"\1'", text)):
        try:
            # Judges break lines within texts, which JSON does not allow.
            value = json.loads(each, object_pairs_hook=_once, strict=False)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else None
    return None


def _value(reply: str, name: str) -> object:
    """Return the member ``name`` of a reply in JSON, else the text of the reply."""
    found = object_in(reply)
    return _unfenced(reply) if found is None else found.get(name)


def _unfenced(reply: str) -> str:
    """Return the content of the one fenced block of a reply; a reply without one unchanged."""
    text = reply.removeprefix("\ufeff").strip()
    fences = [*_FENCE.finditer(text)]
    if text.startswith("{") or len(fences) < 2:
        return text
    first, last = fences[0], fences[-1]
    outside = text[: first.start()] + text[last.end() :]
    body = text[first.end() : last.start()]
    # Prose may quote another verdict, and more than one block may hold it.
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
