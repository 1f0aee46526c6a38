"""A leaderboard's file: written, removed before another run, and read back into results, tasks and facts."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_lmeval.atomic import encode_json, remove_file, write_atomically
from pytest_lmeval.leaderboard.board import Leaderboard

REPORTS = ("leaderboard.json", "leaderboard.md", "report.html", "core.csv", "comparison.json", "comparison.md")
NOT_COMPARED = "not compared: "
"""How a reason begins that names what was not compared."""
NO_RESULT = "no result: "
"""How a reason begins that names a collected example without a result."""


def remove_reports(folder: Path) -> list[str]:
    """Remove the reports of an earlier run from ``folder``, the board first; return what could not be removed and why.

    If the new run dies now, no verdict of another run is left in its place. A link stays, without what it led to; so
    does a device or a pipe.
    """
    try:
        found = os.listdir(folder)
    except OSError:  # there may be files in a folder that cannot be listed
        found = list(REPORTS)
    failures = []
    for name in REPORTS:
        # A process that was killed while it wrote leaves a temporary file.
        for path in (folder / each for each in found if each == name or each.startswith(f".{name}.")):
            try:
                remove_file(path)
            except OSError as error:
                failures.append(f"{path}: of an earlier run, cannot be removed: {error.strerror or error}")
    return failures


def write_leaderboard(board: Leaderboard, path: str | Path, *, include_per_example: bool = False) -> None:
    """Write ``board`` as JSON; raise OSError and leave an older file as it was where that is impossible."""
    write_atomically(Path(path), encode_json(board.to_json(per_example=include_per_example)))
