"""The gate of a board in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["baseline_line", "verdict_lines"]


def baseline_line(gate: Mapping[str, Any]) -> str:
    """Return which run a board was compared with, or "": file, adapter and date."""
    baseline = gate.get("baseline")
    if not isinstance(baseline, Mapping):
        return ""
    return "compared with {path}: {adapter}, {timestamp}".format(
        **{"path": "", "adapter": "", "timestamp": "", **baseline}
    )


def verdict_lines(gate: Mapping[str, Any]) -> list[str]:
    """Return the verdict with its reasons, what was compared and the doubts, a line each, for a command's output."""
    lines = [f"gate {gate['mode']}: {gate['verdict']}", *(f"  {reason}" for reason in gate["reasons"])]
    lines += [f"  {line}" for line in [baseline_line(gate)] if line]
    return lines + [f"  doubtful: {warning}" for warning in gate.get("warnings", ())]
