"""What a judge's reply says: the label or the number that it was asked for, or nothing."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

_Value = TypeVar("_Value")
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL)
NUMBER = re.compile(r"[-+]?[0-9]{1,15}(?:\.[0-9]{1,15})?")
_AROUND = " \t\r\n\"'`*."


def read_label(reply: str, labels: Sequence[str]) -> str | None:
    """Return the label that is all of the reply, or is in it as JSON: ``{"label": ...}``; None for anything else.

    Quotes, asterisks and a full stop around it do not matter, nor does case where no two labels differ by it alone. A
    label inside a sentence does not count: the sentence may well say that it is not the one.
    """
    said = _member(reply, "label")
    text = said if isinstance(said, str) else reply
    for candidate in (text.strip(), text.strip(_AROUND)):
        if candidate in labels:
            return candidate
    folded = [label for label in labels if label.casefold() == text.strip(_AROUND).casefold()]
    return folded[0] if len(folded) == 1 else None


def read_number(reply: str, low: float, high: float) -> float | None:
    """Return the number that is all of the reply, or is in it as JSON: ``{"score": ...}``; None for anything else.

    None also for a number outside of ``low`` to ``high``: it is not clear what it was meant to say.
    """
    said = _member(reply, "score")
    if isinstance(said, bool):
        return None
    if isinstance(said, int | float):
        number = float(said)
    else:
        text = (said if isinstance(said, str) else reply).strip(_AROUND)
        if not NUMBER.fullmatch(text):
            return None
        number = float(text)
    return number if math.isfinite(number) and low <= number <= high else None


def read_grade(reply: str, levels: Sequence[float]) -> tuple[float, str] | None:
    """Return the level and the reason in a reply that is ``{"reason": ..., "score": ...}``; None for anything else.

    All of the reply is that object, which may be fenced: an object inside a sentence may be a quotation. None also for
    a number that is no level, and for a key that is there twice.
    """
    said = object_in(reply)
    level = None if said is None else _level(said.get("score"), levels)
    return None if said is None or level is None else _with_reason(level, said)


def read_judgment(reply: str, labels: Sequence[str]) -> tuple[str, str] | None:
    """Return the label and the reason in a reply that is ``{"reason": ..., "label": ...}``, read as a grade is."""
    said = object_in(reply)
    label = None if said is None else said.get("label")
    found = read_label(label, labels) if isinstance(label, str) else None
    return None if said is None or found is None else _with_reason(found, said)


def read_said(reply: str, *, may_end: bool) -> tuple[str, bool] | None:
    """Return the text and whether it is the last in a reply that is ``{"say": ..., "done": ...}``, read as a grade is.

    None also for a text without words, unless it is the last, and for the last one where the talk ``may_end`` not yet.
    """
    said = object_in(reply)
    if said is None or not isinstance(said.get("say"), str) or not isinstance(said.get("done"), bool):
        return None
    text, done = said["say"].strip(), said["done"]
    return (text, done) if (may_end if done else text) else None


def object_in(reply: str) -> dict[str, Any] | None:
    """Return the JSON object that is all of a reply, fenced or not; None for anything else, and for a key twice."""
    fenced = _FENCED.fullmatch(reply.strip())
    text = (fenced[1] if fenced else reply).strip()
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _with_reason(value: _Value, said: Mapping[str, Any]) -> tuple[_Value, str] | None:
    reason = said.get("reason", "")
    return (value, reason.strip()) if isinstance(reason, str) else None


def _level(said: object, levels: Sequence[float]) -> float | None:
    if isinstance(said, str) and NUMBER.fullmatch(said.strip()):
        said = float(said)
    is_number = isinstance(said, int | float) and not isinstance(said, bool)
    return next((level for level in levels if level == said), None) if is_number else None


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key twice")
    return found


def _member(reply: str, name: str) -> object:
    fenced = _FENCED.fullmatch(reply.strip())
    text = fenced[1] if fenced else reply
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value.get(name) if isinstance(value, dict) else None
