"""What an unquoted word of YAML stands for: the core schema of YAML 1.2, a little stricter."""

from __future__ import annotations

import math
import re

_WORDS = {"": None, "~": None, "null": None, "Null": None, "NULL": None, "true": True, "True": True, "TRUE": True} | {
    "false": False,
    "False": False,
    "FALSE": False,
}
_INTEGER = re.compile(r"[-+]?[0-9]{1,4000}")
_BASED = re.compile(r"0o[0-7]{1,2000}|0x[0-9a-fA-F]{1,2000}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")


def plain_value(text: str) -> str | int | float | bool | None:
    """Return the value of an unquoted scalar; raise ValueError where it means one thing here and another elsewhere.

    Booleans are ``true`` and ``false`` alone: ``yes``, ``no``, ``on`` and ``off`` are text, as are dates.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _LEADING_ZERO.fullmatch(text):
        raise ValueError(f"{text} may be read as an octal number; write it in quotes, or without the zero")
    if _INTEGER.fullmatch(text):
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f"{text} is not a finite number; write it in quotes if it is text")
    if _FLOAT.fullmatch(text):
        return _finite(text)
    return text


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too large for a number")
    return number
