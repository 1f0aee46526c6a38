"""Whether two answers to MATH are the same text, once spellings of LaTeX that mean the same are made one."""

from __future__ import annotations

import re

from pytest_lmeval.metrics.parts.texts import closing_brace

_REPLACED = (
    ("\n", ""),
    ("\\!", ""),
    ("\\\\", "\\"),
    ("tfrac", "frac"),
    ("dfrac", "frac"),
    ("\\left", ""),
    ("\\right", ""),
    ("^{\\circ}", ""),
    ("^\\circ", ""),
    ("\\$", ""),
)
_ZEROS = (("\\%", ""), (" .", " 0."), ("{.", "{0."))
_NAME = re.compile(r"[a-zA-Z]\w*$")
_TEXT = "\\text{"


def is_same_text(first: str, second: str) -> bool:
    """Tell whether the two read the same in their plain form."""
    return _plain(first) == _plain(second)


def _plain(text: str) -> str:
    for old, new in _REPLACED:
        text = text.replace(old, new)
    text = _without_units(text)
    for old, new in _ZEROS:
        text = text.replace(old, new)
    if not text:
        return text
    text = _right_side(f"0{text}" if text[0] == "." else text)
    text = re.sub(r"\\sqrt([^{])", r"\\sqrt{\1}", text).replace(" ", "")
    text = _with_braces(text)
    return re.sub(r"\b0(?=\d)", "", _as_fraction("\\frac{1}{2}" if text == "0.5" else text))


def _without_units(text: str) -> str:
    before, found, behind = text.partition(_TEXT)
    if not found:
        return text
    if _TEXT in behind:
        return before
    end = closing_brace(behind, 0)
    return before.strip() or behind[end + 1 :].strip() or behind[:end].strip()


def _right_side(text: str) -> str:
    *names, last = (part.strip() for part in text.split("="))
    if len(names) == 1 and len(names[0]) <= 2:
        return last
    if len(names) > 1 and all(len(name) <= 2 and _NAME.match(name) for name in names):
        return last
    return text


def _with_braces(text: str) -> str:
    head, *parts = text.split("\\frac")
    if any(len(part) == 1 and part != "{" for part in parts):
        return text
    return head + "".join(f"\\frac{_braced(part)}" for part in parts)


def _braced(part: str) -> str:
    if part[:1] in ("", "{"):
        return part
    top, bottom, rest = part[0], part[1], part[2:]
    return f"{{{top}}}{{{rest}" if bottom == "{" else f"{{{top}}}{{{bottom}}}{rest}"


def _as_fraction(text: str) -> str:
    parts = re.fullmatch(r"(-?[1-9]\d*|0)/(-?[1-9]\d*|0)", text)
    return f"\\frac{{{parts[1]}}}{{{parts[2]}}}" if parts else text
