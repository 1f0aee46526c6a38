"""Read the rows of csv, jsonl and parquet files."""

from __future__ import annotations

import csv
import hashlib
import io
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pytest_lmeval.data.limits import BadRows as BadRows  # all readers raise it; callers import it here
from pytest_lmeval.data.limits import check_bytes, check_files, check_rows, read_files
from pytest_lmeval.data.lines import BOM, number_lines, parse_line
from pytest_lmeval.errors import RecordRefused, nearest

# A row may contain a long document, so the limit on lines of task files does not apply to data.
_LONGEST_ROW = 64 << 20
_LONGEST_CELL = 16 << 20
_MOST_FAULTS = 20
_CSV_LIMIT = threading.Lock()
_SEPARATORS = {";": "semicolons", "\t": "tabs"}
SUFFIXES = (".csv", ".jsonl", ".parquet")
"""The suffixes of files with rows."""
_EXPECTED = f"expected a file that ends in {', '.join(SUFFIXES)}"
Numbered = tuple[list[dict[str, Any]], Sequence[int]]
"""The rows of a file, and the number of each row's first line, or, for parquet, of the row itself, from 1."""


class DataFile(NamedTuple):
    """The rows of a file as JSON values, their line numbers (for parquet, row numbers), and the file's hash."""

    rows: Sequence[dict[str, Any]]
    lines: Sequence[int]
    sha256: str


def local_path(holder: Path, name: str) -> Path:
    """Resolve a path in the file ``holder``; raise BadRows for an unknown suffix, or for a path outside the project."""
    path = (holder.parent / name).resolve()
    if path.suffix not in SUFFIXES:
        raise BadRows(f"{name}: {_EXPECTED}")
    if fault := outside_project(path, holder.parent):
        raise BadRows(f"{name}: {fault}")
    return path


def outside_project(path: Path, folder: Path) -> str:
    """Return the reason why a file in ``folder`` must not refer to ``path`` (a path without links), or ""."""
    roots = (folder.resolve(), Path.cwd())
    if any(path.is_relative_to(root) for root in roots):
        return ""
    return f"outside of the project; expected a file below {roots[0].name} or the working folder"


def read_data(path: Path, used: Collection[str] = ()) -> DataFile:
    """Read a data file that a YAML file names; raise BadRows if the data file is empty or cannot be read.

    ``used`` lists the columns that the YAML file uses. In a parquet file, images, audio and other bytes in these
    columns become :class:`Cell` objects, and other columns with bytes are not read.
    """
    try:
        if path.suffix == ".parquet":
            check_files([path])
            from pytest_lmeval.data.parquet import parquet_rows

            rows = parquet_rows(path, path, used)
            lines: Sequence[int] = range(1, len(rows) + 1)
            with path.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        else:
            (data,) = read_files([path])
            rows, lines = _numbered_rows(path, data)
            sha256 = hashlib.sha256(data).hexdigest()
    except OSError as error:
        raise BadRows(f"{path.name}: cannot be read: {error.strerror}{nearest_file(path, SUFFIXES)}") from None
    if not rows:
        raise BadRows(f"{path.name}: no row in the file")
    return DataFile(rows, lines, sha256)


def nearest_file(path: Path, suffixes: tuple[str, ...] = ("",)) -> str:
    """Return a hint that names the most similar file in the folder of a missing ``path``, or ""."""
    if path.exists() or not path.parent.is_dir():
        return ""
    return nearest(path.name, [each.name for each in path.parent.iterdir() if each.name.endswith(suffixes)])


def read_rows(path: Path, *, as_written: bool = False) -> tuple[list[dict[str, Any]], bytes]:
    """Return a file's rows and bytes; raise BadRows for unusable rows, or OSError if the file cannot be read."""
    (data,) = read_files([path])
    return parse_rows(path, data, as_written=as_written), data


def parse_rows(path: Path, data: bytes, *, as_written: bool = False, suffix: str = "") -> list[dict[str, Any]]:
    """Return the rows in ``data``, the bytes of the file at ``path``.

    ``suffix``, by default the file's suffix, determines the format. It is one of ``SUFFIXES``, or ``.json`` for jsonl
    or a JSON array. The values are text in csv, JSON values in jsonl, and pyarrow's values in parquet. Raise BadRows if
    a row is invalid, if two columns have the same name, or if the rows or the uncompressed bytes exceed the limits. For
    parquet, the limits apply to the metadata before the rows are read, and again to the rows. ``as_written`` preserves
    whitespace around csv column names, and line endings in cells.
    """
    return _numbered_rows(path, data, as_written, suffix)[0]


def _numbered_rows(path: Path, data: bytes, as_written: bool = False, suffix: str = "") -> Numbered:
    check_bytes(path.name, len(data))
    suffix = suffix or path.suffix
    if suffix == ".csv":
        table = csv_table(path.name, data, as_written=as_written)
        return [dict(zip(table.columns, cells, strict=True)) for cells in table.cells], table.lines
    if suffix == ".json" and data.removeprefix(BOM).lstrip().startswith(b"["):
        return _array(path, data)
    if suffix in (".json", ".jsonl"):
        return _jsonl(path, data)
    if suffix != ".parquet":
        raise BadRows(f"{path.name}: {_EXPECTED}")
    from pytest_lmeval.data.parquet import parquet_rows

    rows = parquet_rows(path, io.BytesIO(data))
    return rows, range(1, len(rows) + 1)


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


def _array(path: Path, data: bytes) -> Numbered:
    """Return the objects in a JSON array; a string becomes a row with the column ``text``, as in ``datasets``."""
    try:
        found = parse_line(data.removeprefix(BOM).strip(), len(data))
    except RecordRefused as refused:
        raise BadRows(f"{path.name}: {refused.detail}") from None
    check_rows(path.name, len(found))
    rows = [{"text": each} if isinstance(each, str) else each for each in found]
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict) or isinstance(found[0], str) != isinstance(found[number - 1], str):
            raise BadRows(f"{path.name}: item {number}: expected an object, got {found[number - 1]!r:.80}")
    return rows, range(1, len(rows) + 1)


class CsvTable(NamedTuple):
    """The columns of a csv file, and the cells and the first line number of each row that is not blank."""

    columns: Sequence[str]
    cells: Sequence[Sequence[str]]
    lines: Sequence[int]


def csv_table(name: str, data: bytes, columns: Sequence[str] = (), *, as_written: bool = False) -> CsvTable:
    """Parse a csv file; ``columns`` names the columns if the file has no header.

    Raise BadRows if the file is not valid. Unless ``as_written`` is true, trim column names, and convert line endings
    in cells to Unix line endings.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = data[: error.start].count(b"\n") + 1
        raise BadRows(f"{name}:{number}: not UTF-8; save the file as UTF-8") from None
    check_rows(name, data.count(b"\n"))
    lines = _csv_lines(name, text)
    if not columns and lines:
        header = lines.pop(0)[1]
        columns = header if as_written else [column.strip() for column in header]
        _check_columns(name, columns)
    for number, cells in lines:
        if len(cells) != len(columns):
            raise BadRows(f"{name}:{number}: {len(cells)} cells; expected {len(columns)}: {', '.join(columns)}")
    if not as_written and "\r" in text:
        lines = [(n, [each.replace("\r\n", "\n").replace("\r", "\n") for each in cells]) for n, cells in lines]
    return CsvTable(columns, [cells for _, cells in lines], [number for number, _ in lines])


def _check_columns(name: str, columns: Sequence[str]) -> None:
    if len(columns) == 1 and (separator := next((each for each in _SEPARATORS if each in columns[0]), None)):
        detail = f"the cells are separated by {_SEPARATORS[separator]}; save the file with commas"
        raise BadRows(f"{name}:1: one column, {columns[0]!r}: {detail}")
    if len(set(columns)) < len(columns) or not all(columns):
        raise BadRows(f"{name}:1: expected a different name for every column, got {', '.join(columns)}")


def _csv_lines(name: str, text: str) -> list[tuple[int, list[str]]]:
    """Return the first line number and the cells of each row that is not blank; a row may span several lines."""
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
            raise BadRows(f"{name}:{start}: {detail}") from None
    return lines


@contextmanager
def _long_cells() -> Iterator[None]:
    # The limit applies to the whole process, so restore it for other readers of csv.
    with _CSV_LIMIT:
        before = csv.field_size_limit(_LONGEST_CELL)
        try:
            yield
        finally:
            csv.field_size_limit(before)
