"""Write each of a run's reports even if another fails, and report the gate's verdict to other plugins."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pytest_lmeval.atomic import write_atomically
from pytest_lmeval.compare.gate import LET_PASS
from pytest_lmeval.leaderboard.aggregations import core_csv
from pytest_lmeval.leaderboard.board import Leaderboard
from pytest_lmeval.plugin.private.reports import rerunning_plugins, suite_properties
from pytest_lmeval.plugin.settings.models import report_dir, whole
from pytest_lmeval.plugin.settings.settings import label_of, registry_of
from pytest_lmeval.records.boardfile import set_aside_reports, write_leaderboard
from pytest_lmeval.report.markdown import markdown
from pytest_lmeval.text import escape_markdown, printable

if TYPE_CHECKING:
    from pytest_lmeval.records.runfile import RunFile
    from pytest_lmeval.types import ExampleResult

GATE_ID = "leaderboard::gate"
UNWRITTEN = ", but the run fails: a file could not be written"
_REASONS = 20


class ReportFiles:
    """Writes the reports of one model's run; ``failures`` lists each file that could not be written."""

    def __init__(self, config: pytest.Config, folder: Path, baseline: RunFile | None) -> None:
        self.failures: list[str] = []
        self.has_board = False
        self._config = config
        self._folder = folder
        self._baseline = baseline

    def set_aside_old(self) -> None:
        """Move an earlier run's reports aside; raise UsageError if that fails."""
        set_aside_reports(self._folder, report_dir(whole(self._config)))

    def write(self, board: Leaderboard, results: Sequence[ExampleResult], *, per_example: bool) -> None:
        """Write leaderboard.md, core.csv, report.html, leaderboard.json and, on GitHub, the step summary."""
        folder = self._folder
        text = cache(lambda: markdown(board))
        self._try(
            folder / "leaderboard.md", lambda path: write_atomically(path, text().encode(errors="backslashreplace"))
        )
        self._try(folder / "core.csv", lambda path: _write_table(path, board))
        self._try(folder / "report.html", lambda path: self._write_page(path, board, results))
        # Write this last: if the process dies earlier, there must be no board.
        self.has_board = self._try(
            folder / "leaderboard.json", lambda path: write_leaderboard(board, path, include_per_example=per_example)
        )
        if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
            from pytest_lmeval.report.github import add_step_summary

            of = f"**{escape_markdown(label)}**\n\n" if (label := label_of(self._config)) else ""
            self._try(Path(summary), lambda path: add_step_summary(of + text(), path))

    def show_to_project(self, board: Leaderboard) -> None:
        """Call the hook and the entry points that are named ``pytest_lmeval_leaderboard``."""
        hook = self._config.hook.pytest_lmeval_leaderboard
        try:
            listeners = registry_of(self._config).listeners
            if not (listeners or hook.get_hookimpls()):
                return
            # A hook must not change the reported verdict.
            board = replace(board, facts=replace(board.facts, gate=deepcopy(board.facts.gate)))
            hook(config=self._config, leaderboard=board)
            for entry_point in listeners:
                entry_point.load()(config=self._config, leaderboard=board)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # including pytest.fail and sys.exit
            self.failures.append(f"hook pytest_lmeval_leaderboard: {type(error).__name__}: {error}")

    def _write_page(self, path: Path, board: Leaderboard, results: Sequence[ExampleResult]) -> None:
        from pytest_lmeval.report.html import write_report

        comparison = (board.facts.gate or {}).get("comparison")
        before = {} if self._baseline is None else {(old.task, old.id): old for old in self._baseline.results or ()}
        write_report(path, board.to_json(), results, comparison, before)

    def update_baseline(self, board: Leaderboard) -> tuple[str, str]:
        """Write the board as the baseline; return the verdict for a run that otherwise passes, and the reason."""
        name = self._config.option.lm_baseline
        reason = self._why_no_baseline(board)
        if reason:
            return "stale", f"baseline not written to {name}: {reason}"
        from pytest_lmeval.compare.baseline import encode_baseline, is_same

        # Keep the prompts, to compare them with the prompts of a later run.
        prompts = self._config.option.lm_pair_by == "id"
        stored = self._baseline.board if self._baseline is not None else None
        if stored is not None and is_same(board, stored, prompts=prompts):
            return "pass", f"baseline {name}: nothing changed"
        from pytest_lmeval.plugin.common.baseline import baseline_path

        path = baseline_path(self._config)
        if self._try(path, lambda path: write_atomically(path, encode_baseline(board, prompts=prompts))):
            return "new", f"baseline written to {name}"
        return "stale", f"baseline not written to {name}: {self.failures[-1].removeprefix(f'{path}: ')}"

    def _why_no_baseline(self, board: Leaderboard) -> str:
        from pytest_lmeval.compare.baseline import unfit

        if reason := unfit(board):
            return reason
        from pytest_lmeval.plugin.common.baseline import tasks_not_run

        other = tasks_not_run(self._config, self._baseline, [row.task for row in board.tasks])
        return f"this run has no {', '.join(other)}" if other else ""

    def _try(self, path: Path, write: Callable[[Path], Any]) -> bool:
        try:
            write(path)
        except Exception as error:  # one failure must not prevent the other reports or the verdict
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self.failures.append(f"{path}: {reason or repr(error)}")
            return False
        return True


def _write_table(path: Path, board: Leaderboard) -> None:
    if table := core_csv(board.tasks):
        write_atomically(path, table)


def report_gate(session: pytest.Session, board: Leaderboard, unwritten: Sequence[str], label: str = "") -> None:
    """Report a failed gate to all report writers, as a failed test called GATE_ID.

    Do not add this failed test if failed items explain the verdict, or if a run that was cut short has failed items. A
    run also fails if any reports are ``unwritten``. JUnit always receives the verdict as suite properties. ``label``
    names the model if there are several models.
    """
    config = session.config
    of = f"[{label}]" if label else ""
    gate = board.facts.gate or {}
    for note in suite_properties(config):
        note(f"lm_gate{of}", gate["mode"])
        note(f"lm_verdict{of}", gate["verdict"])
        note(f"lm_reasons{of}", "; ".join(gate["reasons"][:_REASONS]))
    if _is_reported(session.testsfailed, board, gate["verdict"]) and (session.testsfailed or not unwritten):
        return
    reasons = [*gate["reasons"], *(f"not written: {failure}" for failure in unwritten)]
    fails = UNWRITTEN if unwritten and gate["verdict"] in LET_PASS else ""
    lines = [f"gate {gate['mode']}: {gate['verdict']}{fails}", *(f"  {reason}" for reason in reasons)]
    text = "\n".join(printable(line, keep="") for line in lines)
    properties = [("lm_gate", gate["mode"]), ("lm_verdict", gate["verdict"])]
    # The gate is not an item, so hide its report from --lf and --sw.
    logreport = config.pluginmanager.subset_hook_caller("pytest_runtest_logreport", rerunning_plugins(config))
    phases: tuple[Literal["setup", "call", "teardown"], ...] = ("setup", "call", "teardown")
    for when in phases:
        failed = when == "call"
        report = pytest.TestReport(
            nodeid=f"{GATE_ID}{of}",
            location=("leaderboard", None, f"gate{of}"),
            keywords={},
            outcome="failed" if failed else "passed",
            longrepr=text if failed else None,
            when=when,
            user_properties=list(properties),
        )
        from pytest_lmeval.plugin.record.progress import show_words

        show_words(config)
        # Count and show it with the failures, without a word in the progress.
        report.__dict__["lm_gate"] = ""
        logreport(report=report)
        report.__dict__["lm_gate"] = "FAILED"


def _is_reported(failures: int, board: Leaderboard, verdict: str) -> bool:
    # Another plugin may have disguised a failed example.
    owed = sum(result.status == "failed" for row in board.tasks for result in row.per_example)
    reported = {"examples": failures >= max(1, owed), "incomplete": failures > 0}
    return verdict in LET_PASS or reported.get(verdict, False)
