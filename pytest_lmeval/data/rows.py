"""The rows of a csv, jsonl or parquet file: the one reader for every kind of task."""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_lmeval.data.limits import TooLarge, check_bytes, check_rows, read_files
from pytest_lmeval.data.lines import number_lines, parse_line
from pytest_lmeval.errors import LmevalError, RecordRefused

# A row may hold a long document: what limits a line of a task file does not limit data.
_LONGEST_ROW = 64 << 20
_LONGEST_CELL = 16 << 20
_MOST_FAULTS = 20
_BATCH = 4096
_CSV_LIMIT = threading.Lock()


Numbered = tuple[list[dict[str, Any]], Sequence[int]]
"""The rows of a file, and where each of them is."""


class BadRows(LmevalError):
    """Why a file has no rows to give; ``faults`` are ``name:line: what is wrong``, one for each."""

    def __init__(self, *faults: str) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


def parse_rows(path: Path, data: bytes) -> list[dict[str, Any]]:
    """Return the rows of the file at ``path``, whose bytes are ``data``; raise BadRows.

    Values are text in csv, JSON in jsonl, and what pyarrow makes of them in parquet. Columns have different names. A
    file of more bytes, uncompressed, or rows than may be is refused: of parquet by what it says of itself, and as soon
    as it turns out to hold more.
    """
    return numbered_rows(path, data)[0]


def numbered_rows(path: Path, data: bytes) -> Numbered:
    """Return what :func:`parse_rows` does, and the line on which each row begins: of parquet its number, from 1."""
    try:
        check_bytes(path.name, len(data))
        return _PARSERS[path.suffix](path, data)
    except TooLarge as error:
        raise BadRows(str(error)) from None


def read_rows(path: Path) -> tuple[list[dict[str, Any]], bytes]:
    """Return the rows of the file at ``path``, and its bytes; raise BadRows, and OSError where it cannot be read."""
    try:
        (data,) = read_files([path])
    except TooLarge as error:
        raise BadRows(str(error)) from None
    return parse_rows(path, data), data


def _jsonl(path: Path, data: bytes) -> Numbered:
    check_rows(path.name, data.count(b"\n"))
    rows, lines, faults = [], [], []
    for number, line in number_lines(data):
        try:
            row = parse_line(line, _LONGEST_ROW)
        except RecordRefused as refused:
            faults.append(f"{path.name}:{number}: {refused.detail}")
            continue
        if isinstance(row, dict):
            rows.append(row)
            lines.append(number)
        else:
            faults.append(f"{path.name}:{number}: expected an object, got {row!r:.80}")
    if faults:
        more = [f"{path.name}: and {len(faults) - _MOST_FAULTS} more"] * (len(faults) > _MOST_FAULTS)
        raise BadRows(*faults[:_MOST_FAULTS], *more)
    return rows, lines


def _csv(path: Path, data: bytes) -> Numbered:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = data[: error.start].count(b"\n") + 1
        raise BadRows(f"{path.name}:{number}: not UTF-8") from None
    check_rows(path.name, data.count(b"\n"))
    lines = _csv_lines(path, text)
    if not lines:
        return [], []
    (_, header), *rest = lines
    if len(set(header)) < len(header) or not all(header):
        raise BadRows(f"{path.name}:1: expected a different name for every column, got {', '.join(header)}")
    return [_csv_row(path, number, header, cells) for number, cells in rest], [number for number, _ in rest]


def _csv_lines(path: Path, text: str) -> list[tuple[int, list[str]]]:
    """Return the cells of each row that is not blank, with the line on which it begins: a cell may go over several."""
    lines: list[tuple[int, list[str]]] = []
    start = 1
    with _long_cells():
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        try:
            for cells in reader:
                lines += [(start, cells)] if cells else []
                start = reader.line_num + 1
        except csv.Error as error:
            detail = "a quote that does not end" if "unexpected end" in str(error) else str(error)
            raise BadRows(f"{path.name}:{start}: {detail}") from None
    return lines


def _csv_row(path: Path, number: int, header: Sequence[str], cells: Sequence[str]) -> dict[str, Any]:
    if len(cells) != len(header):
        raise BadRows(f"{path.name}:{number}: {len(cells)} cells, the header has {len(header)} ({', '.join(header)})")
    return dict(zip(header, cells, strict=True))


def _parquet(path: Path, data: bytes) -> Numbered:
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise BadRows(f"{path.name}: reading parquet needs pyarrow: pip install 'pytest-lmeval[parquet]'") from None
    try:
        file = parquet.ParquetFile(io.BytesIO(data))
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        check_rows(path.name, file.metadata.num_rows)
        check_bytes(path.name, sum(group.total_byte_size for group in groups))
        rows: list[dict[str, Any]] = []
        size = 0
        for batch in file.iter_batches(_BATCH):
            # Values that repeat are stored once, and cost what they are.
            size += batch.nbytes
            check_bytes(path.name, size)
            rows += batch.to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise BadRows(f"{path.name}: not parquet: {str(error)[:200]}") from None
    return rows, range(1, len(rows) + 1)


@contextmanager
def _long_cells() -> Iterator[None]:
    # The limit belongs to the process: whoever else reads csv in it keeps theirs.
    with _CSV_LIMIT:
        before = csv.field_size_limit(_LONGEST_CELL)
        try:
            yield
        finally:
            csv.field_size_limit(before)


_PARSERS: Mapping[str, Callable[[Path, bytes], Numbered]] = MappingProxyType(
    {".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet}
)
SUFFIXES = tuple(_PARSERS)
