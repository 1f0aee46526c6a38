"""The exit code of a run that has its boards, in the file that ``lmeval run`` names by an environment variable."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_lmeval.atomic import write_atomically

RECEIPT = "LMEVAL_RUN_RECEIPT"


def write_receipt(code: int) -> None:
    """Write the exit code, where a file is named."""
    if path := os.environ.get(RECEIPT):
        write_atomically(Path(path), str(code).encode())


def read_receipt(path: Path) -> int | None:
    """Return the exit code that a run has written, None where none has."""
    return int(path.read_bytes()) if path.is_file() else None
