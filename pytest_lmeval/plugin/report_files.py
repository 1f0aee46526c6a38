"""The files that a run leaves behind, each written by itself: where one cannot be, the others still are."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_lmeval.atomic import write_atomically
from pytest_lmeval.leaderboard.board import Leaderboard
from pytest_lmeval.leaderboard.centered import core_csv
from pytest_lmeval.leaderboard.github import write_step_summary
from pytest_lmeval.leaderboard.markdown import markdown
from pytest_lmeval.leaderboard.write import write_leaderboard
from pytest_lmeval.plugin.gating import baseline_path, tasks_not_run

if TYPE_CHECKING:
    from pytest_lmeval.leaderboard.runfile import RunFile
    from pytest_lmeval.types import ExampleResult

__all__ = ["ReportFiles"]


class ReportFiles:
    """Writes the report of one run; ``failures`` says what could not be written."""

    def __init__(self, config: pytest.Config, folder: Path, baseline: RunFile | None) -> None:
        self.failures: list[str] = []
        self._config = config
        self._folder = folder
        self._baseline = baseline

    def write(self, board: Leaderboard, results: Callable[[], Sequence[ExampleResult]], *, per_example: bool) -> None:
        """Write leaderboard.json, leaderboard.md, report.html and, where it is asked for, the summary.

        ``results`` returns the results with their prompts.
        """
        folder = self._folder
        self._try(
            folder / "leaderboard.json", lambda path: write_leaderboard(board, path, include_per_example=per_example)
        )
        text = markdown(board)
        self._try(
            folder / "leaderboard.md", lambda path: write_atomically(path, text.encode(errors="backslashreplace"))
        )
        if table := core_csv(board.tasks):
            self._try(folder / "core.csv", lambda path: write_atomically(path, table))
        self._try(folder / "report.html", lambda path: self._write_page(path, board, results()))
        self._try(Path(os.environ.get("GITHUB_STEP_SUMMARY", "")), lambda _: write_step_summary(text, os.environ))

    def show_to_project(self, board: Leaderboard) -> None:
        """Call the hook ``pytest_lmeval_leaderboard``, and the entry points of that name."""
        from importlib.metadata import entry_points

        try:
            self._config.hook.pytest_lmeval_leaderboard(config=self._config, leaderboard=board)
            for entry_point in entry_points(group="pytest_lmeval_leaderboard"):
                entry_point.load()(config=self._config, leaderboard=board)
        except (Exception, SystemExit) as error:  # a project's own code must not cost it the board
            self.failures.append(f"hook pytest_lmeval_leaderboard: {type(error).__name__}: {error}")

    def _write_page(self, path: Path, board: Leaderboard, results: Sequence[ExampleResult]) -> None:
        from pytest_lmeval.leaderboard.html import write_report

        comparison = (board.facts.gate or {}).get("comparison")
        before = {} if self._baseline is None else {(old.task, old.id): old for old in self._baseline.results or ()}
        write_report(path, board.to_json(), results, comparison, before)

    def update_baseline(self, board: Leaderboard) -> tuple[str, str]:
        """Write the board as the baseline; return the verdict that this makes of a run that passes, and its reason."""
        name = self._config.option.lm_baseline
        reason = self._why_no_baseline(board)
        if reason:
            return "stale", f"baseline not written to {name}: {reason}"
        from pytest_lmeval.leaderboard.baseline import encode_baseline, is_same

        stored = self._baseline.board if self._baseline is not None else None
        if stored is not None and is_same(board, stored):
            return "pass", f"baseline {name}: nothing changed"
        path = baseline_path(self._config)
        if self._try(path, lambda path: write_atomically(path, encode_baseline(board))):
            return "new", f"baseline written to {name}"
        return "stale", f"baseline not written to {name}: {self.failures[-1].removeprefix(f'{path}: ')}"

    def _why_no_baseline(self, board: Leaderboard) -> str:
        if not board.complete:
            return "this run is not complete"
        if board.facts.selection:
            return "this run left examples out"
        if not board.counts["scored"]:
            return "this run scored no example"
        other = tasks_not_run(self._config, self._baseline, [row.task for row in board.tasks])
        return f"this run has no {', '.join(other)}" if other else ""

    def _try(self, path: Path, write: Callable[[Path], Any]) -> bool:
        try:
            write(path)
        except Exception as error:  # what one report cannot show must not cost the others, nor the verdict
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self.failures.append(f"{path}: {reason or repr(error)}")
            return False
        return True
