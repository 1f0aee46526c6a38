r"""The final answer in a solution, and its outer form: a value, a list, a tuple or interval, a relation; its unit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from pytest_lmeval.metrics.parts.math_parse import NotMath, Parsed, parse_math

_SPACING = re.compile(r"\\(?:left|right|displaystyle|quad|qquad|,|!|;|:| |(?:big|Big|bigg|Bigg)[lr]?)(?![A-Za-z])|[$~]")
_WORDS = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mbox|operatorname)\s*\{([^{}]*)\}")
_UNION = "\N{UNION}"
_COMMAND = re.compile(r"\\(?:[A-Za-z]+|[{}%])")
# What LaTeX has several commands for, and what the grammar has no word for, as one character each.
_COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("\\dfrac", "\\tfrac", "\\cfrac"), "\\frac"),
        **dict.fromkeys(("\\lvert", "\\rvert", "\\vert"), "|"),
        **dict.fromkeys(("\\geq", "\\ge"), "≥"),
        **dict.fromkeys(("\\leq", "\\le"), "≤"),
        **dict.fromkeys(("\\neq", "\\ne"), "≠"),
        **dict.fromkeys(("\\{", "\\lbrace"), "⟨"),
        **dict.fromkeys(("\\}", "\\rbrace"), "⟩"),
        **dict.fromkeys(("\\circ", "\\degree"), " degrees"),
        **dict(zip(("\\gt", "\\lt", "\\cup", "\\pm", "\\in", "\\%"), f"><{_UNION}±∈%", strict=True)),
    }
)
_CHARACTERS: Mapping[int, str] = MappingProxyType(
    {
        **str.maketrans(
            {"\N{MINUS SIGN}": "-", "\N{EN DASH}": "-", "\N{MULTIPLICATION SIGN}": "*", "·": "*", "÷": "/"}
        ),
        **str.maketrans({"π": "\\pi ", "∞": "\\infty ", "√": "\\sqrt ", "°": " degrees"}),
    }
)
_LITERALS = (("{,}", ""), ("**", "^"), (">=", "≥"), ("<=", "≤"), ("^{ degrees}", " degrees"), ("^ degrees", " degrees"))
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_UNIT = re.compile(
    r"(?<=[\d})\s])(?<!\\)\s*(%|(?:square |cubic |sq\.? |cu\.? )?(?:degrees?|radians?|dollars?|cents?|euros?|units?|"
    r"(?:centi|milli|kilo)?(?:meters?|metres?|grams?|liters?|litres?)|mm|cm|km|kg|mg|ml|inches|inch|feet|foot|ft|yards?"
    r"|miles?|mph|pounds?|ounces?|seconds?|sec|minutes?|min|hours?|hrs?|days?|weeks?|months?|years?|people|students?"
    r"|ways|points?|percent|apples|books|tickets)(?:\s*\^\s*\{?[23]\}?|[²³])?)\s*$",
    re.IGNORECASE,
)
# Bounded, and possessive: a long text must not cost the square of its length.
_SPAN = re.compile(r"\$\$(.{1,500}?)\$\$|\$(.{1,500}?)\$|\\\((.{1,500}?)\\\)|\\\[(.{1,500}?)\\\]", re.DOTALL)
_STATED = re.compile(r"answer(?:\s++is\b)?\s*+:?\s*+([^\n]++)", re.IGNORECASE)
_RELATION = re.compile(r"([=<>≥≤≠∈])")
_OPEN, _CLOSE = "([{⟨", ")]}⟩"
_LONGEST = 100_000

Kind = Literal["value", "tuple", "set", "union", "relation", "named"]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, taken apart.

    ``value``: ``parsed`` and ``unit``. ``tuple``: ``items`` in order between the brackets ``mark``, which an interval
    has too. ``set``: ``items`` in any order, also of a bare list. ``union``: of ``items``. ``relation``: the two
    sides, and the sign in ``mark``. ``named``: the one item, of which ``mark`` is the name.
    """

    kind: Kind
    parsed: Parsed | None = None
    unit: str = ""
    mark: str = ""
    items: tuple[Answer, ...] = ()


def extract_answer(text: str) -> str:
    r"""Return the part of ``text`` that is its answer.

    That is what stands in the last ``\boxed{}``; else all of it, if it is mathematics; else what follows the last
    "answer is"; else the last formula between dollars; else all of it.
    """
    text = text[-_LONGEST:]
    boxed = _last_boxed(text)
    if boxed is not None:
        return boxed
    candidates = [text.strip()]
    candidates += [match[1].strip().rstrip(".") for match in list(_STATED.finditer(text))[-1:]]
    candidates += [next(filter(None, match.groups())) for match in list(_SPAN.finditer(text))[-1:]]
    return next((each for each in candidates if read_answer(each) is not None), candidates[0])


def read_answer(text: str) -> Answer | None:
    """Return ``text`` taken apart, or None where it is no mathematics that is understood."""
    if len(text) > 2000:
        return None
    try:
        return _read(_clean(text), 0)
    except NotMath:
        return None


def plain_text(text: str) -> str:
    """Return ``text`` without case, spacing, dollars and LaTeX's text commands: how answers in words are compared."""
    return "".join(_SPACING.sub("", _WORDS.sub(r"\1", text)).lower().split()).rstrip(".")


def _last_boxed(text: str) -> str | None:
    start = max(text.rfind("\\boxed{"), text.rfind("\\fbox{"))
    if start < 0:
        return None
    first = text.index("{", start) + 1
    depth = 1
    for position in range(first, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return text[first:position]
    return text[first:]


def _clean(text: str) -> str:
    text = text.replace("\\$", "")
    text = re.sub(r"\s*\\(?:text|mbox)\s*\{\s*(?:and|or)\s*\}\s*|\s+(?:and|or)\s+", ", ", text)
    text = _SPACING.sub(" ", _WORDS.sub(r" \1", text))
    text = _COMMAND.sub(lambda match: _COMMANDS.get(match[0], match[0]), text).translate(_CHARACTERS)
    for old, new in _LITERALS:
        text = text.replace(old, new)
    return text.strip().rstrip(".").strip()


def _read(text: str, depth: int) -> Answer:
    if depth > 4:
        raise NotMath("nested too deeply")
    if depth == 0:
        text = _THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    for separator, kind in ((",", "set"), (_UNION, "union")):
        parts = list(_split(text, separator))
        if len(parts) > 1:
            items = tuple(_read(part, depth + 1) for part in parts)
            return Answer("union" if kind == "union" else "set", items=items)
    signs = _RELATION.split(text)
    if len(signs) > 1:
        return _relation(signs, depth)
    if "±" in text:
        return Answer("set", items=tuple(_read(text.replace("±", sign, 1), depth + 1) for sign in "+-"))
    return _enclosed(text, depth) or _value(text)


def _relation(signs: list[str], depth: int) -> Answer:
    left, sign, right = signs[0], signs[-2], signs[-1]
    if len(signs) > 3 and set(signs[1::2]) != {"="}:
        raise NotMath("a chain of relations")
    if len(signs) > 3 or sign == "∈":
        return _read(right.strip(), depth + 1)
    name = left.strip()
    if sign == "=" and re.fullmatch(r"[A-Za-z](?:\([A-Za-z]\))?|[A-Za-z]_\w", name):
        return Answer("named", mark=name, items=(_read(right.strip(), depth + 1),))
    if sign in ">≥":
        left, sign, right = right, {">": "<", "≥": "≤"}[sign], left
    return Answer("relation", mark=sign, items=(_value(left.strip()), _value(right.strip())))


def _enclosed(text: str, depth: int) -> Answer | None:
    if not text or text[0] not in "([⟨" or text[-1] not in ")]⟩" or _closing(text) != len(text) - 1:
        return None
    parts = list(_split(text[1:-1], ","))
    if text[0] == "⟨":
        return Answer("set", items=tuple(_read(part, depth + 1) for part in parts if part))
    if len(parts) < 2:
        return None
    return Answer("tuple", mark=text[0] + text[-1], items=tuple(_read(part, depth + 1) for part in parts))


def _value(text: str) -> Answer:
    unit = ""
    if match := _UNIT.search(text):
        unit = re.sub(r"[\s{}^]", "", match[1].lower()).replace("percent", "%")
        text = text[: match.start()]
    return Answer("value", parsed=parse_math(text), unit=unit)


def _closing(text: str) -> int:
    depth = 0
    for position, char in enumerate(text):
        depth += (char in _OPEN) - (char in _CLOSE)
        if depth == 0:
            return position
    return -1


def _split(text: str, separator: str) -> Iterator[str]:
    depth = start = 0
    for position, char in enumerate(text):
        depth += (char in _OPEN) - (char in _CLOSE)
        if char == separator and depth == 0:
            yield text[start:position].strip()
            start = position + 1
    yield text[start:].strip()
