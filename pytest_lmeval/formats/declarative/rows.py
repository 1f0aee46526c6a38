"""The rows of a data set: from csv, jsonl and parquet files."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.lines import number_lines, parse_line

__all__ = ["READERS", "Rows", "RowsFault", "read_rows"]

READERS = (".csv", ".jsonl", ".parquet")
_MOST_FAULTS = 20


class RowsFault(Exception):
    """Why a file has no rows to give: a line for each thing that is wrong with it."""

    def __init__(self, *faults: str) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a file, each a mapping of columns, and the hash of the file."""

    path: Path
    rows: Sequence[Mapping[str, Any]]
    sha256: str

    @property
    def columns(self) -> list[str]:
        """Every column that any row has, in the order of their first appearance."""
        return list(dict.fromkeys(column for row in self.rows for column in row))


def read_rows(path: Path, max_line_bytes: int) -> Rows:
    """Return the rows of a file of one of the READERS; raise RowsFault."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RowsFault(f"{path.name}: cannot be read: {error.strerror}") from None
    if path.suffix == ".csv":
        rows = _csv_rows(path, data)
    elif path.suffix == ".jsonl":
        rows = _json_rows(path, data, max_line_bytes)
    else:
        rows = _parquet_rows(path, data)
    if not rows:
        raise RowsFault(f"{path.name}: no row in the file")
    return Rows(path, rows, hashlib.sha256(data).hexdigest())


def _json_rows(path: Path, data: bytes, max_line_bytes: int) -> list[dict[str, Any]]:
    rows, faults = [], []
    for number, line in number_lines(data):
        try:
            row = parse_line(line, max_line_bytes)
        except RecordRefused as refused:
            faults.append(f"{path.name}:{number}: {refused.rule}: {refused.detail}")
            continue
        if isinstance(row, dict):
            rows.append(row)
        else:
            faults.append(f"{path.name}:{number}: bad_type: expected an object, one on each line")
    if faults:
        more = [f"{path.name}: and {len(faults) - _MOST_FAULTS} more"] * (len(faults) > _MOST_FAULTS)
        raise RowsFault(*faults[:_MOST_FAULTS], *more)
    return rows


def _csv_rows(path: Path, data: bytes) -> list[dict[str, Any]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RowsFault(f"{path.name}: not UTF-8 (byte {error.start + 1})") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        if len(set(header)) != len(header) or not all(header):
            raise RowsFault(f"{path.name}:1: the first line must have a name for each column, each another")
        return [_csv_row(path, reader.line_num, header, cells) for cells in reader if cells]
    except csv.Error as error:
        raise RowsFault(f"{path.name}:{reader.line_num}: {error}") from None


def _csv_row(path: Path, line: int, header: Sequence[str], cells: Sequence[str]) -> dict[str, Any]:
    if len(cells) != len(header):
        raise RowsFault(f"{path.name}:{line}: {len(cells)} cells under {len(header)} columns")
    return dict(zip(header, cells, strict=True))


def _parquet_rows(path: Path, data: bytes) -> list[dict[str, Any]]:
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise RowsFault(f"{path.name}: parquet needs pyarrow: pip install 'pytest-lmeval[parquet]'") from None
    try:
        table = parquet.read_table(io.BytesIO(data)).to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise RowsFault(f"{path.name}: not parquet: {str(error)[:200]}") from None
    # Dates and the like become text: rows are JSON from here on.
    rows: list[dict[str, Any]] = json.loads(json.dumps(_finite(table), default=str))
    return rows


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
