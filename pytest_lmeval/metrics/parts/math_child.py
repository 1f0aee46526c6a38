"""Whether two trees are equal; runs in the process of worker_child.py, since algebra can take for ever.

Trees are put together node by node from a closed list, never from text.
"""

from __future__ import annotations

import random
from importlib import import_module
from typing import Any

_DIGITS = 40
_EXACT, _CLOSE = 1e-25, 2e-6
_POINTS, _ENOUGH = 8, 3


def answer(left: Any, right: Any, decimal: bool) -> str:
    """Return ``equal``, ``different``, or ``undecided`` where the algebra fails, too."""
    try:
        return decide(left, right, decimal)
    except (MemoryError, RecursionError, ArithmeticError, AttributeError, TypeError, ValueError, NotImplementedError):
        return "undecided"


def decide(left: Any, right: Any, decimal: bool) -> str:
    """Return whether two trees are equal: as they stand, or at every one of several points where both have a value.

    Forty digits are compared to 1e-25, numbers that were written with a decimal point to six digits. Values at
    points of either sign, so that a root of a square is not taken for the number itself.
    """
    ours, theirs = _build(left), _build(right)
    if ours == theirs:
        return "equal"
    names = sorted(map(str, ours.free_symbols | theirs.free_symbols))
    agreed = 0
    for trial in range(_POINTS if names else 1):
        same = _same_at(ours, theirs, names, trial, decimal)
        if same is False:
            return "different"
        agreed += same is True
    return "equal" if agreed >= (_ENOUGH if names else 1) else "undecided"


def _same_at(ours: Any, theirs: Any, names: list[str], trial: int, decimal: bool) -> bool | None:
    sympy = _sympy()

    draw = random.Random(trial)
    point = {sympy.Symbol(name): sympy.Rational(draw.randrange(-3000, 3000), 997) for name in names}
    x, y = (sympy.N(side.subs(point), _DIGITS) for side in (ours, theirs))
    if not (x.is_number and y.is_number and x.is_finite and y.is_finite):
        return None if names else False
    scale = max(abs(x), abs(y)) if decimal else max(1, abs(x), abs(y))
    return bool(abs(x - y) <= (_CLOSE if decimal else _EXACT) * scale)


def _build(tree: Any) -> Any:
    sympy = _sympy()

    kind, *rest = tree
    if kind == "num":
        return sympy.Rational(rest[0])
    if kind == "sym":
        return sympy.Symbol(rest[0])
    if kind == "const":
        return {"pi": sympy.pi, "e": sympy.E, "i": sympy.I, "oo": sympy.oo}[rest[0]]
    if kind in {"add", "mul"}:
        return {"add": sympy.Add, "mul": sympy.Mul}[kind](*map(_build, rest[0]))
    if kind == "fn":
        return _functions(sympy)[rest[0]](_build(rest[1]))
    first, *others = map(_build, rest)
    if kind == "neg":
        return -first
    (second,) = others
    return {
        "div": lambda: first / second,
        "pow": lambda: first**second,
        "root": lambda: (sympy.real_root if first.is_odd and second.is_real else sympy.root)(second, first),
        "log": lambda: sympy.log(second, first),
        "binom": lambda: sympy.binomial(first, second),
    }[kind]()


def _functions(sympy: Any) -> dict[str, Any]:
    names = "sin cos tan cot sec csc sinh cosh tanh exp factorial".split()  # noqa: SIM905  # a word a line would hide the list
    arcs = {"arcsin": sympy.asin, "arccos": sympy.acos, "arctan": sympy.atan, "abs": sympy.Abs}
    return {**{name: getattr(sympy, name) for name in names}, **arcs}


def _sympy() -> Any:
    # By name: it is not installed wherever this package is checked or used.
    return import_module("sympy")
