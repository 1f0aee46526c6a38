"""Write the append-only record of a run."""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.board import SERVICE, Leaderboard
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.records.boardfile import set_aside_ledger
from pytest_lmeval.records.ledger_lines import LEDGER_SCHEMA, is_complete
from pytest_lmeval.records.service import NONE_OUTSIDE, Outside

if TYPE_CHECKING:
    from pytest_lmeval.records.stored import StoredLine, StoredLines

KEPT = 5
"""The number of older ledgers that stay in a folder."""
_SET_ASIDE = re.compile(r"ledger-\d{8}T\d{6}Z(?:-\d+)?\.jsonl")


class Ledger:
    """Writes ``ledger.jsonl`` in a folder, which is locked while it is open.

    Each line is passed to the operating system before ``append`` returns. If the file cannot be created, before any
    request, raise UsageError. A later failure to write stops the ledger, not the run: the caller checks ``failure``.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ledger.jsonl"
        self.failure: OSError | None = None
        self.kept: Path | None = None
        self.removed = 0
        self._is_kept_for_now = False
        self._is_torn = False
        self._lock: IO[bytes] | None = None
        self._file: IO[bytes] | None = None
        self._stored: StoredLines | None = None

    def claim(self) -> None:
        """Create the folder and lock it for this run; raise UsageError if that fails, or another run locked it."""
        if self._lock is not None:
            return
        folder = self.path.parent
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"report dir {folder}: exists and is not a folder; choose another with --lm-report-dir")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = (folder / ".lock").open("wb")
        except OSError as error:
            raise self._unusable(error) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise UsageError(f"report dir {folder}: in use by another run; choose one with --lm-report-dir") from None
        self._lock = lock

    def open(self, header: Mapping[str, Any], *, resume: bool = False) -> None:
        """Start the file, or continue an older one to ``resume``; claim the folder first.

        An older ledger that is not resumed is renamed ``ledger-<timestamp>.jsonl`` (``kept``). The last KEPT such
        ledgers stay; ``removed`` counts the removed ledgers. Raise UsageError if the file cannot be written.
        """
        self.claim()
        try:
            goes_on = resume and self.path.exists()
            if not goes_on:
                self._set_aside()
            self._file = self.path.open("ab" if goes_on else "xb", buffering=0)
            # The last line of a killed process may lack its end.
            self._is_torn = goes_on
        except OSError as error:
            raise self._unusable(error) from None
        self._write(ledger_line("header", header))
        if self.failure is not None:
            raise self._unusable(self.failure)

    def append(self, line: str) -> None:
        """Add the JSON of one result."""
        self._write(result_line(line))

    def stored(self, line: str) -> StoredLine | None:
        """Return the place of the result that was added last; None if the ledger is not open, or a write has failed."""
        if self._file is None or self.failure is not None:
            return None
        from pytest_lmeval.records.stored import StoredLines

        self._stored = self._stored or StoredLines(self.path, os.open(self.path, os.O_RDONLY))
        written = result_line(line)
        return self._stored.add(self._file.tell() - len(written), written)

    def close(self, footer: Mapping[str, Any] | None, run: Mapping[str, Any] | None = None) -> None:
        """Add the ``run`` line and the ``footer`` of a run that finished, and release the folder."""
        if run is not None:
            self._write(ledger_line("run", run))
        if footer is not None:
            self._write(ledger_line("footer", footer))
        for file in (self._file, self._lock):
            if file is not None:
                file.close()
        self._file = self._lock = None

    def leave_replaced(self, report_dir: Path) -> None:
        """Move an older complete ledger to its reports in ``previous/``, once a complete run has replaced it."""
        if self._is_kept_for_now and self.kept is not None:
            with suppress(OSError):
                set_aside_ledger(self.kept, report_dir)
            self.kept = None

    def _set_aside(self) -> None:
        if not self.path.exists():
            return
        self._is_kept_for_now = is_complete(self.path)
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.path.stat().st_mtime))
        names = (f"ledger-{stamp}{f'-{attempt}' if attempt else ''}.jsonl" for attempt in count())
        self.kept = next(path for path in map(self.path.with_name, names) if not path.exists())
        self.path.rename(self.kept)
        self._remove_oldest()

    def _remove_oldest(self) -> None:
        # Many runs that were cut short would fill the folder; the user may still resume the last ones by hand.
        older = [path for path in self.path.parent.glob("ledger-*.jsonl") if _SET_ASIDE.fullmatch(path.name)]
        for path in sorted(older, key=lambda path: (path.stat().st_mtime, path.name))[:-KEPT]:
            if path != self.kept:
                with suppress(OSError):
                    path.unlink()
                    self.removed += 1

    def _write(self, line: bytes) -> None:
        if self._file is None or self.failure is not None:
            return
        try:
            if self._is_torn:
                self._file.write(b"\n")
            # If the process dies within a line, the next run must not continue that line.
            self._is_torn = True
            written = self._file.write(line)
            self._is_torn = False
            if written != len(line):
                raise OSError(f"only {written} of {len(line)} bytes were written")
        except OSError as error:
            self.failure = error

    def _unusable(self, error: OSError) -> UsageError:
        why = f"{self.path.name} cannot be written: {error.strerror or error}"
        return UsageError(f"report dir {self.path.parent}: {why}; choose another with --lm-report-dir")


def ending(
    board: Leaderboard,
    infos: Iterable[TaskInfo],
    aggregates: Mapping[str, Mapping[str, Any]],
    left_out: Iterable[tuple[str, str]] = (),
    outside: Outside = NONE_OUTSIDE,
) -> dict[str, dict[str, Any]]:
    """Return the fields of the last two lines of a run that ended with ``board``, by kind.

    ``left_out`` has the task and id of results in the ledger that the run does not count. ``outside`` are the requests
    outside of examples.
    """
    optional = ("scores", "numbered")
    tasks = [{name: value for name, value in asdict(info).items() if value or name not in optional} for info in infos]
    run: dict[str, Any] = {"tasks": tasks, "facts": asdict(board.facts)}
    with suppress(ValueError):  # aggregates that are not JSON
        if plain := json.loads(json.dumps(aggregates, default=str, allow_nan=False)):
            run["aggregates"] = plain
    run["left_out"] = list(left_out)
    if outside:
        run[SERVICE] = outside.to_json()
    footer = {"complete": board.complete, "digest": board.digest, "counts": dict(board.counts)}
    return {"run": run, "footer": footer}


def ledger_line(kind: str, fields: Mapping[str, Any]) -> bytes:
    """Return the line of the ``kind`` header, run or footer; write values that JSON lacks as text."""
    value = {kind: {"schema": LEDGER_SCHEMA, **fields} if kind == "header" else fields}
    try:
        text = _encode(value)
    except ValueError:
        text = _encode(json.loads(json.dumps(value, default=str), parse_constant=str))
    return text.encode("ascii") + b"\n"


def result_line(result: str) -> bytes:
    """Return the line of a result from its JSON."""
    return result.encode("ascii") + b"\n"


# Paths and options may hold any value from a conftest.
_encode = json.JSONEncoder(allow_nan=False, default=str, separators=(",", ":")).encode
