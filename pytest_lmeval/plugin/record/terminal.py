"""Write the board and the remarks below pytest's output."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_lmeval.compare.gate import LET_PASS
from pytest_lmeval.errors import did_you_mean
from pytest_lmeval.leaderboard.board import Leaderboard
from pytest_lmeval.leaderboard.rows import as_in_data
from pytest_lmeval.plugin.collect.collected import remarks_of
from pytest_lmeval.plugin.private.reports import kept_reports
from pytest_lmeval.plugin.record.report_files import UNWRITTEN
from pytest_lmeval.plugin.settings.checks import SET_ASIDE
from pytest_lmeval.plugin.settings.models import COLLECTED, SELECTION, report_dir
from pytest_lmeval.plugin.settings.settings import ini_floors, ini_thresholds, registry_of, spec_of
from pytest_lmeval.records.boardfile import NO_RESULT
from pytest_lmeval.records.ledger import KEPT
from pytest_lmeval.report.terminal_text import Screen, comparison_lines, measure_lines, terminal_table
from pytest_lmeval.report.wording import (
    baseline_line,
    ini_line,
    is_off,
    next_step,
    off_line,
    remark_lines,
    resume_line,
    selection_text,
    totals_line,
)
from pytest_lmeval.text import printable
from pytest_lmeval.types import OVERALL

if TYPE_CHECKING:
    from pytest_lmeval.plugin.common.report import Notes
    from pytest_lmeval.plugin.record.records import Records, RunRecord

_IN_ONE_LINE = ("doubtful: ", "not scored: ")
_SHOWN = 20
_LONG = 200
_MISSING_SHOWN = 3


def write_summary(records: Records, terminal: pytest.TerminalReporter) -> None:
    """Write each model's board and, for several models, the comparison."""
    verbose, width = terminal.config.option.verbose, terminal.config.get_terminal_writer().fullwidth
    screen = Screen(None if verbose > 0 else width, quiet=verbose < 0)
    for record in records.all:
        _write_record(record, terminal, screen)
    if records.are_several:
        _write_comparison(records, terminal, screen)
    if screen.cut and not screen.quiet:
        _say(terminal, f"shortened to {width} columns; -v shows all, as the reports do")


def _write_record(record: RunRecord, terminal: pytest.TerminalReporter, screen: Screen) -> None:
    board = record.board
    if board is None:
        return
    if terminal.config.option.verbose >= -1:
        _write_board(record, board, terminal, screen)
    # Even with -qq: these explain why the run failed, and that its reports are old.
    _say(terminal, *(f"NOT WRITTEN: {failure}" for failure in record.files.failures), red=True, bold=True)
    if "GITHUB_ACTIONS" not in os.environ:
        return
    from pytest_lmeval.report.github import commands

    for command in commands(board, record.config.rootpath, os.environ, record.label):
        terminal.write_line(command)  # the only commands in the log; their text is escaped


def _write_comparison(records: Records, terminal: pytest.TerminalReporter, screen: Screen) -> None:
    if terminal.config.option.verbose >= -1 and records.comparison:
        terminal.write_sep("=", "comparison")
        from pytest_lmeval.report.comparison_text import comparison_table

        near = partial(_near, records.folder, records.config)
        _say(terminal, *comparison_table(records.comparison, screen))
        _say(terminal, f"comparison: {near('comparison.json')}", f"HTML report: {near('report.html')}")
    _say(terminal, *(f"NOT WRITTEN: {failure}" for failure in records.failures), red=True, bold=True)


def _say(terminal: pytest.TerminalReporter, *lines: str, **markup: bool) -> None:
    for line in map(partial(printable, keep=""), lines):
        terminal.write_line(line, **markup)


def write_remarks(notes: Notes, shown: Collection[str], terminal: pytest.TerminalReporter) -> None:
    """Write the remarks from this process and its workers, except those in ``shown``."""
    tasks = terminal.config.stash.get(COLLECTED, None)
    skipped = notes.skipped_evals or (0 if tasks is None else tasks.skipped_evals)
    if skipped:
        terminal.write_line(f"{skipped} eval{'s' if skipped > 1 else ''} skipped: no --lm-adapter")
    remarks = (*notes.remarks, *remarks_of(terminal.config))
    _say(terminal, *(remark for remark in remarks if remark not in shown))


def write_not_tasks(not_tasks: Mapping[str, str], terminal: pytest.TerminalReporter) -> None:
    """List files in task folders that are not task files, with the reasons."""
    if terminal.config.option.verbose < -1:
        return
    lines = [f"not a task: {path} ({reason})" for path, reason in sorted(not_tasks.items())]
    if len(lines) > _SHOWN:
        lines[_SHOWN:] = [f"... and {len(lines) - _SHOWN} more files that are not tasks"]
    for line in lines:
        terminal.write_line(printable(line), yellow=True)


def write_why_nothing(config: pytest.Config, terminal: pytest.TerminalReporter) -> None:
    """Explain why pytest collected no tests, if the user may have meant tasks."""
    from pytest_lmeval.plugin.collect.locate import why_nothing

    deselected = len((kept_reports(config) or {}).get("deselected", ()))
    options = (("-k", config.option.keyword), ("-m", config.option.markexpr)) if spec_of(config) else ()
    if deselected and (chosen := [f"{name} {value!r}" for name, value in options if value]):
        reason = f"{' and '.join(chosen)} matches none of {deselected}: pytest --collect-only -q lists the tests"
    else:
        reason = "" if deselected else why_nothing(config)
    if reason and terminal.config.option.verbose >= -1:
        _say(terminal, f"lmeval: {reason}", yellow=True)


def _write_board(record: RunRecord, board: Leaderboard, terminal: pytest.TerminalReporter, screen: Screen) -> None:
    of = f"{record.label} ({board.facts.adapter})" if record.label else board.facts.adapter
    title = printable(f"leaderboard: {of}" if of else "leaderboard", keep="")
    terminal.write_sep("=", screen.name(title, screen.width and screen.width - 4))
    _say(terminal, *terminal_table(board, screen), *measure_lines(board, screen))
    _say(terminal, *comparison_lines(record.gate.get("comparison"), screen), *screen.lines(totals_line(board)))
    unwritten = bool(record.files.failures)
    _write_verdict(board, record.gate, terminal, screen, fails=UNWRITTEN if unwritten else "")
    remarks = [(remark, 1 if remark.startswith(_IN_ONE_LINE) else None) for remark in _remarks(record, board)]
    _say(terminal, *(line for remark, most in remarks for line in screen.lines(remark, most)), yellow=True)
    if not record.files.failures:
        near = partial(_near, record.report_dir, record.config)
        _say(terminal, f"leaderboard: {near('leaderboard.json')}", f"HTML report: {near('report.html')}")
        # Hints at the next command are for people, not for CI logs.
        if terminal.config.option.verbose >= 0 and not record.label and not os.environ.get("CI"):
            _say(terminal, *(line for line in screen.lines(_next(record, board)) if line), cyan=True)


def _next(record: RunRecord, board: Leaderboard) -> str:
    given, here = record.gate_settings.baseline, record.config.invocation_params.dir
    places = [folder / (given or "baseline.json") for folder in (here, record.config.rootpath)]
    found = next((_near(path.parent, record.config, path.name) for path in places if path.is_file()), "")
    reports = shlex.quote(_near(record.report_dir, record.config))
    return next_step(board, reports, shlex.quote(found) if found else "", is_first=record.is_first)


def _near(folder: Path, config: pytest.Config, name: str = "") -> str:
    """Return a report's path, relative to the working folder if the report is inside that folder."""
    path, here = folder / name, config.invocation_params.dir
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _write_verdict(
    board: Leaderboard, gate: Mapping[str, Any], terminal: pytest.TerminalReporter, screen: Screen, *, fails: str
) -> None:
    verdict, reasons = gate["verdict"], gate["reasons"]
    if is_off(gate):
        _say(terminal, *screen.lines(f"NOT GATED: {off_line(gate, board.facts.manifest)}", 2), yellow=True)
    if verdict == "pass" and not reasons and not fails:
        return
    color = {"green" if verdict == "pass" and not fails else "yellow" if verdict in LET_PASS else "red": True}
    what = "INCOMPLETE: no overall score, and unfit as a baseline." if not board.complete else ""
    # The verdict "examples" has the same name as its mode.
    word = "FAILED" if verdict == "examples" else verdict.upper()
    _say(terminal, what or f"gate {gate['mode']}: {word}{fails if verdict in LET_PASS else ''}", bold=True, **color)
    shown = [*_few(reasons)]
    for reason in filter(None, (*shown[:_SHOWN], baseline_line(gate))):
        _say(terminal, *screen.lines(f"  {reason}", screen.most), **color)
    if len(shown) > _SHOWN:
        _say(terminal, f"  ... and {len(shown) - _SHOWN} more", **color)


def _few(reasons: Sequence[str]) -> Iterator[str]:
    """Yield the reasons; if the run was stopped, name only the first few examples without a result."""
    if not any(reason.startswith("stopped") for reason in reasons):
        yield from reasons
        return
    missing = 0
    for reason in reasons:
        is_missing = reason.startswith(NO_RESULT)
        if missing > _MISSING_SHOWN and not is_missing:
            yield f"{NO_RESULT}{missing - _MISSING_SHOWN} more examples"
            missing = 0
        missing += is_missing
        if not is_missing or missing <= _MISSING_SHOWN:
            yield reason
    if missing > _MISSING_SHOWN:
        yield f"{NO_RESULT}{missing - _MISSING_SHOWN} more examples"


def _remarks(record: RunRecord, board: Leaderboard) -> list[str]:
    remarks = [selection_text(board), *remark_lines(board), *_unused_names(record.config, board)]
    remarks += [ini_line(record.gate, board.facts.manifest)]
    if part := record.config.stash.get(SET_ASIDE, ""):
        remarks.append(f"ini lm_baseline: not compared, {part} selects examples; --lm-baseline compares a selection")
    if record.report_dir.name == SELECTION and record.report_dir != report_dir(record.config):
        shown = _near(record.report_dir, record.config)
        remarks += [f"reports of this selection: {shown}; the whole run's board is unchanged"]
    remarks += [resume_line(board), *record.resumption.remarks(record.ledger.kept)]
    if record.ledger.removed:
        remarks.append(f"removed {record.ledger.removed} older ledgers; kept the last {KEPT} in {record.report_dir}")
    remarks += [f"doubtful: {warning}" for warning in record.gate["warnings"]]
    remarks += _unscored_lines(board)
    remarks += [f"skipped: {fault}" for fault in board.facts.bad_records]
    return [remark for remark in remarks if remark]


def _unscored_lines(board: Leaderboard) -> list[str]:
    """Describe the first unscored examples whose tests did not fail, with their errors."""
    if not board.complete:
        return []
    results = [result for row in board.tasks for result in row.per_example if result.is_error]
    results = as_in_data(results) if results else []
    lines = [f"not scored: {each.task}: {each.id}: {' '.join(each.error.split())[:_LONG]}" for each in results]
    more = [f"... and {len(lines) - _SHOWN} more were not scored"] if len(lines) > _SHOWN else []
    return lines[:_SHOWN] + more


def _unused_names(config: pytest.Config, board: Leaderboard) -> Iterator[str]:
    # Not an error: the ini file applies to all tasks, and a run may include only some.
    rows = {name for row in board.tasks for name in (row.task, row.key) if name}
    tasks = rows | set(board.facts.selection.get("tasks", ()))
    thresholds, floors = ini_thresholds(config), ini_floors(config)
    metrics = registry_of(config).metrics if thresholds.keys() - tasks else ()
    unknown = floors.keys() - tasks - {OVERALL}
    if unknown:
        from pytest_lmeval.compare.scores import task_of_score

        unknown = {name for name in unknown if not task_of_score(name, board)}
    for ini, names in (
        ("lm_thresholds", thresholds.keys() - tasks - set(metrics)),
        ("lm_min_scores", unknown),
    ):
        for name in sorted(names):
            hint = did_you_mean(name, tasks)
            yield f"ini {ini}: this run has no task {name!r}{';' if hint else ''}{hint}"
