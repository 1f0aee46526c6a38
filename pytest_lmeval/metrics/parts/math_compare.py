r"""Whether an answer is the same mathematics as a target: ``\frac{1}{2}``, ``0.5``, ``x = 1/2`` and ``50\%``.

Why not an existing checker: math-verify and sympy's own parser read plain expressions by ``eval``, of model text, and
time out by a signal, which C code does not heed. Here a grammar of our own makes a tree; numbers are compared as
fractions; only what needs algebra goes to sympy, in a process that is killed at its limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_lmeval.metrics.parts.math_answer import Answer, extract_answer, plain_text, read_answer
from pytest_lmeval.metrics.parts.math_exact import exact_value, same_number
from pytest_lmeval.metrics.parts.math_parse import Parsed, Tree
from pytest_lmeval.metrics.parts.worker import TookTooLong, Worker
from pytest_lmeval.types import Score

_MOST_ITEMS = 50


def math_score(prediction: str, targets: Sequence[str], worker: Worker) -> Score:
    """Return the score of ``math_equal``; ``worker`` does the algebra."""
    given = extract_answer(prediction)
    statuses = [_compare(given, extract_answer(target), worker) for target in targets]
    order = ("equal", "timeout", "undecided", "different", "unparsed")
    status = min(statuses, key=order.index, default="different")
    return Score(float(status == "equal"), {"math_status": status})


def _compare(given: str, wanted: str, worker: Worker) -> str:
    if plain_text(given) == plain_text(wanted):
        return "equal" if plain_text(wanted) else "unparsed"
    ours, theirs = read_answer(given), read_answer(wanted)
    if ours is None or theirs is None:
        return "unparsed" if ours is None else "different"
    comparison = _Comparison(worker)
    return "equal" if comparison.same(ours, theirs) else comparison.worst


class _Comparison:
    """Compares two answers, and keeps what became of the values that were not equal."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.worst = "different"

    def same(self, ours: Answer, theirs: Answer) -> bool:
        if ours.kind == theirs.kind == "named":
            return ours.mark == theirs.mark and self.same(ours.items[0], theirs.items[0])
        if "named" in {ours.kind, theirs.kind}:
            left, right = (side.items[0] if side.kind == "named" else side for side in (ours, theirs))
            return self.same(left, right)
        if ours.kind != theirs.kind or len(ours.items) != len(theirs.items) or len(ours.items) > _MOST_ITEMS:
            return False
        if ours.kind == "value":
            return self._same_value(ours, theirs)
        if ours.kind in {"set", "union"}:
            return self._same_items(list(ours.items), theirs.items)
        if ours.kind == "relation" and ours.mark in "=≠" and ours.mark == theirs.mark:
            return self._same_equation(ours.items, theirs.items)
        return ours.mark == theirs.mark and all(map(self.same, ours.items, theirs.items))

    def _same_items(self, ours: list[Answer], theirs: Sequence[Answer]) -> bool:
        for wanted in theirs:
            found = next((each for each in ours if self.same(each, wanted)), None)
            if found is None:
                return False
            ours.remove(found)
        return True

    def _same_equation(self, ours: Sequence[Answer], theirs: Sequence[Answer]) -> bool:
        """Tell whether the differences of both sides are the same, their signs aside."""
        (a, b), (c, d) = ([_parsed(side) for side in sides] for sides in (ours, theirs))
        decimal = a.decimal or b.decimal or c.decimal or d.decimal
        left, right = Parsed(_minus(a.tree, b.tree), decimal), Parsed(_minus(c.tree, d.tree), decimal)
        return self._same_tree(left, right) or self._same_tree(left, Parsed(["neg", right.tree], decimal))

    def _same_value(self, ours: Answer, theirs: Answer) -> bool:
        left, right = _parsed(ours), _parsed(theirs)
        if ours.unit and theirs.unit and ours.unit.rstrip("s") != theirs.unit.rstrip("s"):
            return False
        if self._same_tree(left, right):
            return True
        if ours.unit == theirs.unit or "%" not in {ours.unit, theirs.unit}:
            return False
        return self._same_tree(_hundredth(left, ours.unit), _hundredth(right, theirs.unit))

    def _same_tree(self, left: Parsed, right: Parsed) -> bool:
        if left.tree == right.tree:
            return True
        decimal = left.decimal or right.decimal
        ours, theirs = exact_value(left.tree), exact_value(right.tree)
        if ours is not None and theirs is not None:
            return same_number(ours, theirs, decimal=decimal)
        try:
            status = self.worker.ask("math_equal", left.tree, right.tree, decimal)
        except TookTooLong:
            status = "timeout"
        if status in {"timeout", "undecided"}:
            self.worst = status
        return bool(status == "equal")


def _parsed(answer: Answer) -> Parsed:
    assert answer.parsed is not None
    return answer.parsed


def _minus(left: Tree, right: Tree) -> Tree:
    return ["add", [left, ["neg", right]]]


def _hundredth(side: Parsed, unit: str) -> Parsed:
    return Parsed(["div", side.tree, ["num", "100"]], side.decimal) if unit == "%" else side
