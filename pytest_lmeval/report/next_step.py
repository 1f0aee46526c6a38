"""The line that a run's last screen ends with: the command that most users want after such a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_lmeval.leaderboard.board import Leaderboard

_USUAL = "baseline.json"


def next_step(board: Leaderboard, reports: str, baseline: str, *, is_first: bool) -> str:
    """Return what the user can do next, or "" where there is nothing to learn: after most runs.

    ``reports`` is the folder of the board. ``baseline`` is the file that the run was compared with; of a run without
    one, the file of the usual name if it is there. ``is_first`` says that the folder had no run before this one.
    """
    gate = board.facts.gate or {}
    mode, verdict = gate.get("mode"), gate.get("verdict")
    if not board.complete or board.facts.selection or "argv" not in board.facts.manifest:
        return ""
    if mode == "baseline":
        return _after_comparing(str(verdict), reports, baseline)
    if not is_first or verdict not in ("pass", "examples"):
        return ""
    options = f"--lm-baseline={baseline or _USUAL}{'' if baseline else ' --lm-update-baseline'}"
    options = f"--lm-gate=baseline {options}" if mode == "none" else options
    wish = "to fail only where a later run is worse" if verdict == "examples" else "to compare later runs with this one"
    return f"{f'to compare with {baseline}' if baseline else wish}: the same command with {options}"


def _after_comparing(verdict: str, reports: str, baseline: str) -> str:
    if verdict == "new":
        return f"to compare with it: commit {baseline}, then the same command without --lm-update-baseline"
    if verdict == "regression":
        return f"to see the answers then and now: lmeval diff {baseline} {reports}/leaderboard.json"
    return ""
