"""The ways in which datasets write down what a program must do, as what ``code_exec`` asks of it."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_lmeval.errors import RecordRefused


@dataclass(frozen=True, slots=True)
class Plan:
    """Expressions that must hold, or else the extras of a compact ``code_exec`` record."""

    expressions: tuple[str, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)


def plan_test_cases(context: Mapping[str, Any]) -> Plan:
    """Return what ``context["test_cases"]`` asks for; raise RecordRefused for what cannot be told.

    >>> plan_test_cases({"test_cases": ["assert add(1, 2) == 3", "add(0, 0) == 0"]}).expressions
    ('add(1, 2) == 3', 'add(0, 0) == 0')
    """
    cases = context.get("test_cases")
    limit = {"timeout_s": context["timeout_s"]} if "timeout_s" in context else {}
    if isinstance(cases, str):
        return Plan(extras={**limit, **_source(cases, context)})
    if not isinstance(cases, Sequence) or not cases:
        raise RecordRefused("bad_value", "test_cases", f"expected source, or a list of test cases, got {cases!r:.80}")
    if all(isinstance(case, str) for case in cases):
        expressions = [_expression(case) for case in cases]
        if None not in expressions:
            return Plan(tuple(text for text in expressions if text is not None), limit)
        return Plan(extras={**limit, **_source("\n".join(cases), context)})
    pairs = [_pair(number, case) for number, case in enumerate(cases)]
    return Plan(extras={**limit, "io_pairs": pairs, "entry_point": context.get("entry_point")})


def _source(text: str, context: Mapping[str, Any]) -> Mapping[str, Any]:
    entry_point = context.get("entry_point")
    if "def check(" in text:
        return {"tests": text, "entry_point": entry_point}
    named = f"    {entry_point} = candidate\n" if isinstance(entry_point, str) else ""
    body = textwrap.indent(textwrap.dedent(text), "    ")
    return {"tests": f"def check(candidate):\n{named}{body}\n", "entry_point": entry_point}


def _expression(text: str) -> str | None:
    """Return the expression that ``text``, or the one assertion in it, says; None where it does more."""
    try:
        body = ast.parse(textwrap.dedent(text).strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RecordRefused("bad_value", "test_cases", f"expected Python, got {text!r:.80}: {error}") from None
    if len(body) != 1:
        return None
    (statement,) = body
    if isinstance(statement, ast.Assert):
        return ast.unparse(statement.test)
    return ast.unparse(statement.value) if isinstance(statement, ast.Expr) else None


def _pair(number: int, case: Any) -> list[Any]:
    if isinstance(case, list | tuple):
        return list(case)
    if isinstance(case, Mapping) and "input" in case and "output" in case:
        given = case["input"]
        return [*(given if isinstance(given, list | tuple) else [given]), case["output"]]
    wanted = 'a list [arguments..., expected], or an object with "input" and "output"'
    raise RecordRefused("bad_value", "test_cases", f"case {number}: expected {wanted}, got {case!r:.80}")
