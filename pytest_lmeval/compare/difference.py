"""Describe how two runs differ: scores, the paired test, and changed task files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pytest_lmeval.compare.compare import Comparison, failing_otherwise, flip_record
from pytest_lmeval.compare.gate import Decision, GateSettings, decide
from pytest_lmeval.compare.history import board_json
from pytest_lmeval.compare.remarks import quarantine_of
from pytest_lmeval.numbers import is_number
from pytest_lmeval.records.runfile import RunFile, board_of

Scores = tuple[float | None, float | None]
"""The scores of the old and the new run; None if missing."""


@dataclass(frozen=True, slots=True)
class ChangedTask:
    """A task whose file differs between the runs, with both SHA-256 hashes."""

    task: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class Difference:
    """The changes from one run to another.

    ``scores`` maps each task to its scores in both runs, and ``overall`` contains the overall scores. ``decision`` is
    the gate's decision on the new run, with the old run as its baseline. The decision is None if a file has no
    per-example records. ``notes`` give reasons to doubt the difference.
    """

    old: RunFile
    new: RunFile
    scores: Mapping[str, Scores]
    overall: Scores
    decision: Decision | None
    changed_tasks: tuple[ChangedTask, ...]
    notes: tuple[str, ...]

    @property
    def comparison(self) -> Comparison | None:
        """The paired comparison, or None if a file has no per-example records."""
        return None if self.decision is None else self.decision.comparison

    @property
    def verdict(self) -> str:
        """The verdict on the new run, ``improvement`` if the run passes and is better, or "" without a comparison."""
        if self.decision is None or self.comparison is None:
            return ""
        better = self.decision.verdict == "pass" and self.comparison.verdict == "improvement"
        return "improvement" if better else self.decision.verdict

    @property
    def is_finding(self) -> bool:
        """True if the gate fails the new run."""
        return self.decision is not None and not self.decision.passes

    def to_json(self) -> dict[str, Any]:
        """Return the difference as JSON values."""
        gate = None if self.decision is None else self.decision.to_json()
        comparison = None if gate is None else gate.pop("comparison", None)
        failing = [] if self.comparison is None else failing_otherwise(self.comparison)
        return {
            "old": _side(self.old),
            "new": _side(self.new),
            "scores": {name: {"old": old, "new": new} for name, (old, new) in self.scores.items()},
            "overall": {"old": self.overall[0], "new": self.overall[1]},
            "gate": gate,
            "comparison": comparison,
            **({"failing_otherwise": [flip_record(pair) for pair in failing]} if failing else {}),
            "changed_tasks": [asdict(task) for task in self.changed_tasks],
            "notes": list(self.notes),
        }


def difference(old: RunFile, new: RunFile, settings: GateSettings, root: Path | None = None) -> Difference:
    """Compare ``new`` with ``old``, pair by pair if both files have per-example records.

    The floors and limits that the new run recorded apply unless ``settings`` overrides them. ``root`` has the same
    meaning as for :func:`decide`.
    """
    floors, limits = {**new.facts.floors, **settings.floors}, {**new.facts.limits, **settings.limits}
    settings = replace(settings, floors=floors, limits=limits)
    (before, old_overall), (after, new_overall) = _scores(old), _scores(new)
    decision = None
    if old.results is not None and new.results is not None:
        results = quarantine_of(new, old).judged(new.results, settings.mode)
        decision = decide(board_of(replace(new, results=results)), old, settings, root=root)
    return Difference(
        old=old,
        new=new,
        scores={name: (before.get(name), after.get(name)) for name in sorted(before.keys() | after.keys())},
        overall=(old_overall, new_overall),
        decision=decision,
        changed_tasks=tuple(_changed_tasks(old, new)),
        notes=tuple(_notes(old, new)),
    )


def _changed_tasks(old: RunFile, new: RunFile) -> list[ChangedTask]:
    hashes = {name: (old.infos[name].sha256, new.infos[name].sha256) for name in old.infos if name in new.infos}
    return [
        ChangedTask(name, *pair) for name, pair in sorted(hashes.items()) if None not in pair and pair[0] != pair[1]
    ]


def _notes(old: RunFile, new: RunFile) -> list[str]:
    notes = []
    for run in (old, new):
        if not run.complete:
            notes.append(f"{run.path}: not complete; its scores cover the scored examples")
        if run.damaged:
            notes.append(f"{run.path}: {run.damaged} line(s) could not be read")
        if not run.agrees:
            notes.append(f"{run.path}: its results do not match its digest")
        if run.results is None:
            notes.append(
                f"{run.path}: no per-example records, so no paired test was possible; name the run's ledger.jsonl, or "
                "write its board with --lm-include-per-example"
            )
    if (old.digest, old.timestamp) == (new.digest, new.timestamp) and old.digest:
        notes.append("both files are of the same run")
    return notes


def _scores(run: RunFile) -> tuple[dict[str, float | None], float | None]:
    board = board_json(run)
    scores: dict[str, float | None] = {}
    for row in board["tasks"]:
        scores[str(row["task"])] = _number(row.get("score"))
        scores |= {f"{row['task']}.{name}": _number(each["score"]) for name, each in row.get("scores", {}).items()}
    return scores, _number(board.get("overall_score"))


def _number(score: Any) -> float | None:
    return float(score) if is_number(score) else None


def _side(run: RunFile) -> dict[str, Any]:
    return {
        "path": str(run.path),
        "adapter": run.adapter,
        "timestamp": run.timestamp,
        "complete": run.complete,
        "digest": run.digest,
    }
