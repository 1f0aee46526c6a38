"""Parse a record's expectations for a program without running code, so that collection can refuse a bad record."""

from __future__ import annotations

import ast
import keyword
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.metrics.parts.declare import Extras
from pytest_lmeval.sandbox.inside.wire import UnfitError, encode

DEFAULT_TIMEOUT_S = 3.0
LONGEST_TIMEOUT_S = 30.0
FORMS = ("io_pairs", "stdouts", "tests")
OPERATORS = {
    "Eq": "==",
    "Gt": ">",
    "GtE": ">=",
    "In": "in",
    "Is": "==",
    "IsNot": "!=",
    "Lt": "<",
    "LtE": "<=",
    "NotEq": "!=",
    "NotIn": "not in",
}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "in": "holds", "not in": "holds not"}


@dataclass(frozen=True, slots=True)
class Expression:
    """One parsed target, of which only ``source`` is sent to the program's process.

    The value of ``source``, or its distance from ``centre`` if that is not None, must have the relation ``operator`` to
    ``literal``. If ``operator`` is empty, any true value is right.
    """

    source: str
    operator: str = ""
    literal: Any = None
    centre: float | int | None = None

    @property
    def forgeable(self) -> bool:
        """True if the source reveals what the program must return."""
        return not self.operator


@dataclass(frozen=True, slots=True)
class Pairs:
    """Calls to ``entry_point``, each as a tuple of its arguments followed by the expected value.

    ``tolerance`` is the allowed error of floats, or None.
    """

    entry_point: str
    pairs: tuple[tuple[Any, ...], ...]
    tolerance: float | None = None


@dataclass(frozen=True, slots=True)
class Tests:
    """Source code that defines ``check(candidate)``, and the name of the program's function to check."""

    __test__ = False

    source: str
    entry_point: str


@dataclass(frozen=True, slots=True)
class Stdouts:
    """The stdin for each of the program's runs, with the right outputs."""

    runs: tuple[tuple[str, tuple[str, ...]], ...]
    tolerance: float | None = None


def timeout_of(mapping: Extras, prefix: str = "extras") -> float:
    """Return the time limit ``timeout_s`` in CPU seconds, by default 3; refuse values outside (0, 30]."""
    value = _number(mapping.get("timeout_s", DEFAULT_TIMEOUT_S), f"{prefix}.timeout_s")
    if not 0 < value <= LONGEST_TIMEOUT_S:
        detail = f"expected CPU seconds above 0 and at most {LONGEST_TIMEOUT_S:g}, got {value!r:.80}"
        raise RecordRefused("bad_value", f"{prefix}.timeout_s", detail)
    return float(value)


def _number(value: object, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise RecordRefused("bad_type", field, f"expected a number, got {value!r:.80}")
    return value


def plan_targets(targets: Sequence[str]) -> tuple[Expression, ...]:
    """Parse targets that are Python expressions or ``assert`` statements; refuse other targets."""
    if not targets:
        raise RecordRefused("bad_type", "targets", "expected at least one Python expression")
    return tuple(_expression(number, target) for number, target in enumerate(targets, 1))


def plan_extras(extras: Extras, targets: Sequence[str]) -> Pairs | Tests | Stdouts:
    """Parse the expectations in the extras, which must have exactly one of three forms; refuse other extras."""
    given = [name for name in FORMS if name in extras]
    if len(given) != 1:
        found = " and ".join(given) or "none of them"
        raise RecordRefused("bad_value", "extras", f"expected exactly one of {', '.join(FORMS)}, got {found}")
    if "stdin" in extras and given != ["stdouts"]:
        raise RecordRefused("bad_value", "extras.stdin", f"only a program with stdouts reads stdin, not {given[0]}")
    if given == ["io_pairs"]:
        return Pairs(_entry_point(extras, "f"), _pairs(extras["io_pairs"]), _tolerance(extras))
    if given == ["tests"]:
        if "tolerance" in extras:
            raise RecordRefused(
                "bad_value", "extras.tolerance", "tests compare by themselves: write the tolerance there"
            )
        return Tests(_tests(extras["tests"]), _entry_point(extras, None))
    if extras["stdouts"] is not True:
        detail = "expected true, or no such key; the texts that the program prints are the targets"
        raise RecordRefused(_rule(extras["stdouts"], bool), "extras.stdouts", detail)
    return Stdouts(_runs(extras.get("stdin", ""), tuple(targets)), _tolerance(extras))


def _runs(stdin: object, targets: tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return one run that may print any target or, for a list of stdins, one run for each stdin and its target."""
    if isinstance(stdin, str):
        return ((stdin, targets),)
    if not isinstance(stdin, list) or not all(isinstance(each, str) for each in stdin):
        detail = f"expected the text that the program reads, or a list of texts, got {stdin!r:.80}"
        raise RecordRefused("bad_type", "extras.stdin", detail)
    if not stdin or len(stdin) != len(targets):
        detail = f"expected one text for each of the {len(targets)} targets, got {len(stdin)}"
        raise RecordRefused("bad_value", "extras.stdin", detail)
    return tuple((text, (target,)) for text, target in zip(stdin, targets, strict=True))


def _tolerance(extras: Extras) -> float | None:
    if "tolerance" not in extras:
        return None
    value = _number(extras["tolerance"], "extras.tolerance")
    if not 0 < value < 1:
        raise RecordRefused("bad_value", "extras.tolerance", f"expected a number between 0 and 1, got {value!r:.80}")
    return float(value)


def _rule(value: object, kind: type) -> str:
    return "bad_value" if isinstance(value, kind) else "bad_type"


def _entry_point(extras: Extras, default: str | None) -> str:
    name = extras.get("entry_point", default)
    parts = name.split(".") if isinstance(name, str) else ()
    if not 1 <= len(parts) <= 2 or not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
        rule = "bad_value" if "entry_point" not in extras else _rule(name, str)
        detail = f"expected the name of a function, or of a method as 'Solution.f', got {name!r:.80}"
        raise RecordRefused(rule, "extras.entry_point", detail)
    return str(name)


def _pairs(pairs: object) -> tuple[tuple[Any, ...], ...]:
    field = "extras.io_pairs"
    if not isinstance(pairs, list):
        raise RecordRefused("bad_type", field, f"expected a list of [args..., expected], got {pairs!r:.80}")
    if not pairs:
        raise RecordRefused("bad_value", field, "expected at least one [args..., expected]")
    for number, pair in enumerate(pairs, 1):
        if not isinstance(pair, list) or not pair:
            raise RecordRefused(
                _rule(pair, list), field, f"pair {number}: expected [args..., expected], got {pair!r:.80}"
            )
    try:
        encode(pairs)
    except UnfitError as error:
        raise RecordRefused("bad_value", field, f"{error}") from None
    return tuple(map(tuple, pairs))


def _tests(source: object) -> str:
    if not isinstance(source, str):
        raise RecordRefused("bad_type", "extras.tests", f"expected Python source, got {source!r:.80}")
    tree = _parse(source, "exec", "extras.tests", "")
    if not any(isinstance(node, ast.FunctionDef) and node.name == "check" for node in ast.walk(tree)):
        raise RecordRefused("bad_value", "extras.tests", "expected a function check(candidate)")
    return source


def _parse(source: str, mode: str, field: str, place: str) -> ast.AST:
    try:
        with warnings.catch_warnings():
            # `f(1) is 3` is odd, not wrong.
            warnings.simplefilter("ignore")
            return ast.parse(source, mode=mode)
    except (MemoryError, RecursionError, SyntaxError, ValueError) as error:
        what = "expression" if mode == "eval" else "source"
        detail = f"{place}expected a Python {what}, got {source!r:.80}: {error}"
        raise RecordRefused("bad_value", field, detail) from None


def asserted(source: str) -> ast.expr | None:
    """Return the expression in a single ``assert`` statement, without its message, or None for other source code."""
    text = source.strip()
    if not text.startswith("assert"):
        return None
    try:
        body = ast.parse(text).body
    except (MemoryError, RecursionError, SyntaxError, ValueError):
        return None
    return body[0].test if len(body) == 1 and isinstance(body[0], ast.Assert) else None


def _expression(number: int, target: str) -> Expression:
    body = asserted(target)
    if body is None:
        tree = _parse(target.strip(), "eval", "targets", f"target {number}: ")
        assert isinstance(tree, ast.Expression)
        body = tree.body
    if isinstance(body, ast.Compare) and len(body.ops) == 1:
        operator = type(body.ops[0]).__name__
        compared = _compared(body.left, operator, body.comparators[0])
        if compared is not None:
            return compared
    return Expression(ast.unparse(body))


def _compared(left: ast.expr, name: str, right: ast.expr) -> Expression | None:
    operator = OPERATORS[name]
    for asked, side, sign in ((left, right, operator), (right, left, MIRRORED.get(operator, operator))):
        literal = _literal(side)
        if literal is None or not _decidable(name, sign, literal[0]):
            continue
        source, centre = _distance(asked) if sign in ("<", "<=") else (asked, None)
        return Expression(ast.unparse(source), sign, literal[0], centre)
    return None


def _literal(node: ast.expr) -> tuple[Any] | None:
    """Return a 1-tuple with the value of ``node``, or None if ``node`` is not a literal of plain data."""
    try:
        value = ast.literal_eval(node)
        encode(value)
    except (MemoryError, RecursionError, TypeError, UnfitError, ValueError):
        return None
    return (value,)


def _decidable(name: str, sign: str, literal: Any) -> bool:
    """Return True if plain data suffices to decide the relation of a value to ``literal``."""
    if name in ("Is", "IsNot"):
        return literal is None or isinstance(literal, bool)
    if sign in ("in", "not in"):
        return isinstance(literal, (str, list, tuple, set, dict))
    if sign in ("<", "<=", ">", ">="):
        return isinstance(literal, (int, float, str, list, tuple)) and not isinstance(literal, bool)
    return True


def _distance(node: ast.expr) -> tuple[ast.expr, float | int | None]:
    """Split ``abs(asked - number)``, to keep the number, which is the answer, from the program's process."""
    match node:
        case ast.Call(func=ast.Name(id="abs"), args=[ast.BinOp(left=left, op=ast.Sub(), right=right)], keywords=[]):
            for asked, side in ((left, right), (right, left)):
                literal = _literal(side)
                if literal and isinstance(literal[0], (int, float)) and not isinstance(literal[0], bool):
                    return asked, literal[0]
    return node, None
