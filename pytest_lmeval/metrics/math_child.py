"""A program of its own: reads pairs of trees, line by line, and says whether they are equal. It is killed if it hangs.

Each line is ``[left, right, decimal]``; each answer ``equal``, ``different`` or ``undecided``. Trees are put together
node by node from a closed list, never from text.
"""

from __future__ import annotations

import json
import random
import signal
import sys
from importlib import import_module
from typing import Any

__all__ = ["decide", "main"]

_MEMORY_BYTES = 2 << 30
_DIGITS = 40
_EXACT, _CLOSE = 1e-25, 2e-6
_POINTS, _ENOUGH = 8, 3


def main() -> None:
    """Answer until the input ends; the argument is the CPU time in seconds that an answer may take."""
    limit_s = float(sys.argv[1])
    try:
        _sympy()
    except ImportError:
        _say("missing")
        return
    _limit_memory()
    _say("ready")
    for line in sys.stdin:
        # The kernel ends the process at the limit, whatever runs then: Python code or C.
        signal.setitimer(signal.ITIMER_PROF, limit_s)
        answer = _answer(line)
        signal.setitimer(signal.ITIMER_PROF, 0)
        _say(answer)


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


def _answer(line: str) -> str:
    try:
        return decide(*json.loads(line))
    except (MemoryError, RecursionError, ArithmeticError, AttributeError, TypeError, ValueError, NotImplementedError):
        return "undecided"


def _limit_memory() -> None:
    import resource

    try:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    except (OSError, ValueError):  # not every system has this limit; the CPU limit holds on all
        return


def _say(answer: str) -> None:
    sys.stdout.write(f"{answer}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
