"""Write GitHub Actions' step summary, and annotations for lines of task files."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from pytest_lmeval.compare.gate import LET_PASS
from pytest_lmeval.leaderboard.board import Leaderboard, failures_of
from pytest_lmeval.leaderboard.passing import missed_lines
from pytest_lmeval.leaderboard.rows import as_in_data
from pytest_lmeval.numbers import beside
from pytest_lmeval.report.cells import cells_of, changed_cells
from pytest_lmeval.report.tables import Row, cut_to
from pytest_lmeval.text import printable
from pytest_lmeval.types import ExampleResult

ANNOTATIONS = 10
"""The maximum number of annotations of each level that GitHub shows per step."""
_SUMMARY_BYTES = 1 << 20


def add_step_summary(markdown: str, path: Path) -> None:
    """Append ``markdown`` to the step summary at ``path``; cut it if the file would exceed GitHub's limit of 1 MiB."""
    left = _SUMMARY_BYTES - (path.stat().st_size if path.exists() else 0)
    with path.open("ab") as file:
        file.write(cut_to(markdown, left - 1).encode("utf-8", "backslashreplace") + b"\n" if left > 1 else b"")


def commands(board: Leaderboard, root: Path, environment: Mapping[str, str], label: str = "") -> list[str]:
    """Return workflow commands that annotate the lines of failed or worse examples, or no commands outside Actions.

    Task paths are relative to ``root``. In a multi-model run, ``label`` names the model. The annotations are warnings
    if the run passes, and errors if it fails.
    """
    if environment.get("GITHUB_ACTIONS") != "true":
        return []
    gate = board.facts.gate or {}
    level = "warning" if gate.get("verdict") in LET_PASS else "error"
    workspace = environment.get("GITHUB_WORKSPACE") or str(root)
    paths = {row.task: row.path for row in board.tasks}
    worse = (gate.get("comparison") or {}).get("worse", ()) if gate.get("mode") == "baseline" else ()
    changed = {(flip["task"], flip["id"]): flip for flip in worse}
    shown = [result for result in _worth_a_note(board, changed) if result.line][:ANNOTATIONS]
    return [
        annotation(
            replace(result, id=f"{result.id}[{label}]") if label else result,
            os.path.relpath(root / paths.get(result.task, ""), workspace),
            level,
            changed.get((result.task, result.id)),
        )
        for result in shown
    ]


def _worth_a_note(board: Leaderboard, changed: Collection[tuple[str, str]]) -> list[ExampleResult]:
    """Return the failed examples, and the ``changed`` examples that are below their threshold."""
    results = as_in_data(result for row in board.tasks for result in row.per_example)
    failed = failures_of(board)
    # GitHub shows few annotations: put must_pass examples first, then other failures, then examples that only got
    # worse.
    failed.sort(key=lambda result: not result.must_pass)
    return failed + [r for r in results if (r.task, r.id) in changed and r.status == "below"]


def annotation(result: ExampleResult, path: str, level: str = "error", flip: Row | None = None) -> str:
    """Return the workflow command that shows a result next to its line in the file ``path``.

    If the example got worse, ``flip`` is its entry in the comparison.
    """
    title = f"{result.task}: {result.id} {result.status}"
    where = f"file={_property(path)},line={result.line},title={_property(title)}"
    return f"::{level} {where}::{_data(_message(result, flip))}"


def _message(result: ExampleResult, flip: Row | None) -> str:
    cells = cells_of(result) if flip is None else changed_cells(flip)
    if result.score is None:
        return "\n".join(cells.lines())
    least = ", ".join(missed_lines(result)) or f"threshold {result.threshold:.4g}"
    scored = f"scored {beside(result.score, result.threshold, '.4g')}, {least}"
    return "\n".join([scored, *cells.lines()])


def _data(text: str) -> str:
    # Escape line ends, so that a model's text cannot end the command and start another.
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
