"""Find finished runs in a folder and its subfolders, with the models' labels in a multi-model run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

from pytest_lmeval.errors import UsageError
from pytest_lmeval.records.boardfile import is_previous
from pytest_lmeval.records.recorded import parse_json
from pytest_lmeval.records.runfile import RunFile, read_run

BOARD, COMPARISON, LEDGER = "leaderboard.json", "comparison.json", "ledger.jsonl"
_LABEL = re.compile(r"[A-Za-z0-9_.-]+")


def find_runs(paths: Iterable[Path], unread: list[str] | None = None) -> list[RunFile]:
    """Return the run in each file, and all runs below each folder; raise UsageError for a folder without a leaderboard.

    Name each model of a multi-model run by its label. For an unreadable file below a folder, raise UsageError, or add a
    line to ``unread`` if it is a list.
    """
    found = []
    for path in paths:
        skipped = len(unread or ())
        runs = [*_below(path, unread)] if path.is_dir() else [read_run(path)]
        if not runs and len(unread or ()) == skipped:
            raise UsageError(f"{path}: no {BOARD} in this folder")
        found += runs
    return found


def find_shards(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """Return the shards' ledgers by model label; the label is empty in a single-model run.

    Each folder is a report dir, which has one ledger per model in a multi-model run. Raise UsageError if a folder
    contains no run, or if the shards have different models.
    """
    held = [(path, _shard(path) if path.is_dir() else {"": path}) for path in paths]
    first, models = held[0]
    for path, ledgers in held:
        if ledgers.keys() != models.keys():
            of, other = (
                f"the models {', '.join(labels)}" if any(labels) else "one model" for labels in (models, ledgers)
            )
            raise UsageError(f"{first} is a run of {of} and {path} of {other}: shards of one run have the same models")
    return {label: [ledgers[label] for _, ledgers in held] for label in models}


def own_baseline(here: Path, given: str, label: str, labels: Iterable[str]) -> str:
    """Return the path of a model's baseline: the file ``given``, or the label's file in the folder ``given``.

    A label's file is ``LABEL/leaderboard.json`` or ``LABEL.json``. Return "" if this file is missing but another label
    has a file.
    """
    if names_one_file(here / given):
        return given
    own = _labelled(here, given, label)
    others = any((here / _labelled(here, given, each)).exists() for each in labels)
    return "" if others and not (here / own).exists() else own


def names_one_file(path: Path) -> bool:
    """Return True if ``path`` is one baseline file for all models, not a folder with a file for each model."""
    return path.is_file() or bool(path.suffix and not path.is_dir())


def _labelled(here: Path, given: str, label: str) -> str:
    board = Path(given) / label / BOARD
    return str(board) if (here / board).exists() else str(Path(given) / f"{label}.json")


def _shard(folder: Path) -> dict[str, Path]:
    if (folder / COMPARISON).exists():
        labels = _labels(folder / COMPARISON)
        return {label: at / LEDGER for at, label in sorted(labels.items(), key=itemgetter(1))}
    if not (folder / LEDGER).exists():
        raise UsageError(f"{folder}: no {COMPARISON} and no {LEDGER} in this folder: not the report dir of a run")
    return {"": folder / LEDGER}


def _below(folder: Path, unread: list[str] | None) -> Iterator[RunFile]:
    labels: dict[Path, str] = {}
    for path in _files(folder, COMPARISON):
        try:
            labels |= _labels(path)
        except UsageError as error:
            _refuse(error, unread)
    for path in _files(folder, BOARD):
        try:
            run = read_run(path)
        except UsageError as error:
            _refuse(error, unread)
            continue
        label = labels.get(path.parent.resolve())
        yield replace(run, facts=replace(run.facts, adapter=label)) if label else run


def _files(folder: Path, name: str) -> list[Path]:
    """Return the files called ``name`` below ``folder``; skip ``previous/`` unless ``folder`` is inside it."""
    found = sorted(folder.rglob(name))
    return found if is_previous(folder.absolute()) else [path for path in found if not is_previous(path.parent)]


def _labels(path: Path) -> dict[Path, str]:
    try:
        models = parse_json(path.read_text("utf-8"))["models"]
        pairs = [(model["folder"], model["label"]) for model in models]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: not a comparison: {type(error).__name__}: {error}") from None
    for folder, label in pairs:
        if not isinstance(folder, str):
            raise UsageError(f"{path}: not a comparison: expected a folder as text, got {folder!r:.80}")
        if not (isinstance(label, str) and _LABEL.fullmatch(label) and label.strip(".")):
            raise UsageError(
                f"{path}: not a comparison: a label may contain only letters, digits, _, . and -, got {label!r:.80}"
            )
    return {(path.parent / folder).resolve(): label for folder, label in pairs}


def _refuse(error: UsageError, unread: list[str] | None) -> None:
    if unread is None:
        raise error
    unread.append(f"skipped: {error}")
