"""``lmeval merge SHARD... -o DIR``: merge the shards of a run, and apply the gate to the merged run."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pytest_lmeval.arguments import MaxErrors, named_amount, named_share
from pytest_lmeval.atomic import write_atomically
from pytest_lmeval.cli.output import add_criteria, add_pair_by, show, show_tables, writing
from pytest_lmeval.cli.task_folder import FoundFile, Project
from pytest_lmeval.compare.gate import MODES
from pytest_lmeval.compare.merged_gate import gate_settings, gated
from pytest_lmeval.errors import UsageError
from pytest_lmeval.formats.files import file_task_name
from pytest_lmeval.formats.yaml.configs import as_configs
from pytest_lmeval.leaderboard.board import Leaderboard, aggregate
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.records.boardfile import PREVIOUS, set_aside_ledger, set_aside_reports, write_leaderboard
from pytest_lmeval.records.folders import find_shards, own_baseline
from pytest_lmeval.records.ledger_lines import is_complete
from pytest_lmeval.records.runfile import RunFile, examples_of, read_run
from pytest_lmeval.records.shards import ledger_of, merge, read_shards
from pytest_lmeval.report.markdown import markdown
from pytest_lmeval.report.tables import Row
from pytest_lmeval.report.terminal_text import Screen, comparison_lines, terminal_table
from pytest_lmeval.report.wording import remark_lines, verdict_lines
from pytest_lmeval.task import Task
from pytest_lmeval.text import escape_markdown
from pytest_lmeval.types import ExampleResult


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "ledgers",
        metavar="SHARD",
        nargs="+",
        type=Path,
        help="the report dir of every shard, or its ledger.jsonl; the report dirs if the run is one of several models",
    )
    parser.add_argument("-o", dest="folder", metavar="DIR", type=Path, required=True, help="folder to write to")
    gate = parser.add_argument_group("gate", "options that you omit have the recorded values")
    gate.add_argument("--gate", dest="mode", choices=MODES, help="default: as recorded, or baseline with --baseline")
    gate.add_argument(
        "--baseline", metavar="PATH", help="earlier leaderboard or ledger to compare with, or folder of LABEL.json"
    )
    gate.add_argument(
        "--min-score",
        dest="floors",
        metavar="NAME=V",
        type=named_share,
        action="append",
        help="floor of a task, or of 'overall'; repeatable, added to the recorded floors",
    )
    gate.add_argument(
        "--max",
        dest="limits",
        metavar="NAME.FIELD=V",
        type=named_amount,
        action="append",
        help="limit for the answers of a task, or of 'overall'; repeatable, added to the recorded limits",
    )
    add_criteria(gate)
    add_pair_by(gate)
    gate.add_argument("--max-errors", metavar="N|P%", type=MaxErrors, help="examples that may end in error or timeout")
    parser.add_argument("--include-per-example", action="store_true", help="per-example records in leaderboard.json")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the merged run's files; return 1 if an example or the gate failed, or 3 if the run is incomplete."""
    models = find_shards(options.ledgers)
    merged = [_merged(label, paths, list(models), options) for label, paths in models.items()]
    with writing(f"-o {options.folder}"):
        if "" not in models:
            set_aside_reports(options.folder, options.folder)
        written = [path for each in merged for path in _write(each, options)]
    code = max(each.code for each in merged)
    comparison = _compare(merged, code, options.folder) if "" not in models else None
    show_tables(partial(_lines, merged, comparison))
    if comparison:
        written += [options.folder / name for name in ("comparison.json", "comparison.md", "report.html")]
    show(f"wrote {path}" for path in written)
    if "GITHUB_ACTIONS" in os.environ:
        _note(merged)
    return code


def _note(merged: Sequence[_Merged]) -> None:
    """Write annotations and the step summary for GitHub Actions, as a pytest run does."""
    from pytest_lmeval.report.github import add_step_summary, commands

    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    for each in merged:
        for command in commands(each.board, Path.cwd(), os.environ, each.label):
            print(command)
        if summary:
            heading = f"**{escape_markdown(each.label)}**\n\n" if each.label else ""
            with writing(summary):
                add_step_summary(heading + markdown(each.board), Path(summary))


@dataclass(frozen=True, slots=True)
class _Merged:
    """The merged run of one model; ``notes`` name the tasks whose own metrics could not be computed."""

    label: str
    folder: Path
    run: RunFile
    board: Leaderboard
    notes: Sequence[str]
    code: int


def _merged(label: str, ledgers: Sequence[Path], labels: Sequence[str], options: argparse.Namespace) -> _Merged:
    """Merge the run of one model; ``labels`` contains all models' labels."""
    folder = options.folder / label
    try:
        _check_folder(folder, ledgers)
        shards = read_shards(ledgers)
        whole = merge(shards)
        if options.max_errors is not None:
            collected = len(examples_of(whole)) + len(whole.facts.missing) + whole.facts.skipped
            whole = replace(whole, facts=replace(whole.facts, max_errors=options.max_errors.of(collected)))
        settings = gate_settings(shards, _asked(options, label, labels))
        _check_baseline(folder, options.folder / PREVIOUS / label, settings.baseline)
        whole, unmerged = _aggregated(whole)
        judged, board, code = gated(whole, settings, Path.cwd())
    except UsageError as error:
        raise UsageError(f"{label}: {error}" if label else str(error)) from None
    return _Merged(label, folder, judged, board, unmerged, code)


def _lines(merged: Sequence[_Merged], comparison: Row | None, screen: Screen) -> Iterator[str]:
    for each in merged:
        gate = each.board.facts.gate or {}
        yield from [f"{each.label}:"] if each.label else []
        yield from (*terminal_table(each.board, screen), *comparison_lines(gate.get("comparison"), screen))
        yield from (*remark_lines(each.board), *verdict_lines(gate), *each.notes)
    if comparison:
        from pytest_lmeval.report.comparison_text import comparison_table

        yield from ("comparison:", *comparison_table(comparison, screen))


def _compare(merged: Sequence[_Merged], code: int, folder: Path) -> Row:
    from pytest_lmeval.report.comparison import Compared, compared, write_comparison

    asked = [each for each in merged if each.run.results]
    models = [Compared(each.label, each.board, examples_of(each.run), str(each.folder)) for each in asked]
    comparison = compared(models, code, folder, [each.label for each in merged if each not in asked])
    if failures := write_comparison(folder, comparison, models):
        raise UsageError(f"cannot be written: {'; '.join(failures)}")
    return comparison


def _asked(options: argparse.Namespace, label: str, labels: Sequence[str]) -> dict[str, Any]:
    names = ("mode", "baseline", "floors", "limits", "alpha", "tolerance", "strict", "pair_by")
    asked = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if label and "baseline" in asked:
        asked["baseline"] = own_baseline(Path(), asked["baseline"], label, labels)
        # The baselines folder may lack a file for this model.
        asked.setdefault("mode", "baseline" if asked["baseline"] else "tasks")
    return {**asked, **{name: dict(asked[name]) for name in ("floors", "limits") if name in asked}}


def _check_folder(folder: Path, ledgers: Sequence[Path]) -> None:
    ledger = folder / "ledger.jsonl"
    try:
        if any(path.exists() and ledger.exists() and path.samefile(ledger) for path in ledgers):
            raise UsageError(f"-o {folder}: contains a ledger to merge; choose another folder")
        if ledger.exists() and not is_complete(ledger) and not _is_merged(ledger):
            raise UsageError(f"-o {folder}: contains the ledger of an incomplete run; choose another folder")
    except OSError as error:
        raise UsageError(f"-o {folder}: cannot be read: {error.strerror}") from None


def _check_baseline(folder: Path, previous: Path, baseline: str) -> None:
    names = ("leaderboard.json", "ledger.jsonl")
    written = {(each / name).resolve() for name in names for each in (folder, previous)}
    if baseline and Path(baseline).resolve() in written:
        raise UsageError(f"baseline {baseline}: the merge would overwrite it; copy it elsewhere")


def _is_merged(ledger: Path) -> bool:
    try:
        return "shards" in read_run(ledger).manifest
    except UsageError:
        return False


def _write(merged: _Merged, options: argparse.Namespace) -> list[Path]:
    run, board, folder = merged.run, merged.board, merged.folder
    names = ("ledger.jsonl", "leaderboard.md", "report.html", "leaderboard.json")
    ledger, text, page, whole = paths = [folder / name for name in names]
    # Set the old reports aside first: if the process is killed, no old verdict may remain beside the new ledger.
    before = {} if (board.facts.gate or {}).get("comparison") is None else _before(board)
    set_aside_reports(folder, options.folder)
    if ledger.exists():
        set_aside_ledger(ledger, options.folder)
    write_atomically(ledger, ledger_of(run, board))
    write_atomically(text, markdown(board).encode("utf-8", "backslashreplace"))
    from pytest_lmeval.report.html import write_report

    comparison = (board.facts.gate or {}).get("comparison")
    write_report(page, board.to_json(), examples_of(run), comparison, before)
    # Write the board last: if the board exists, all other files exist.
    write_leaderboard(board, whole, include_per_example=options.include_per_example)
    return paths


def _before(board: Leaderboard) -> dict[tuple[str, str], ExampleResult]:
    assert board.facts.gate is not None
    return {(old.task, old.id): old for old in examples_of(read_run(board.facts.gate["settings"]["baseline"]))}


def _aggregated(run: RunFile) -> tuple[RunFile, list[str]]:
    """Return the run with its tasks' own metrics, and a note for each task whose file is missing or changed."""
    tasks: dict[str, Task] = {}
    notes = []
    for info in run.infos.values():
        if info.aggregates:
            try:
                tasks[info.name] = _task_of(info)
            except UsageError as error:
                notes.append(f"its own metrics were not computed: {info.name}: {error}")
    infos = [run.infos[name] for name in tasks]
    aggregates, failures = aggregate(infos, examples_of(run), lambda info: tasks[info.name])
    facts = replace(run.facts, interruptions=[*run.facts.interruptions, *failures])
    facts = replace(facts, finished=facts.finished and not failures)
    return replace(run, aggregates=aggregates, facts=facts), notes


def _task_of(info: TaskInfo) -> Task:
    path = Path(info.path)
    if not path.is_file():
        raise UsageError(f"{path}: no such file here; merge in the project's folder")
    found = FoundFile(path, file_task_name(info.name, path))
    variant = info.name.removeprefix(found.name).removeprefix("@")
    loaded = Project().load(found, as_configs({**info.config, "name": variant}) if info.config else ())
    task = next((task for task in loaded.tasks if task.name == info.name), None)
    if task is None or task.sha256 != info.sha256:
        raise UsageError(f"{path}: differs from the file that the shards ran; merge at the commit of the shards")
    return task
