"""``lmeval validate PATH...``: every bad record of every file, with line, rule and field."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from pytest_lmeval.formats.files import find_task_files, load_file
from pytest_lmeval.formats.task import LoadedFile
from pytest_lmeval.project import register_project_plugins
from pytest_lmeval.registry import default_registry

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("paths", metavar="PATH", nargs="+", type=Path, help="task files, or folders to search")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="output for people or machines")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print what is wrong with the files; return 1 if anything is."""
    registry = default_registry()
    register_project_plugins(registry, Path.cwd())
    files = {path: load_file(path, name, registry) for path, name in find_task_files(options.paths, registry)}
    print(_as_json(files) if options.format == "json" else _as_text(files))
    return int(not files or any(loaded.errors for loaded in files.values()))


def _as_text(files: dict[Path, LoadedFile]) -> str:
    if not files:
        return "no task file found"
    lines = [error.at(path) for path, loaded in files.items() for error in loaded.errors]
    good = sum(_valid(loaded) for loaded in files.values())
    lines.append(f"{len(files)} file(s): {good} valid record(s), {len(lines)} bad")
    return "\n".join(lines)


def _as_json(files: dict[Path, LoadedFile]) -> str:
    report = [
        {"path": str(path), "valid": _valid(loaded), "errors": [asdict(error) for error in loaded.errors]}
        for path, loaded in files.items()
    ]
    return json.dumps({"files": report}, indent=2)


def _valid(loaded: LoadedFile) -> int:
    return sum(len(task.examples) for task in loaded.tasks)
