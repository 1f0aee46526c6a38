"""The board's own file."""

from __future__ import annotations

from pathlib import Path

from pytest_lmeval.atomic import encode_json, write_atomically
from pytest_lmeval.leaderboard.board import Leaderboard

__all__ = ["write_leaderboard"]


def write_leaderboard(board: Leaderboard, path: str | Path, *, include_per_example: bool = False) -> None:
    """Write ``board`` as JSON; raise OSError and leave an older file as it was where that is impossible."""
    write_atomically(Path(path), encode_json(board.to_json(per_example=include_per_example)))
