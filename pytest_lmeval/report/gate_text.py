"""The gate of a board in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_off(gate: Mapping[str, Any]) -> bool:
    """Tell whether nothing decided about a run: it is not gated, and never to be called passed."""
    return gate.get("verdict") == "pass" and (gate.get("mode") == "none" or gate.get("decided_by") == [])


def off_line(gate: Mapping[str, Any], manifest: Mapping[str, Any]) -> str:
    """Return what is said of a run that is not gated, with the ini file that may have done that."""
    ini = manifest.get("ini_file")
    return f"gate {gate['mode']}: no result can fail this run" + (f" (ini file: {ini})" if ini else "")


def ini_line(gate: Mapping[str, Any], manifest: Mapping[str, Any]) -> str:
    """Return what the ini file decided about the gate, or "": whoever edits that file softens it."""
    named = manifest.get("gate_from_ini")
    if not isinstance(named, Mapping) or not named:
        return ""
    told = ", ".join(f"{str(name).replace('_', '-')} {value}" for name, value in named.items())
    softer = " (the default is examples)" if "gate" in named and gate.get("mode") in ("none", "tasks") else ""
    return f"set by the ini file {manifest.get('ini_file', '')}: {told}{softer}"


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
    lines = [
        f"gate {gate['mode']}: {'not gated' if is_off(gate) else gate['verdict']}",
        *(f"  {reason}" for reason in gate["reasons"]),
    ]
    lines += [f"  {line}" for line in [baseline_line(gate)] if line]
    return lines + [f"  doubtful: {warning}" for warning in gate.get("warnings", ())]
