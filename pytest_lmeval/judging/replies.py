"""Read a judge's reply: the label or the number that it was asked for, or nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from pytest_lmeval.numbers import is_number

NUMBER = re.compile(r"[-+]?[0-9]{1,15}(?:\.[0-9]{1,15})?")
_AROUND = " \t\r\n\"'`*."
_FENCE = re.compile(r"`{3,}")
_INFO = re.compile(r"[ \t]*[\w+.-]*[ \t]*")
_APOSTROPHE = re.compile(r"(?<!\\)((?:\\\\)*)\\'")


def read_label(reply: str, labels: Sequence[str]) -> str | None:
    """Return the label that is all of the reply, or is in it as JSON: ``{"label": ...}``; None for anything else.

    Quotes, asterisks and a full stop around it do not matter, nor does case if no two labels differ by it alone. A
    label inside a sentence does not count: the sentence may well say that it is not the one.
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
    """Return the number that is all of the reply, or is in it as JSON: ``{"score": ...}``; None for anything else.

    None also for a number outside of ``low`` to ``high``: it is not clear what it was meant to say.
    """
    number = number_of(_value(reply, "score"))
    return number if number is not None and low <= number <= high else None


def number_of(value: object) -> float | None:
    """Return a finite number that a JSON value is, or that is all of its text; None for anything else."""
    if isinstance(value, str):
        text = value.strip(_AROUND)
        return float(text) if NUMBER.fullmatch(text) else None
    return float(value) if is_number(value) else None


def reason_in(said: dict[str, Any]) -> str | None:
    """Return the reason of a reply, "" without one; None for one that is neither a text nor a list of texts."""
    reason = said.get("reason")
    texts = reason if isinstance(reason, list) else [] if reason is None else [reason]
    return " ".join(text.strip() for text in texts) if all(isinstance(text, str) for text in texts) else None


def object_in(reply: str) -> dict[str, Any] | None:
    """Return the JSON object of a reply; None for anything else, for two candidates, and for a key that is there twice.

    The object is all of the reply, or all of its one fenced block, with any prose around that has no brace. An object
    inside a sentence may be a quotation.
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
    """Return the member called ``name`` of a reply in JSON, else the text of the reply."""
    said = object_in(reply)
    return _unfenced(reply) if said is None else said.get(name)


def _unfenced(reply: str) -> str:
    """Return what the one fenced block of a reply holds; a reply without one as it is."""
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
        raise ValueError("a key twice")
    return found
