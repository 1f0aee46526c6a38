"""Compare two strings as mathematics with math-verify, in the process that runs worker_child.py.

math-verify passes plain expressions of digits and operators to ``eval``, and its algebra may never end. Therefore, the
process is confined, and is killed at its time limit. math-verify's own time limits are off, because they use signals,
which C code handles too late.
"""

from __future__ import annotations

import functools
import re
from importlib import import_module
from typing import Any

_TRIED: list[tuple[tuple[int, int], bool, bool]] = []


def answer(prediction: str, target: str) -> str:
    """Return ``equal``, ``different`` or, if the prediction has no mathematics or only half a formula, ``unparsed``."""
    # Import the package by name: it may not be installed.
    math_verify = import_module("math_verify")
    _record_parsing()
    given = _parse(math_verify, prediction)
    if _is_half_parsed():
        return "unparsed"
    wanted = _parse(math_verify, target)
    if _is_half_parsed():
        return "different"  # only identical text equals a malformed target
    # Intervals equal inequalities: (5, oo) is x > 5.
    if math_verify.verify(wanted, given, allow_set_relation_comp=True, timeout_seconds=None):
        return "equal"
    # math-verify returns text that it cannot parse as text.
    return "unparsed" if all(isinstance(each, str) for each in given) else "different"


@functools.cache
def _record_parsing() -> None:
    """Make the parser record each attempt in `_TRIED`: its span, whether it was a formula, and whether it succeeded."""
    parser: Any = import_module("math_verify.parser")
    extract = parser.extract_match

    def recording(match: re.Match[str], target: Any) -> Any:
        found = extract(match, target)
        is_formula = isinstance(target, parser.LatexExtractionConfig)
        _TRIED.append((match.span(), is_formula, found[0] is not None))
        return found

    parser.extract_match = recording


def _is_half_parsed() -> bool:
    """Return True if the parsed value is only a number inside a malformed formula."""
    if not _TRIED or not _TRIED[-1][2]:
        return False
    (start, end), _, _ = _TRIED[-1]
    return any(
        first < end and start < last for (first, last), is_formula, is_parsed in _TRIED if is_formula and not is_parsed
    )


def _parse(math_verify: Any, text: str) -> list[Any]:
    _TRIED.clear()
    return [_with_i(each) for each in math_verify.parse(text, parsing_timeout=None)]


def _with_i(value: Any) -> Any:
    """Return ``value`` with the imaginary unit instead of the letter i, which math-verify reads as a variable."""
    letters = {each for each in getattr(value, "free_symbols", ()) if each.name == "i"}
    return value.xreplace(dict.fromkeys(letters, import_module("sympy").I)) if letters else value
