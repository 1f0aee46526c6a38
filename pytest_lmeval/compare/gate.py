"""The gate: whether a run is let pass, and the reasons where it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_lmeval.compare.changes import OVERALL, Criteria
from pytest_lmeval.compare.limits import limit_parts, limited_names, over_limits
from pytest_lmeval.compare.pairing import PAIR_BY, check_pairing
from pytest_lmeval.compare.remarks import (
    ambiguous_floor,
    check_quarantine,
    floor_without_score,
    names_of,
    quarantine_lines,
    suspicions,
    task_notes,
)
from pytest_lmeval.errors import UnknownName, UsageError
from pytest_lmeval.leaderboard.rows import rows_called
from pytest_lmeval.records.boardfile import NO_RESULT, NOT_COMPARED
from pytest_lmeval.text import printable

if TYPE_CHECKING:
    from pytest_lmeval.compare.compare import Comparison
    from pytest_lmeval.leaderboard.board import Leaderboard
    from pytest_lmeval.records.runfile import RunFile

MODES = ("examples", "tasks", "baseline", "none")
_NOTHING_TO_DECIDE_BY = (
    "nothing decides here: no floor or limit is set, no example must pass; --lm-min-score NAME=V sets a floor"
)
LET_PASS = frozenset({"pass", "new", "inconclusive"})
"""The verdicts with which a run passes, whatever its items say."""
_FINE = frozenset({"pass", "improvement"})


@dataclass(frozen=True, slots=True)
class GateSettings:
    """How the gate was set: one of MODES, the floors and limits, and the test against a baseline.

    Floors are by task, limits by TASK.FIELD; ``overall`` is a task here.
    ``baseline`` is its path as it was given, or empty; ``update`` says that the run is to become the baseline.
    ``pair_by`` is one of PAIR_BY. ``models`` is how many models of the run share ``alpha``.
    """

    mode: str = "examples"
    floors: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    baseline: str = ""
    update: bool = False
    pair_by: str = "content"
    alpha: float = 0.05
    tolerance: float = 0.0
    models: int = 1
    strict: bool = False

    def __post_init__(self) -> None:
        """Raise UsageError for a mode that does not exist, and for a number out of range."""
        if self.mode not in MODES:
            raise UnknownName("gate", self.mode, MODES)
        if self.pair_by not in PAIR_BY:
            raise UnknownName("pair_by", self.pair_by, PAIR_BY)
        if self.models < 1:
            raise UsageError(f"gate: expected one model or more, got {self.models!r}")
        if not 0 < self.alpha < 1 or not 0 <= self.tolerance < 1:
            raise UsageError(
                f"gate: expected alpha above 0 and below 1, tolerance from 0 to below 1, got {self.alpha!r} and "
                f"{self.tolerance!r}"
            )
        for name, floor in self.floors.items():
            if not 0 <= floor <= 1:
                raise UsageError(f"gate: floor of {name!r}: expected a number from 0 to 1, got {floor!r}")
        for limit, most in self.limits.items():
            limit_parts(limit)
            if not 0 <= most < float("inf"):
                raise UsageError(f"gate: limit {limit!r}: expected a number from 0, got {most!r}")


_DEFAULT = GateSettings()


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a run is let pass, and why.

    ``reasons`` are those of every verdict that holds, of the deciding one first. ``exit_code`` is 3 for an incomplete
    run, 4 for a floor that no score can reach, 1 for a failed example or a verdict that fails the run, else 0.
    ``decided_by`` names what could have failed the run: ``thresholds``, ``baseline``, ``floors``, ``limits``,
    ``must_pass``.
    """

    verdict: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    settings: GateSettings
    comparison: Comparison | None
    exit_code: int
    baseline: Mapping[str, str] = field(default_factory=dict)
    decided_by: tuple[str, ...] = ()

    @property
    def passes(self) -> bool:
        """Whether the verdict lets the run pass."""
        return self.verdict in LET_PASS

    def to_json(self) -> dict[str, Any]:
        """Return the gate as the leaderboard file has it; the baseline and the comparison where there is one."""
        gate: dict[str, Any] = {
            "mode": self.settings.mode,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "warnings": list(self.warnings),
            "settings": asdict(self.settings),
            "decided_by": list(self.decided_by),
        }
        if self.baseline:
            gate["baseline"] = dict(self.baseline)
        if self.comparison is not None:
            gate["alpha"], gate["models"] = self.settings.alpha, self.settings.models
            gate["comparison"] = self.comparison.to_json()
        return gate


def decide(
    board: Leaderboard, baseline: RunFile | None = None, settings: GateSettings = _DEFAULT, *, root: Path | None = None
) -> Decision:
    """Return the decision on a run: the one place that compares and judges.

    Of several verdicts the first of incomplete, stale, regression, floor, limit, must_pass, examples, inconclusive,
    pass holds. Whatever the verdict, the reasons say what was not compared with the baseline. A run that is to become
    the baseline is not judged by the old one; :func:`renewed` makes its verdict ``new`` once the file is written. A
    task of the baseline that the board lacks counts as removed, unless its file is still below ``root``. Raises
    UsageError for a baseline without per-example records, or without what pairs are made by, the mode ``baseline``
    without one, and a board whose examples were judged for another mode.
    """
    _check_mode(board, baseline, settings)
    if not settings.update:
        check_quarantine(board, baseline)
    if refusal := ambiguous_floor(settings.floors, {row.task: row.key for row in board.tasks}):
        raise UsageError(refusal)
    comparison = None
    if baseline is not None:
        # Only a run that is compared pays for what compares.
        from pytest_lmeval.compare.against import compare_with

        if not settings.update:
            check_pairing(baseline.results or (), settings.pair_by, baseline.path)
        comparison = compare_with(baseline, board, _criteria(board, settings), root)
    findings = _findings(board, settings, comparison)
    reasons = [reason for _, reason in findings]
    # Near the top: reports show the first reasons of many.
    reasons[1:1] = _coverage(board, settings, comparison)
    verdict = findings[0][0] if findings else "pass"
    return Decision(
        verdict,
        tuple(reasons),
        (
            *task_notes(board),
            *suspicions(board),
            *_doubts(board, baseline, settings),
            *_changed_tests(comparison),
            *(_shared(board, baseline) if baseline is not None and "cached" in board.spent else ()),
        ),
        settings,
        comparison,
        _exit_code(board, settings, verdict),
        {} if baseline is None else _named(baseline, settings),
        _decided_by(board, settings, comparison),
    )


def renewed(decision: Decision, verdict: str, reason: str) -> Decision:
    """Return the decision on a run that was to become the baseline, ``reason`` saying what became of that.

    ``verdict`` is that of a run which passes otherwise: ``new`` where the file was written, ``pass`` where it held the
    same before, ``stale`` where it was not written.
    """
    reasons = list(decision.reasons)
    # Behind what decides, and near the top.
    reasons.insert(0 if decision.passes else 1, reason)
    found = replace(decision, reasons=tuple(reasons))
    if not decision.passes:
        return found
    return replace(found, verdict=verdict, exit_code=found.exit_code or int(verdict not in LET_PASS))


def let_pass(gate: Mapping[str, Any]) -> bool:
    """Tell whether the gate of a board lets the run pass."""
    return gate["verdict"] in LET_PASS


def _shared(board: Leaderboard, baseline: RunFile) -> list[str]:
    from pytest_lmeval.compare.shared_answers import shared_with_baseline

    return shared_with_baseline(baseline.results or (), (each for row in board.tasks for each in row.per_example))


def _check_mode(board: Leaderboard, baseline: RunFile | None, settings: GateSettings) -> None:
    if (
        settings.mode == "baseline"
        and baseline is None
        and not settings.update
        and "shard" not in board.facts.selection
    ):
        raise UsageError("the gate 'baseline' needs a baseline to compare with; choose another mode, or give one")
    if settings.mode == "examples" and board.facts.mode not in ("", "examples"):
        raise UsageError(
            f"the examples of this board were judged for the gate {board.facts.mode!r}: none of them is failed; run "
            "them for the gate 'examples'"
        )


def _criteria(board: Leaderboard, settings: GateSettings) -> Criteria:
    model = board.facts.manifest.get("model")
    exact = isinstance(model, dict) and model.get("exact") is True
    return Criteria(settings.alpha, settings.tolerance, settings.strict, exact, settings.pair_by, settings.models)


def _doubts(board: Leaderboard, baseline: RunFile | None, settings: GateSettings) -> list[str]:
    found = []
    if baseline is not None:
        from pytest_lmeval.compare.baseline import doubts

        found += doubts(baseline, board)
    for what, names in (("floor", settings.floors), ("limit", limited_names(settings.limits))):
        unknown = [name for name in names if name != OVERALL and not rows_called(name, board.tasks)]
        found += [f"its {what} was not checked, this run has no such task: {name}" for name in unknown]
    found += quarantine_lines(board, settings.baseline)
    if len(board.served_by) > 1:
        found.append(f"several models answered, by what the server says of them: {names_of(board.served_by)}")
    if count := board.facts.reruns:
        found.append(f"{count} attempt(s) failed and were made again: a score of the best of several is too high")
    return found


def _changed_tests(comparison: Comparison | None) -> list[str]:
    if comparison is None or not comparison.functions:
        return []
    return [printable(f"the test changed too: {', '.join(comparison.functions)}", keep="")]


def _exit_code(board: Leaderboard, settings: GateSettings, verdict: str) -> int:
    if not board.complete:
        return 3
    if floor_without_score(board, settings.floors):
        return 4
    # Errors that a complete run has are within what may be: the gate decides on the others.
    failed = any(result.status == "failed" for row in board.tasks for result in row.per_example)
    return int(failed or verdict not in LET_PASS)


def _named(baseline: RunFile, settings: GateSettings) -> dict[str, str]:
    path = settings.baseline or str(baseline.path)
    return {"path": path, "adapter": baseline.adapter, "timestamp": baseline.timestamp}


_Finding = tuple[str, str]


def _findings(board: Leaderboard, settings: GateSettings, comparison: Comparison | None) -> list[_Finding]:
    found = [("incomplete", reason) for reason in (*board.facts.interruptions, *_incomplete(board))]
    failures = [("examples", reason) for reason in board.facts.failures]
    allowed = [("pass", reason) for reason in _allowed_errors(board)]
    if settings.mode == "none":
        missed = [*_under_floor(board, settings), *over_limits(board, settings.limits)]
        return [
            *found,
            *failures,
            *allowed,
            *(("pass", f"{reason}; the gate is none: fails nothing") for reason in missed),
        ]
    if settings.mode == "baseline" and comparison is not None and not settings.update:
        found += _compared(comparison, ("stale", "regression"))
        if comparison.verdict == "stale" and not comparison.only_measured and board.complete:
            found.append(("stale", f"to renew it: --lm-baseline={settings.baseline} --lm-update-baseline"))
    found += [("floor", reason) for reason in _under_floor(board, settings)]
    found += [("limit", reason) for reason in over_limits(board, settings.limits)]
    found += [("must_pass", reason) for reason in _must_pass(board)]
    if settings.mode == "examples":
        found += [("examples", reason) for reason in _under_threshold(board)]
    found += failures
    if settings.mode == "baseline" and comparison is not None and not settings.update:
        found += _compared(comparison, ("inconclusive",))
        # Also of a run that passes: what so many examples could have shown at all.
        found += [("pass", reason) for reason in comparison.reasons[:1] if comparison.verdict in _FINE]
    found += allowed
    if not board.counts["scored"]:
        found.append(("pass", "no example was scored"))
    is_judged = board.complete and "shard" not in board.facts.selection
    shard = board.facts.selection.get("shard")
    if shard and not settings.baseline:
        found.append(("pass", f"shard {shard} alone: lmeval merge over all shards decides"))
    if settings.mode == "tasks" and is_judged and not _decided_by(board, settings, comparison):
        found.append(("pass", _NOTHING_TO_DECIDE_BY))
    return found


def _decided_by(board: Leaderboard, settings: GateSettings, comparison: Comparison | None) -> tuple[str, ...]:
    """Return what of a run could have failed it, besides that it is incomplete."""
    if settings.mode == "none":
        return ()
    results = [result for row in board.tasks for result in row.per_example]
    held = {
        "thresholds": settings.mode == "examples",
        "baseline": settings.mode == "baseline" and comparison is not None,
        "floors": any(name == OVERALL or rows_called(name, board.tasks) for name in settings.floors),
        "limits": any(name == OVERALL or rows_called(name, board.tasks) for name in limited_names(settings.limits)),
        "must_pass": any(result.must_pass and result.status != "quarantined" for result in results),
    }
    return tuple(name for name, is_held in held.items() if is_held)


def _coverage(board: Leaderboard, settings: GateSettings, comparison: Comparison | None) -> Sequence[str]:
    if comparison is not None:
        return comparison.coverage
    if settings.baseline and "shard" in board.facts.selection:
        # A part of a run is compared only where somebody asks for that.
        return (f"{NOT_COMPARED}a shard of a run; lmeval merge compares the whole run with the baseline",)
    return (f"{NOT_COMPARED}there was no baseline before this run",) if settings.update else ()


def _incomplete(board: Leaderboard) -> list[str]:
    reasons = [f"{NO_RESULT}{nodeid}" for nodeid in board.facts.missing]
    errors = board.counts["errors"] + board.counts["timeouts"]
    if errors > board.facts.max_errors:
        reasons.append(f"{errors} example(s) could not be scored; at most {board.facts.max_errors:g} may")
    if not board.counts["scored"]:
        held = board.counts.get("quarantined")
        why = [f"{board.counts['excluded']} were excluded by their tasks"] if board.counts["excluded"] else []
        why += [f"{held} are quarantined"] if held else []
        why += [f"{errors} ended in an error"] if 0 < errors <= board.facts.max_errors else []
        reasons += [f"no example was scored: {' and '.join(why)}"] if why else []
    return reasons + [f"{row.task}: {row.problem}" for row in board.tasks if row.problem]


def _compared(comparison: Comparison, verdicts: Sequence[str]) -> list[_Finding]:
    if comparison.verdict not in verdicts:
        return []
    return [(comparison.verdict, reason) for reason in comparison.reasons]


def _under_floor(board: Leaderboard, settings: GateSettings) -> list[str]:
    if "shard" in board.facts.selection:
        # A part of the examples says nothing of the whole; the parts are judged once they are merged.
        return []
    reasons = []
    outside = {row.task for row in board.tasks if row.is_outside}
    # What a task says itself, where nobody says something else.
    silent = [row for row in board.tasks if not {row.task, row.key} & settings.floors.keys()]
    own = {row.task: row.min_score for row in silent if row.min_score is not None}
    for name, floor in {**own, **settings.floors}.items():
        if refusal := floor_without_score(board, [name]):
            reasons.append(refusal)
            continue
        # The floor of one variant counts for it, and not that of all.
        rows = [row for row in rows_called(name, board.tasks) if row.task == name or row.task not in settings.floors]
        reached = {OVERALL: board.overall_score} if name == OVERALL else {row.task: row.score for row in rows}
        for task, score in reached.items():
            if score is None and task in outside:
                continue
            if score is None:
                reasons.append(f"{task}: no score, and the floor is {floor:g}")
            elif score < floor:
                reasons.append(f"{task}: {score:.4f} is under its floor {floor:g}")
    return reasons


def _must_pass(board: Leaderboard) -> list[str]:
    return [
        f"{result.task}: {result.id} must pass, and is {result.status}"
        for row in board.tasks
        for result in row.per_example
        if result.must_pass and result.status not in ("passed", "excluded", "quarantined")
    ]


def _under_threshold(board: Leaderboard) -> list[str]:
    failed = {row.task: sum(result.status == "failed" for result in row.per_example) for row in board.tasks}
    return [f"{task}: {count} example(s) under their threshold" for task, count in failed.items() if count]


def _allowed_errors(board: Leaderboard) -> list[str]:
    errors = board.counts["errors"] + board.counts["timeouts"]
    if not errors or not board.complete:
        return []
    return [f"{errors} example(s) could not be scored, and --lm-max-errors allows {board.facts.max_errors:g}"]
