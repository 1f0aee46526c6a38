"""Write a leaderboard file, and move old reports to ``previous/`` before a new run."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_lmeval.atomic import encode_json, move_file, remove_file, write_atomically
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.board import Leaderboard

_BOARDS = ("leaderboard.json", "comparison.json")
REPORTS = (*_BOARDS, "leaderboard.md", "report.html", "core.csv", "comparison.md")
PREVIOUS = "previous"
"""The folder for the previous run's files; it has the same layout as the report dir that contains it."""
_LEDGER, _NOTE = "ledger.jsonl", "README.txt"
_ABOUT = "The reports of the run before the last one. Each run replaces them: copy what you want to keep.\n"
NOT_COMPARED = "not compared: "
"""The prefix of a gate's reason about examples that were not compared."""
NO_RESULT = "no result: "
"""The prefix of a gate's reason about a collected example that has no result."""


def set_aside_reports(folder: Path, report_dir: Path) -> None:
    """Move an earlier run's reports from ``folder`` to ``report_dir/previous/``, and replace older reports there.

    Move the leaderboard first, so that no old verdict remains if the new run dies. A run that died while it wrote its
    reports has no leaderboard: remove its other reports. If a report is a link, move its target and keep the link.
    Leave devices and pipes in place. Raise UsageError if a file cannot be moved.
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
        # A process that is killed during a write leaves a temporary file.
        for path in [each for name in REPORTS for each in folder.glob(f".{name}.*")]:
            remove_file(path)
    except OSError as error:
        raise UsageError(
            f"report dir {folder}: the reports of an earlier run cannot be moved to {report_dir / PREVIOUS}: "
            f"{error.filename or ''}: {error.strerror or error}; choose another report dir"
        ) from None


def set_aside_ledger(ledger: Path, report_dir: Path) -> None:
    """Move an earlier run's ledger to the folder in ``previous/`` that holds the run's reports."""
    move_file(ledger, _place(ledger.parent, report_dir) / _LEDGER)


def is_previous(folder: Path) -> bool:
    """Return True if ``folder`` is a ``previous/`` folder that a run made, or is inside one."""
    return any(each.name == PREVIOUS and _is_ours(each) for each in (folder, *folder.parents))


def _place(folder: Path, report_dir: Path) -> Path:
    """Create the counterpart of ``folder`` in ``previous/``; raise UsageError if no run made ``previous/``."""
    previous = report_dir / PREVIOUS
    is_folder = previous.is_dir() and not previous.is_symlink()
    if os.path.lexists(previous) and not (is_folder and (_is_ours(previous) or not os.listdir(previous))):
        what = "holds files that no run wrote" if is_folder else "is not a folder"
        raise UsageError(f"{previous}: {what}, and the reports of the last run belong there; rename it")
    if not _is_ours(previous):
        write_atomically(previous / _NOTE, _ABOUT.encode())
    place = previous / folder.relative_to(report_dir)
    place.mkdir(parents=True, exist_ok=True)
    return place


def _is_ours(previous: Path) -> bool:
    return (previous / _NOTE).is_file()


def write_leaderboard(board: Leaderboard, path: str | Path, *, include_per_example: bool = False) -> None:
    """Write ``board`` as JSON; if that raises OSError, an existing file stays unchanged."""
    write_atomically(Path(path), encode_json(board.to_json(per_example=include_per_example)))
