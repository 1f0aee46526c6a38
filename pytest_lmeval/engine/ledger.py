"""The append-only record of a run: a header line, a line per finished example, what it was a run of, a footer."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from pytest_lmeval.errors import UsageError

__all__ = ["SCHEMA", "Ledger", "is_complete"]

SCHEMA = "pytest-lmeval/ledger/1"


class Ledger:
    """Writes ``ledger.jsonl`` in a folder that it keeps for itself while it is open.

    Every line is in the operating system's hands when ``append`` returns. A line that cannot be written stops the
    ledger, not the run: ``failure`` says why, and the caller decides.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ledger.jsonl"
        self.failure: OSError | None = None
        self._lock: IO[bytes] | None = None
        self._file: IO[bytes] | None = None

    def open(self, header: Mapping[str, Any], *, resume: bool = False) -> None:
        """Start the file; keep an older incomplete one as ``ledger-<timestamp>.jsonl``, or go on with it to ``resume``.

        Raise UsageError where the folder is not one, or another run has it.
        """
        folder = self.path.parent
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"report dir {folder}: exists and is not a folder; choose another with --lm-report-dir")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / ".lock").open("wb")
        except OSError as error:
            self._fail(error)
            return
        self._lock_folder(self._lock)
        try:
            goes_on = resume and self.path.exists() and not is_complete(self.path)
            if not goes_on:
                _set_aside_incomplete(self.path)
            self._file = self.path.open("ab" if goes_on else "wb", buffering=0)
            if goes_on:
                # What a killed process wrote last may lack its end.
                self._write(b"\n")
        except OSError as error:
            self._fail(error)
        self._write(_line({"header": {"schema": SCHEMA, **header}}))

    def append(self, line: str) -> None:
        """Add the JSON of one result."""
        self._write(line.encode("ascii") + b"\n")

    def close(self, footer: Mapping[str, Any] | None, run: Mapping[str, Any] | None = None) -> None:
        """Add what it was a run of and the footer, where the run came to its end, and give the folder free."""
        if run is not None:
            self._write(_line({"run": dict(run)}))
        if footer is not None:
            self._write(_line({"footer": dict(footer)}))
        for file in (self._file, self._lock):
            if file is not None:
                file.close()
        self._file = self._lock = None

    def _lock_folder(self, lock: IO[bytes]) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            self._lock = None
            folder = self.path.parent
            raise UsageError(f"report dir {folder}: in use by another run; choose one with --lm-report-dir") from None

    def _write(self, line: bytes) -> None:
        if self._file is None or self.failure is not None:
            return
        try:
            written = self._file.write(line)
            if written != len(line):
                raise OSError(f"only {written} of {len(line)} bytes were written")
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self.failure = self.failure or error


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"


def _set_aside_incomplete(path: Path) -> None:
    if not path.exists() or is_complete(path):
        return
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(path.stat().st_mtime))
    for attempt in range(1000):
        aside = path.with_name(f"ledger-{stamp}{f'-{attempt}' if attempt else ''}.jsonl")
        if not aside.exists():
            path.rename(aside)
            return


def is_complete(path: Path) -> bool:
    """Tell whether the ledger at ``path`` is that of a run that scored all it had to."""
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - (1 << 16)))
        last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
    try:
        return bool(json.loads(last).get("footer", {}).get("complete"))
    except (ValueError, AttributeError):  # cut in the middle of a line
        return False
