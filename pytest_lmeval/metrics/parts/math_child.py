"""Whether two texts are the same mathematics, by math-verify; runs in the process of worker_child.py.

math-verify reads plain expressions by ``eval``, though of digits and operators alone, and algebra can take for ever:
the process is confined, and killed at its limit. Its own limits, signals which C code does not heed, are off.
"""

from __future__ import annotations

import functools
import re
from importlib import import_module
from typing import Any

_Read = tuple[tuple[int, int], bool, bool]
_READ: list[_Read] = []


def answer(prediction: str, target: str) -> str:
    """Return ``equal``, ``different``, or ``unparsed`` where the prediction holds no mathematics, or half a formula."""
    # By name: it is not installed wherever this package is checked or used.
    math_verify = import_module("math_verify")
    _note_what_is_read()
    given = _read(math_verify, prediction)
    if _is_half_read():
        return "unparsed"
    wanted = _read(math_verify, target)
    if _is_half_read():
        return "different"  # a target that makes no sense is met word for word alone
    # Intervals as inequalities, too: (5, oo) is x > 5.
    if math_verify.verify(wanted, given, allow_set_relation_comp=True, timeout_seconds=None):
        return "equal"
    # What it cannot parse it keeps as text.
    return "unparsed" if all(isinstance(each, str) for each in given) else "different"


@functools.cache
def _note_what_is_read() -> None:
    """Have the parser note which parts of a text it tried, whether as a formula, and whether it could read them."""
    parser: Any = import_module("math_verify.parser")
    extract = parser.extract_match

    def noting(match: re.Match[str], target: Any) -> Any:
        found = extract(match, target)
        is_formula = isinstance(target, parser.LatexExtractionConfig)
        _READ.append((match.span(), is_formula, found[0] is not None))
        return found

    parser.extract_match = noting


def _is_half_read() -> bool:
    """Tell whether the value is a number out of a formula that could not be read as a whole.

    Where a formula makes no sense the parser looks for numbers, and finds those that it begins or ends with.
    """
    if not _READ or not _READ[-1][2]:
        return False
    (start, end), _, _ = _READ[-1]
    return any(
        first < end and start < last for (first, last), is_formula, is_read in _READ if is_formula and not is_read
    )


def _read(math_verify: Any, text: str) -> list[Any]:
    _READ.clear()
    return [_with_i(each) for each in math_verify.parse(text, parsing_timeout=None)]


def _with_i(value: Any) -> Any:
    """Return ``value`` with the imaginary unit for the letter i: it reads (1+i)^2 as a square of a sum of letters."""
    letters = {each for each in getattr(value, "free_symbols", ()) if each.name == "i"}
    return value.xreplace(dict.fromkeys(letters, import_module("sympy").I)) if letters else value
