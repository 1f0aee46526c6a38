r"""Prepare texts with mathematics for comparison, either as words or by math-verify.

This module rewrites notation that math-verify misreads. For example, math-verify reads ``0.\overline{3}`` as 0, ``3
1/2`` as 2, ``101_2`` as 101 and ``(-∞, 3]`` as 3.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from pytest_lmeval.metrics.parts.texts import closing_brace

LONGEST = 20_000
"""The number of characters at the end of the text that are searched for an answer."""

_WORDS = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mbox|operatorname)\s*\{([^{}]*)\}")
_SPACING = re.compile(r"\\(?:left|right|displaystyle|quad|qquad|;|:| |(?:big|Big|bigg|Bigg)[lr]?)(?![A-Za-z])|[$~]")
_STATED = re.compile(r"answer(?:\s++is\b)?\s*+:?\s*+([^\n]++)", re.IGNORECASE)
_BOX = re.compile(r"\\(?:boxed|fbox)(?:\{|\s*+\Z)")
_UNBRACED = re.compile(r"\\(boxed|fbox)\s++(?:(-?\d++(?:\.\d++)?)|(?=\{))")
_ESCAPED = re.compile(r"\\[{}\\]")
_CUT_OFF = re.compile(r"\$[^$\n\\^_{}]*+[\\^_{}][^$\n]*+\Z|\$[^$\n()]*+(?:\([^$\n()]*+|[+*/=-]\s*+)\Z")
_OPERATOR = re.compile(r"[\w)\]}]\s*[-+*/^=<>]\s*\Z")
_BEFORE, _AFTER = re.compile(r"\A(?:[=*]\s*)+(?=[\w$\\(.-])"), re.compile(r"[\s,;:]+\Z")
_MARKED = re.compile(r"\$|\\boxed|\\\(|\\\[")
# Words, headings, and letters of scripts without mathematical use, from Cyrillic to Hangul.
_PROSE = re.compile(
    r"(?<![\\A-Za-z{])(?!and |or )[A-Za-z]{3,}[ ,:;]+(?=[\w$\\(-])|^#|[\u0400-\u1fff\u2e80-\ud7ff]", re.MULTILINE
)
# In a formula without prose: the numbers of a list, and a unit after a number.
_ALONE = re.compile(r"\s*\\(?:text|mbox)\s*\{\s*(?:and|or)\s*\}\s*|\s+(?:and|or)\s+")
_UNIT = re.compile(r"(?<=[\d}])\s++([A-Za-z]{3,20}|[a-z]{1,3}/[a-z]{1,3})\.?$")
_CHARACTERS = str.maketrans(
    {
        **dict.fromkeys("\N{MINUS SIGN}\N{EN DASH}", "-"),
        "π": r"\pi ",
        "∞": r"\infty ",
        "√": r"\sqrt ",
        "°": r"^\circ ",
        "∅": r"\emptyset ",
        "≤": r"\le ",
        "≥": r"\ge ",
        "≠": r"\ne ",
        "±": r"\pm ",
        "\N{UNION}": r"\cup ",
        "∈": r"\in ",
        "\N{MULTIPLICATION SIGN}": r"\times ",
        "·": r"\cdot ",
        "÷": r"\div ",
    }
)


def plain_text(text: str) -> str:
    """Return ``text`` in lower case, without LaTeX's text commands, and with whitespace only between numbers."""
    text = _SPACING.sub(" ", re.sub(r"\\[,!]", "", _WORDS.sub(r"\1", text))).lower()
    return re.sub(r"(?<!\d)\s+|\s+(?!\d)", "", text).rstrip(".")


def is_words(text: str) -> bool:
    """Return True if the plain ``text`` is a word, which math-verify would read as a product of letters."""
    return len(text) >= 3 and text.isalpha()


def stated_answers(text: str) -> list[str]:
    r"""Return the content of the last ``\boxed{}``, or else the whole text and the line after its last "answer is"."""
    text = _braced_end(text)
    if (box := _last_box(text)) is not None:
        return [text[box]]
    return [text, *(match[1] for match in list(_STATED.finditer(text))[-1:])]


def is_cut_off(text: str) -> bool:
    """Return True if ``text`` ends with an operator, which shows that the text was cut off."""
    return bool(_OPERATOR.search(text))


def has_open_box(text: str) -> bool:
    r"""Return True if the last ``\boxed{}`` in ``text`` is not closed."""
    text = _braced_end(text)
    box = _last_box(text)
    return box is not None and box.stop == len(text)


def _braced_end(text: str) -> str:
    r"""Return the last ``LONGEST`` characters of ``text``, with ``\boxed 5`` rewritten as ``\boxed{5}``."""
    end = text[-LONGEST:]
    return _UNBRACED.sub(lambda match: f"\\{match[1]}{{{match[2]}}}" if match[2] else f"\\{match[1]}", end)


def _last_box(text: str) -> slice | None:
    boxes = list(_BOX.finditer(text))
    if not boxes:
        return None
    first = boxes[-1].end()
    # Escaped braces are part of the answer.
    return slice(first, closing_brace(_ESCAPED.sub("  ", text), first))


def for_math_verify(text: str) -> str:
    """Rewrite ``text`` so that math-verify reads it correctly, with dollar signs around a formula without prose."""
    text = _braced_end(text).replace("\\$", "").replace("\\fbox", "\\boxed").replace("\\varnothing", "\\emptyset")
    if text.count("$") % 2 and _CUT_OFF.search(text):
        text += "$"  # without it, the first number would be read alone
    if not _MARKED.search(text):
        if _PROSE.search(text):
            return text
        text = _ALONE.sub(", ", _UNIT.sub(r" \\text{\1}", _without_edges(text)))
        text = f"${text}$"
    text = text.translate(_CHARACTERS)
    for pattern, replace in _REWRITTEN:
        text = pattern.sub(replace, text)
    return text


def _without_edges(text: str) -> str:
    """Return a formula without sentence or list marks, as in ``= 3``, ``* 3``, ``3;`` and ``3)``."""
    text = _AFTER.sub("", _BEFORE.sub("", text.strip()))
    is_marker = text.endswith(")") and not set(text[:-1]) & set("()[]")
    return text[:-1] if is_marker else text


def _repeating(match: re.Match[str]) -> str:
    whole, fixed, period = match[1] or "0", match[2], match[3]
    value = Fraction(int(whole + fixed + period) - int(whole + fixed), 10 ** len(fixed) * (10 ** len(period) - 1))
    return rf"\frac{{{value.numerator}}}{{{value.denominator}}}"


def _mixed(match: re.Match[str]) -> str:
    whole, above, below = map(int, match.groups())
    return rf"\frac{{{whole * below + above}}}{{{below}}}"


def _of_base(match: re.Match[str]) -> str:
    base = int(match[2])
    try:
        return str(int(match[1], base))
    except ValueError:  # a digit that the base does not have
        return match[0]


_REWRITTEN: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"\^\{?\s*\^\\circ"), r"^\\circ"),
    (re.compile(r"(\d{0,50})\.(\d{0,50})\\overline\s*\{(\d{1,50})\}"), _repeating),
    (re.compile(r"(?<![\w.\\])(\d{1,100})_\{?([2-9]|[12]\d|3[0-6])\b\}?"), _of_base),
    (re.compile(r"(?<=\d)[eE]([+-]?\d{1,9})(?![\w.])"), r"\\times 10^{\1}"),
    (re.compile(r"(?<![\w.}])(\d+)\s+(\d+)\s*/\s*(\d+)"), r"\1\\frac{\2}{\3}"),
    (re.compile(r"(?<![\w.}])(\d{1,50})\s*\\[dt]?frac\s*\{(\d{1,50})\}\s*\{(\d{1,50})\}(?=\s*\\?%)"), _mixed),
    (re.compile(r"(\d)\\,(?=\d{3})"), r"\1"),
    (re.compile(r"(?<![A-Za-z\\])pi(?![A-Za-z])"), r"\\pi"),
)
