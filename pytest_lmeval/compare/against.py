"""A board against an earlier run: which of its examples can be compared, and the comparison of those."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from pytest_lmeval.compare.changes import Criteria
from pytest_lmeval.compare.compare import Comparison, compare
from pytest_lmeval.leaderboard.board import Leaderboard
from pytest_lmeval.records.runfile import RunFile, examples_of
from pytest_lmeval.types import ExampleResult


def compare_with(baseline: RunFile, board: Leaderboard, criteria: Criteria, root: Path | None = None) -> Comparison:
    """Return the paired comparison of a board with an earlier run; raise UsageError if that has no examples.

    Examples that the board left out by choice are outside of the comparison, and so is a task that the board does not
    have while its file still lies below ``root``. Without ``root`` such a task counts as removed. ``criteria.exact``
    holds only where the baseline is the same model's: of another one, a flip says nothing by itself.
    """
    criteria = replace(criteria, exact=criteria.exact and baseline.adapter == board.facts.adapter)
    new = [result for row in board.tasks for result in row.per_example]
    present = {row.task for row in board.tasks}
    counts = board.facts.selection.get("tasks", {})
    partial = {name for name, count in counts.items() if count.get("selected") != count.get("available")}

    def outside(task: str, id: str) -> bool:
        if task in present:
            return task in partial
        info = baseline.infos.get(task)
        return task in partial or (root is not None and info is not None and (root / info.path).is_file())

    # Which examples were skipped is not recorded: of a board that has some, those without a result may be either.
    gone = "removed, skipped or lost" if _may_have_lost(board) else "removed"
    left_out = _other_sandbox(baseline, board, new)
    return compare(examples_of(baseline), new, criteria, left_out=left_out, outside=outside, gone=gone)


def _may_have_lost(board: Leaderboard) -> bool:
    return bool(board.facts.skipped or board.facts.missing or not board.facts.finished)


def _other_sandbox(baseline: RunFile, board: Leaderboard, new: Iterable[ExampleResult]) -> Mapping[str, str]:
    old, now = (manifest.get("sandbox") for manifest in (baseline.manifest, board.facts.manifest))
    if old == now or old is None:
        return {}
    tasks = sorted({result.task for result in new if result.metric == "code_exec"})
    return dict.fromkeys(tasks, f"run at sandbox level {now}, in the baseline at {old}")
