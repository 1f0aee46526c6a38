"""The append-only record of a run, while it goes on and at its end."""

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
from pytest_lmeval.leaderboard.board import Leaderboard
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.records.boardfile import set_aside_ledger
from pytest_lmeval.records.ledger_lines import LEDGER_SCHEMA, is_complete

if TYPE_CHECKING:
    from pytest_lmeval.records.stored import StoredLine, StoredLines

KEPT = 5
"""How many older ledgers stay in a folder."""
_SET_ASIDE = re.compile(r"ledger-\d{8}T\d{6}Z(?:-\d+)?\.jsonl")


class Ledger:
    """Writes ``ledger.jsonl`` in a folder that it keeps for itself while it is open.

    Every line is in the operating system's hands when ``append`` returns. A file that cannot be begun is a UsageError:
    nothing has been asked yet. A later line that cannot be written stops the ledger, not the run: ``failure`` says why,
    and the caller decides.
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
        """Make the folder and lock it for this run; raise UsageError if that cannot be, or another run has it."""
        if self._lock is not None:
            return
        folder = self.path.parent
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"report dir {folder}: exists and is not a folder; choose another with --lm-report-dir")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / ".lock").open("wb")
        except OSError as error:
            raise self._unusable(error) from None
        self._lock_folder(self._lock)

    def open(self, header: Mapping[str, Any], *, resume: bool = False) -> None:
        """Start the file, or go on with an older one to ``resume``; claim the folder if that has not been done.

        An older ledger that is not resumed is renamed ``ledger-<timestamp>.jsonl``: ``kept``. Of such ledgers the last
        KEPT stay; ``removed`` counts the others. Raise UsageError where the file cannot be written.
        """
        self.claim()
        try:
            goes_on = resume and self.path.exists()
            if not goes_on:
                self._set_aside()
            self._file = self.path.open("ab" if goes_on else "xb", buffering=0)
            # What a killed process wrote last may lack its end.
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
        """Return where the line of a result is, the last that was added; None where the ledger stopped before."""
        if self._file is None or self.failure is not None:
            return None
        from pytest_lmeval.records.stored import StoredLines

        self._stored = self._stored or StoredLines(self.path, os.open(self.path, os.O_RDONLY))
        written = result_line(line)
        return self._stored.add(self._file.tell() - len(written), written)

    def close(self, footer: Mapping[str, Any] | None, run: Mapping[str, Any] | None = None) -> None:
        """Add what it was a run of and the footer, where the run came to its end, and give the folder free."""
        if run is not None:
            self._write(ledger_line("run", run))
        if footer is not None:
            self._write(ledger_line("footer", footer))
        for file in (self._file, self._lock):
            if file is not None:
                file.close()
        self._file = self._lock = None

    def leave_replaced(self, report_dir: Path) -> None:
        """Move the older ledger beside its reports in ``previous/`` of the report dir, if it was complete.

        To be called when a complete run with all its files has replaced it.
        """
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
        # A folder that many runs were cut short in would fill up; the last ones may still be gone on with by hand.
        older = [path for path in self.path.parent.glob("ledger-*.jsonl") if _SET_ASIDE.fullmatch(path.name)]
        for path in sorted(older, key=lambda path: (path.stat().st_mtime, path.name))[:-KEPT]:
            if path != self.kept:
                with suppress(OSError):
                    path.unlink()
                    self.removed += 1

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
            if self._is_torn:
                self._file.write(b"\n")
            # Whatever ends the process in the middle of a line must not spoil the lines after it.
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
) -> dict[str, dict[str, Any]]:
    """Return the fields of the last two lines of a run that ended with ``board``, by kind.

    ``left_out`` are task and id of the results in the ledger that the run does not count.
    """
    tasks = [asdict(info) for info in infos]
    for task in tasks:
        for name in ("scores", "numbered"):
            if not task[name]:
                del task[name]
    run = {
        "tasks": tasks,
        "facts": asdict(board.facts),
        **_aggregates_record(aggregates),
        "left_out": list(left_out),
    }
    footer = {"complete": board.complete, "digest": board.digest, "counts": dict(board.counts)}
    return {"run": run, "footer": footer}


def _aggregates_record(aggregates: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the ledger's field of the aggregates; empty without aggregates, or if they cannot be JSON."""
    try:
        plain = json.loads(json.dumps(aggregates, default=str, allow_nan=False))
    except ValueError:
        return {}
    return {"aggregates": plain} if plain else {}


def ledger_line(kind: str, fields: Mapping[str, Any]) -> bytes:
    """Return the line of the ``kind`` header, run or footer.

    A number that JSON does not have becomes its name, what JSON has no word for at all its text.
    """
    value = {kind: {"schema": LEDGER_SCHEMA, **fields} if kind == "header" else fields}
    try:
        text = _encode(value)
    except ValueError:
        text = _encode(json.loads(json.dumps(value, default=str), parse_constant=str))
    return text.encode("ascii") + b"\n"


def result_line(result: str) -> bytes:
    """Return the line of a result from its JSON."""
    return result.encode("ascii") + b"\n"


# Paths and options may hold anything that a conftest gave them.
_encode = json.JSONEncoder(allow_nan=False, default=str, separators=(",", ":")).encode
