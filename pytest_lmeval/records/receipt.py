"""Handle the environment variables with which a caller sets a run's id and the file for its exit code."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pytest_lmeval.atomic import write_atomically
from pytest_lmeval.errors import UsageError

RECEIPT = "LMEVAL_RUN_RECEIPT"
RUN_ID = "LMEVAL_RUN_ID"
_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def write_receipt(code: int) -> None:
    """Write the exit code to the file in ``LMEVAL_RUN_RECEIPT``, if that variable is set."""
    if path := os.environ.get(RECEIPT):
        write_atomically(Path(path), str(code).encode())


def read_receipt(path: Path) -> int | None:
    """Return the exit code in the file at ``path``, or None if there is no such file."""
    return int(path.read_bytes()) if path.is_file() else None


def named_run(given: str) -> dict[str, str]:
    """Return the manifest's ``run_id`` field; raise UsageError if ``given`` is not a plain name."""
    if not _ID.fullmatch(given):
        raise UsageError(f"{RUN_ID}: expected at most 64 letters, digits and _.-, got {given!r:.80}")
    return {"run_id": given}
