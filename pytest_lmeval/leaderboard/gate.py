"""The gate: whether a run is let pass, and the reasons where it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_lmeval.leaderboard.coverage import NOT_COMPARED
from pytest_lmeval.leaderboard.measured import floor_without_score, measured_lines
from pytest_lmeval.leaderboard.suspicion import suspicions

if TYPE_CHECKING:
    from pytest_lmeval.leaderboard.board import Leaderboard
    from pytest_lmeval.leaderboard.compare import Comparison

__all__ = ["LET_PASS", "MODES", "OVERALL", "GateSettings", "decide", "let_pass", "renewed"]

MODES = ("examples", "tasks", "baseline", "none")
LET_PASS = frozenset({"pass", "new", "inconclusive"})
"""The verdicts with which a run passes, whatever its items say."""
OVERALL = "overall"
_FINE = frozenset({"pass", "improvement"})


@dataclass(frozen=True, slots=True)
class GateSettings:
    """How the gate was set: one of MODES, the floors by task name (``overall`` too), and the test against a baseline.

    ``baseline`` is its path as it was given, or empty; ``update`` says that the run is to become the baseline.
    """

    mode: str = "examples"
    floors: Mapping[str, float] = field(default_factory=dict)
    baseline: str = ""
    update: bool = False
    alpha: float = 0.05
    tolerance: float = 0.0
    strict: bool = False


def decide(
    board: Leaderboard,
    settings: GateSettings,
    *,
    incomplete: Sequence[str] = (),
    failed: Sequence[str] = (),
    warnings: Sequence[str] = (),
    comparison: Comparison | None = None,
) -> dict[str, Any]:
    """Return the gate of the board: mode, verdict, every reason, warnings, settings, the comparison where there is one.

    ``incomplete`` are reasons of the caller's own why the run did not come to its end, ``failed`` why tests of examples
    failed whatever their scores, ``warnings`` what makes the run doubtful besides. Of several verdicts the first of
    incomplete, stale, regression, floor, must_pass, examples, inconclusive, pass holds; the reasons are those of all
    of them. Whatever the verdict, they say what was not compared with the baseline. A run that is to become the
    baseline is not judged by the old one; :func:`renewed` makes its verdict ``new`` once the file is written.
    """
    findings = _findings(board, settings, incomplete, failed, comparison)
    reasons = [reason for _, reason in findings]
    # Near the top: reports show the first reasons of many.
    reasons[1:1] = _coverage(board, settings, comparison)
    gate: dict[str, Any] = {
        "mode": settings.mode,
        "verdict": findings[0][0] if findings else "pass",
        "reasons": reasons,
        "warnings": [*measured_lines(board), *suspicions(board), *warnings],
        "settings": asdict(settings),
    }
    if comparison is not None:
        gate["comparison"] = comparison.to_json()
    return gate


def renewed(gate: Mapping[str, Any], verdict: str, reason: str) -> dict[str, Any]:
    """Return the gate of a run that was to become the baseline, ``reason`` saying what became of that.

    ``verdict`` is that of a run which passes otherwise: ``new`` where the file was written, ``pass`` where it held the
    same before, ``stale`` where it was not written.
    """
    passes = gate["verdict"] in LET_PASS
    reasons = list(gate["reasons"])
    # Behind what decides, and near the top.
    reasons.insert(0 if passes else 1, reason)
    return {**gate, "verdict": verdict if passes else gate["verdict"], "reasons": reasons}


def let_pass(gate: Mapping[str, Any]) -> bool:
    """Tell whether the gate lets the run pass."""
    return gate["verdict"] in LET_PASS


_Finding = tuple[str, str]


def _findings(
    board: Leaderboard,
    settings: GateSettings,
    incomplete: Sequence[str],
    failed: Sequence[str],
    comparison: Comparison | None,
) -> list[_Finding]:
    found = [("incomplete", reason) for reason in (*incomplete, *_incomplete(board))]
    failures = [("examples", reason) for reason in (*_unscored(board), *failed)]
    if settings.mode == "none":
        return found + failures
    if settings.mode == "baseline" and comparison is not None and not settings.update:
        found += _compared(comparison, ("stale", "regression"))
        if comparison.verdict == "stale" and not comparison.only_measured:
            found.append(("stale", f"to renew it: --lm-baseline={settings.baseline} --lm-update-baseline"))
    found += [("floor", reason) for reason in _under_floor(board, settings)]
    found += [("must_pass", reason) for reason in _must_pass(board)]
    if settings.mode == "examples":
        found += [("examples", reason) for reason in _under_threshold(board)]
    found += failures
    if settings.mode == "baseline" and comparison is not None and not settings.update:
        found += _compared(comparison, ("inconclusive",))
        # Also of a run that passes: what so many examples could have shown at all.
        found += [("pass", reason) for reason in comparison.reasons[:1] if comparison.verdict in _FINE]
    if not board.counts["scored"]:
        found.append(("pass", "no example was scored"))
    return found


def _coverage(board: Leaderboard, settings: GateSettings, comparison: Comparison | None) -> Sequence[str]:
    if comparison is not None:
        return comparison.coverage
    if settings.baseline and "shard" in board.facts.selection:
        return (f"{NOT_COMPARED}a shard of a run; lmeval merge compares the whole run with the baseline",)
    return (f"{NOT_COMPARED}there was no baseline before this run",) if settings.update else ()


def _incomplete(board: Leaderboard) -> list[str]:
    reasons = [f"no result: {nodeid}" for nodeid in board.facts.missing]
    errors = board.counts["errors"] + board.counts["timeouts"]
    if errors > board.facts.max_errors:
        reasons.append(f"{errors} example(s) could not be scored; at most {board.facts.max_errors:g} may")
    if board.counts["excluded"] and not board.counts["scored"]:
        reasons.append(f"no example was scored: {board.counts['excluded']} were excluded by their tasks")
    return reasons + [f"{row.task}: {row.problem}" for row in board.tasks if row.problem]


def _compared(comparison: Comparison, verdicts: Sequence[str]) -> list[_Finding]:
    if comparison.verdict not in verdicts:
        return []
    return [(comparison.verdict, reason) for reason in comparison.reasons]


def _under_floor(board: Leaderboard, settings: GateSettings) -> list[str]:
    if "shard" in board.facts.selection:
        # A part of the examples says nothing of the whole; the parts are judged once they are merged.
        return []
    reached = {row.task: row.score for row in board.tasks}
    reasons = []
    for name, floor in settings.floors.items():
        known = name == OVERALL or name in reached
        if refusal := floor_without_score(board, [name]):
            reasons.append(refusal)
            continue
        score = board.overall_score if name == OVERALL else reached.get(name)
        if known and score is None:
            reasons.append(f"{name}: no score, and the floor is {floor:g}")
        elif score is not None and score < floor:
            reasons.append(f"{name}: {score:.4f} is under its floor {floor:g}")
    return reasons


def _must_pass(board: Leaderboard) -> list[str]:
    return [
        f"{result.task}: {result.id} must pass, and is {result.status}"
        for row in board.tasks
        for result in row.per_example
        if result.must_pass and result.status not in ("passed", "excluded")
    ]


def _under_threshold(board: Leaderboard) -> list[str]:
    failed = {row.task: sum(result.status == "failed" for result in row.per_example) for row in board.tasks}
    return [f"{task}: {count} example(s) under their threshold" for task, count in failed.items() if count]


def _unscored(board: Leaderboard) -> list[str]:
    errors = board.counts["errors"] + board.counts["timeouts"]
    if not errors or errors > board.facts.max_errors:
        return []
    return [f"{errors} example(s) could not be scored, failed tests that --lm-max-errors allows"]
