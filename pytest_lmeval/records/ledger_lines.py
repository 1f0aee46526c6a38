"""The lines of a ledger, read: a header, a line per finished example, what it was a run of, a footer.

A run that is resumed adds a header to the same file, and what follows it. A line that holds no JSON object is damaged:
it is counted and passed over. Any other line must be as a run writes it, or the file is refused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Generic, TypeVar

from pytest_lmeval.errors import UsageError
from pytest_lmeval.frozen import dataclass

LEDGER_SCHEMA = "pytest-lmeval/ledger/2"
"""What is written; earlier versions are read, too."""
IN_MEMORY = 64_000_000
"""Until its lines have so many characters, all of a ledger stays in memory; then the texts of long lines do not."""
LONG = 2_000
"""From more characters on, a line is long."""
_NAME = LEDGER_SCHEMA.rpartition("/")[0]
_START = f'{{"header":{{"schema":"{_NAME}'.encode()
_BOM = b"\xef\xbb\xbf"
_HEAD = 1 << 20
# How many lines may be damaged ahead of the first header: a board has millions, and none of them is an object.
_AHEAD = 100
_TAIL = 1 << 16
_Result = TypeVar("_Result")


@dataclass(slots=True)
class LedgerRun(Generic[_Result]):
    """One run of a ledger, with the last result of every (task, id).

    ``run`` and ``footer`` are the two lines at the end of a run, and empty where it did not come to its end: where they
    are not its last lines, in this order.
    """

    header: Mapping[str, Any]
    results: dict[tuple[str, str], _Result] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)
    footer: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether the run scored all that it had to."""
        return bool(self.footer.get("complete"))

    def take(self, kind: str, value: Any) -> None:
        """Note a line after the header that is no result."""
        follows = kind == "footer" and self.run and not self.footer
        self.run = self.run if follows else value if kind == "run" else {}
        self.footer = value if follows else {}


@dataclass(slots=True)
class LedgerRuns(Generic[_Result]):
    """The runs of a ledger in their order.

    ``damaged`` counts the lines that hold no JSON object, of which ``first_damaged`` is the first, from 1.
    """

    runs: list[LedgerRun[_Result]] = field(default_factory=list)
    damaged: int = 0
    first_damaged: int = 0


def read_ledger(
    lines: Iterable[bytes], path: Path, make: Callable[[dict[str, Any]], _Result]
) -> LedgerRuns[_Result] | None:
    r"""Return the runs of the ledger at ``path`` from its lines, which end at ``\n`` alone.

    ``make`` turns the fields of a result into what is kept of it, and raises ValueError if one is wrong. Returns None
    for a file of another kind: its first JSON object is no header, or it starts with too many lines that are no JSON.
    There are no runs if the file may have been cut in its first line. Raises UsageError that names the line for an
    object that no run writes, and for the ledger of a newer version.
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
    """Tell whether the file at ``path`` is a ledger of whatever version, also one that was cut in its first line."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    # Nearly every file that is no ledger lacks the name, and need not be parsed.
    if _NAME.encode() not in head:
        return False
    lines = head.split(b"\n", _AHEAD + 1)[: _AHEAD + 1]
    first = next(((kind, value) for _, kind, value in _parsed(lines) if kind != "damaged"), None)
    if first is None:
        return head.removeprefix(_BOM).lstrip().startswith(_START)
    kind, value = first
    return kind == "header" and isinstance(value, dict) and str(value.get("schema")).startswith(f"{_NAME}/")


def is_complete(path: Path) -> bool:
    """Tell whether the last run in the ledger at ``path`` is complete; only the end of the file is read."""
    last: LedgerRun[None] = LedgerRun({})
    for _, kind, value in _parsed(_last_lines(path, 2)):
        last.take(kind, value if isinstance(value, dict) else {})
    return last.is_complete


def _parsed(lines: Iterable[bytes]) -> Iterator[tuple[int, str, Any]]:
    """Yield number, kind and value of every line that is not blank; the kind is that of a line, or ``damaged``."""
    # A run that reads no earlier one does without.
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


def _last_lines(path: Path, count: int) -> list[bytes]:
    """Return the last ``count`` lines of a file that are not blank, or all that it has."""
    with path.open("rb") as file:
        end = file.seek(0, 2)
        size = _TAIL
        while True:
            start = max(0, end - size)
            file.seek(start)
            # The first line may have been cut.
            lines = file.read().split(b"\n")[start > 0 :]
            found = [line for line in lines if line.strip()]
            if start == 0 or len(found) >= count:
                return found[-count:]
            size *= 4
