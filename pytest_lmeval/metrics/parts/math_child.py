"""Whether two texts are the same mathematics, by math-verify; runs in the process of worker_child.py.

math-verify reads plain expressions by ``eval``, though of digits and operators alone, and algebra can take for ever:
the process is confined, and killed at its limit. Its own limits, signals which C code does not heed, are off.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def answer(prediction: str, target: str) -> str:
    """Return ``equal``, ``different``, or ``unparsed`` where the prediction holds no mathematics."""
    # By name: it is not installed wherever this package is checked or used.
    math_verify = import_module("math_verify")
    given = _read(math_verify, prediction)
    # Intervals as inequalities, too: (5, oo) is x > 5.
    same = math_verify.verify(_read(math_verify, target), given, allow_set_relation_comp=True, timeout_seconds=None)
    if same:
        return "equal"
    # What it cannot parse it keeps as text.
    return "unparsed" if all(isinstance(each, str) for each in given) else "different"


def _read(math_verify: Any, text: str) -> list[Any]:
    return [_with_i(each) for each in math_verify.parse(text, parsing_timeout=None)]


def _with_i(value: Any) -> Any:
    """Return ``value`` with the imaginary unit for the letter i: it reads (1+i)^2 as a square of a sum of letters."""
    letters = {each for each in getattr(value, "free_symbols", ()) if each.name == "i"}
    return value.xreplace(dict.fromkeys(letters, import_module("sympy").I)) if letters else value
