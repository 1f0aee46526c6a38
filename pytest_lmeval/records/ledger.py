"""Write a run's ledger, to which each result is appended."""

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
"""The number of older ledgers to keep in a folder."""
_SET_ASIDE = re.compile(r"ledger-\d{8}T\d{6}Z(?:-\d+)?\.jsonl")


class Ledger:
    """Writes ``ledger.jsonl`` in a folder, and locks the folder until the ledger is closed.

    ``append`` passes each line to the operating system before it returns. ``claim`` and ``open``, which precede the
    first request, raise UsageError if the file cannot be created. A later write error stops the ledger but not the run:
    the caller checks ``failure``.
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
        """Create and lock the folder; raise UsageError if that fails, or if another run has locked it."""
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
        """Claim the folder and start a new ledger, or, with ``resume``, continue the existing ledger.

        Without ``resume``, rename an existing ledger to ``ledger-<timestamp>.jsonl`` (``kept``). Keep the last KEPT
        renamed ledgers, remove the rest, and count the removed ones in ``removed``. Raise UsageError if the new ledger
        cannot be written.
        """
        self.claim()
        try:
            goes_on = resume and self.path.exists()
            if not goes_on:
                self._set_aside()
            self._file = self.path.open("ab" if goes_on else "xb", buffering=0)
            # A killed process may have left an incomplete last line.
            self._is_torn = goes_on
        except OSError as error:
            raise self._unusable(error) from None
        self._write(ledger_line("header", header))
        if self.failure is not None:
            raise self._unusable(self.failure)

    def append(self, line: str) -> None:
        """Append one result, given as JSON."""
        self._write(result_line(line))

    def stored(self, line: str) -> StoredLine | None:
        """Return the location of ``line``, the last result appended; or None if the ledger is closed or has failed."""
        if self._file is None or self.failure is not None:
            return None
        from pytest_lmeval.records.stored import StoredLines

        self._stored = self._stored or StoredLines(self.path, os.open(self.path, os.O_RDONLY))
        written = result_line(line)
        return self._stored.add(self._file.tell() - len(written), written)

    def close(self, footer: Mapping[str, Any] | None, run: Mapping[str, Any] | None = None) -> None:
        """Append the ``run`` line and the ``footer`` if they are given, close the file and release the folder."""
        if run is not None:
            self._write(ledger_line("run", run))
        if footer is not None:
            self._write(ledger_line("footer", footer))
        for file in (self._file, self._lock):
            if file is not None:
                file.close()
        self._file = self._lock = None

    def leave_replaced(self, report_dir: Path) -> None:
        """After a complete run, move the previous run's ledger, if complete, to its reports in ``previous/``."""
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
        # Many interrupted runs would fill the folder, but a user may still resume the most recent runs by hand.
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
            # If the process dies while it writes a line, the next run must start a new line.
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
    """Return the fields of a run's last two lines, under the keys ``run`` and ``footer``.

    ``board`` is the run's leaderboard. ``left_out`` holds the task and id of each result in the ledger that the run
    does not count. ``outside`` holds the requests that belong to no example.
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
    """Return a line of ``kind`` header, run or footer; values that JSON cannot represent become text."""
    value = {kind: {"schema": LEDGER_SCHEMA, **fields} if kind == "header" else fields}
    try:
        text = _encode(value)
    except ValueError:
        text = _encode(json.loads(json.dumps(value, default=str), parse_constant=str))
    return text.encode("ascii") + b"\n"


def result_line(result: str) -> bytes:
    """Return a ledger line from a result's JSON."""
    return result.encode("ascii") + b"\n"


# Options may have values of any type, because a conftest may set them.
_encode = json.JSONEncoder(allow_nan=False, default=str, separators=(",", ":")).encode
