"""``lmeval tasks [PATH...]``: list tasks and their parameters."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_lmeval.cli.output import add_format, show, show_json, show_tables
from pytest_lmeval.cli.task_folder import FoundFile, Project, read_document
from pytest_lmeval.formats.task import LoadedFile
from pytest_lmeval.report.terminal_text import Screen

_COLUMNS = ("name", "key", "metric", "examples", "parameters", "path")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="PATH", nargs="*", type=Path, help="files or folders (default: lm_task_paths)")
    add_format(parser, "text", "json")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """List the tasks; return 1 if a task file has errors, or if no task was found."""
    project = Project()
    named = [path for path in options.paths if path.is_file()]
    loaded = [(file, project.load(file, is_named=file.path in named)) for file in project.files(options.paths)]
    rows = [row for file, each in loaded for row in _rows(file, each)]
    left = [(file.path.as_posix(), each.no_task) for file, each in loaded if each.no_task]
    if options.format == "json":
        show_json({"tasks": rows, "not_tasks": [{"path": path, "reason": reason} for path, reason in left]})
    else:
        show_tables(lambda screen: _table(rows, screen) if rows else ["no task found"])
        show(f"not a task: {path} ({reason})" for path, reason in left)
    return int(not rows or any("errors" in row for row in rows))


def _rows(file: FoundFile, loaded: LoadedFile) -> list[dict[str, Any]]:
    if not loaded.tasks and not loaded.errors:
        return []
    parameters = _parameters(file)
    about = {"key": file.key, "parameters": parameters, "path": file.path.as_posix()}
    if loaded.tasks:
        return [
            {"name": task.name, "metric": task.metric, "examples": len(task.examples), **about} for task in loaded.tasks
        ]
    faults = [
        error for error in loaded.errors if not (error.rule == "missing_required" and error.field == "config_spec")
    ]
    row = {"name": file.name, "metric": "", "examples": None, **about}
    return [{**row, "errors": [error.at(file.path) for error in faults]} if faults or not parameters else row]


def _parameters(file: FoundFile) -> list[str]:
    document = read_document(file.path) if file.key else None
    spec = document.get("config_spec") if document is not None else None
    given = spec if isinstance(spec, list) else []
    return [str(each["key"]) for each in given if isinstance(each, dict) and "key" in each]


def _table(rows: Sequence[dict[str, Any]], screen: Screen) -> list[str]:
    cells = [[_cell(row, column) for column in _COLUMNS] for row in rows]
    lines = screen.cells(_COLUMNS, cells, len(_COLUMNS), ("key", "parameters", "metric"))
    return [*lines, *(error for row in rows for error in row.get("errors", ()))]


def _cell(row: dict[str, Any], column: str) -> str:
    value = row[column]
    if value is None:
        return "?"
    return ", ".join(value) if isinstance(value, list) else str(value)
