"""The finished runs below a folder, with the labels that a run of several models gave them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from pytest_lmeval.errors import UsageError
from pytest_lmeval.records.recorded import parse_json
from pytest_lmeval.records.runfile import RunFile, read_run

BOARD, COMPARISON = "leaderboard.json", "comparison.json"


def find_runs(paths: Iterable[Path], unread: list[str] | None = None) -> list[RunFile]:
    """Return the runs of files, and of every board below folders; raise UsageError for a folder without one.

    A model of a run of several has its label as its name. A file below a folder that cannot be read is a UsageError, or
    a line of ``unread`` where there is such a list.
    """
    found = []
    for path in paths:
        runs = [*_below(path, unread)] if path.is_dir() else [read_run(path)]
        if not runs and not unread:
            raise UsageError(f"{path}: no {BOARD} in this folder")
        found += runs
    return found


def _below(folder: Path, unread: list[str] | None) -> Iterator[RunFile]:
    labels: dict[Path, str] = {}
    for path in sorted(folder.rglob(COMPARISON)):
        try:
            labels |= _labels(path)
        except UsageError as error:
            _refuse(error, unread)
    for path in sorted(folder.rglob(BOARD)):
        try:
            run = read_run(path)
        except UsageError as error:
            _refuse(error, unread)
            continue
        label = labels.get(path.parent.resolve())
        yield replace(run, facts=replace(run.facts, adapter=label)) if label else run


def _labels(path: Path) -> dict[Path, str]:
    """Return the label of each folder that a comparison names."""
    try:
        models = parse_json(path.read_text("utf-8"))["models"]
        pairs = [(model["folder"], model["label"]) for model in models]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: not a comparison: {type(error).__name__}: {error}") from None
    if not all(isinstance(text, str) for pair in pairs for text in pair):
        raise UsageError(f"{path}: not a comparison: a folder or a label that is no text")
    return {(path.parent / folder).resolve(): label for folder, label in pairs}


def _refuse(error: UsageError, unread: list[str] | None) -> None:
    if unread is None:
        raise error
    unread.append(f"left out: {error}")
