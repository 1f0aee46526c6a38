"""What a judge's reply says: the label or the number that it was asked for, or nothing."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL)
_NUMBER = re.compile(r"[-+]?[0-9]{1,15}(?:\.[0-9]{1,15})?")
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
        if not _NUMBER.fullmatch(text):
            return None
        number = float(text)
    return number if math.isfinite(number) and low <= number <= high else None


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
