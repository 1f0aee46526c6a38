"""Read a ledger: a header, one line per finished example, a line with the run's tasks and facts, and a footer.

A resumed run appends another header and further lines. The reader counts and skips damaged lines, which hold no JSON
object. The reader rejects a file with a JSON object that no run writes.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Generic, TypeVar

from pytest_lmeval.errors import UsageError
from pytest_lmeval.frozen import dataclass

LEDGER_SCHEMA = "pytest-lmeval/ledger/2"
"""The schema of new ledgers; ledgers of earlier versions can still be read."""
IN_MEMORY = 64_000_000
"""The number of characters after which the texts of long lines no longer stay in memory."""
LONG = 2_000
"""The number of characters above which a line is long."""
_NAME = LEDGER_SCHEMA.rpartition("/")[0]
_START = f'{{"header":{{"schema":"{_NAME}'.encode()
_BOM = b"\xef\xbb\xbf"
_HEAD = 1 << 20
# How many damaged lines may precede the first header; a leaderboard may have millions of lines without a JSON object.
_AHEAD = 100
_Result = TypeVar("_Result")


@dataclass(slots=True)
class LedgerRun(Generic[_Result]):
    """One run in a ledger, with the last result for each (task, id).

    ``run`` and ``footer`` are the last two lines of a finished run; they are empty for an unfinished run.
    """

    header: Mapping[str, Any]
    results: dict[tuple[str, str], _Result] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)
    footer: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """True if the run is complete according to its footer."""
        return bool(self.footer.get("complete"))

    def take(self, kind: str, value: Any) -> None:
        """Store a ``run`` line, or the ``footer`` after it; any other line clears both."""
        follows = kind == "footer" and self.run and not self.footer
        self.run = self.run if follows else value if kind == "run" else {}
        self.footer = value if follows else {}


@dataclass(slots=True)
class LedgerRuns(Generic[_Result]):
    """A ledger's runs in order, the number of ``damaged`` lines, and the 1-based number of the first damaged line."""

    runs: list[LedgerRun[_Result]] = field(default_factory=list)
    damaged: int = 0
    first_damaged: int = 0


def read_ledger(
    lines: Iterable[bytes], path: Path, make: Callable[[dict[str, Any]], _Result]
) -> LedgerRuns[_Result] | None:
    r"""Return the runs of the ledger at ``path`` from its ``lines``, which must be separated by ``\n`` only.

    ``make`` returns the part of a result to keep, or raises ValueError for an invalid field. Return None if the file is
    not a ledger: its first JSON object is not a header, or too many damaged lines precede it. A file that ends within
    its first line has no runs. Raise UsageError if a newer version wrote the file, or if a line holds an object that no
    run writes.
    """
    from pytest_lmeval.records.recorded import check_schema

    ledger: LedgerRuns[_Result] = LedgerRuns()
    run: LedgerRun[_Result] = LedgerRun({})
    for number, kind, value in _parsed(lines):
        if kind == "header" and isinstance(value, dict):
            check_schema(path, value.get("schema"), LEDGER_SCHEMA)
            run = LedgerRun(value)
            ledger.runs.append(run)
            continue
        if not ledger.runs and (kind != "damaged" or number > _AHEAD):
            return None
        if kind == "result":
            try:
                run.results[_key(value)] = make(value)
            except ValueError as error:
                raise UsageError(f"{path}:{number}: not a result: {error}") from None
        elif kind == "damaged":
            ledger.damaged += 1
            ledger.first_damaged = ledger.first_damaged or number
        elif not isinstance(value, dict):
            raise UsageError(f"{path}:{number}: {kind}: expected an object, got {value!r:.80}")
        if run.run or kind == "run":
            run.take(kind, value)
    return ledger


def is_ledger(path: Path) -> bool:
    """Return True if the file at ``path`` is a ledger of any version, even if it ends within its first line."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    # Most other files do not contain the name, so there is no need to parse them.
    if _NAME.encode() not in head:
        return False
    lines = head.split(b"\n", _AHEAD + 1)[: _AHEAD + 1]
    first = next(((kind, value) for _, kind, value in _parsed(lines) if kind != "damaged"), None)
    if first is None:
        return head.removeprefix(_BOM).lstrip().startswith(_START)
    kind, value = first
    return kind == "header" and isinstance(value, dict) and str(value.get("schema")).startswith(f"{_NAME}/")


def is_complete(path: Path) -> bool:
    """Return True if the last run in the ledger at ``path`` is complete; parse only the file's last two lines."""
    last: LedgerRun[None] = LedgerRun({})
    with path.open("rb") as lines:
        ends = deque((line for line in lines if not line.isspace()), 2)
    for _, kind, value in _parsed(ends):
        last.take(kind, value if isinstance(value, dict) else {})
    return last.is_complete


def _parsed(lines: Iterable[bytes]) -> Iterator[tuple[int, str, Any]]:
    """Yield the number, kind and value of each non-blank line; the kind of an unreadable line is ``damaged``."""
    # Import this late: a run that reads no earlier run does not need it.
    from pytest_lmeval.records.recorded import parse_object

    for number, line in enumerate(lines, start=1):
        text = (line if number > 1 else line.removeprefix(_BOM)).strip(b" \t\r\n")
        if not text:
            continue
        record = parse_object(text)
        if record is None:
            yield number, "damaged", None
        elif "task" in record:
            yield number, "result", record
        else:
            kind = next((kind for kind in ("header", "run", "footer") if kind in record), "")
            yield (number, kind, record[kind]) if kind else (number, "result", record)


def _key(record: Mapping[str, Any]) -> tuple[str, str]:
    task, example = record.get("task"), record.get("id")
    if not isinstance(task, str) or not isinstance(example, str):
        name, value = ("id", example) if isinstance(task, str) else ("task", task)
        raise ValueError(f"{name}: expected text, got {value!r:.80}")
    return sys.intern(task), example
