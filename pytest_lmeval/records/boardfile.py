"""A leaderboard's file: written, and moved aside with the other reports before another run."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_lmeval.atomic import encode_json, move_file, remove_file, write_atomically
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.board import Leaderboard

_BOARDS = ("leaderboard.json", "comparison.json")
REPORTS = (*_BOARDS, "leaderboard.md", "report.html", "core.csv", "comparison.md")
PREVIOUS = "previous"
"""The folder, in the report dir, of what the run before left: of the same layout as the report dir."""
_LEDGER, _NOTE = "ledger.jsonl", "README.txt"
_ABOUT = "The reports of the run before the last one. Each run replaces them: copy what you want to keep.\n"
NOT_COMPARED = "not compared: "
"""How a reason begins that names what was not compared."""
NO_RESULT = "no result: "
"""How a reason begins that names a collected example without a result."""


def set_aside_reports(folder: Path, report_dir: Path) -> None:
    """Move the reports of an earlier run from ``folder`` to their place in ``previous/`` of the report dir.

    The board goes first: if the new run dies now, no verdict of another run is left in its place. What an earlier run
    left there goes: ``previous/`` holds the reports of one run. Without a board the others are of a run that died while
    it wrote them, and are removed. A link stays, without what it led to; so does a device or a pipe. Raise UsageError
    if a file cannot be moved.
    """
    try:
        found = [name for name in REPORTS if (folder / name).is_file()]
        if has_board := any(name in found for name in _BOARDS):
            place = _place(folder, report_dir)
            for name in (*REPORTS, _LEDGER):
                (place / name).unlink(missing_ok=True)
        for name in found:
            if has_board:
                move_file(folder / name, place / name)
            else:
                remove_file(folder / name)
        # A process that was killed while it wrote leaves a temporary file.
        for path in [each for name in REPORTS for each in folder.glob(f".{name}.*")]:
            remove_file(path)
    except OSError as error:
        raise UsageError(
            f"report dir {folder}: the reports of an earlier run cannot be moved to {report_dir / PREVIOUS}: "
            f"{error.filename or ''}: {error.strerror or error}; choose another report dir"
        ) from None


def set_aside_ledger(ledger: Path, report_dir: Path) -> None:
    """Move the ledger of an earlier run to the place of that run's reports in ``previous/``."""
    move_file(ledger, _place(ledger.parent, report_dir) / _LEDGER)


def is_previous(folder: Path) -> bool:
    """Tell whether ``folder`` is, or is in, a ``previous/`` that a run made."""
    return any(each.name == PREVIOUS and _is_ours(each) for each in (folder, *folder.parents))


def _place(folder: Path, report_dir: Path) -> Path:
    """Return the folder in ``previous/`` for the files of ``folder``, and make it; UsageError if it is not of a run."""
    previous = report_dir / PREVIOUS
    is_folder = previous.is_dir() and not previous.is_symlink()
    if os.path.lexists(previous) and not (is_folder and (_is_ours(previous) or not os.listdir(previous))):
        what = "holds files that no run left there" if is_folder else "is no folder"
        raise UsageError(f"{previous}: {what}, and the reports of the last run go there; rename it")
    if not _is_ours(previous):
        write_atomically(previous / _NOTE, _ABOUT.encode())
    place = previous / folder.relative_to(report_dir)
    place.mkdir(parents=True, exist_ok=True)
    return place


def _is_ours(previous: Path) -> bool:
    return (previous / _NOTE).is_file()


def write_leaderboard(board: Leaderboard, path: str | Path, *, include_per_example: bool = False) -> None:
    """Write ``board`` as JSON; raise OSError and leave an older file as it was where that is impossible."""
    write_atomically(Path(path), encode_json(board.to_json(per_example=include_per_example)))
