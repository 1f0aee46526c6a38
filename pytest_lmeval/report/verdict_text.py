"""Describe the cause of a verdict in one sentence: the scores that changed, or otherwise the gate's first reason."""

from __future__ import annotations

from pytest_lmeval.report.tables import Row

_MOVED = 3
"""The maximum number of tasks that the sentence names."""


def verdict_sentence(gate: Row, comparison: Row | None) -> str:
    """Return the sentence below a verdict, or "" if no cause is known; both arguments are JSON values."""
    reasons = [str(reason) for reason in gate.get("reasons", ())]
    if comparison and (said := _compared(str(gate.get("verdict", "")), comparison)):
        return said
    rest = len(reasons) - 1
    more = f" (and {rest} more reason{'s' if rest > 1 else ''}, below the scores)" if rest > 0 else ""
    return f"{reasons[0]}{more}" if reasons else ""


def _compared(verdict: str, comparison: Row) -> str:
    if verdict == "pass":
        better = _moves(comparison, "improvement", "rose")
        return f"{better}." if better else "No score fell by more than chance explains."
    moved = _moves(comparison, verdict, "fell") if verdict in ("regression", "inconclusive") else ""
    return moved and f"{moved}{'; chance may explain it' if verdict == 'inconclusive' else ''}."


def _moves(comparison: Row, verdict: str, verb: str) -> str:
    """Describe, in points, the changes in tasks with this verdict, largest first, and the overall change."""
    tasks = sorted((row for row in comparison.get("tasks", ()) if row["verdict"] == verdict), key=_size, reverse=True)
    pooled = comparison.get("pooled") or {}
    names = [str(row["task"]) for row in tasks[:_MOVED]]
    sizes = [*map(_size, tasks[:_MOVED])]
    # If there is only one task, the overall change equals its change.
    if pooled.get("verdict") == verdict and (not tasks or len(comparison["tasks"]) > 1):
        names, sizes = [*names, "overall"], [*sizes, _size(pooled)]
    if not names:
        return ""
    points = [f"by {size:.1f}".removesuffix(".0") for size in sizes]
    rest = len(tasks) - _MOVED
    more = f", and {rest} more task{'s' if rest > 1 else ''} {verb}" if rest > 0 else ""
    others = "".join(f", {name} {by}" for name, by in zip(names[1:], points[1:], strict=True))
    unit = "point" if points[0] == "by 1" else "points"
    return f"{names[0]} {verb} {points[0]} {unit}{others}{more}"


def _size(row: Row) -> float:
    return abs(100 * float(row["change"]))
