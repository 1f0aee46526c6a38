"""Decide whether a run passes the gate, and give the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_lmeval.compare.criteria import PAIR_BY, Criteria
from pytest_lmeval.compare.findings import decided_by, during, findings, limited_names, not_compared
from pytest_lmeval.compare.remarks import (
    ambiguous_floor,
    check_quarantine,
    floor_without_score,
    not_in_force,
    suspicions,
    task_notes,
)
from pytest_lmeval.errors import UnknownName, UsageError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.details import names_of
from pytest_lmeval.leaderboard.rows import rows_called
from pytest_lmeval.numbers import Number
from pytest_lmeval.text import printable
from pytest_lmeval.types import OVERALL

if TYPE_CHECKING:
    from pytest_lmeval.compare.compare import Comparison
    from pytest_lmeval.leaderboard.board import Leaderboard
    from pytest_lmeval.records.runfile import RunFile

MODES = ("examples", "tasks", "baseline", "none")
LET_PASS = frozenset({"pass", "new", "inconclusive"})
"""The verdicts of runs that pass."""


@dataclass(frozen=True, slots=True)
class GateSettings:
    """Settings of the gate; ``mode`` is one of MODES, and ``pair_by`` is one of PAIR_BY.

    The keys of ``floors`` are tasks, and the keys of ``limits`` are names such as ``TASK.cost``. The task ``overall``
    means the whole run. ``baseline`` is the path that the user gave, or empty. ``update`` is True if the run should
    become the baseline. ``models`` is the number of models in the run, which share ``alpha``.
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
        """Raise UsageError for an unknown mode, pairing or limit field, or for a number out of range."""
        if self.mode not in MODES:
            raise UnknownName("gate", self.mode, MODES)
        if self.pair_by not in PAIR_BY:
            raise UnknownName("pair_by", self.pair_by, PAIR_BY)
        numbers: list[tuple[str, object, Number]] = [
            ("models", self.models, Number(1, whole=True)),
            ("alpha", self.alpha, Number(above=0, below=1)),
            ("tolerance", self.tolerance, Number(0, below=1)),
            *((f"floors.{name}", floor, Number(0, 1)) for name, floor in self.floors.items()),
            *((f"limits.{limit}", most, Number(0)) for limit, most in self.limits.items()),
        ]
        limited_names(self.limits)
        for name, value, allowed in numbers:
            if not allowed.allows(value):
                raise UsageError(f"gate.settings.{name}: expected {allowed}, got {value!r:.80}")


_DEFAULT = GateSettings()


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict on a run, with reasons.

    ``reasons`` explain all verdicts that apply, the decisive verdict first. ``exit_code`` is 3 for an incomplete run, 4
    if a floor names a task without a score, 1 if an example or the verdict fails the run, and 0 otherwise.
    ``decided_by`` names the rules that could have failed the run, such as ``baseline`` or ``must_pass``.
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
        """True if the verdict lets the run pass."""
        return self.verdict in LET_PASS

    def to_json(self) -> dict[str, Any]:
        """Return the ``gate`` field of leaderboard.json, with the comparison if there is a baseline."""
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
    """Decide whether a run passes; no other code makes this decision.

    The verdict is the first that applies, in the order incomplete, stale, regression, floor, limit, must_pass,
    examples, inconclusive, pass. The reasons always say which examples were not compared with the baseline. The old
    baseline cannot fail a run that will replace it; :func:`renewed` sets the verdict ``new`` after the file is written.
    If the board lacks a task in the baseline, the task counts as removed unless its file still exists below ``root``.
    Raise UsageError for a baseline without per-example records, or without the hashes or ids that pairing needs. Also
    raise it for the mode ``baseline`` without a baseline, and for a board whose examples were judged in another mode.
    """
    _check_mode(board, baseline, settings)
    if baseline is not None and not settings.update:
        check_quarantine(board, baseline)
    if settings.floors and (refusal := ambiguous_floor(settings.floors, {row.task: row.key for row in board.tasks})):
        raise UsageError(refusal)
    comparison = None
    if baseline is not None:
        # Import these modules only if there is something to compare, because the imports take time.
        from pytest_lmeval.compare.compare import compare_with
        from pytest_lmeval.compare.pairing import check_pairing

        if not settings.update:
            check_pairing(baseline, settings.pair_by, baseline.path)
        comparison = compare_with(baseline, board, _criteria(board, settings), root)
    found = findings(board, settings, comparison)
    reasons = [reason for _, reason in found]
    # Insert these lines after the decisive reason, because reports show only the first reasons.
    reasons[1:1] = not_compared(board, settings) if comparison is None else comparison.coverage
    verdict = found[0][0] if found else "pass"
    return Decision(
        verdict,
        tuple(reasons),
        (*task_notes(board), *suspicions(board), *_doubts(board, baseline, settings, comparison)),
        settings,
        comparison,
        _exit_code(board, settings, verdict),
        {} if baseline is None else _named(baseline, settings),
        decided_by(board, settings, compared=comparison is not None),
    )


def renewed(decision: Decision, verdict: str, reason: str) -> Decision:
    """Add to the decision what happened to the baseline file that the run was meant to write.

    If the decision lets the run pass, ``verdict`` replaces its verdict. The new verdict is ``new`` if the file was
    written, ``pass`` if the file already contained the same results, and ``stale`` if the file was not written.
    """
    reasons = list(decision.reasons)
    # In a run that fails, the decisive reason stays first.
    reasons.insert(0 if decision.passes else 1, reason)
    found = replace(decision, reasons=tuple(reasons))
    if not decision.passes:
        return found
    return replace(found, verdict=verdict, exit_code=found.exit_code or int(verdict not in LET_PASS))


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


def _doubts(
    board: Leaderboard, baseline: RunFile | None, settings: GateSettings, comparison: Comparison | None
) -> list[str]:
    found = []
    if baseline is not None:
        from pytest_lmeval.compare.baseline import doubts

        found += doubts(baseline, board)
    limited = limited_names(settings.limits) if settings.limits else ()
    for what, names in (("floor", settings.floors), ("limit", limited)):
        unknown = [name for name in names if name != OVERALL and not rows_called(name, board.tasks)]
        if what == "floor" and unknown:
            from pytest_lmeval.compare.scores import task_of_score

            unknown = [name for name in unknown if not task_of_score(name, board)]
        found += [f"{what} not checked, this run has no task of that name: {name}" for name in unknown]
    if any(row.scores for row in board.tasks):
        from pytest_lmeval.compare.scores import shared_names

        found += shared_names(board)
    found += not_in_force(board)
    found += [reason] if not settings.strict and (reason := during(board)) else []
    if len(board.served_by) > max(1, len({name for row in board.tasks for name in row.models.get("answered", ())})):
        found.append(f"several models answered, according to the server: {names_of(board.served_by)}")
    if count := board.facts.reruns:
        found.append(f"{count} failed attempt(s) were repeated: the score of the best of several attempts is too high")
    if comparison is not None and comparison.functions:
        found.append(printable(f"the test changed too: {', '.join(comparison.functions)}", keep=""))
    if baseline is not None and "cached" in board.spent:
        from pytest_lmeval.compare.baseline import shared_with_baseline

        new = (each for row in board.tasks for each in row.per_example)
        found += shared_with_baseline(baseline.results or (), new)
    return found


def _exit_code(board: Leaderboard, settings: GateSettings, verdict: str) -> int:
    if not board.complete:
        return 3
    if settings.floors and floor_without_score(board, settings.floors):
        return 4
    # A complete run has no more errors than --lm-max-errors allows, so the gate decides on the other examples.
    failed = any(result.status == "failed" for row in board.tasks for result in row.per_example)
    return int(failed or verdict not in LET_PASS)


def _named(baseline: RunFile, settings: GateSettings) -> dict[str, str]:
    path = settings.baseline or str(baseline.path)
    return {"path": path, "adapter": baseline.adapter, "timestamp": baseline.timestamp}
